"""How long a step takes here: a few of them on real batches, before the run, by one process or by all of its team.

python -m clearhead.training.rehearsal FOLDER PARENT STEPS   (one process of a team; `precisely` starts them)
"""

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from clearhead.data.batching import epoch_batches, share
from clearhead.data.prepare import Prepared, open_prepared
from clearhead.engines.memory import ALL, keep_memory
from clearhead.errors import INTERRUPTED, TERMINATED
from clearhead.model import build
from clearhead.model.linear import multiply_in
from clearhead.versions import has_bfloat16

from .distributed import Team, die_with_parent, is_member, join, launch
from .gradients import add_up_gradients
from .guidance import make_guide
from .options import TrainingOptions
from .position import Stopped
from .settings import Settings, from_toml, to_toml
from .step import (
    backward,
    lengths_of,
    make_marking,
    make_optimizer,
    pairs_of,
    pick_device,
    set_rate,
    threads_kept,
)

SETTINGS, PREPARED, SECONDS = "run.toml", "prepared.txt", "seconds.txt"
FEW, MANY = 3, 24  # steps that are timed: enough to choose by; so many that short and long batches are among them
PATIENCE = 8.0  # seconds for them
EARNED = 1.15  # a second process must earn its start, its memory and the exchange of gradients


class _OneOfMany(Team):
    """A process whose others are not there."""

    def add_up(self, tensor: Tensor) -> None:
        pass


def fastest(settings: Settings, prepared: Prepared) -> tuple[TrainingOptions, float]:
    """With precision, processes and threads as told, else the fastest of what is tried; and seconds per step.

    Processes and threads are compared in the precision that is likely the faster one, and the other one has the best.
    """
    training = settings.training
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    precisions = [training.precision]
    if training.precision == "auto":
        precisions = ["bfloat16", "float32"] if has_bfloat16() else ["float32"]
    layouts = {(1, cores), (cores, 1)} if pick_device() == "cpu" else {(1, cores)}
    if training.processes is not None:
        layouts = {(training.processes, training.threads or max(1, cores // training.processes))}
    elif training.threads is not None:
        layouts = {(1, training.threads)}
    tried = {}
    for precision in precisions:
        for processes, threads in sorted(layouts):
            ways = replace(training, precision=precision, processes=processes, threads=threads)
            seconds = time_steps(replace(settings, training=ways), prepared, _OneOfMany(0, processes))
            tried[ways] = seconds * (EARNED if processes > 1 else 1.0)
        best = min(tried, key=lambda ways: tried[ways])
        layouts = {(best.processes or 1, best.threads or 1)}
    return best, tried[best]


def precisely(settings: Settings, prepared: Prepared, seconds: float) -> float:
    """Seconds per step, of which `seconds` is an estimate, by more of them and by all processes at once.

    How many they are is told before: processes that count by their own clocks would wait for each other in the end.
    """
    steps = min(MANY, int(PATIENCE / seconds))
    if steps < FEW:
        return seconds  # as many have been timed already
    if settings.training.processes == 1:
        return time_steps(settings, prepared, Team(), steps)
    return seconds if is_member() else _together(settings, prepared, steps) or seconds


def _together(settings: Settings, prepared: Prepared, steps: int) -> float | None:
    """As all processes will share the machine; none if they fail, and the run itself may say why."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / SETTINGS).write_text(to_toml(settings, "rehearsal"), encoding="utf-8")
        (folder / PREPARED).write_text(prepared.facts["folder"], encoding="utf-8")
        code = launch(
            ["clearhead.training.rehearsal", scratch, str(os.getpid()), str(steps)],
            settings.training.processes or 1,
            folder,
        )
        if code in (INTERRUPTED, TERMINATED):
            raise Stopped(code, 0)
        return float((folder / SECONDS).read_text(encoding="utf-8")) if code == 0 else None


def time_steps(settings: Settings, prepared: Prepared, team: Team, steps: int = FEW) -> float:
    """Seconds of this process's share of an update, on batches from all over the corpus; then all is as it was."""
    state = torch.get_rng_state()
    with threads_kept():
        try:
            return _time_steps(settings, prepared, team, steps)
        finally:
            torch.set_rng_state(state)


def _time_steps(settings: Settings, prepared: Prepared, team: Team, steps: int) -> float:
    training = settings.training
    assert training.tokens_per_batch is not None  # the plan has seen to it
    torch.set_num_threads(training.threads or 1)
    keep_memory(ALL)  # as the run will
    device = pick_device()
    model = build(settings.model).to(device)
    multiply_in(model, getattr(torch, training.precision))
    optimizer = make_optimizer(model, training, team)
    set_rate(optimizer, 0.0)
    guide = make_guide(settings, prepared)
    marking = make_marking(prepared, settings.data, training.seed)
    batches = epoch_batches(*lengths_of(prepared, marking, 0), training.tokens_per_batch, training.seed, epoch=0)
    picked = [batches[i * len(batches) // steps] for i in range(steps)]
    agreement, late = training.agreement, training.agreement_from
    total = 0.0
    for weight, part in [(0.0, late), (agreement, 1 - late)] if agreement else [(0.0, 1.0)]:
        seconds = []
        for parts in [picked[0], *picked]:
            started = time.perf_counter()
            mine = share(parts, team.rank, team.size)
            pairs = [pairs_of(prepared, rows, marking).to(device) for rows in mine]
            tokens = sum(some.tokens for some in pairs)
            float(backward(model, pairs, training.label_smoothing, tokens, weight, guide=guide))
            add_up_gradients(model, team)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            seconds.append(time.perf_counter() - started)
        total += part * float(np.mean(seconds[1:]))  # the first is slow
    return total


def main(folder: Path, parent: int, steps: int) -> None:
    die_with_parent(parent)
    settings = from_toml((folder / SETTINGS).read_text(encoding="utf-8"))
    prepared = open_prepared(Path((folder / PREPARED).read_text(encoding="utf-8")))
    with join(settings.training.collective_timeout) as team:
        seconds = time_steps(settings, prepared, team, steps)
        if team.leads:
            (folder / SECONDS).write_text(repr(seconds), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
