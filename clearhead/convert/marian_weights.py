"""The weights of our Transformer under Marian's names, and back.

D model width, J heads × head width, V vocabulary.

Marian has the sines of a position in the first half of the channels and the cosines in the second; the paper has
them in turns. That is only another order of the D channels, and nothing but the positions depends on it: so all that
reads or writes a channel is put in Marian's order, and the result is the same to the last digit but rounding.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.model.options import TransformerOptions

Tensors = dict[str, Tensor]

SHARED = "model.shared.weight"
SOURCE = "model.encoder.embed_tokens.weight"
TARGET = "model.decoder.embed_tokens.weight"
OUTPUT = "lm_head.weight"
ATTENTIONS = {"attention": "self_attn", "cross_attention": "encoder_attn"}
DENSES = {"feed_forward.inner": "fc1", "feed_forward.outer": "fc2"}
NORMS = {
    "around_attention.norm": "self_attn_layer_norm",
    "around_cross_attention.norm": "encoder_attn_layer_norm",
    "around_feed_forward.norm": "final_layer_norm",
}


@dataclass(frozen=True)
class Block:
    """One block's name on both sides, and what is in it."""

    ours: str
    theirs: str
    attentions: dict[str, str]
    norms: dict[str, str]


def blocks(options: TransformerOptions) -> Iterator[Block]:
    for side, number in (("encoder", options.encoder_blocks), ("decoder", options.decoder_blocks)):
        crosses = side == "decoder"
        for i in range(number):
            yield Block(
                f"{side}.{i}",
                f"model.{side}.layers.{i}",
                {ours: theirs for ours, theirs in ATTENTIONS.items() if crosses or "cross" not in ours},
                {ours: theirs for ours, theirs in NORMS.items() if crosses or "cross" not in ours},
            )


def marian_tensors(ours: Mapping[str, Tensor], options: TransformerOptions) -> Tensors:
    """Marian's state dict, without the names under which tied weights appear a second time."""
    order = channel_order(options)
    theirs: Tensors = {}
    if options.tied == "all":
        theirs[SHARED] = ours["source_embedding.weight"][:, order]
    else:
        theirs[SOURCE] = ours["source_embedding.weight"][:, order]
        theirs[TARGET] = ours["target_embedding.weight"][:, order]
    if options.tied == "none":
        theirs[OUTPUT] = ours["output.weight"][:, order]
    theirs["final_logits_bias"] = ours.get("output.bias", torch.zeros(options.target_vocabulary))[None]
    for block in blocks(options):
        for mine, other in block.attentions.items():
            parts = _marian_attention(ours, f"{block.ours}.{mine}", options, order)
            theirs.update({f"{block.theirs}.{other}.{name}": tensor for name, tensor in parts.items()})
        for mine, other in block.norms.items():
            for kind in ("weight", "bias"):
                theirs[f"{block.theirs}.{other}.{kind}"] = ours[f"{block.ours}.{mine}.{kind}"][order]
        dense = f"{block.ours}.feed_forward"
        theirs[f"{block.theirs}.fc1.weight"] = ours[f"{dense}.inner.weight"][:, order]
        theirs[f"{block.theirs}.fc1.bias"] = ours[f"{dense}.inner.bias"]
        theirs[f"{block.theirs}.fc2.weight"] = ours[f"{dense}.outer.weight"][order]
        theirs[f"{block.theirs}.fc2.bias"] = ours[f"{dense}.outer.bias"][order]
    return {name: tensor.clone().contiguous() for name, tensor in theirs.items()}


def our_tensors(theirs: Mapping[str, Tensor], options: TransformerOptions) -> Tensors:
    """The state dict, tied weights once, of the Transformer that a Marian model is; positions are sinusoidal-half."""
    ours: Tensors = {}
    if options.tied == "all":
        ours["source_embedding.weight"] = _first(theirs, SHARED, SOURCE, TARGET, OUTPUT)
    else:
        ours["source_embedding.weight"] = theirs[SOURCE]
        ours["target_embedding.weight"] = theirs[TARGET] if options.tied == "none" else _first(theirs, TARGET, OUTPUT)
    if options.tied == "none":
        ours["output.weight"] = theirs[OUTPUT]
    ours["output.bias"] = theirs.get("final_logits_bias", torch.zeros(options.target_vocabulary)).flatten()
    for block in blocks(options):
        for mine, other in block.attentions.items():
            to, out_of = f"{block.ours}.{mine}", f"{block.theirs}.{other}"
            for kind in ("weight", "bias"):
                ours[f"{to}.projections.{kind}"] = torch.cat([theirs[f"{out_of}.{p}_proj.{kind}"] for p in "qkv"])
                ours[f"{to}.output.{kind}"] = theirs[f"{out_of}.out_proj.{kind}"]
        for mine, other in (block.norms | DENSES).items():
            for kind in ("weight", "bias"):
                ours[f"{block.ours}.{mine}.{kind}"] = theirs[f"{block.theirs}.{other}.{kind}"]
    return {name: tensor.float() for name, tensor in ours.items()}


def channel_order(options: TransformerOptions) -> Tensor:
    """(D,): for each of Marian's channels which of ours it is."""
    channels = torch.arange(options.width)
    if options.positions == "sinusoidal-half":
        return channels
    return torch.cat([channels[0::2], channels[1::2]])


def _first(theirs: Mapping[str, Tensor], *names: str) -> Tensor:
    """A tied weight is stored under one of its names; which one differs by version."""
    return theirs[next((name for name in names if name in theirs), names[0])]


def _marian_attention(
    ours: Mapping[str, Tensor], name: str, options: TransformerOptions, order: Tensor
) -> Mapping[str, Tensor]:
    """Marian multiplies scores by 1/√head_width; another scale is multiplied into W_Q. No W_O is the identity."""
    J, D = options.heads * options.key_width, options.width
    q, k, v = ours[f"{name}.projections.weight"][:, order].split(J)
    q_bias, k_bias, v_bias = ours.get(f"{name}.projections.bias", torch.zeros(3 * J)).split(J)
    more = options.score_scale * options.key_width**0.5
    return {
        "q_proj.weight": q * more,
        "q_proj.bias": q_bias * more,
        "k_proj.weight": k,
        "k_proj.bias": k_bias,
        "v_proj.weight": v,
        "v_proj.bias": v_bias,
        "out_proj.weight": ours.get(f"{name}.output.weight", torch.eye(D))[order],
        "out_proj.bias": ours.get(f"{name}.output.bias", torch.zeros(D))[order],
    }
