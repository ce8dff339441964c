"""Greedy search: the likeliest word, step by step; and the loop that sampling shares with it.

B sentences, W hypotheses per sentence that do not compete, V vocabulary, t tokens so far.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from clearhead.data.tokenizer import BOS, EOS
from clearhead.model import Seq2Seq

from .beam import Finished, largest
from .constraints import Constraints
from .options import DecodingOptions, Demand, Hypothesis

# (logits (B, W, V), sentences (B,), t) -> words (B, W)
Choice = Callable[[Tensor, Tensor, int], Tensor]


def greedy(
    model: Seq2Seq,
    src: Tensor,
    src_mask: Tensor,
    options: DecodingOptions,
    demands: Sequence[Demand] | None = None,
) -> list[list[Hypothesis]]:
    """One hypothesis per sentence: what a beam of one finds."""
    constraints = Constraints(src_mask, options, demands)
    scored = demands is None or any(demand.scored for demand in demands)
    return roll_out(model, src, src_mask, options, constraints, _likeliest, scored)


@torch.inference_mode()
def roll_out(
    model: Seq2Seq,
    src: Tensor,
    src_mask: Tensor,
    options: DecodingOptions,
    constraints: Constraints,
    choose: Choice,
    scored: bool = True,
) -> list[list[Hypothesis]]:
    """`n_best` hypotheses per sentence, each extended by a chosen word until it ends. Not `scored`: scores are NaN."""
    B, W, device = len(src), options.n_best, src.device
    state = model.encode(src, src_mask).repeat(W)
    sentences = torch.arange(B, device=device)
    finished = Finished(sentences, options)
    sums = torch.full((B, W), 0.0 if scored else math.nan, device=device)
    is_live = torch.ones(B, W, dtype=torch.bool, device=device)
    tokens = sentences.new_empty(B, W, 0)
    last = sentences.new_full((B * W, 1), BOS)
    while len(sentences):
        logits = model.logits(model.decode(last, state)[:, -1]).float().view(len(sentences), W, -1)
        if scored:
            logits = logits.log_softmax(dim=2)
        constraints.apply(logits, tokens)
        words = choose(logits, sentences, tokens.shape[2])
        if scored:
            sums = sums + logits.gather(2, words[:, :, None]).squeeze(2)
        ends = is_live & (words == EOS)
        finished.add(ends, sentences, sums, tokens, constraints.cut)
        is_live = is_live & ~ends
        tokens = torch.cat([tokens, words[:, :, None]], dim=2)
        open_ = is_live.any(dim=1).nonzero().squeeze(1)
        if len(open_) <= 0.75 * len(sentences):
            sentences, sums, is_live, tokens = sentences[open_], sums[open_], is_live[open_], tokens[open_]
            words = words[open_]
            state = state.keep(open_)
            constraints.keep(open_)
        last = words.view(-1, 1)
    return finished.hypotheses()


def greedy_steps(model: Seq2Seq, src: Tensor, demand: Demand) -> Iterator[int]:
    """The words of one source (1, S), each as soon as it is known; without EOS."""
    with torch.inference_mode():
        constraints = Constraints(whole(src), DecodingOptions(beam=1), [demand])
    return step_by_step(model, src, constraints, _likeliest)


def _likeliest(logits: Tensor, *_: object) -> Tensor:
    return largest(logits, 1)[1].squeeze(2)


def whole(src: Tensor) -> Tensor:
    """The mask of sources (B, S), or (B, S, F), of which nothing is padding."""
    return torch.ones(src.shape[:2], dtype=torch.bool, device=src.device)


def step_by_step(model: Seq2Seq, src: Tensor, constraints: Constraints, choose: Choice) -> Iterator[int]:
    """What `roll_out` does, for one source (1, S) and one hypothesis, a word at a time."""
    with torch.inference_mode():
        state = model.encode(src, whole(src))
        sentence = torch.zeros(1, dtype=torch.long, device=src.device)
    last = torch.full((1, 1), BOS, device=src.device)
    tokens = last.new_empty(1, 1, 0)
    while True:
        with torch.inference_mode():  # not around the yield: it is a matter of the thread
            logits = model.logits(model.decode(last, state)[:, -1]).float().view(1, 1, -1)
            constraints.apply(logits, tokens)
            last = choose(logits, sentence, tokens.shape[2])
            tokens = torch.cat([tokens, last[:, :, None]], dim=2)
        word = int(last)
        if word == EOS:
            return
        yield word
