"""The same weights give the same logits as Hugging Face's Marian, whose models we convert."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from clearhead.checkpoint.weights import load_tensors
from clearhead.convert.marian_weights import our_tensors
from clearhead.model import TransformerOptions
from clearhead.model.transformer import Transformer
from tests.samples import random_source

transformers = pytest.importorskip("transformers")

WORDS = 17  # random_source's largest id is below

OPTIONS = TransformerOptions(
    source_vocabulary=WORDS,
    target_vocabulary=WORDS,
    width=14,
    heads=7,
    feed_forward=13,
    encoder_blocks=3,
    decoder_blocks=2,
    bias=True,
    positions="sinusoidal-half",
    activation="silu",
    output_bias=True,
)


def make_marian() -> Any:
    config = transformers.MarianConfig(
        vocab_size=WORDS,
        d_model=OPTIONS.width,
        encoder_attention_heads=OPTIONS.heads,
        decoder_attention_heads=OPTIONS.heads,
        encoder_ffn_dim=OPTIONS.feed_forward,
        decoder_ffn_dim=OPTIONS.feed_forward,
        encoder_layers=OPTIONS.encoder_blocks,
        decoder_layers=OPTIONS.decoder_blocks,
        activation_function="swish",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        max_position_embeddings=31,
        pad_token_id=1,
        eos_token_id=0,
        decoder_start_token_id=1,
        forced_eos_token_id=0,
    )
    marian = transformers.MarianMTModel(config).eval()
    for name, parameter in marian.named_parameters():
        if "embed_positions" not in name:
            nn.init.normal_(parameter, std=0.5)
    nn.init.normal_(marian.final_logits_bias)
    return marian


@torch.no_grad()
def test_logits_equal_marian() -> None:
    theirs = make_marian()
    ours = Transformer(OPTIONS).eval()
    load_tensors(ours, our_tensors(theirs.state_dict(), OPTIONS))

    src, src_mask = random_source(5, 7)
    tgt = torch.randint(WORDS, (5, 11))
    answer = theirs(input_ids=src, attention_mask=src_mask.long(), decoder_input_ids=tgt)
    memory = ours.read(src, src_mask)
    assert_close(memory[src_mask], answer.encoder_last_hidden_state[src_mask], rtol=0, atol=1e-5)
    logits = ours.logits(ours(src, src_mask, tgt))
    assert answer.logits.std() > 0.5  # numbers large enough to differ
    assert_close(logits, answer.logits, rtol=0, atol=1e-5)

    state = ours.encode(src, src_mask)
    one_by_one = torch.cat([ours.decode(token, state) for token in tgt.split(1, dim=1)], dim=1)
    assert_close(ours.logits(one_by_one), answer.logits, rtol=0, atol=1e-5)


def test_parameters_are_as_many_as_marians() -> None:
    trained = sum(p.numel() for p in make_marian().parameters() if p.requires_grad)
    assert sum(p.numel() for p in Transformer(OPTIONS).parameters()) == trained + WORDS  # their output bias is a buffer
