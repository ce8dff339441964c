"""Eole's options, as its own recipes have them, for a model of given sizes; no GPU."""

from pathlib import Path
from typing import Any

from benchmarks.peers import Sizes


def write_vocabulary(folder: Path, words: list[str]) -> None:
    """Without the special ones: it puts its own before them."""
    (folder / "vocabulary.txt").write_text("".join(f"{word}\t1\n" for word in words), encoding="utf-8")


def training_options(sizes: Sizes, corpus: Path, out: Path, steps: int, schedule: dict[str, Any]) -> dict[str, Any]:
    """CORPUS has train, valid (.src, .tgt) and joint.model; OUT has vocabulary.txt and gets the model."""
    pieces = str(corpus / "joint.model")
    return {
        "share_vocab": True, "src_vocab": str(out / "vocabulary.txt"), "overwrite": True,
        "src_vocab_size": sizes.vocabulary, "tgt_vocab_size": sizes.vocabulary, "vocab_size_multiple": 1,
        "report_every": 1000,
        "data": {
            "corpus": {"path_src": str(corpus / "train.src"), "path_tgt": str(corpus / "train.tgt")},
            "valid": {"path_src": str(corpus / "valid.src"), "path_tgt": str(corpus / "valid.tgt")},
        },
        "transforms": ["sentencepiece", "filtertoolong"],
        "transforms_configs": {
            "sentencepiece": {"src_subword_model": pieces, "tgt_subword_model": pieces},
            "filtertoolong": {"src_seq_length": 256, "tgt_seq_length": 256},
        },
        "training": {
            "model_path": str(out / "model"), "train_steps": steps, "valid_steps": 10**6,
            "save_checkpoint_steps": 10**6, "batch_type": "tokens", "normalization": "tokens", "optim": "adam",
            "adam_beta2": 0.98,
            "label_smoothing": sizes.smoothing, "dropout": [sizes.dropout], "attention_dropout": [0.0],
            "dropout_steps": [0], "world_size": 0, "gpu_ranks": [], "num_workers": 0, "compute_dtype": "fp32",
            **schedule,
        },
        "model": {
            "architecture": "transformer", "hidden_size": sizes.width, "heads": sizes.heads,
            "transformer_ff": sizes.feed_forward, "share_embeddings": True, "share_decoder_embeddings": True,
            "encoder": {"encoder_type": "transformer", "layers": sizes.encoder_blocks},
            "decoder": {"decoder_type": "transformer", "layers": sizes.decoder_blocks},
            "embeddings": {"word_vec_size": sizes.width, "position_encoding_type": "SinusoidalInterleaved"},
        },
    }  # fmt: skip


def prediction_options(model: Path) -> dict[str, Any]:
    return {
        "model_path": [str(model)], "src": "unused", "max_length_ratio": 0, "batch_size": 64,
        "batch_type": "sents", "world_size": 0, "gpu_ranks": [], "compute_dtype": "fp32",
    }  # fmt: skip
