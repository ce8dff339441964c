"""Sampling with temperature, top-k and top-p.

B sentences, W samples per sentence, V vocabulary, t tokens so far.
"""

import zlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from clearhead.model import Seq2Seq

from .constraints import Constraints
from .greedy import Choice, roll_out, step_by_step, whole
from .options import DecodingOptions, Demand, Hypothesis


def sample(
    model: Seq2Seq,
    src: Tensor,
    src_mask: Tensor,
    options: DecodingOptions,
    demands: Sequence[Demand] | None = None,
) -> list[list[Hypothesis]]:
    """`n_best` samples per sentence, the likeliest first."""
    constraints = Constraints(src_mask, options, demands)
    draws = [demand.draw for demand in demands] if demands else [0] * len(src)
    return roll_out(model, src, src_mask, options, constraints, _choice(src, src_mask, options, constraints, draws))


def sample_steps(model: Seq2Seq, src: Tensor, options: DecodingOptions, demand: Demand) -> Iterator[int]:
    """The words of one sample for one source (1, S), each as soon as it is known; without EOS."""
    src_mask = whole(src)
    constraints = Constraints(src_mask, options, [demand])
    return step_by_step(model, src, constraints, _choice(src, src_mask, options, constraints, [demand.draw]))


def _choice(
    src: Tensor, src_mask: Tensor, options: DecodingOptions, constraints: Constraints, draws: Sequence[int]
) -> Choice:
    steps = int(constraints.limits.max()) + 1
    numbers = _numbers(src, src_mask, options, steps, draws).to(src.device)  # (B, W, steps)
    return lambda logits, sentences, t: draw(logits, numbers[sentences, :, t], options)


def draw(logits: Tensor, uniform: Tensor, options: DecodingOptions) -> Tensor:
    """The words (B, W) at which the numbers `uniform` (B, W) in [0, 1) fall in the cumulated probabilities."""
    scaled = logits / (options.temperature or 1.0)
    p, words = scaled.softmax(dim=2).sort(dim=2, descending=True, stable=True)
    if options.top_k:
        p[..., options.top_k :] = 0
    before = p.cumsum(dim=2) - p
    p = torch.where(before < options.top_p * p.sum(dim=2, keepdim=True), p, 0)
    cumulated = p.cumsum(dim=2)
    places = torch.searchsorted(cumulated, uniform[..., None] * cumulated[..., -1:], right=True)
    places = torch.minimum(places, (p > 0).sum(dim=2, keepdim=True) - 1)  # rounding must not step past the last
    return words.gather(2, places).squeeze(2)


def _numbers(src: Tensor, src_mask: Tensor, options: DecodingOptions, steps: int, draws: Sequence[int]) -> Tensor:
    """Random numbers that depend on the seed, the sentence and its draw alone, not on its place or its neighbours."""
    numbers = []
    for ids, seen, number in zip(src.cpu(), src_mask.cpu(), draws, strict=True):
        key = f"{options.seed} {ids[seen].tolist()}{f' {number}' if number else ''}".encode()
        generator = torch.Generator().manual_seed(zlib.crc32(key))
        numbers.append(torch.rand(steps, options.n_best, generator=generator).t())
    return torch.stack(numbers)
