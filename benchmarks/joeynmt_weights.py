"""A post-norm model of ours as JoeyNMT's: the same weights under its names."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from clearhead.checkpoint.model_folder import read_config
from clearhead.data.folders import load_tokenizers


def write_for_joeynmt(model: Path, out: Path) -> None:
    """Our weights under JoeyNMT's names; its special ids are UNK PAD BOS EOS."""
    out.mkdir()
    options = read_config(model)["model"]
    weights = load_file(model / "model.safetensors")
    embedding = weights.pop("source_embedding.weight")[[3, 0, 1, 2, *range(4, options["source_vocabulary"])]]
    renamed = {name: embedding.copy() for name in ("src_embed.lut.weight", "trg_embed.lut.weight")}
    renamed["decoder.output_layer.weight"] = embedding.copy()
    for name, value in weights.items():
        side, block, part, *rest = name.split(".")
        renamed |= dict(_for_joeynmt(f"{side}.layers.{block}", side, part, rest, value))
    save_file(renamed, out / "model.safetensors")
    (out / "source.model").write_bytes((model / "source.model").read_bytes())
    source, _ = load_tokenizers(model)
    words = source.pieces(list(range(4, len(source))))
    (out / "vocabulary.json").write_text(json.dumps(words), encoding="utf-8")
    stack = {
        "type": "transformer", "hidden_size": options["width"], "ff_size": options["feed_forward"],
        "num_heads": options["heads"], "dropout": 0.0, "layer_norm": "post", "activation": options["activation"],
        "embeddings": {"embedding_dim": options["width"], "scale": True, "dropout": 0.0},
    }  # fmt: skip
    config = {
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": {**stack, "num_layers": options["encoder_blocks"]},
        "decoder": {**stack, "num_layers": options["decoder_blocks"]},
    }
    (out / "config.json").write_text(json.dumps(config), encoding="utf-8")


def _for_joeynmt(
    layer: str, side: str, part: str, rest: list[str], value: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    attention = "src_src_att" if side == "encoder" else "trg_trg_att"
    names = {"attention": attention, "cross_attention": "src_trg_att"}
    norms = {
        "around_attention": "layer_norm" if side == "encoder" else "x_layer_norm",
        "around_cross_attention": "dec_layer_norm",
        "around_feed_forward": "feed_forward.layer_norm",
    }
    if part in norms:
        yield f"{layer}.{norms[part]}.{rest[-1]}", value
    elif part == "feed_forward":
        yield f"{layer}.feed_forward.pwff_layer.{0 if rest[0] == 'inner' else 3}.{rest[-1]}", value
    else:
        matrices = {"q": value} if rest[0] == "output" else dict(zip("qkv", np.split(value, 3), strict=True))
        for letter, matrix in matrices.items():
            name = "output_layer" if rest[0] == "output" else f"{letter}_layer"
            yield f"{layer}.{names[part]}.{name}.weight", np.ascontiguousarray(matrix)
            yield f"{layer}.{names[part]}.{name}.bias", np.zeros(len(matrix), np.float32)
