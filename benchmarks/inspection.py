"""What a look inside costs: seconds, sizes, and the first paint of its page, by the number of tokens.

    python -m benchmarks.inspection RUN [--chromium /usr/bin/chromium]

RUN is a trained model; `base` sizes are there with random weights and given targets. Writes INSPECTION.md.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import describe
from clearhead.data.tokenizer import LEARNED
from clearhead.decoding import DecodingOptions, Demand
from clearhead.inspection.inspect import Question, Subject, inspect
from clearhead.inspection.report import report
from clearhead.model import SIZES, TransformerOptions, build
from clearhead.translator import load

HERE = Path(__file__).parent
LENGTHS = (20, 62, 126, 510)  # tokens of each side, its end not counted
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    trained = load(arguments.run, engine="native").subject()
    words = len(trained.source_tokenizer)
    base = SIZES["base"]
    assert isinstance(base, TransformerOptions)
    torch.manual_seed(1)
    sizes = TransformerOptions(words, words, base.width, base.heads)
    random = Subject(
        build(sizes).eval(), sizes, trained.source_tokenizer, trained.source_tokenizer, ("en", "de"), "base"
    )
    rows = [
        row(name, subject, n, arguments.chromium)
        for n in LENGTHS
        for name, subject in (("trained", trained), ("base, random", random))
    ]
    text = page(rows)
    (HERE / "INSPECTION.md").write_text(text, encoding="utf-8")
    print(text)


def row(name: str, subject: Subject, tokens: int, chromium: str) -> dict[str, Any]:
    """The fastest of a few rounds: others are slowed down by something else."""
    tokenizer = subject.source_tokenizer
    text = ""
    place = LEARNED
    while len(tokenizer.encode(text)) < tokens:  # words of the vocabulary, one after another
        text = f"{text} {tokenizer.decode([place])}".strip()
        place += 7
    while len(tokenizer.encode(text)) > tokens:
        text = text[:-1]
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        data = inspect(subject, Question(text, text, DecodingOptions(), Demand())).to_dict()
        seconds.append(time.perf_counter() - started)
    html = report([data])
    return {
        "model": name,
        "tokens": tokens + 1,
        "seconds": min(seconds),
        "json": len(json.dumps(data)),
        "html": len(html.encode()),
        "form": f"top {data['attention'][0]['k']}" if data["limits"]["reduced"] else "all weights",
        **painted(html, chromium),
    }


def painted(html: str, chromium: str) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(html, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        paints, nodes = [], 0
        for _ in range(ROUNDS):
            view = browser.new_page()
            view.goto(file.as_uri())
            view.wait_for_timeout(300)
            paints.append(view.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            nodes = view.evaluate("document.querySelectorAll('*').length")
            view.close()
        browser.close()
    return {"paint": min(paints), "nodes": nodes}


NAMES = ("model", "tokens of each side", "seconds", "form", "JSON, MB", "report, MB", "first paint, ms", "DOM nodes")
ABOUT = """# What a look inside costs

Written by `python -m benchmarks.inspection RUN`: the target is given, so no search is counted; heads are switched off
and words taken away where that takes no longer than a few seconds. The fastest of three rounds; first paint in headless
Chromium, from a file."""


def page(rows: list[dict[str, Any]]) -> str:
    lines = [f"| {' | '.join(NAMES)} |", "|---" * len(NAMES) + "|"]
    for r in rows:
        sizes = f"{r['json'] / 1e6:.2f} | {r['html'] / 1e6:.2f}"
        cells = f"{r['model']} | {r['tokens']} | {r['seconds']:.2f} | {r['form']} | {sizes}"
        lines.append(f"| {cells} | {r['paint']:.0f} | {r['nodes']:,} |")
    machine = ", ".join(f"{name} {value}" for name, value in describe().items())
    return "\n\n".join([ABOUT, "\n".join(lines), f"{machine}."]) + "\n"


if __name__ == "__main__":
    main()
