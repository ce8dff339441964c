"""Eole trained for so many minutes in its own environment, then its translations of a test set.

    python -m benchmarks.peers.train_eole CORPUS MINUTES SEED OUT [SIZES]

See `Training`. As many updates as fit into the minutes, with its warm-up and inverse square root.
"""

import sys
import time
from dataclasses import replace
from typing import Any

import eole.trainer  # type: ignore[import-not-found]
from eole.config.run import PredictConfig, TrainConfig  # type: ignore[import-not-found]
from eole.inference_engine import InferenceEnginePY  # type: ignore[import-not-found]
from eole.train_single import main as train  # type: ignore[import-not-found]
from eole.trainer import Trainer
from sentencepiece import SentencePieceProcessor

from benchmarks.peers import MORE, Pace, Training
from benchmarks.peers.eole_options import prediction_options, training_options, write_vocabulary

TOKENS, PEAK = 2048, 1e-3


def options(asked: Training, updates: int, words: int) -> dict[str, Any]:
    sizes = replace(asked.sizes, vocabulary=words)
    warmup = max(1, updates // 8)
    schedule = {
        "batch_size": TOKENS, "decay_method": "noam", "warmup_steps": warmup, "bucket_size": 30_000,
        "learning_rate": PEAK * (sizes.width * warmup) ** 0.5,  # of which its noam makes the peak
    }  # fmt: skip
    return {**training_options(sizes, asked.corpus, asked.out, updates, schedule), "seed": asked.seed}


def counted(pace: Pace) -> type[Trainer]:
    """Its trainer, which tells the pace of an update's target tokens."""

    class Counting(Trainer):
        def _train_step(self, batches: Any, normalization: Any, *rest: Any, **named: Any) -> None:
            super()._train_step(batches, normalization, *rest, **named)
            pace.note(int(normalization))

    return Counting


if __name__ == "__main__":
    asked = Training.asked()
    pieces = SentencePieceProcessor(str(asked.corpus / "joint.model"))
    write_vocabulary(asked.out, [pieces.id_to_piece(i) for i in range(4, len(pieces))])

    def try_out(updates: int) -> None:
        train(TrainConfig(**options(asked, updates, len(pieces))), -1)

    if not asked.minutes:
        pace = Pace()
        eole.trainer.Trainer = counted(pace)
        try_out(MORE)
        pace.write(asked.out)
        sys.exit()
    updates = asked.updates(try_out)
    started = time.perf_counter()
    try_out(updates)
    print(f"trained for {(time.perf_counter() - started) / 60:.1f} minutes", file=sys.stderr)
    engine = InferenceEnginePY(PredictConfig(**prediction_options(asked.out / "model")))
    lines = (asked.corpus / "test.src").read_text(encoding="utf-8").splitlines()
    _, _, found = engine.infer_list(lines, {"beam_size": 5, "max_length": 100})
    (asked.out / "test.hyp").write_text("".join(f"{best}\n" for best, *_ in found), encoding="utf-8")
