"""The same weights give the same numbers as torch.nn.Transformer."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from clearhead.model.positions import sinusoidal
from clearhead.model.transformer import Transformer
from tests.samples import PAPER, random_ids, random_source


def copy_attention(ours: Any, theirs: nn.MultiheadAttention) -> None:
    ours.projections.load_state_dict({"weight": theirs.in_proj_weight, "bias": theirs.in_proj_bias})
    ours.output.load_state_dict(theirs.out_proj.state_dict())


def copy_block(ours: Any, theirs: Any, norms: tuple[str, ...]) -> None:
    copy_attention(ours.attention, theirs.self_attn)
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())
    for number, residual in enumerate(norms, start=1):
        getattr(ours, residual).norm.load_state_dict(getattr(theirs, f"norm{number}").state_dict())


def copy_stacks(ours: Transformer, theirs: nn.Transformer) -> None:
    for our_block, their_block in zip(ours.encoder, theirs.encoder.layers, strict=True):
        copy_block(our_block, their_block, ("around_attention", "around_feed_forward"))
    for our_block, their_block in zip(ours.decoder, theirs.decoder.layers, strict=True):
        copy_block(our_block, their_block, ("around_attention", "around_cross_attention", "around_feed_forward"))
        copy_attention(our_block.cross_attention, their_block.multihead_attn)
    ours.encoder_norm.load_state_dict(theirs.encoder.norm.state_dict())
    ours.decoder_norm.load_state_dict(theirs.decoder.norm.state_dict())


def embed(ids: Tensor, embedding: nn.Module) -> Tensor:
    """Paper 3.4 and 3.5, written out: torch.nn.Transformer begins after this."""
    assert isinstance(embedding, nn.Embedding)
    width = embedding.embedding_dim
    return embedding(ids) * width**0.5 + sinusoidal(torch.arange(ids.shape[1]), width)


# What torch says when it builds an encoder with norm_first, and that this is slower in eval mode.
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_stacks_equal_torch(norm: str, activation: str) -> None:
    options = replace(PAPER, norm=norm, activation=activation, bias=True, final_norm=True, dropout=0.0)
    ours = Transformer(options)
    theirs = nn.Transformer(
        options.width,
        options.heads,
        options.encoder_blocks,
        options.decoder_blocks,
        options.feed_forward,
        dropout=0.0,
        activation=activation,
        batch_first=True,
        norm_first=norm == "pre",
    )
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    copy_stacks(ours, theirs)

    src, src_mask = random_source(3, 5)
    tgt = random_ids(3, 7)
    x, y = embed(src, ours.source_embedding), embed(tgt, ours.target_embedding)
    memory = theirs.encoder(x, src_key_padding_mask=~src_mask)
    assert_close(ours.read(src, src_mask)[src_mask], memory[src_mask], rtol=0, atol=1e-5)

    hidden = theirs(
        x,
        y,
        src_key_padding_mask=~src_mask,
        memory_key_padding_mask=~src_mask,
        tgt_mask=torch.ones(7, 7, dtype=torch.bool).triu(diagonal=1),  # here True means "may not look"
    )
    assert_close(ours(src, src_mask, tgt), hidden, rtol=0, atol=1e-5)
    state = ours.encode(src, src_mask)
    one_by_one = torch.cat([ours.decode(token, state) for token in tgt.split(1, dim=1)], dim=1)
    assert_close(one_by_one, hidden, rtol=0, atol=1e-5)
