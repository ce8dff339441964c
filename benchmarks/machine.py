"""The machine that a figure was measured on, and ways to time that survive a noisy one."""

import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from clearhead.versions import has_bfloat16, versions


@dataclass(frozen=True)
class Timing:
    """Seconds per call: median and range of all rounds."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        low, high = min(self.seconds) * 1e3, max(self.seconds) * 1e3
        return f"{self.median * 1e3:.0f} ({low:.0f}–{high:.0f})"


def interleaved(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Each call once per round, in turn, so that a slow minute slows all of them; one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return {name: Timing(some) for name, some in seconds.items()}


def ratios(ours: Timing, theirs: Timing) -> str:
    """How many times as fast: median of the rounds' own ratios, and their range."""
    each = [b / a for a, b in zip(ours.seconds, theirs.seconds, strict=True)]
    return f"{statistics.median(each):.2f}× ({min(each):.2f}–{max(each):.2f})"


def peak_gflops(dtype: torch.dtype, size: int = 1024, repeats: int = 20) -> float:
    """The best that a plain product of two square matrices reaches."""
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    a @ b
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best / 1e9


def describe(threads: int) -> dict[str, str]:
    """What goes above every table of results."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        **versions(),
        "cpu": str(torch.cpu.get_capabilities().get("cpu_name", "?")) + ", " + torch.backends.cpu.get_cpu_capability(),
        "bfloat16": "in hardware" if has_bfloat16() else "not in hardware",
        "threads": str(threads),
        "commit": commit.stdout.strip() or "?",
    }
