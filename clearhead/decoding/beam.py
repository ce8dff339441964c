"""Beam search on the Seq2Seq protocol, for many sentences at once.

B sentences still searched, W beam width, V vocabulary, t tokens so far. Row b·W + w is hypothesis w of sentence b.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.data.tokenizer import BOS, EOS
from clearhead.model import Seq2Seq

from .constraints import NEVER, Constraints
from .options import DecodingOptions, Demand, Hypothesis

CHUNK = 64  # words; see `largest`


def length_penalty(length: Tensor | int, options: DecodingOptions) -> Tensor | float:
    """What a sum of `length` log-probabilities, EOS's included, is divided by."""
    if options.length_penalty == "paper":
        return ((5 + length) / 6) ** options.alpha  # Wu et al. 2016, paper 6.1
    return length**options.alpha


class Finished:
    """The hypotheses that have ended, and for each sentence the scores of as many of the best as the beam is wide."""

    def __init__(self, sentences: Tensor, options: DecodingOptions) -> None:
        self.best = torch.full((len(sentences), max(options.beam, options.n_best)), NEVER, device=sentences.device)
        self._options = options
        # sentences (n,), scores (n,), tokens (n, t), whether they are cut (n,); none: none is
        self._found: list[tuple[Tensor, Tensor, Tensor, Tensor | None]] = []

    def add(self, ends: Tensor, sentences: Tensor, sums: Tensor, tokens: Tensor, cut: Tensor | None) -> None:
        """Where `ends` (B, W) is true, `tokens` (B, W, t) followed by EOS have log-probability `sums` (B, W)."""
        scores = sums / length_penalty(tokens.shape[2] + 1, self._options)
        ended = torch.where(ends, scores, NEVER)
        self.best[sentences] = torch.cat([self.best[sentences], ended], dim=1).topk(self.best.shape[1]).values
        b, w = ends.nonzero(as_tuple=True)
        self._found.append((sentences[b], scores[b, w], tokens[b, w], None if cut is None else cut[b, w]))

    def hypotheses(self) -> list[list[Hypothesis]]:
        """For each sentence the best n, best first."""
        found: list[list[Hypothesis]] = [[] for _ in self.best]
        for sentences, scores, tokens, cut in self._found:
            is_cut = [False] * len(sentences) if cut is None else cut.tolist()
            for b, score, ids, one in zip(sentences.tolist(), scores.tolist(), tokens.tolist(), is_cut, strict=True):
                found[b].append(Hypothesis(ids, score, is_cut=one))
        return [sorted(some, key=lambda h: -h.score)[: self._options.n_best] for some in found]


@torch.inference_mode()
def beam_search(
    model: Seq2Seq,
    src: Tensor,
    src_mask: Tensor,
    options: DecodingOptions,
    demands: Sequence[Demand] | None = None,
) -> list[list[Hypothesis]]:
    """The n best hypotheses of each sentence.

    At each step the W best continuations that do not end go on; one that ends is found if it is among the W best
    of all. A sentence is done when W were found and none that goes on is, by what it has so far, better than all of
    them: Hugging Face's rule (`early_stopping=False`), of which CTranslate2's, W were found, is the first half. It
    is also done when even the most that can still be reached is no better than the n best: that never costs a
    better one, since log-probabilities only fall and the penalty is largest at the length limit. A beam of one is
    greedy search. benchmarks/LOG.md compares the rules.
    """
    B, W, device = len(src), options.beam, src.device
    constraints = Constraints(src_mask, options, demands)
    state = model.encode(src, src_mask)
    sentences = torch.arange(B, device=device)  # which of the B we began with
    is_open = torch.ones(B, dtype=torch.bool, device=device)
    finished = Finished(sentences, options)
    sums = torch.zeros(B, 1, device=device)  # log-probability of each live hypothesis: one at first, W from then on
    tokens = sentences.new_empty(B, 1, 0)
    last = sentences.new_full((B, 1), BOS)
    while len(sentences):
        logits = model.logits(model.decode(last, state)[:, -1]).float().view(*tokens.shape[:2], -1)
        best, parents, words = _best_continuations(logits, tokens, sums, constraints, W)
        ends = (words == EOS) & (best > NEVER) & is_open[:, None]
        cut = None if constraints.cut is None else constraints.cut.gather(1, parents[:, :W])
        finished.add(ends[:, :W], sentences, best[:, :W], _of(parents[:, :W], tokens), cut)
        if not tokens.shape[2]:
            state = state.repeat(W)
        sums, places = torch.where(words == EOS, NEVER, best).topk(W, dim=1)
        parents, words = parents.gather(1, places), words.gather(1, places)
        tokens = torch.cat([_of(parents, tokens), words[:, :, None]], dim=2)
        first_rows = torch.arange(0, len(sentences) * W, W, device=device)
        state = state.select((parents + first_rows[:, None]).flatten())

        so_far = sums[:, 0] / length_penalty(tokens.shape[2], options)
        reachable = sums[:, 0] / length_penalty(constraints.limits + 1, options)
        found = finished.best[sentences]
        is_open = is_open & (so_far > found[:, -1]) & (reachable > found[:, options.n_best - 1])
        open_ = is_open.nonzero().squeeze(1)
        if len(open_) <= 0.75 * len(sentences):  # else those that are done wait: not worth moving the others for
            sentences, is_open, sums, tokens = sentences[open_], is_open[open_], sums[open_], tokens[open_]
            words = words[open_]
            state = state.keep(open_)
            constraints.keep(open_)
        last = words.view(-1, 1)
    return finished.hypotheses()


def _best_continuations(
    logits: Tensor, tokens: Tensor, sums: Tensor, constraints: Constraints, W: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The best 2W of all continuations, W of which do not end: log-probability, hypothesis continued, and word.

    Where there are not so many, the rest have no probability.
    """
    log_p = logits.log_softmax(dim=2)
    constraints.apply(log_p, tokens)
    k = min(W + 1, logits.shape[2])  # of one hypothesis's continuations no more than W that do not end can go on
    top, words = largest(log_p, k)
    candidates, words = (sums[:, :, None] + top).flatten(1), words.flatten(1)  # (B, W·k), or (B, k) at first
    if (missing := 2 * W - candidates.shape[1]) > 0:
        candidates, words = F.pad(candidates, (0, missing), value=NEVER), F.pad(words, (0, missing), value=EOS)
    best, index = candidates.topk(2 * W, dim=1)
    parents = (index // k).clamp(max=logits.shape[1] - 1)
    return best, parents, words.gather(1, index)


def largest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`topk(k, dim=2)` in half the time: the k largest are in the k chunks with the largest maxima."""
    chunks = logits.shape[2] // CHUNK
    if chunks < 4 * k:
        return logits.topk(k, dim=2)
    body = logits[..., : chunks * CHUNK].unflatten(2, (chunks, CHUNK))
    picked = body.amax(dim=3).topk(k, dim=2).indices  # (B, W, k)
    some = body.gather(2, picked[..., None].expand(-1, -1, -1, CHUNK)).flatten(2)
    top, places = torch.cat([some, logits[..., chunks * CHUNK :]], dim=2).topk(k, dim=2)
    inside = picked.gather(2, (places // CHUNK).clamp(max=k - 1)) * CHUNK + places % CHUNK
    return top, torch.where(places < k * CHUNK, inside, places - k * CHUNK + chunks * CHUNK)


def _of(parents: Tensor, tokens: Tensor) -> Tensor:
    """The tokens (B, W, t) of the hypotheses `parents` (B, W)."""
    return tokens.gather(1, parents[:, :, None].expand(-1, -1, tokens.shape[2]))
