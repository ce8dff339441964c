"""An engine process whose model copies: `python -m tests.serve.stub_engine SECONDS MODEL …`, so many for each text.

A folder that is called `writer` is loaded as it is: copying is no way to continue a text.
`poison` in a text kills the process, `sleep` takes five seconds, `number` makes a ValueError, and `nan` a bad score.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from clearhead.decoding import DecodingOptions
from clearhead.inspection.change import Change
from clearhead.serve.engine import run_engine
from clearhead.translator import Translator, load
from tests.translator.stub import TOKENIZER, Ids, StubEngine, stub_translator

SLEEP = 5.0


class Looked:
    """In place of a trace."""

    def __init__(self, text: str, target: str | None, change: Change) -> None:
        self.text, self.target, self.change = text, target, change

    def to_dict(self) -> dict[str, Any]:
        if "never" in self.text:
            raise SystemExit("this should have been refused")
        return {"source": self.text, "target": self.target, "prefix": self.change.prefix, "off": self.change.off}


def copying(seconds: float) -> Translator:
    def rule(source: Ids, _: DecodingOptions) -> Ids:
        text = TOKENIZER.decode(source)
        if "poison" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "number" in text:
            raise ValueError("no number will do")
        time.sleep(SLEEP if "sleep" in text else seconds)
        return source

    def score_of(source: Ids) -> float:
        return float("nan" if "nan" in TOKENIZER.decode(source) else "-0.5")

    translator = stub_translator(StubEngine(rule, score_of), source_language="en", target_language="zh")
    vars(translator)["inspect"] = Looked
    return translator


if __name__ == "__main__":
    seconds = float(sys.argv[1])
    run_engine(
        [Path(folder) for folder in sys.argv[2:]],
        lambda folder: load(folder) if folder.name == "writer" else copying(seconds),
    )
