"""R-Drop (Liang et al. 2021): every pair is read twice, with other dropout, and the two predictions are drawn together.

With p and q the two distributions of a token and α the weight, its loss is the mean of both cross entropies plus
α/4·(KL(p‖q) + KL(q‖p)): half of what the paper adds up, so that it compares with the loss of a single reading. With
d = log p - log q the divergences' gradients by the logits of p are p·(d - KL(p‖q)) and p - q; like those of the cross
entropy (loss.py) they are computed chunk by chunk, without storing all logits.

B sentences, T target tokens, N target tokens that are not padding, D width, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from clearhead.data.batching import Batch
from clearhead.data.tokenizer import PAD
from clearhead.model import Seq2Seq
from clearhead.model.linear import Linear

from .loss import LOGITS_PER_CHUNK, add_product, evenly


def agreeing_loss(
    model: Seq2Seq, batch: Batch, smoothing: float, agreement: float, tokens: int, spread: Tensor | None = None
) -> Tensor:
    """The loss of both readings of the batch and of their disagreement, divided by `tokens` as in `batch_loss`."""
    hidden = model(*(torch.cat([x, x]) for x in (batch.src, batch.src_mask, batch.tgt_in)))  # (2 B, T, D)
    return divided_cross_entropy(hidden, model.output, batch.tgt_out, smoothing, agreement, spread) / tokens


def divided_cross_entropy(
    hidden: Tensor,
    output: Linear,
    targets: Tensor,
    smoothing: float,
    agreement: float,
    spread: Tensor | None = None,
) -> Tensor:
    """Sum over the tokens of `targets` (B, T) that are not padding; hidden is (2 B, T, D), the readings in turn."""
    real = (targets != PAD).flatten().nonzero().squeeze(1)
    words = targets.flatten()[real]  # (N,)
    first, second = (half.flatten(0, 1)[real] for half in hidden.chunk(2))  # (N, D)
    weight = output.weight if output.product == torch.float32 else output.low_weight()
    weights = smoothing, evenly(output) if spread is None else spread, agreement
    return _AgreeingLoss.apply(first, second, output.weight, output.bias, words, weights, weight.detach())


class _AgreeingLoss(torch.autograd.Function):
    """The loss and its gradients in one go. `low` is the weight in the product's type."""

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        words: Tensor,
        weights: tuple[float, Tensor, float],
        low: Tensor,
    ) -> Tensor:
        total = first.new_zeros((), dtype=torch.float32)
        both = [rows.to(low.dtype) for rows in (first, second)]
        of_rows, of_weight = [torch.empty_like(rows) for rows in both], torch.zeros_like(weight)
        of_bias = None if bias is None else torch.zeros_like(bias)
        size = max(64, LOGITS_PER_CHUNK // len(weight) // 2)
        for start in range(0, len(words), size):
            some = slice(start, start + size)
            logs = [_log_probabilities(rows[some], low, bias) for rows in both]  # (chunk, V)
            loss, of_logits = _loss_of(logs, words[some, None], *weights)
            total += loss
            for rows, of_some, gradient in zip(both, of_rows, of_logits, strict=True):
                if of_bias is not None:
                    of_bias += gradient.sum(0)
                gradient = gradient.to(low.dtype)
                torch.mm(gradient, low, out=of_some[some])
                add_product(of_weight, gradient, rows[some])
        ctx.gradients = *(rows.to(first.dtype) for rows in of_rows), of_weight, of_bias
        return total

    @staticmethod
    def backward(ctx: Any, *scale: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if gradient is None else gradient * scale[0] for gradient in ctx.gradients), None, None, None


def _log_probabilities(rows: Tensor, low: Tensor, bias: Tensor | None) -> Tensor:
    z = (rows @ low.t()).float()
    if bias is not None:
        z += bias
    return torch.log_softmax(z, dim=1, out=z)


def _loss_of(
    logs: list[Tensor], words: Tensor, smoothing: float, spread: Tensor, agreement: float
) -> tuple[Tensor, list[Tensor]]:
    """Of one chunk: its summed loss, and the gradients by the logits of either reading; `logs` are used up."""
    entropies = sum(-(1 - smoothing) * log.gather(1, words) - smoothing * (log @ spread[:, None]) for log in logs)
    p, q = (log.exp() for log in logs)
    d = logs[0].sub_(logs[1])
    p_to_q, q_to_p = torch.linalg.vecdot(p, d)[:, None], -torch.linalg.vecdot(q, d)[:, None]
    weight = agreement / 4
    loss = (entropies / 2 + weight * (p_to_q + q_to_p)).sum()
    pull = torch.sub(p, q, out=logs[1]).mul_(weight)
    d.mul_(weight)
    p.mul_(d + (0.5 - weight * p_to_q)).add_(pull)
    q.mul_((0.5 - weight * q_to_p) - d).sub_(pull)
    for gradient in (p, q):
        gradient -= smoothing / 2 * spread
        gradient.scatter_add_(1, words, torch.full_like(words, (smoothing - 1) / 2, dtype=gradient.dtype))
    return loss, [p, q]
