"""Beam search on the Seq2Seq protocol, for many sentences at once.

B sentences still searched, W beam width, V vocabulary, t tokens so far. Row b·W + w is hypothesis w of sentence b.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.data.tokenizer import BOS, EOS
from clearhead.model import Seq2Seq

from .constraints import NEVER, Constraints
from .options import DecodingOptions, Demand, Hypothesis


def length_penalty(length: Tensor | int, options: DecodingOptions) -> Tensor | float:
    """What a sum of `length` log-probabilities, EOS's included, is divided by."""
    if options.length_penalty == "paper":
        return ((5 + length) / 6) ** options.alpha  # Wu et al. 2016, paper 6.1
    return length**options.alpha


class Finished:
    """The hypotheses that have ended, and for each sentence the scores of the best n."""

    def __init__(self, sentences: Tensor, options: DecodingOptions) -> None:
        self.best = torch.full((len(sentences), options.n_best), NEVER, device=sentences.device)
        self._options = options
        self._found: list[tuple[Tensor, Tensor, Tensor]] = []  # sentences (n,), scores (n,), tokens (n, t)

    def add(self, ends: Tensor, sentences: Tensor, sums: Tensor, tokens: Tensor) -> None:
        """Where `ends` (B, W) is true, `tokens` (B, W, t) followed by EOS have log-probability `sums` (B, W)."""
        scores = sums / length_penalty(tokens.shape[2] + 1, self._options)
        ended = torch.where(ends, scores, NEVER)
        self.best[sentences] = torch.cat([self.best[sentences], ended], dim=1).topk(self.best.shape[1]).values
        b, w = ends.nonzero(as_tuple=True)
        self._found.append((sentences[b], scores[b, w], tokens[b, w]))

    def hypotheses(self) -> list[list[Hypothesis]]:
        """For each sentence the best n, best first."""
        found: list[list[Hypothesis]] = [[] for _ in self.best]
        for sentences, scores, tokens in self._found:
            for b, score, ids in zip(sentences.tolist(), scores.tolist(), tokens.tolist(), strict=True):
                found[b].append(Hypothesis(ids, score))
        return [sorted(some, key=lambda h: -h.score)[: self.best.shape[1]] for some in found]


@torch.inference_mode()
def beam_search(
    model: Seq2Seq,
    src: Tensor,
    src_mask: Tensor,
    options: DecodingOptions,
    demands: Sequence[Demand] | None = None,
) -> list[list[Hypothesis]]:
    """The n best hypotheses of each sentence.

    At each step the W best continuations of all hypotheses together go on; one that ends gives up its place in
    the beam, so that a beam of one is greedy search. A sentence is done when no place is left, or when even the
    most that its live hypotheses can still reach is no better than what has been found: that never costs a
    better one, since log-probabilities only fall and the penalty is largest at the length limit.
    """
    B, W, device = len(src), options.beam, src.device
    constraints = Constraints(src_mask, options, demands)
    state = model.encode(src, src_mask).repeat(W)
    sentences = torch.arange(B, device=device)  # which of the B we began with
    finished = Finished(sentences, options)
    places = torch.full((B, 1), W, device=device)  # of the beam that are not yet given up
    sums = torch.full((B, W), NEVER, device=device)  # log-probability of each live hypothesis
    sums[:, 0] = 0.0  # W empty hypotheses would be W times the same
    tokens = src.new_empty(B, W, 0)
    last = src.new_full((B * W, 1), BOS)
    while len(sentences):
        logits = model.logits(model.decode(last, state)[:, -1]).float().view(len(sentences), W, -1)
        sums, parents, words = _best_continuations(logits, tokens, sums, constraints)
        tokens = tokens.gather(1, parents[:, :, None].expand_as(tokens))  # (B, W, t)
        is_real = (torch.arange(W, device=device) < places) & (sums > NEVER)
        ends = is_real & (words == EOS)
        finished.add(ends, sentences, sums, tokens)
        places = places - ends.sum(dim=1, keepdim=True)
        sums = torch.where(is_real & ~ends, sums, NEVER)
        tokens = torch.cat([tokens, words[:, :, None]], dim=2)
        first_rows = torch.arange(0, len(sentences) * W, W, device=device)
        state = state.select((parents + first_rows[:, None]).flatten())

        reachable = sums.amax(dim=1) / length_penalty(constraints.limits + 1, options)
        open_ = (reachable > finished.best[sentences, -1]).nonzero().squeeze(1)
        if len(open_) <= 0.75 * len(sentences):
            sentences, places, sums, tokens = sentences[open_], places[open_], sums[open_], tokens[open_]
            words = words[open_]
            state = state.keep(open_)
            constraints.keep(open_)
        elif len(open_) < len(sentences):
            places = _only(open_, places)  # done, but not worth moving the others for: find nothing more
        last = words.view(-1, 1)
    return finished.hypotheses()


def _best_continuations(
    logits: Tensor, tokens: Tensor, sums: Tensor, constraints: Constraints
) -> tuple[Tensor, Tensor, Tensor]:
    """The best W of all W·V continuations: log-probability, hypothesis continued, and word, each (B, W)."""
    _, W, V = logits.shape
    log_total = logits.logsumexp(dim=2, keepdim=True)
    constraints.apply(logits, tokens)
    k = min(W, V)  # no more than W of one hypothesis's continuations can be among the best W
    top, words = logits.topk(k, dim=2)
    candidates = sums[:, :, None] + top - log_total  # (B, W, k)
    best, index = candidates.flatten(1).topk(W, dim=1)
    return best, index // k, words.flatten(1).gather(1, index)


def _only(open_: Tensor, places: Tensor) -> Tensor:
    kept = torch.zeros_like(places)
    kept[open_] = places[open_]
    return kept
