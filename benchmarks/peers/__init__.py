"""Systems that are measured, each in a process of its own, asked in turn over its standard input and output.

Each is started as `python -m benchmarks.peers.NAME …`, says when it is ready, and then answers JSON objects, one a
line, with the seconds that it measured itself, so that starting, loading and the pipe do not count. Of one that
translates: {"lines": […], "beam": 5, "length": null, "alone": false} is answered by {"seconds": [of each call],
"lines": […]}; with a length every target has just so many tokens, for weights that never learned to end. Of one that
trains: {"low": false} is answered by {"seconds": of one step}, under bfloat16 autocast if low. No torch and nothing
of ours here: a peer may live in another virtual environment.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FEW, MORE = 5, 35  # updates that are timed
BATCH = 64  # sentences at a time, for peers that leave it to the user


class PeerError(RuntimeError):
    """A peer that cannot be installed, does not start or ends; it is listed with this."""


@dataclass(frozen=True)
class Answer:
    each: list[float]  # seconds of each call: one, or one for each line where they were sent alone
    lines: list[str]

    @property
    def seconds(self) -> float:
        return sum(self.each)


@dataclass(frozen=True)
class Sizes:
    """Of a training step: a model, and a batch in which all sentences are of the same length."""

    width: int
    heads: int
    feed_forward: int
    encoder_blocks: int
    decoder_blocks: int
    vocabulary: int
    pairs: int
    tokens: int  # of each side, the end counted
    threads: int
    dropout: float = 0.1
    smoothing: float = 0.1
    rate: float = 1e-4
    low: bool = False  # in bfloat16, by what a trainer offers for it


TINY = Sizes(
    width=128,
    heads=4,
    feed_forward=256,
    encoder_blocks=4,
    decoder_blocks=4,
    vocabulary=0,
    pairs=64,
    tokens=32,
    threads=2,
)


@dataclass(frozen=True)
class Training:
    """What a script that trains a whole model is given: CORPUS MINUTES SEED OUT, and Sizes as JSON for others than
    `tiny`. 0 minutes: MORE updates and no translations, to see how fast it trains (OUT/pace.json).

    CORPUS is a folder with train, valid and test text, each in a file for the source (.src) and the target (.tgt), and
    a joint SentencePiece model, joint.model (PAD BOS EOS UNK are 0 to 3). OUT gets test.hyp.
    """

    corpus: Path
    minutes: float
    seed: int
    out: Path
    sizes: Sizes = TINY

    @classmethod
    def asked(cls) -> "Training":
        corpus, minutes, seed, out, *sizes = sys.argv[1:]
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        named = Sizes(**json.loads(sizes[0])) if sizes else TINY
        return cls(Path(corpus), float(minutes), int(seed), folder, named)

    def updates(self, train: Callable[[int], object]) -> int:
        """How many fit into the minutes. A run that was interrupted keeps the number, whoever else is at work then."""
        file = self.out / "updates.txt"
        if not file.exists():
            file.write_text(f"{updates_for(self.minutes, train)}\n", encoding="utf-8")
        return int(file.read_text(encoding="utf-8"))


# -- what a peer's script ends with ------------------------------------------------------------------------------------


def serve_translations(translate: Callable[[list[str], int, int | None], list[str]]) -> None:
    """`translate` takes the lines, the beam and the length."""

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        batches = [[one] for one in asked["lines"]] if asked["alone"] else [asked["lines"]]
        seconds, found = [], []
        for batch in batches:
            started = time.perf_counter()
            found += translate(batch, asked["beam"], asked["length"])
            seconds.append(time.perf_counter() - started)
        return {"seconds": seconds, "lines": found}

    _serve(answer)


def serve_steps(step: Callable[[bool], None]) -> None:
    """`step` is forward, backward and optimizer of one batch, in bfloat16 or not."""

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        step(asked["low"])
        return {"seconds": time.perf_counter() - started}

    _serve(answer)


def _serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints must not be taken for an answer
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def in_batches(lines: list[str], some: Callable[[list[str]], list[str]], size: int = BATCH) -> list[str]:
    """Sorted by length, `size` at a time, put back in order: what a careful user of such a peer writes."""
    order = sorted(range(len(lines)), key=lambda i: -len(lines[i]))
    found = [""] * len(lines)
    for start in range(0, len(order), size):
        places = order[start : start + size]
        for place, text in zip(places, some([lines[i] for i in places]), strict=True):
            found[place] = text
    return found


class Pace:
    """Target tokens per second, from the end of the first FEW updates to the last one."""

    def __init__(self) -> None:
        self._updates: list[tuple[float, int]] = []

    def note(self, tokens: int) -> None:
        """At the end of each update."""
        self._updates.append((time.perf_counter(), tokens))

    def write(self, out: Path) -> None:
        seconds = self._updates[-1][0] - self._updates[FEW - 1][0]
        found = {"tokens_per_second": sum(tokens for _, tokens in self._updates[FEW:]) / seconds}
        (out / "pace.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


def updates_for(minutes: float, train: Callable[[int], object]) -> int:
    """How many fit into the minutes, by two short runs, whose time is not counted: what they share is the start."""
    seconds = []
    for updates in (FEW, MORE):
        started = time.perf_counter()
        train(updates)
        seconds.append(time.perf_counter() - started)
    each = max(1e-3, (seconds[1] - seconds[0]) / (MORE - FEW))
    return max(1, int((60 * minutes - (seconds[0] - FEW * each)) / each))


# -- the other end -----------------------------------------------------------------------------------------------------


class Peer:
    """A peer that was started; use it in a with block. Raises PeerError with the last line that it said."""

    def __init__(self, name: str, arguments: list[str], python: Path | None = None) -> None:
        command = [str(python or sys.executable), "-m", f"benchmarks.peers.{name}", *arguments]
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed in _end)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, cwd=ROOT
        )
        try:
            self._read()
        except PeerError:
            self._end()
            raise

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()

    def translate(self, lines: list[str], beam: int, length: int | None = None, alone: bool = False) -> Answer:
        answer = self._ask({"lines": lines, "beam": beam, "length": length, "alone": alone})
        return Answer(answer["seconds"], answer["lines"])

    def step(self, low: bool = False) -> float:
        """Seconds of one training step."""
        return self._ask({"low": low})["seconds"]

    def peak_memory(self) -> float | None:
        """MiB at most, of it and the processes that it started; only Linux tells."""
        if not Path("/proc/self/status").exists():
            return None
        return sum(map(_high_water, _family(self._process.pid))) / 1024

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # what it said before it ended is read then
            print(json.dumps(question), file=self._process.stdin, flush=True)
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._said.seek(0)
            said = [line for line in self._said.read().splitlines() if line.strip()]
            raise PeerError(f"ended with {code}: {said[-1] if said else 'it said nothing'}")
        return json.loads(line)


def _family(pid: int) -> list[int]:
    children = [child for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]
    return [pid, *(one for child in children for one in _family(int(child)))]


def _high_water(pid: int) -> int:
    """KiB of resident memory at the highest."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
