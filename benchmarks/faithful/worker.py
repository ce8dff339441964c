"""Translates for the benchmark: JSON objects in, one a line, and one out for each. Of any tree that PYTHONPATH names.

It imports nothing of the benchmark, and of the package what a user would, so that older trees can be asked too.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def main() -> None:
    out, sys.stdout = sys.stdout, sys.stderr  # what the package prints must not stand between the answers
    import clearhead

    translator = clearhead.load(sys.argv[1])
    tell(out, {"languages": translator.languages, "engine": translator.engine.name, "home": clearhead.__file__})
    for line in sys.stdin:
        asked = json.loads(line)
        tell(out, ANSWERS[asked["what"]](translator, asked))


def tell(out: Any, answer: Any) -> None:
    out.write(json.dumps(answer, ensure_ascii=False) + "\n")
    out.flush()


def guarded(translator: Any, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Best translations with their confidence, warnings and details."""
    found = translator.alternatives(asked["texts"], None, glossary_of(asked["glossary"]))
    return [
        {
            "text": best.text,
            "confidence": best.confidence,
            "warnings": list(best.warnings),
            "details": {name: list(said) for name, said in (getattr(best, "details", None) or {}).items()},
        }
        for best, *_ in found
    ]


def glossary_of(entries: list[list[str]]) -> Any:
    if not entries:
        return None
    from clearhead.translator import read_glossary

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "glossary.tsv"
        file.write_text("".join("\t".join(entry) + "\n" for entry in entries), encoding="utf-8")
        return read_glossary(file)


def timed(translator: Any, asked: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    texts = translator.translate(asked["texts"])
    return {"seconds": time.perf_counter() - started, "texts": texts}


def whole(translator: Any, asked: dict[str, Any]) -> list[str]:
    """Each text in one search of the engine, without anything around it."""
    sources = [translator.source_tokenizer.encode(text) for text in asked["texts"]]
    found = translator.engine.translate(sources, translator.options(None))
    return [translator.target_tokenizer.decode(best.tokens) for best, *_ in found]


ANSWERS = {"guarded": guarded, "timed": timed, "whole": whole}

if __name__ == "__main__":
    main()
