"""JoeyNMT trained for so many minutes in its own environment, then its translations of a test set.

    python -m benchmarks.peers.train_joeynmt CORPUS MINUTES SEED OUT [SIZES]

See `Training`. Pre-norm as in its own examples; as many updates as fit into the minutes, with its warm-up and inverse
square root.
"""

import sys
import time
from pathlib import Path
from typing import Any

import joeynmt.training  # type: ignore[import-not-found]
from joeynmt.prediction import test  # type: ignore[import-not-found]
from joeynmt.training import TrainManager, train
from sentencepiece import SentencePieceProcessor

from benchmarks.peers import MORE, Pace, Sizes, Training

TOKENS, RATE = 2048, 1e-3
MODEL, SPACE = "joint.model", "▁"
FEW = 5  # lines of validation, which it translates at the end of every run: how long that takes depends on what it says


def stack(sizes: Sizes, blocks: int) -> dict[str, Any]:
    return {
        "type": "transformer", "embeddings": {"embedding_dim": sizes.width, "scale": True, "dropout": 0.0},
        "num_layers": blocks, "num_heads": sizes.heads, "hidden_size": sizes.width, "ff_size": sizes.feed_forward,
        "dropout": sizes.dropout, "layer_norm": "pre",
    }  # fmt: skip


def side(corpus: Path, out: Path, language: str) -> dict[str, Any]:
    pieces = {"level": "bpe", "tokenizer_type": "sentencepiece", "tokenizer_cfg": {"model_file": str(corpus / MODEL)}}
    return {
        "lang": language, "max_length": 256, "lowercase": False, "normalize": False,
        "voc_file": str(out / "vocabulary.txt"), **({"level": "word"} if is_of_words(corpus) else pieces),
    }  # fmt: skip


def vocabulary(corpus: Path) -> list[str]:
    """Without the four special ones, before which it puts its own."""
    pieces = SentencePieceProcessor(str(corpus / MODEL))
    return [pieces.id_to_piece(i) for i in range(4, len(pieces))]


def is_of_words(corpus: Path) -> bool:
    """Whether the vocabulary has whole words alone, which it does not take SentencePiece for."""
    return all(piece.startswith(SPACE) for piece in vocabulary(corpus))


def configuration(asked: Training, updates: int) -> dict[str, Any]:
    corpus, out, sizes = asked.corpus, asked.out, asked.sizes
    folder = out / f"{updates}"
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "name": "equal-minutes", "joeynmt_version": "2.3.0", "model_dir": str(folder), "use_cuda": False, "fp16": False,
        "random_seed": asked.seed,
        "data": {
            "train": str(corpus / "train"), "dev": str(out / "few"), "test": str(corpus / "test"),
            "dataset_type": "plain",
            "src": side(corpus, out, "src"), "trg": side(corpus, out, "tgt"),
        },
        "testing": {
            "n_best": 1, "beam_size": 5, "beam_alpha": 1.0, "batch_size": 1024, "batch_type": "token",
            "max_output_length": 100, "eval_metrics": [],
        },
        "training": {
            "optimizer": "adam", "normalization": "tokens", "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",
            "learning_rate": RATE, "learning_rate_warmup": max(1, updates // 8), "learning_rate_min": 1e-8,
            "label_smoothing": sizes.smoothing, "loss": "crossentropy", "batch_size": TOKENS, "batch_type": "token",
            "early_stopping_metric": "ppl", "epochs": 10_000, "updates": updates, "validation_freq": updates,
            "logging_freq": 1, "overwrite": True, "shuffle": True, "keep_best_ckpts": 1, "print_valid_sents": [],
        },
        "model": {
            "initializer": "xavier_uniform", "embed_initializer": "xavier_uniform", "tied_embeddings": True,
            "tied_softmax": True, "encoder": stack(sizes, sizes.encoder_blocks),
            "decoder": stack(sizes, sizes.decoder_blocks),
        },
    }  # fmt: skip


def counted(pace: Pace) -> type[TrainManager]:
    """Its trainer, which tells the pace of an update's target tokens."""

    class Counting(TrainManager):
        def _train_step(self, batch: Any) -> tuple[float, int]:
            found = super()._train_step(batch)
            pace.note(batch.ntokens)
            return found

    return Counting


if __name__ == "__main__":
    asked = Training.asked()
    words = vocabulary(asked.corpus)
    if is_of_words(asked.corpus):
        words = [word.removeprefix(SPACE) for word in words]
    (asked.out / "vocabulary.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    for end in ("src", "tgt"):
        lines = (asked.corpus / f"valid.{end}").read_text(encoding="utf-8").split("\n")[:FEW]
        (asked.out / f"few.{end}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def try_out(updates: int) -> None:
        train(rank=0, world_size=0, cfg=configuration(asked, updates), skip_test=True)

    if not asked.minutes:
        pace = Pace()
        joeynmt.training.TrainManager = counted(pace)
        try_out(MORE)
        pace.write(asked.out)
        sys.exit()
    config = configuration(asked, asked.updates(try_out))
    started = time.perf_counter()
    train(rank=0, world_size=0, cfg=config, skip_test=True)
    print(f"trained for {(time.perf_counter() - started) / 60:.1f} minutes", file=sys.stderr)
    config["data"]["dev"] = None
    config["testing"]["load_model"] = str(Path(config["model_dir"]) / "best.ckpt")
    test(config, output_path=str(asked.out / "hypotheses"))
    (asked.out / "hypotheses.test").rename(asked.out / "test.hyp")
