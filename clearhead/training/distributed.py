"""Several processes that train one model: who they are, how they add up, and how they are started and watched.

The only file that knows torch.distributed. Started by us (`--processes`) or by torchrun, a process finds its rank in
the environment; a single process is a team of one and never touches any of this.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import TRY_AGAIN, UserError, warning_line

RESTARTS = 3  # of a team of ours that lost a process


class Team:
    """All processes of a run, seen from one of them."""

    def __init__(self, rank: int = 0, size: int = 1, group: Any = None, timeout: float = 0.0) -> None:
        self.rank, self.size = rank, size
        self._group, self._timeout = group, timeout

    @property
    def leads(self) -> bool:
        """True for the one that writes and prints."""
        return self.rank == 0

    def add_up(self, tensor: Tensor) -> None:
        """Replace the tensor by its sum over all processes."""
        if self.size > 1:
            self._call(lambda dist: dist.all_reduce(tensor, group=self._group))

    def gather(self, value: Any) -> list[Any]:
        """Every process's JSON value, in the order of their ranks."""
        if self.size == 1:
            return [value]
        data = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        sizes = torch.zeros(self.size, dtype=torch.int64)
        sizes[self.rank] = len(data)
        self.add_up(sizes)
        padded = torch.zeros(int(sizes.max()), dtype=torch.uint8)
        padded[: len(data)] = data
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        self._call(lambda dist: dist.all_gather(parts, padded, group=self._group))
        return [
            json.loads(bytes(part[:size].tolist()).decode()) for part, size in zip(parts, sizes.tolist(), strict=True)
        ]

    def _call(self, collective: Any) -> None:
        import torch.distributed as dist

        try:
            collective(dist)
        except RuntimeError as error:
            raise UserError(
                "PEER_LOST",
                f"process {self.rank} of {self.size} waited for {self._absent()}, which did not answer within "
                f"{self._timeout:.0f} s or is gone. Run the same command again: it goes on from the last checkpoint",
                TRY_AGAIN,
            ) from error

    def _absent(self) -> str:
        others = [str(rank) for rank in range(self.size) if rank != self.rank]
        return f"process {others[0]}" if len(others) == 1 else f"one of the processes {', '.join(others)}"


def is_member() -> bool:
    """Whether this process was started as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def join(timeout: float, before: Callable[[], object] | None = None) -> Iterator[Team]:
    """This process's place in the team that the environment describes.

    What comes `before` training is done by the first process while the others wait, however long it takes.
    """
    import torch.distributed as dist

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=timedelta(days=1))
    if before is not None and rank == 0:
        before()
    dist.barrier()
    yield Team(rank, size, dist.new_group(timeout=timedelta(seconds=timeout)), timeout)
    dist.destroy_process_group()  # not after an error: it would wait for those who are gone


def die_with_parent() -> None:
    """On Linux the kernel kills this process when the one that started it dies, however it dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() == 1:  # it died before we asked
            os._exit(TRY_AGAIN)


def launch(arguments: Sequence[str], processes: int, run: Path) -> int:
    """Start and watch a team on this machine; the exit code of the run.

    If a process is killed, the others cannot go on: all are started again, from the last checkpoint.
    """
    for attempt in range(RESTARTS + 1):
        workers = _start(arguments, processes)
        code = _watch(workers)
        if code >= 0 and code != TRY_AGAIN:
            return code
        if attempt < RESTARTS:
            what = f"a process of {run} was lost (exit {code}); starting all {processes} again from the last checkpoint"
            print(warning_line("PEER_LOST", what), file=sys.stderr, flush=True)
    return TRY_AGAIN


def _start(arguments: Sequence[str], processes: int) -> list[subprocess.Popen[bytes]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
    return [
        subprocess.Popen(
            [sys.executable, "-m", *arguments], env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        )
        for rank in range(processes)
    ]


def _watch(workers: list[subprocess.Popen[bytes]]) -> int:
    """Wait until all have ended; the first exit code that is not 0. Signals to us are passed on to them."""

    def pass_on(number: int, _: object) -> None:
        for worker in workers:
            if worker.poll() is None:
                worker.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    first_failure, since = 0, 0.0
    try:
        while any(worker.poll() is None for worker in workers):
            time.sleep(0.05)
            failed = [worker.returncode for worker in workers if worker.poll()]
            if failed and not first_failure:
                first_failure, since = min(failed), time.monotonic()  # a signal's negative code before a survivor's
            if first_failure and time.monotonic() - since > 5.0:  # the others had their chance to notice
                for worker in workers:
                    worker.kill()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
    return min((worker.returncode for worker in workers if worker.returncode), key=_severity, default=0)


def _severity(code: int) -> int:
    """A signal first, then what a process said of itself; "peer lost" only if nobody said anything else."""
    return 2 if code == TRY_AGAIN else 0 if code < 0 else 1
