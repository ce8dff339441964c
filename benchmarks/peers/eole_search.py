"""Eole in its own environment: Sizes as JSON, a SentencePiece model with as many words, and a folder for its model.

Its decoder has the norm before each part only, so it cannot have the weights of a post-norm model: it gets random
ones of the same sizes, and every target has as many tokens as it is told.
"""

import json
import logging
import shutil
import sys
from pathlib import Path

import torch
from eole.config.run import PredictConfig, TrainConfig  # type: ignore[import-not-found]
from eole.inference_engine import InferenceEnginePY  # type: ignore[import-not-found]
from eole.train_single import main as train  # type: ignore[import-not-found]
from sentencepiece import SentencePieceProcessor

from benchmarks.peers import Sizes, serve_translations
from benchmarks.peers.eole_options import prediction_options, training_options, write_vocabulary


def make_random(sizes: Sizes, pieces: str, folder: Path) -> None:
    """A model that was trained for one step on one pair, as its own trainer saves it."""
    folder.mkdir()
    shutil.copy(pieces, folder / "joint.model")
    processor = SentencePieceProcessor(pieces)
    write_vocabulary(folder, [processor.id_to_piece(i) for i in range(4, len(processor))])
    for name in ("train.src", "train.tgt", "valid.src", "valid.tgt"):
        (folder / name).write_text("a\n", encoding="utf-8")
    schedule = {"learning_rate": sizes.rate, "batch_size": 64, "bucket_size": 8}
    train(TrainConfig(**training_options(sizes, folder, folder, 1, schedule)), -1)


if __name__ == "__main__":
    sizes = Sizes(**json.loads(sys.argv[1]))
    torch.set_num_threads(sizes.threads)
    logging.disable(logging.CRITICAL)
    stdout, sys.stdout = sys.stdout, sys.stderr
    folder = Path(sys.argv[3])
    if not folder.exists():
        make_random(sizes, sys.argv[2], folder)
    engine = InferenceEnginePY(PredictConfig(**prediction_options(folder / "model")))
    sys.stdout = stdout

    def translate(lines: list[str], beam: int, length: int | None) -> list[str]:
        assert length is not None
        settings = {"beam_size": beam, "min_length": length, "max_length": length + 1}  # its end counts
        _, _, found = engine.infer_list(lines, settings)
        return [best for best, *_ in found]

    serve_translations(translate)
