"""Two processes of one thread against one: how much faster, and whether the losses are the same."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT
from benchmarks.results import HIGHER, Cell, Column, Table
from benchmarks.sample import sample

ASKS = "What does a second process bring?"
STEPS, FIRST = 40, 5  # timed from the end of the first few
TOKENS = 4096  # of a batch, all processes together
SPEED, DIFFERENCE = Column("target tokens/s", HIGHER), Column("largest difference of a step's loss")
ABOUT = f"""`clearhead train --preset tiny`, {{corpus}}, batches of {TOKENS:,} tokens, no dropout, {{steps}} steps,
each process with one thread: the time from step {FIRST} to the end, data pipeline included. The loss of each step is
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
    options = [
        f"training.processes={processes}", "training.threads=1", f"training.steps={steps}", "training.seed=1",
        f"training.tokens_per_batch={TOKENS}", f"training.validate_every={steps}", f"training.save_every={steps}",
        "training.precision=float32", "training.decode_pairs=1", "model.dropout=0.0", *corpus.options,
    ]  # fmt: skip
    command = [sys.executable, "-m", "clearhead", "train", "--preset", "tiny", "--out", str(out)]
    command += ["--train", *map(str, corpus.train), "--valid", *map(str, corpus.valid)]
    command += [word for option in options for word in ("--set", option)]
    reached: dict[int, float] = {}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and steps not in reached:
            for event in _steps(out):
                reached.setdefault(event["step"], time.perf_counter())
            time.sleep(0.02)
    events = _steps(out)
    if process.returncode or len(events) < steps or not {FIRST, steps} <= reached.keys():
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode} after {len(events)} steps")
    tokens = sum(event["tokens"] for event in events[FIRST:])
    return tokens / (reached[steps] - reached[FIRST]), [event["loss"] for event in events]


def _steps(out: Path) -> list[dict[str, Any]]:
    """What the log has of whole lines."""
    log = out / "log.jsonl"
    if not log.exists():
        return []
    lines = log.read_text(encoding="utf-8").split("\n")[:-1]
    return [event for event in map(json.loads, lines) if "tokens" in event]
