"""Run by the tests in a process of its own, to be struck by strace or to have mounts of its own; prints JSON.

strace counts each system call separately, and in each process anew. So that one strace will do for all faults, it
is told to strike at the COUNT-th call, and a forked child that shall be struck at the k-th makes COUNT - k calls
that fail before it begins. strace is attached when torch has been imported, which takes long under it.
"""

import contextlib
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from clearhead.checkpoint.disk import require_space
from clearhead.errors import UserError

from .states import STEPS, save, save_all

COUNT = 60
CLOSED = 1 << 19  # no open file has this number
CALLS: dict[str, Callable[[], object]] = {
    "write": lambda: os.write(CLOSED, b""),
    "fsync": lambda: os.fsync(CLOSED),
    "rename": lambda: os.rename("", ""),  # noqa: PTH104
    "mkdir": lambda: os.mkdir(""),  # noqa: PTH102
    "unlink": lambda: os.unlink(""),  # noqa: PTH108
    "unlinkat": lambda: os.unlink("", dir_fd=0),
}


def outcome(work: Callable[[], None]) -> dict[str, Any] | None:
    try:
        work()
    except UserError as error:
        return {"code": error.code, "exit_code": error.exit_code, "line": error.line()}
    return None


@contextlib.contextmanager
def strace(calls: str, what: str) -> Iterator[None]:
    """In this process and its children, `what` happens at the COUNT-th of each of these system calls."""
    anyone, set_ptracer = -1, 0x59616D61
    ctypes.CDLL(None).prctl(set_ptracer, anyone)  # where only parents may trace (Yama)
    command = ["strace", "-f", "-p", str(os.getpid()), "-o", os.devnull, "-e", f"trace={calls}"]
    injections = [part for call in calls.split(",") for part in ("-e", f"inject={call}:{what}:when={COUNT}")]
    with subprocess.Popen([*command, *injections], stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        first = tracer.stderr.readline()
        if "attached" not in first:
            sys.exit(f"cannot trace: {first}")
        try:
            yield
        finally:
            tracer.terminate()


def struck(call: str, k: int, work: Callable[[], object]) -> int:
    """How a child ended that was struck at the k-th `call` of its work."""
    child = os.fork()
    if not child:
        try:
            for _ in range(COUNT - k):
                with contextlib.suppress(OSError):
                    CALLS[call]()
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def kill(folder: Path, every: int) -> dict[str, int]:
    """For each system call the number of times that a child was killed at it, at every `every`-th."""
    killed = {}
    folder /= "kill"
    for offset, call in enumerate(CALLS):
        places = range(1 + offset % every, COUNT, every)
        for times, k in enumerate(places):
            run = folder / f"{call}-{k}"
            if struck(call, k, lambda run=run: save_all(run)) == 0:  # type: ignore[misc]
                killed[call] = times
                break
    return killed


def fail_fsync(folder: Path, every: int) -> dict[str, Any]:
    """What a save says whose k-th fsync fails, for every `every`-th k, until none fails."""
    found: dict[str, Any] = {}
    folder /= "fsync"
    for k in range(1, COUNT, every):
        run = folder / str(k)
        save(run, STEPS[0])
        result = folder / f"{k}.json"
        assert struck("fsync", k, lambda: result.write_text(json.dumps(outcome(lambda: save(run, STEPS[1]))))) == 0  # noqa: B023
        found[str(k)] = json.loads(result.read_text())
        if found[str(k)] is None:
            break
    return found


def small_disk(folder: Path) -> dict[str, Any]:
    """Saves on a disk of 96 KiB until it is full, then on the same one made read-only."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", folder], check=True)
    run = folder / "run"
    found: dict[str, Any] = {"room": outcome(lambda: require_space(run, 200 * 2**20))}
    for step in range(1, 20):
        found["full"] = outcome(lambda: save(run, step))  # noqa: B023
        if found["full"]:
            found["full_at"] = step
            break
    found["left"] = sorted(path.name for path in (run / "checkpoints").iterdir())
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    found["read_only"] = outcome(lambda: save(run, 99))
    found["read_only_start"] = outcome(lambda: require_space(run, 1))
    subprocess.run(["cp", "-r", run, folder.with_name("copy")], check=True)
    return found


def traced(folder: Path, every: int) -> dict[str, Any]:
    with strace(",".join(CALLS), "signal=SIGKILL"):
        killed = kill(folder, every)
    with strace("fsync", "error=EIO"):
        return {"killed": killed, "failed": fail_fsync(folder, (every + 1) // 2)}


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    print(json.dumps(traced(Path(where), int(numbers[0])) if numbers else small_disk(Path(where))))
