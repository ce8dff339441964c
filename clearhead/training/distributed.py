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

from clearhead.errors import INTERRUPTED, TERMINATED, TRY_AGAIN, UserError, warning_line

RESTARTS = 3  # of a team of ours that lost a process
NOTICE = 5.0  # seconds in which the others must notice that one of them has failed


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

        with _peer_errors(self.rank, self.size, self._timeout):
            collective(dist)


@contextmanager
def _peer_errors(rank: int, size: int, timeout: float) -> Iterator[None]:
    """Turns what torch says of a lost connection into which process waited for which."""
    try:
        yield
    except RuntimeError as error:
        others = [str(other) for other in range(size) if other != rank]
        absent = f"process {others[0]}" if len(others) == 1 else f"one of the processes {', '.join(others)}"
        raise UserError(
            "PEER_LOST",
            f"process {rank} of {size} waited for {absent}, which did not answer within {timeout:.0f} s or is gone. "
            "Run the same command again: it goes on from the last checkpoint",
            TRY_AGAIN,
        ) from error


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
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(backend, timeout=timedelta(days=1))
    if before is not None and rank == 0:
        before()
    with _peer_errors(rank, size, timeout):
        dist.barrier()
    yield Team(rank, size, dist.new_group(timeout=timedelta(seconds=timeout)), timeout)
    dist.destroy_process_group()  # not after an error: it would wait for those who are gone


def die_with_parent(parent: int) -> None:
    """On Linux the kernel kills this process when `parent`, which started it, dies, however it dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it died before we asked
            os._exit(TRY_AGAIN)


def launch(arguments: Sequence[str], processes: int, run: Path) -> int:
    """Start and watch a team on this machine; the exit code of the run.

    If a process is killed, or stopped for longer than the collective timeout, the others cannot go on: all are ended
    and started again, from the last checkpoint. SIGTERM and SIGINT are passed on; a second SIGINT ends all at once.
    """
    told: list[int] = []  # the signals that we were sent
    before = {n: signal.signal(n, lambda number, _: told.append(number)) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        for attempt in range(RESTARTS + 1):
            code = _watch(_start(arguments, processes), told)
            is_lost = code < 0 or code == TRY_AGAIN
            if told and (is_lost or code in (0, TERMINATED)):
                return INTERRUPTED if told[0] == signal.SIGINT else TERMINATED
            if not is_lost:
                return code
            if attempt < RESTARTS:
                what = f"a process of {run} was lost (exit {code}); starting all {processes} again from the last"
                print(warning_line("PEER_LOST", f"{what} checkpoint"), file=sys.stderr, flush=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return TRY_AGAIN


def _start(arguments: Sequence[str], processes: int) -> list[subprocess.Popen[bytes]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
    return [
        subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            process_group=0,  # Ctrl-C in a terminal reaches us alone, and we pass it on once
        )
        for rank in range(processes)
    ]


def _watch(workers: list[subprocess.Popen[bytes]], told: list[int]) -> int:
    """Wait until all have ended, or one has failed and the others had their chance to notice; what went wrong."""
    passed_on, failed = False, 0.0
    try:
        while any(worker.poll() is None for worker in workers):
            time.sleep(0.05)
            if told and not passed_on:
                passed_on = True
                for worker in workers:
                    worker.send_signal(signal.SIGTERM)
            if any(worker.poll() for worker in workers):
                failed = failed or time.monotonic()
            is_hopeless = failed and time.monotonic() - failed > NOTICE
            if is_hopeless or told.count(signal.SIGINT) > 1:
                break
        codes = [worker.returncode for worker in workers if worker.poll()]  # before we kill the others
    finally:
        for worker in workers:
            worker.kill()  # nothing happens to those that have ended
            worker.wait()
    return min(codes, key=_severity, default=0)


def _severity(code: int) -> int:
    """A signal first, then what a process said of itself; "peer lost" only if nobody said anything else."""
    return 2 if code == TRY_AGAIN else 0 if code < 0 else 1
