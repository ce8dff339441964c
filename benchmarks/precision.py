"""bfloat16 products against float32: the validation loss after 2,000 steps with the same seed.

Small enough for a machine that only emulates bfloat16: a model of width 32. The loss must be far from zero, as that of
the built-in dates is not in the end: there a per cent of it is nothing.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.results import Cell, Column, Table
from benchmarks.sample import sample

ASKS = "Does bfloat16 cost quality?"
STEPS = 2000
OPTIONS = [
    "model.width=32", "model.heads=4", "model.feed_forward=64", "model.encoder_blocks=1", "model.decoder_blocks=1",
    "training.tokens_per_batch=512", "training.validate_every=500", "training.save_every=2000", "training.seed=1",
    "training.decode_pairs=1", "training.warmup=200", "data.vocabulary=1000",
]  # fmt: skip
LOSS, OFF = Column("validation loss"), Column("against float32")


def measure(quick: bool) -> list[Table]:
    steps = 100 if quick else STEPS
    losses = {precision: _train(precision, steps) for precision in ("float32", "bfloat16")}
    rows: dict[str, dict[str, Cell]] = {
        f"Clearhead, {name}": {LOSS.name: f"{loss:.4f}", OFF.name: f"{loss / losses['float32'] - 1:+.2%}"}
        for name, loss in losses.items()
    }
    about = f"""{sample().name}, width 32, 1 + 1 blocks, 1,000 words each, {steps:,} steps of 512 tokens, seed 1.
Emulated where the CPU has no bfloat16, which changes the time and not the numbers."""
    return [Table("", [LOSS, OFF], rows, about=about)]


def _train(precision: str, steps: int) -> float:
    corpus = sample()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        options = [*OPTIONS, f"training.steps={steps}", f"training.precision={precision}"]
        command = [sys.executable, "-m", "clearhead", "train", "--preset", "tiny", "--train", *map(str, corpus.train)]
        command += ["--valid", *map(str, corpus.valid), "--out", str(out)]
        command += [*(word for option in options for word in ("--set", option))]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        events = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        return [event["valid_loss"] for event in events if "valid_loss" in event][-1]
