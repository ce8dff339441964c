"""Measures experiments, seed by seed, in as many processes as there are cores for."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter, process_time

import torch

from clearhead.errors import TRY_AGAIN, UserError
from clearhead.progress import progress

from .catalogue import EXPERIMENTS
from .experiment import Experiment, Finding, Measured

MOST_PROCESSES = 2  # what `lab all` was timed for; experiments that take the time want quiet neighbours


@dataclass(frozen=True)
class Run:
    """What one seed gave, and the time that it took; CPU seconds are those of a machine without neighbours."""

    seed: int
    measured: Measured
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Result:
    """An experiment with its runs, in the order of its seeds."""

    experiment: Experiment
    runs: list[Run]

    def finding(self) -> Finding:
        return self.experiment.conclude([run.measured for run in self.runs])


def run_experiments(experiments: Sequence[Experiment], processes: int | None = None) -> Iterator[Result]:
    """Measure all seeds of all experiments, on one thread each; a result as soon as its last seed is there."""
    wanted = [(experiment.name, seed) for experiment in experiments for seed in experiment.seeds]
    count = min(processes or os.cpu_count() or 1, MOST_PROCESSES, len(wanted))
    runs: dict[str, dict[int, Run]] = {experiment.name: {} for experiment in experiments}
    done = 0
    with progress("lab") as bar:
        for name, run in _in_processes(wanted, count) if count > 1 else _here(wanted):
            runs[name][run.seed] = run
            done += 1
            bar.update(done, len(wanted), f"runs, {name}")
            experiment = next(one for one in experiments if one.name == name)
            if len(runs[name]) == len(experiment.seeds):
                yield Result(experiment, [runs[name][seed] for seed in experiment.seeds])


def measure(name: str, seed: int) -> Run:
    """One run, on one thread."""
    with _one_thread():
        started, cpu_started = perf_counter(), process_time()
        measured = EXPERIMENTS[name].measure(seed)
        return Run(seed, measured, perf_counter() - started, process_time() - cpu_started)


def _here(wanted: Sequence[tuple[str, int]]) -> Iterator[tuple[str, Run]]:
    for name, seed in wanted:
        yield name, measure(name, seed)


def _in_processes(wanted: Sequence[tuple[str, int]], count: int) -> Iterator[tuple[str, Run]]:
    with ProcessPoolExecutor(count, get_context("spawn")) as pool:
        names = {pool.submit(measure, name, seed): name for name, seed in wanted}
        try:
            for future in as_completed(names):
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    raise _lost(names[future]) from error
                if error is not None:
                    error.add_note(f"in experiment {names[future]}")
                yield names[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _lost(name: str) -> UserError:
    message = f"the process that ran experiment {name} ended unexpectedly; expected its numbers. Often memory is short"
    return UserError("LAB_PROCESS", f"{message}: close other programs and run it again", TRY_AGAIN)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
