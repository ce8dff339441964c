"""A corpus and a model so small that a whole run takes a moment, and what such a run has left behind."""

import hashlib
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.checkpoint.run import checkpoint_folder, steps
from clearhead.config import Flags, make_request
from clearhead.training.run import train

STEPS, EPOCH = 14, 5  # updates of a run, batches of an epoch
SAVE, VALIDATE = 2, 4
WORDS = ["apfel", "birne", "kirsche", "dattel", "feige", "traube", "melone", "olive", "quitte", "zitrone"]
SETS = [
    "data.tokenizer=words",
    "model.width=16",
    "model.heads=2",
    "model.feed_forward=24",
    "model.encoder_blocks=1",
    "model.decoder_blocks=1",
    "model.dropout=0.1",
    f"training.steps={STEPS}",
    "training.tokens_per_batch=64",
    "training.peak_rate=0.01",
    "training.warmup=5",
    "training.schedule=inverse-sqrt",
    f"training.save_every={SAVE}",
    f"training.validate_every={VALIDATE}",
    "training.decode_pairs=3",
    "training.samples=1",
    "training.keep_best=2",
    "training.average=2",
    "training.precision=float32",
    "training.processes=1",
    "training.threads=1",
    "decoding.beam=2",
]
DROPOUT = ("data.tokenizer=bpe", "data.vocabulary=300", "data.subword_dropout=0.3", "training.tokens_per_batch=200")
COMMAND = "clearhead train --train train.en train.de --out RUN"


@dataclass(frozen=True)
class Toy:
    """The corpus in a folder: train.en, train.de, valid.en, valid.de."""

    folder: Path

    @property
    def files(self) -> list[Path]:
        return [self.folder / f"{name}.{language}" for name in ("train", "valid") for language in ("en", "de")]

    def write(self, pairs: int = 58, valid_pairs: int = 11) -> "Toy":
        rng = random.Random(3)
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, count in (("train", pairs), ("valid", valid_pairs)):
            sources = [[rng.choice(WORDS) for _ in range(rng.randint(2, 6))] for _ in range(count)]
            texts = {"en": sources, "de": [[word.upper() for word in reversed(words)] for words in sources]}
            for language, lines in texts.items():
                text = "".join(" ".join(words) + "\n" for words in lines)
                (self.folder / f"{name}.{language}").write_text(text, encoding="utf-8")
        return self

    def train(self, out: Path, *sets: str, without: str = "", **flags: Any) -> int:
        """Begin or go on with a run in this process; `without` the SETS that begin with one of these words."""
        given = {"train": self.files[:2], "valid": self.files[2:], "command": COMMAND} | flags
        kept = [one for one in SETS if not without or not one.startswith(tuple(without.split()))]
        return train(make_request(None, Flags(**given), [*kept, *sets]), out)

    def arguments(self, out: Path, *sets: str) -> list[str]:
        """The same for the command line."""
        files = [str(file) for file in self.files]
        options = [part for one in [*SETS, *sets] for part in ("--set", one)]
        return ["train", "--train", *files[:2], "--valid", *files[2:], "--out", str(out), *options]


def events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def losses(run: Path) -> list[float]:
    return [event["loss"] for event in events(run) if "loss" in event]


def weights(run: Path, step: int) -> dict[str, str]:
    """The SHA-256 of everything in a checkpoint."""
    folder = checkpoint_folder(run, step)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def outcome(run: Path) -> dict[str, Any]:
    """All that two runs must have in common to be the same, to the last bit."""
    last = steps(run)[-1]
    return {
        "steps": steps(run),
        "last": weights(run, last),
        "model": hashlib.sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest(),
        "log": events(run),
        "curve": (run / "loss.svg").read_text(encoding="utf-8"),
    }


def environment(**more: str) -> dict[str, str]:
    """For processes that a test starts."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **more}
