"""Attention on the fused kernel against the formula, head by head; and the cache against one that keeps rows.

B sentences, T positions that look, S positions looked at, H heads, K head width, D model width,
W hypotheses per sentence, N slots of the cache.
"""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from clearhead.model import attention as in_attention
from clearhead.model.attention import Cache, MultiHeadAttention, ScaledDotProduct, attention_weights, causal_mask
from tests.samples import PAPER, make_model, random_ids, random_source

B, T, S, H, K, D = 2, 5, 7, 3, 11, 13


def random_mask(*shape: int) -> Tensor:
    """About half of the places, and at least one in each row."""
    return (torch.rand(shape) < 0.5).scatter(-1, torch.randint(shape[-1], (*shape[:-1], 1)), True)


def make_attention(bias: bool, output_projection: bool = True, width: int = D) -> MultiHeadAttention:
    attention = MultiHeadAttention(width, H, K, K**-0.5, bias, output_projection)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention


@pytest.mark.parametrize("scale", [1.0, 0.3, K**-0.5])
@pytest.mark.parametrize("mask_shape", [None, (T, S), (B, 1, 1, S), (B, 1, T, S), (B, H, T, S)], ids=str)
def test_fused_kernel_equals_the_formula(mask_shape: tuple[int, ...] | None, scale: float) -> None:
    q, k, v = torch.randn(B, H, T, K), torch.randn(B, H, S, K), torch.randn(B, H, S, K)
    mask = None if mask_shape is None else random_mask(*mask_shape)
    assert_close(ScaledDotProduct(scale)(q, k, v, mask), attention_weights(q, k, mask, scale) @ v)


@pytest.mark.parametrize("mask_shape", [None, (T, S), (B, 1, 1, S), (B, 1, T, S), (B, H, T, S)], ids=str)
@pytest.mark.parametrize("few", [B - 1, B], ids=["many", "few"])
def test_queries_one_by_one_equal_all_at_once(
    mask_shape: tuple[int, ...] | None, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_attention, "FEW_SENTENCES", few)
    q, k, v = torch.randn(B, H, T, K), torch.randn(B, H, S, K), torch.randn(B, H, S, K)
    mask = None if mask_shape is None else random_mask(*mask_shape)
    masks = [mask] * T if mask is None or mask.shape[-2] == 1 else mask.split(1, dim=-2)
    attend = ScaledDotProduct(0.3)
    alone = [attend(one, k, v, its) for one, its in zip(q.split(1, dim=2), masks, strict=True)]
    assert_close(torch.cat(alone, dim=2), attend(q, k, v, mask))


