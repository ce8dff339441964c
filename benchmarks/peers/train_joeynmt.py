"""JoeyNMT trained for so many minutes in its own environment, then its translations of a test set.

    python -m benchmarks.peers.train_joeynmt CORPUS MINUTES SEED OUT

CORPUS is as for `train_transformers`. The sizes are those of our `tiny`, pre-norm as in its own examples; as many
updates as fit into the minutes, with its warm-up and inverse square root.
"""

import sys
import time
from pathlib import Path
from typing import Any

from joeynmt.prediction import test  # type: ignore[import-not-found]
from joeynmt.training import train  # type: ignore[import-not-found]
from sentencepiece import SentencePieceProcessor

from benchmarks.peers import updates_for

TOKENS, RATE = 2048, 1e-3
FEW = 5  # lines of validation, which it translates at the end of every run: how long that takes depends on what it says


STACK = {
    "type": "transformer", "embeddings": {"embedding_dim": 128, "scale": True, "dropout": 0.0}, "num_layers": 4,
    "num_heads": 4, "hidden_size": 128, "ff_size": 256, "dropout": 0.1, "layer_norm": "pre",
}  # fmt: skip


def side(corpus: Path, out: Path, language: str) -> dict[str, Any]:
    return {
        "lang": language, "max_length": 256, "lowercase": False, "normalize": False, "level": "bpe",
        "voc_file": str(out / "vocabulary.txt"), "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(corpus / "joint.model")},
    }  # fmt: skip


def configuration(corpus: Path, out: Path, seed: int, updates: int) -> dict[str, Any]:
    folder = out / f"{updates}"
    folder.mkdir(parents=True)
    return {
        "name": "equal-minutes", "joeynmt_version": "2.3.0", "model_dir": str(folder), "use_cuda": False, "fp16": False,
        "random_seed": seed,
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
            "label_smoothing": 0.1, "loss": "crossentropy", "batch_size": TOKENS, "batch_type": "token",
            "early_stopping_metric": "ppl", "epochs": 10_000, "updates": updates, "validation_freq": updates,
            "logging_freq": 1, "overwrite": True, "shuffle": True, "keep_best_ckpts": 1, "print_valid_sents": [],
        },
        "model": {
            "initializer": "xavier_uniform", "embed_initializer": "xavier_uniform", "tied_embeddings": True,
            "tied_softmax": True, "encoder": STACK, "decoder": STACK,
        },
    }  # fmt: skip


if __name__ == "__main__":
    corpus, minutes, seed, out = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    out.mkdir(parents=True, exist_ok=True)
    pieces = SentencePieceProcessor(str(corpus / "joint.model"))
    words = [pieces.id_to_piece(i) for i in range(4, len(pieces))]  # it puts its own four before them
    (out / "vocabulary.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    for end in ("src", "tgt"):
        lines = (corpus / f"valid.{end}").read_text(encoding="utf-8").split("\n")[:FEW]
        (out / f"few.{end}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def try_out(updates: int) -> None:
        train(rank=0, world_size=0, cfg=configuration(corpus, out, seed, updates), skip_test=True)

    config = configuration(corpus, out, seed, updates_for(minutes, try_out))
    started = time.perf_counter()
    train(rank=0, world_size=0, cfg=config, skip_test=True)
    print(f"trained for {(time.perf_counter() - started) / 60:.1f} minutes", file=sys.stderr)
    config["data"]["dev"] = None
    config["testing"]["load_model"] = str(Path(config["model_dir"]) / "best.ckpt")
    test(config, output_path=str(out / "hypotheses"))
    (out / "hypotheses.test").rename(out / "test.hyp")
