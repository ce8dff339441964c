"""Label-smoothed cross entropy (paper 5.4) straight from the hidden states, without ever storing all logits.

With z the logits, y the target, ε the smoothing and s how it is spread over the V words, the loss of a token is
(1-ε)·(lse(z) - z_y) + ε·(lse(z) - s·z), whose gradient is softmax(z) - (1-ε)·onehot(y) - ε·s. The paper spreads it
evenly; in training it goes to the words that targets have, so that a model learns not to say the others.
Gradients are computed right here, chunk by chunk, while a chunk's softmax is still in the CPU's cache: with
8,000 words that is 2 to 3 times as fast as `cross_entropy(linear(...))` (benchmarks/LOG.md).

B sentences, T target tokens, N target tokens that are not padding, D width, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from clearhead.data.batching import Batch
from clearhead.data.tokenizer import PAD
from clearhead.model import Seq2Seq
from clearhead.model.linear import Linear

LOGITS_PER_CHUNK = 2**22  # 16 MB in float32


def batch_loss(model: Seq2Seq, batch: Batch, smoothing: float, tokens: int, spread: Tensor | None = None) -> Tensor:
    """The loss summed over the batch, divided by `tokens`: all target tokens of the update it belongs to."""
    hidden = model(batch.src, batch.src_mask, batch.tgt_in)
    return cross_entropy(hidden, model.output, batch.tgt_out, smoothing, spread) / tokens


def cross_entropy(
    hidden: Tensor, output: Linear, targets: Tensor, smoothing: float, spread: Tensor | None = None
) -> Tensor:
    """Sum over the tokens of `targets` (B, T) that are not padding; hidden is (B, T, D), `spread` (V,) sums to one."""
    real = (targets != PAD).flatten().nonzero().squeeze(1)
    words = targets.flatten()[real]  # (N,)
    rows = hidden.flatten(0, 1)[real]  # (N, D)
    weight = output.weight if output.product == torch.float32 else output.low_weight()
    smoothed = smoothing, evenly(output) if spread is None else spread
    if not torch.is_grad_enabled():
        return _FusedLoss.forward(_NoGradients(), rows, output.weight, output.bias, words, smoothed, weight.detach())
    return _FusedLoss.apply(rows, output.weight, output.bias, words, smoothed, weight.detach())


def evenly(output: Linear) -> Tensor:
    """The same share for each of the V words."""
    V = output.out_features
    return output.weight.new_full((V,), 1 / V)


class _NoGradients:
    """What `_FusedLoss.forward` gets where nobody will go back."""

    needs_input_grad = (False,)


class _FusedLoss(torch.autograd.Function):
    """The loss and, if asked for, its gradients in one go. `low` is the weight in the product's type."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        words: Tensor,
        smoothed: tuple[float, Tensor],
        low: Tensor,
    ) -> Tensor:
        smoothing, spread = smoothed
        wants_gradients = any(ctx.needs_input_grad)
        total = rows.new_zeros((), dtype=torch.float32)
        low_rows = rows.to(low.dtype)
        of_rows, of_weight = torch.empty_like(low_rows), torch.zeros_like(weight)
        of_bias = None if bias is None else torch.zeros_like(bias)
        size = max(64, LOGITS_PER_CHUNK // len(weight))
        for some, some_words, of_some in zip(
            low_rows.split(size), words[:, None].split(size), of_rows.split(size), strict=True
        ):
            z = (some @ low.t()).float()  # (chunk, V)
            if bias is not None:
                z += bias
            z_word, z_top, z_spread = z.gather(1, some_words), z.amax(1, keepdim=True), z @ spread[:, None]
            p = torch.softmax(z, dim=1, out=z)
            lse = z_top - p.amax(1, keepdim=True).log()  # the top word's share is at least 1/V: no log of zero
            total += (lse - (1 - smoothing) * z_word - smoothing * z_spread).sum()
            if not wants_gradients:
                continue
            p.scatter_add_(1, some_words, torch.full_like(z_word, smoothing - 1))
            if of_bias is not None:
                of_bias += p.sum(0)
            p = p.to(low.dtype)
            torch.mm(p, low, out=of_some)
            add_product(of_weight, p, some)
        if wants_gradients:  # - ε·s, left out above because it is the same for every token
            of_rows -= smoothing * (spread.to(low.dtype) @ low)
            of_weight.addr_(spread, low_rows.sum(0, dtype=weight.dtype), alpha=-smoothing)
            if of_bias is not None:
                of_bias -= smoothing * len(rows) * spread
            ctx.gradients = of_rows.to(rows.dtype), of_weight, of_bias
        return total

    @staticmethod
    def backward(ctx: Any, *scale: Tensor) -> tuple[Tensor | None, ...]:
        of_rows, of_weight, of_bias = ctx.gradients
        of_bias = None if of_bias is None else of_bias * scale[0]
        return of_rows * scale[0], of_weight * scale[0], of_bias, None, None, None


def add_product(total: Tensor, p: Tensor, rows: Tensor) -> None:
    """total (V, D) += pᵀ rows, summed in float32 whatever type the product is in."""
    if p.dtype == total.dtype:
        total.addmm_(p.t(), rows)
    else:
        total += p.t() @ rows
