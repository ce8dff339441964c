"""Two processes of one thread against one: how much faster, and whether the losses are the same."""

import tempfile
from pathlib import Path

from benchmarks.peers import FEW
from benchmarks.results import HIGHER, Cell, Column, Table
from benchmarks.sample import sample
from benchmarks.trainers import our_pace

ASKS = "What does a second process bring?"
STEPS = 40
TOKENS = 4096  # of a batch, all processes together
SPEED, DIFFERENCE = Column("target tokens/s", HIGHER), Column("largest difference of a step's loss")
ABOUT = f"""`clearhead train --preset tiny`, {{corpus}}, batches of {TOKENS:,} tokens, no dropout, {{steps}} steps,
each process with one thread: the time from step {FEW} to the end, data pipeline included. The loss of each step is
compared with that of one process."""


def measure(quick: bool) -> list[Table]:
    rounds, steps = (1, 20) if quick else (3, STEPS)
    speeds: dict[int, list[float]] = {1: [], 2: []}
    losses: dict[int, list[float]] = {}
    for _ in range(rounds):
        for processes, each in speeds.items():
            with tempfile.TemporaryDirectory() as folder:
                speed, losses[processes] = _train(Path(folder) / "run", processes, steps)
            each.append(speed)
    off = max(abs(a - b) for a, b in zip(losses[1], losses[2], strict=True))
    rows: dict[str, dict[str, Cell]] = {
        "Clearhead, 2 processes": {SPEED.name: speeds[2], DIFFERENCE.name: f"{off:.1e} of {losses[1][-1]:.3f}"},
        "Clearhead, 1 process": {SPEED.name: speeds[1]},
    }
    about = ABOUT.format(corpus=sample().name, steps=steps)
    return [Table("", [SPEED, DIFFERENCE], rows, ["Clearhead, 2 processes"], about=about)]


def _train(out: Path, processes: int, steps: int) -> tuple[float, list[float]]:
    """Target tokens per second, and the loss of each step."""
    corpus = sample()
    files = ["--preset", "tiny", "--train", *map(str, corpus.train), "--valid", *map(str, corpus.valid)]
    options = [
        f"training.processes={processes}", "training.threads=1", "training.seed=1",
        f"training.tokens_per_batch={TOKENS}", "training.precision=float32", "training.decode_pairs=1",
        "model.dropout=0.0", *corpus.options,
    ]  # fmt: skip
    return our_pace(files, options, steps, out)
