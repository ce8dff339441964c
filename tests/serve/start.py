"""The real server with other limits or another engine process: `python -m tests.serve.start JSON`."""

import json
import sys
from pathlib import Path

from clearhead.errors import exit_code_of
from clearhead.serve.options import Limits, ServeOptions
from clearhead.serve.server import serve


def options(given: dict[str, object]) -> ServeOptions:
    values = {**given, "models": [Path(str(model)) for model in given["models"]]}  # type: ignore[attr-defined]
    values["limits"] = Limits(**given.get("limits", {}))  # type: ignore[arg-type]
    if "api_keys" in values:
        values["api_keys"] = Path(str(values["api_keys"]))
    return ServeOptions(**values)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(exit_code_of(lambda: serve(options(json.loads(sys.argv[1])))))
