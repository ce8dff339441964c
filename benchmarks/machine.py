"""The machine that a figure was measured on, and how fast it multiplies."""

import os
import subprocess
import time
from importlib.metadata import version

import torch

from benchmarks.environments import pinned
from clearhead.versions import has_bfloat16, versions

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
THREADS = min(2, CORES)  # of every system
NOT_IN_HARDWARE = "not in hardware"
PEERS = {"JoeyNMT": "joeynmt", "Eole": "eole", "transformers": "transformers"}  # and the package in their environments


def peak_gflops(dtype: torch.dtype = torch.float32, size: int = 1024, repeats: int = 20) -> float:
    """The best that a plain product of two square matrices reaches, with as many threads as torch has now."""
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    a @ b
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best / 1e9


def describe(threads: int = THREADS) -> dict[str, str]:
    """What goes below every table of results."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        **versions(),
        "cpu": str(torch.cpu.get_capabilities().get("cpu_name", "?")) + ", " + torch.backends.cpu.get_cpu_capability(),
        "bfloat16": "in hardware" if has_bfloat16() else NOT_IN_HARDWARE,
        "threads": str(threads),
        "commit": commit.stdout.strip() or "?",
    }


def peer_versions() -> dict[str, str]:
    own = {"CTranslate2": version("ctranslate2")}
    return own | {name: pinned(package, package) for name, package in PEERS.items()}
