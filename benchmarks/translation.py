"""Translating text to text: whole files, one sentence after the other, cold start and memory.

All peers have the weights of one trained `tiny`; of `base` there are random ones, as nobody trains it on two cores, and
every target of theirs is made to have 16 tokens. Eole always has random weights and such targets.
"""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.machine import THREADS
from benchmarks.peers import Answer, Peer, PeerError
from benchmarks.results import HIGHER, LOWER, Cell, Column, Table
from benchmarks.rounds import Field, Start, started
from benchmarks.sample import random_model, sample, trained_model
from benchmarks.translators import AUTO, CT2, CT2_FLOAT, EOLE, JOEYNMT, NATIVE, translators
from clearhead.data.folders import load_tokenizers

ASKS = "How fast does it translate?"
LENGTH = 16  # tokens of a target that is made to have so many
SPEED = Column("target tokens/s", HIGHER)
MIDDLE, SLOWEST = Column("p50, ms", LOWER), Column("p99, ms", LOWER)
COLD, MEMORY = Column("cold start, s", LOWER), Column("peak memory, MiB", LOWER)
FAST = (AUTO, CT2, CT2_FLOAT)
SLOW_ROUNDS = 2  # of those that are much slower


@dataclass(frozen=True)
class Task:
    """So many lines as a file or one after the other; slow peers get fewer of them, JoeyNMT fewest."""

    beam: int
    lines: int
    slow_lines: int
    joeynmt_lines: int
    alone: bool = False
    length: int | None = None  # of every target, in tokens

    def __str__(self) -> str:
        search = f"beam {self.beam}" if self.beam > 1 else "greedy"
        return f"{search}, {'one sentence at a time' if self.alone else f'{self.lines:,} lines as a file'}"

    def lines_of(self, name: str) -> int:
        if name == JOEYNMT:
            return self.joeynmt_lines
        return self.lines if name in (*FAST, NATIVE) else self.slow_lines


TASKS = {
    "tiny": [Task(5, 1000, 300, 24), Task(1, 1000, 300, 64), Task(5, 50, 30, 7, True), Task(1, 50, 30, 13, True)],
    "base": [
        Task(5, 256, 64, 7, length=LENGTH),
        Task(1, 512, 64, 32, length=LENGTH),
        Task(5, 13, 7, 2, True, LENGTH),
        Task(1, 13, 7, 3, True, LENGTH),
    ],
}
QUICK_TASKS = {"tiny": [Task(5, 100, 30, 3), Task(1, 200, 64, 7), Task(5, 20, 5, 1, True), Task(1, 20, 7, 2, True)]}
ABOUT = f"""{{corpus}}, text to text, {THREADS} threads or workers for everyone. CTranslate2 is measured as it comes
and at the best setting that we know ({THREADS} workers of one thread, 32 sentences at a time). JoeyNMT, transformers
and Eole get the first part of the lines. Eole's decoder is pre-norm only, so its weights are random ones and each
target has {LENGTH} tokens. Where all targets are made to have {LENGTH} tokens (`base`, random weights) `auto` would
rank anew, and is left out."""


def measure(quick: bool) -> list[Table]:
    tables: list[Table] = []
    with tempfile.TemporaryDirectory() as folder:
        trained = trained_model()
        for size, tasks in (QUICK_TASKS if quick else TASKS).items():
            scratch = Path(folder) / size
            scratch.mkdir()
            model = trained if size == "tiny" else random_model(size, scratch / "model", trained)
            starts = translators(model, scratch)
            with started(starts) as field:
                tables += [_measure_task(size, task, field, model, 1 if quick else 7) for task in tasks]
            if size == "tiny":
                tables.append(_measure_start(starts, 1 if quick else 3))
    return [replace(tables[0], about=ABOUT.format(corpus=sample().name)), *tables[1:]]


def _measure_task(size: str, task: Task, field: Field, model: Path, rounds: int) -> Table:
    _, target = load_tokenizers(model)
    lines = sample().sources

    def ask(name: str, peer: Peer, turn: int) -> Answer | None:
        if (turn > SLOW_ROUNDS and name not in FAST) or (task.length and name == AUTO):
            return None
        length = LENGTH if name == EOLE else task.length
        return peer.translate(lines[: task.lines_of(name)], task.beam, length, task.alone)

    def tokens(name: str, answer: Answer) -> int:
        forced = LENGTH if name == EOLE else task.length
        return sum(1 + (forced or len(target.encode(line))) for line in answer.lines)

    found = field.each_round(rounds, ask)
    rows: dict[str, dict[str, Cell]] = {}
    for name, answers in found.items():
        if task.alone:
            rows[name] = {
                MIDDLE.name: [1e3 * percentile(answer.each, 50) for answer in answers],
                SLOWEST.name: [1e3 * percentile(answer.each, 99) for answer in answers],
            }
        else:
            rows[name] = {SPEED.name: [tokens(name, answer) / answer.seconds for answer in answers]}
    columns = [MIDDLE, SLOWEST] if task.alone else [SPEED]
    ours = [name for name in (AUTO, NATIVE) if name in rows]
    return Table(f"`{size}`, {task}", columns, rows, ours, dict(field.errors))


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many per cent do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def _measure_start(starts: dict[str, Start], rounds: int) -> Table:
    """From nothing to the first translation, as a new process each time; and memory after a few lines at beam 5."""
    rows: dict[str, dict[str, Cell]] = {}
    errors: dict[str, str] = {}
    lines = sample().sources
    seconds: dict[str, list[float]] = {name: [] for name in starts}
    memory: dict[str, list[float]] = {name: [] for name in starts}
    for _ in range(rounds):
        for name, start in starts.items():
            length = LENGTH if name == EOLE else None
            begun = time.perf_counter()
            try:
                with start() as peer:
                    peer.translate(lines[:1], 5, length)
                    seconds[name].append(time.perf_counter() - begun)
                    peer.translate(lines[: 8 if name == JOEYNMT else 64], 5, length)
                    memory[name] += [peak for peak in [peer.peak_memory()] if peak is not None]
            except PeerError as error:
                errors[name] = str(error)
    for name in starts:
        if name not in errors:
            rows[name] = {COLD.name: seconds[name], MEMORY.name: memory[name] or "unknown here"}
    about = "From the start of a process to its first translation of one sentence at beam 5; memory after 64 lines."
    return Table("`tiny`, cold start and memory", [COLD, MEMORY], rows, [AUTO, NATIVE], errors, about)
