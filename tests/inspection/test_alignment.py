"""Alignment is where the attention of the last decoder block but one is, computed in another way."""

import pytest
import torch

from clearhead.data.batching import make_batch
from clearhead.engines import batches
from clearhead.inspection.alignment import align
from clearhead.model.attention import attention_weights
from clearhead.model.transformer import Transformer
from tests.samples import LSTM, PAPER, SOURCE_WORDS, TARGET_WORDS, cross_attention, make_model

SOURCES = [[5, 6, 7], [9], [8, 4, 11, 5, 16], [10, 12], []]
TARGETS = [[4, 5], [6, 7, 8, 9, 10], [11, 4, 4], [], [12]]


@torch.inference_mode()
def attended(model: Transformer, source: list[int], target: list[int]) -> list[int]:
    """Step by step through the model's own parts, one sentence at a time."""
    batch = make_batch([(source, target)])
    state = model.encode(batch.src, batch.src_mask)
    product = cross_attention(model._decoder_blocks()[-2]).dot_product
    seen = []
    dot_product = product.forward

    def spy(*inputs: torch.Tensor) -> torch.Tensor:
        seen.append(inputs)
        return dot_product(*inputs)

    product.forward = spy  # type: ignore[assignment, method-assign]
    model.decode(batch.tgt_in, state)
    product.forward = dot_product  # type: ignore[method-assign]
    q, k, _, mask = seen[0]
    weights = attention_weights(q, k, mask, product.scale)[0].mean(dim=0)
    return [int(weights[t, : len(source)].argmax()) for t in range(len(target))] if source else []


@pytest.mark.parametrize("tokens", [1, 4096])
def test_each_target_token_has_the_source_token_it_looked_at_most(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(max(source, default=0) for source in SOURCES) < SOURCE_WORDS
    assert max(max(target, default=0) for target in TARGETS) < TARGET_WORDS
    monkeypatch.setattr("clearhead.inspection.alignment.TOKENS_PER_BATCH", tokens)
    model = make_model(PAPER)
    assert isinstance(model, Transformer)
    found = align(model, SOURCES, TARGETS)
    assert found == [attended(model, source, target) for source, target in zip(SOURCES, TARGETS, strict=True)]
    assert [len(places) for places in found] == [2, 5, 3, 0, 0]
    assert batches.batches_by_length is not None


def test_nothing_is_left_behind_in_the_model() -> None:
    model = make_model(PAPER)
    align(model, SOURCES[:2], TARGETS[:2])
    assert not any(module._forward_hooks for module in model.modules())


def test_a_model_without_heads_aligns_nothing() -> None:
    assert align(make_model(LSTM), SOURCES[:2], TARGETS[:2]) == [[], []]
