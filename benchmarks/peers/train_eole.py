"""Eole trained for so many minutes in its own environment, then its translations of a test set.

    python -m benchmarks.peers.train_eole CORPUS MINUTES SEED OUT

CORPUS is as for `train_transformers`. The sizes are those of our `tiny`; as many updates as fit into the minutes, with
its warm-up and inverse square root.
"""

import sys
import time
from pathlib import Path
from typing import Any

from eole.config.run import PredictConfig, TrainConfig  # type: ignore[import-not-found]
from eole.inference_engine import InferenceEnginePY  # type: ignore[import-not-found]
from eole.train_single import main as train  # type: ignore[import-not-found]
from sentencepiece import SentencePieceProcessor

from benchmarks.peers import Sizes, updates_for
from benchmarks.peers.eole_options import prediction_options, training_options, write_vocabulary

TOKENS, PEAK = 2048, 1e-3
WIDTH = 128


def options(corpus: Path, out: Path, seed: int, updates: int, words: int) -> dict[str, Any]:
    sizes = Sizes(WIDTH, 4, 256, 4, 4, words, pairs=1, tokens=1, threads=1)
    warmup = max(1, updates // 8)
    schedule = {
        "batch_size": TOKENS, "decay_method": "noam", "warmup_steps": warmup, "bucket_size": 30_000,
        "learning_rate": PEAK * (WIDTH * warmup) ** 0.5,  # of which its noam makes the peak
    }  # fmt: skip
    return {**training_options(sizes, corpus, out, updates, schedule), "seed": seed}


if __name__ == "__main__":
    corpus, minutes, seed, out = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    out.mkdir(parents=True, exist_ok=True)
    pieces = SentencePieceProcessor(str(corpus / "joint.model"))
    write_vocabulary(out, [pieces.id_to_piece(i) for i in range(4, len(pieces))])

    def try_out(updates: int) -> None:
        train(TrainConfig(**options(corpus, out, seed, updates, len(pieces))), -1)

    updates = updates_for(minutes, try_out)
    started = time.perf_counter()
    train(TrainConfig(**options(corpus, out, seed, updates, len(pieces))), -1)
    print(f"trained for {(time.perf_counter() - started) / 60:.1f} minutes", file=sys.stderr)
    engine = InferenceEnginePY(PredictConfig(**prediction_options(out / "model")))
    lines = (corpus / "test.src").read_text(encoding="utf-8").splitlines()
    _, _, found = engine.infer_list(lines, {"beam_size": 5, "max_length": 100})
    (out / "test.hyp").write_text("".join(f"{best}\n" for best, *_ in found), encoding="utf-8")
