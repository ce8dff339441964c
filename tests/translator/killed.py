"""Run by a test in a process of its own, without torch: translations killed at every point, and gone on with.

python -m tests.translator.killed points FOLDER      forked runs, killed at the k-th failpoint for every k; prints JSON
python -m tests.translator.killed run FOLDER DELAY   one run that takes DELAY seconds for each batch
python -m tests.translator.killed memory LINES       the most memory in use after a tenth of the lines, and after all
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from clearhead.decoding import DecodingOptions
from clearhead.translator import files, reading, writing
from clearhead.translator.files import Task, translate_file

from .stub import Ids, StubEngine, forgets_bytes, stub_translator

CHUNK = 11
WARNED = "see 😀\n"


def text(lines: int) -> Iterator[str]:
    for number in range(lines):
        yield WARNED if number % 7 == 0 else f"this is line {number}, of the text\n"


def run(folder: Path, delay: float = 0.0) -> None:
    reading.LINES, files.EVERY = CHUNK, 0.0

    def slowly(source: Ids, options: DecodingOptions) -> Ids:
        time.sleep(delay)
        return forgets_bytes(source, options)

    task = Task(DecodingOptions(), resume=True)
    translate_file(stub_translator(StubEngine(slowly)), folder / "in.gz", folder / "out", task)


def run_until(folder: Path, point: int) -> bool:
    """Whether a run that is killed at this failpoint, counted from 0, was."""
    child = os.fork()
    if not child:
        passed = 0

        def die(_: str) -> None:
            nonlocal passed
            if passed == point:
                os.kill(os.getpid(), signal.SIGKILL)
            passed += 1

        vars(writing)["failpoint"] = die
        try:
            run(folder)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0, status
    return os.WIFSIGNALED(status)


def points(folder: Path) -> list[tuple[int, bool]]:
    """For every point at which a run can be killed: whether the one after it made what an undisturbed one makes."""
    run(folder)
    expected = (folder / "out").read_bytes()
    (folder / "out").unlink()
    results: list[tuple[int, bool]] = []
    while run_until(folder, point := len(results)):
        run_until(folder, 0)  # and once more, after a chunk
        run(folder)
        left = sorted(path.name for path in folder.iterdir())
        results.append((point, (folder / "out").read_bytes() == expected and left == ["in.gz", "out"]))
        (folder / "out").unlink()
    return results


def memory(lines: int) -> tuple[int, int, int]:
    """The most kilobytes in use after a tenth of the lines, and after all; and how many were translated."""
    used: list[int] = []
    done = 0

    def look(source: Ids, _: DecodingOptions) -> Ids:
        nonlocal done
        done += 1
        engine.asked.clear()  # what the stand-in remembers is not what is measured
        engine.seen.clear()
        if done in (lines // 10, lines):
            used.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return source

    engine = StubEngine(look)
    read, write = os.pipe()
    if not os.fork():
        os.close(read)
        with os.fdopen(write, "w") as file:
            for line in text(lines):
                file.write(line)
        os._exit(0)
    os.close(write)
    sys.stdin = os.fdopen(read)
    translate_file(stub_translator(engine), Path("-"), Path(os.devnull), Task(DecodingOptions()))
    return used[0], used[-1], done


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "points":
        print(json.dumps(points(Path(arguments[0]))))
    elif what == "run":
        run(Path(arguments[0]), float(arguments[1]))
    else:
        print(json.dumps(memory(int(arguments[0]))))