@pytest.mark.parametrize("mask_shape", [None, (T, S), (B, 1, 1, S), (B, 1, T, S), (B, H, T, S)], ids=str)
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_few_keys_are_learned_from_as_by_the_fused_kernel(
    mask_shape: tuple[int, ...] | None, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As they come from one product: heads beside each other, not one after the other.
    inputs = [torch.randn(B, length, H, K, dtype=kind).transpose(1, 2).requires_grad_() for length in (T, S, S)]
    mask = None if mask_shape is None else random_mask(*mask_shape)
    onward = torch.randn(B, T, H, K, dtype=kind).transpose(1, 2)

    def attended(few: int) -> tuple[Tensor, ...]:
        monkeypatch.setattr(in_attention, "FEW_KEYS", {kind: few})
        attention = ScaledDotProduct(0.3)(*inputs, mask)
        assert ("FewKeys" in type(attention.grad_fn).__name__) == (few > S)
        assert attention.dtype == kind
        return attention, *torch.autograd.grad(attention, inputs, onward)

    rtol, atol = (0.02, 0.05) if kind == torch.bfloat16 else (None, None)
    for plain, fused in zip(attended(S + 1), attended(S), strict=True):
        assert_close(plain, fused, rtol=rtol, atol=atol)


def test_many_keys_in_bfloat16_are_learned_from_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused kernel's own way back in bfloat16 is far slower."""
    monkeypatch.setattr(in_attention, "FEW_KEYS", {})
    inputs = [torch.randn(B, H, S, K, dtype=torch.bfloat16).requires_grad_() for _ in range(3)]
    exact = [x.detach().float().requires_grad_() for x in inputs]
    ours, theirs = ScaledDotProduct(0.3)(*inputs, None), ScaledDotProduct(0.3)(*exact, None)
    assert torch.equal(ours, theirs.bfloat16())
    onward = torch.randn_like(ours)
    found = torch.autograd.grad(ours, inputs, onward)
    assert_close(found, tuple(x.bfloat16() for x in torch.autograd.grad(theirs, exact, onward.float())))


def test_weights_are_a_distribution_over_what_may_be_seen() -> None:
    q, k, mask = torch.randn(B, H, T, K), torch.randn(B, H, S, K), random_mask(B, 1, T, S)
    weights = attention_weights(q, k, mask, K**-0.5)
    assert_close(weights.sum(dim=-1), torch.ones(B, H, T))
    assert torch.equal(weights > 0, mask.expand(B, H, T, S))


def test_weights_equal_the_formula_number_by_number() -> None:
    q, k, mask, scale = torch.randn(B, H, T, K), torch.randn(B, H, S, K), random_mask(B, 1, T, S), 0.3
    weights = attention_weights(q, k, mask, scale)
    for b, h, t in torch.cartesian_prod(torch.arange(B), torch.arange(H), torch.arange(T)).tolist():
        shares = [float(mask[b, 0, t, s]) * float(torch.exp(scale * q[b, h, t].dot(k[b, h, s]))) for s in range(S)]
        assert_close(weights[b, h, t], torch.tensor(shares) / sum(shares))


@pytest.mark.parametrize("bias", [False, True])
def test_one_product_equals_queries_and_keys_values(bias: bool) -> None:
    attention, x = make_attention(bias), torch.randn(B, T, D)
    together = attention.queries_keys_values(x)
    apart = attention.queries(x), *attention.keys_values(x)
    assert [part.shape for part in together] == [(B, H, T, K)] * 3
    for one, other in zip(together, apart, strict=True):
        assert_close(one, other)


def test_matrices_of_a_head_make_its_queries_keys_and_values() -> None:
    attention, x = make_attention(bias=False), torch.randn(B, T, D)
    parts = attention.queries_keys_values(x)
    for head in range(H):
        for part, matrix in zip(parts, attention.matrices(head), strict=True):
            assert matrix.shape == (K, D)
            assert_close(part[0, head, 3], matrix @ x[0, 3])


@pytest.mark.parametrize(("bias", "output_projection"), [(False, True), (True, True), (False, False)])
def test_attention_equals_its_heads_one_by_one(bias: bool, output_projection: bool) -> None:
    attention = make_attention(bias, output_projection, D if output_projection else H * K)
    x = torch.randn(B, T, attention.projections.in_features)
    memory = torch.randn(B, S, attention.projections.in_features)
    for looked_at, mask in ((x, causal_mask(T)), (memory, random_mask(B, 1, 1, S))):
        heads = [one_head(attention, head, x, looked_at, mask) for head in range(H)]
        assert_close(attention(x, looked_at, mask), attention.output(torch.cat(heads, dim=-1)), rtol=1e-4, atol=1e-5)


def one_head(attention: MultiHeadAttention, head: int, x: Tensor, looked_at: Tensor, mask: Tensor) -> Tensor:
    """softmax(q·k/√K)·v with this head's own three matrices, (B, T, K)."""
    bias = attention.projections.bias
    shifts = torch.zeros(3, K) if bias is None else bias.view(3, H, K)[:, head]
    q, k, v = (
        y @ matrix.T + shift
        for y, matrix, shift in zip((x, looked_at, looked_at), attention.matrices(head), shifts, strict=True)
    )
    scores = (q @ k.transpose(1, 2) / K**0.5).masked_fill(~mask.view(-1, mask.shape[-2], mask.shape[-1]), -torch.inf)
    return scores.softmax(dim=-1) @ v


def test_a_hook_can_recompute_the_weights() -> None:
    model = make_model(PAPER)
    seen: list[tuple[float, tuple[Any, ...], Tensor]] = []
    for module in model.modules():
        if isinstance(module, ScaledDotProduct):
            module.register_forward_hook(lambda module, args, output: seen.append((module.scale, args, output)))
    model(*random_source(2, 5), random_ids(2, 7))
    assert len(seen) == PAPER.encoder_blocks + 2 * PAPER.decoder_blocks
    for scale, (q, k, v, mask), output in seen:
        assert_close(attention_weights(q, k, mask, scale) @ v, output)


def test_gradients_of_the_fused_kernel_equal_the_formulas() -> None:
    tensors = [torch.randn(B, H, length, K, requires_grad=True) for length in (T, S, S)]
    q, k, v = tensors
    mask, outer = random_mask(B, 1, T, S), torch.randn(B, H, T, K)
    fused = torch.autograd.grad(ScaledDotProduct(0.3)(q, k, v, mask), tensors, outer)
    formula = torch.autograd.grad(attention_weights(q, k, mask, 0.3) @ v, tensors, outer)
    for one, other in zip(fused, formula, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize(("length", "past"), [(1, 0), (5, 0), (1, 7), (3, 7)])
def test_causal_mask_equals_a_loop(length: int, past: int) -> None:
    mask = causal_mask(length, past)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[seen <= past + looking for seen in range(past + length)] for looking in range(length)]


class RowCache:
    """What Cache has to equal: the keys of each hypothesis in a row of its own, copied whenever rows move."""

    def __init__(self, sentences: int, hypotheses: int) -> None:
        self.keys = torch.empty(sentences, hypotheses, 0, H, K)

    def extend(self, k: Tensor) -> None:
        """k is (B, H, W·T, K)."""
        new = k.unflatten(2, (self.keys.shape[1], -1)).permute(0, 2, 3, 1, 4)
        self.keys = torch.cat([self.keys, new], dim=2)  # (B, W, T so far, H, K)

    def select(self, rows: Tensor) -> None:
        self.keys = self.keys.flatten(0, 1)[rows].view_as(self.keys)


@pytest.mark.parametrize("hypotheses", [3, 7])
def test_cache_shows_each_hypothesis_its_own_past_and_drops_the_rest(hypotheses: int) -> None:
    W, steps = hypotheses, 89
    cache, rows = Cache(), RowCache(B, W)
    cache.repeat(W)
    for step in range(steps):
        length = 3 if step % 11 == 0 else 1
        k = torch.randn(B, H, W * length, K)
        mask = cache.open(B, length, torch.device("cpu"))
        keys, values = cache.extend(0, k, -k)
        rows.extend(k)
        assert mask is not None
        assert mask.shape == (B, 1, W * length, keys.shape[2])
        assert torch.equal(values, -keys)
        if step % 7 == 0:
            for b in range(B):
                for w in range(W):
                    for t in range(length):  # the earlier of several new tokens see fewer
                        own = keys[b][:, mask[b, 0, w * length + t]].transpose(0, 1)  # (T so far, H, K)
                        assert torch.equal(own, rows.keys[b, w, : cache.length - length + t + 1])
        parents = torch.arange(B * W) // W * W + torch.randint(W, (B * W,))
        cache.select(parents)
        rows.select(parents)
    assert cache.length == rows.keys.shape[2]
    assert keys.shape[2] < 0.6 * cache.length * W  # where a cache by rows holds T·W


def test_cache_keeps_all_slots_while_hypotheses_do_not_share() -> None:
    W = 3
    cache = Cache()
    cache.repeat(W)
    for step in range(1, 41):
        cache.open(B, 1, torch.device("cpu"))
        keys, _ = cache.extend(0, torch.randn(B, H, W, K), torch.randn(B, H, W, K))
        cache.select(torch.arange(B * W))
        assert keys.shape[2] == W * step


def test_cache_grows_by_doubling_and_keeps_what_it_has() -> None:
    cache, given, places = Cache(), [], []
    for _ in range(67):
        k = torch.randn(B, H, 1, K)
        given.append(k)
        cache.open(B, 1, torch.device("cpu"))
        keys, values = cache.extend(0, k, 2 * k)
        assert torch.equal(keys, torch.cat(given, dim=2))
        assert torch.equal(values, 2 * keys)
        places.append(keys.data_ptr())
    moves = sum(before != after for before, after in pairwise(places))
    assert moves <= 7  # 2⁶ < 67 < 2⁷


def test_cache_copies_nothing_in_training() -> None:
    cache, k, v = Cache(), torch.randn(B, H, T, K), torch.randn(B, H, T, K)
    mask = cache.open(B, T, torch.device("cpu"))
    keys, values = cache.extend(0, k, v)
    assert keys is k
    assert values is v
    assert mask is not None
    assert torch.equal(mask, causal_mask(T))
