"""Systems that translate, each in a process of its own, asked in turn over its standard input and output.

Each is started as `python -m benchmarks.peers.NAME MODEL …`, says when it is ready, and then answers JSON objects, one
a line: {"lines": […], "beam": 5, "length": null, "alone": false} by {"seconds": …, "lines": […]}. With a length every
target has just so many tokens, for weights that never learned to end. The seconds are from text to text,
measured by the peer itself, so that starting, loading and the pipe do not count. No torch and nothing of ours here: a
peer may live in another virtual environment.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BATCH = 64  # sentences at a time, for peers that leave it to the user


@dataclass(frozen=True)
class Answer:
    seconds: float
    lines: list[str]


def serve(translate: Callable[[list[str], int, int | None], list[str]]) -> None:
    """What a peer's script ends with; `translate` takes the lines, the beam and the length."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints must not be taken for an answer
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        batches = [[one] for one in asked["lines"]] if asked["alone"] else [asked["lines"]]
        started = time.perf_counter()
        found = [text for batch in batches for text in translate(batch, asked["beam"], asked["length"])]
        print(json.dumps({"seconds": time.perf_counter() - started, "lines": found}), file=answers, flush=True)


def in_batches(lines: list[str], some: Callable[[list[str]], list[str]], size: int = BATCH) -> list[str]:
    """Sorted by length, `size` at a time, put back in order: what a careful user of such a peer writes."""
    order = sorted(range(len(lines)), key=lambda i: -len(lines[i]))
    found = [""] * len(lines)
    for start in range(0, len(order), size):
        places = order[start : start + size]
        for place, text in zip(places, some([lines[i] for i in places]), strict=True):
            found[place] = text
    return found


class Peer:
    """A peer that was started; use it in a with block."""

    def __init__(self, name: str, arguments: list[str], python: Path | None = None, **environment: str) -> None:
        command = [str(python or sys.executable), "-m", f"benchmarks.peers.{name}", *arguments]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment or None,
        )
        self._read()  # it is ready

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def translate(self, lines: list[str], beam: int, length: int | None = None, alone: bool = False) -> Answer:
        assert self._process.stdin is not None
        asked = {"lines": lines, "beam": beam, "length": length, "alone": alone}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answer = self._read()
        return Answer(answer["seconds"], answer["lines"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(map(str, self._process.args))} ended")  # type: ignore[arg-type]
        return json.loads(line)
