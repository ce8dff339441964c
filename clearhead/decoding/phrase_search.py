"""Beam search for targets that must contain phrases: dynamic beam allocation, after Post & Vilar (2018).

At each step the next words of the phrases are candidates too, however unlikely. Hypotheses are grouped by how many
words of the phrases they are missing, and the groups share the beam, so that those that have paid for a phrase need
not compete with those that have not. A beam is here W = beam · (phrases + 1) wide, and at least one more than the
phrases have words; with `beam = 1` this is no greedy search, therefore.

B sentences still searched, V vocabulary, t tokens so far. Row b·W + w is hypothesis w of sentence b.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.data.tokenizer import BOS, EOS
from clearhead.model import Seq2Seq

from .beam import length_penalty
from .constraints import NEVER, Constraints
from .options import DecodingOptions, Demand, Hypothesis
from .phrases import Phrases, Readings


class Candidate(NamedTuple):
    """A hypothesis with one more word."""

    total: float  # log-probability
    parent: int  # row of the hypothesis that it continues
    word: int
    readings: Readings
    missing: int  # words of the phrases


class Sentence:
    """The search for one sentence."""

    def __init__(self, demand: Demand, limit: int, options: DecodingOptions) -> None:
        self.phrases = Phrases(demand.phrases)
        self.width = max(options.beam * (self.phrases.count + 1), self.phrases.missing(self.phrases.start) + 1)
        self.live = [Candidate(0.0, 0, BOS, self.phrases.start, self.phrases.missing(self.phrases.start))]
        self.found: list[Hypothesis] = []
        self._prefix = len(demand.prefix)
        self._limit = limit
        self._options = options

    def forced(self, t: int) -> list[tuple[int, int]]:
        """Which hypotheses might go on with which words for the phrases' sake."""
        if not self._prefix <= t < self._limit:
            return []
        return [(w, word) for w, h in enumerate(self.live) for word in sorted(self.phrases.next_words(h.readings))]

    def advance(self, tokens: Tensor, continuations: dict[tuple[int, int], float], cut: Tensor | None) -> None:
        """Go on from `tokens` (W, t) by some (hypothesis, word) with these log-probabilities; some had to end."""
        t = tokens.shape[1]
        ends, goes_on = self._candidates(t, continuations)
        for end in (c for c in _share(ends + goes_on, self.width) if c.word == EOS):
            score, is_cut = end.total / self._penalty(t + 1), cut is not None and bool(cut[end.parent])
            self.found.append(Hypothesis(tokens[end.parent].tolist(), score, is_cut=is_cut))
        self.found.sort(key=lambda h: -h.score)
        self.live = _share(goes_on, self.width)

    def is_done(self, t: int) -> bool:
        """As in beam search, but of those that go on only the ones that miss nothing are asked how good they are."""
        totals = [h.total for h in self.live]
        n, W = self._options.n_best, self._options.beam
        if not totals:
            return True
        if len(self.found) >= n and max(totals) / self._penalty(self._limit + 1) <= self.found[n - 1].score:
            return True
        complete = [h.total for h in self.live if not h.missing]
        return len(self.found) >= W and max(complete, default=NEVER) / self._penalty(t) <= self.found[W - 1].score

    def _penalty(self, length: int) -> float:
        return float(length_penalty(length, self._options))

    def _candidates(
        self, t: int, continuations: dict[tuple[int, int], float]
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Those that end, with all phrases or because they must, and those that go on and can still have them all."""
        ends, goes_on = [], []
        for (w, word), log_p in continuations.items():
            parent = self.live[w]
            total = parent.total + log_p
            if word != EOS:
                readings = self.phrases.advance(parent.readings, word)
                goes_on.append(Candidate(total, w, word, readings, self.phrases.missing(readings)))
            elif not parent.missing or t >= self._limit:
                ends.append(Candidate(total, w, word, parent.readings, parent.missing))
        least = min((c.missing for c in ends), default=0)
        can = [c for c in goes_on if c.missing <= self._limit - t - 1]
        return [c for c in ends if c.missing == least], can or goes_on


def _share(candidates: list[Candidate], places: int) -> list[Candidate]:
    """The best of each group in equal shares, and then the best of the rest; best first."""
    groups = defaultdict(list)
    for candidate in sorted(candidates, key=_likeliest_first):
        groups[candidate.missing].append(candidate)
    share = places // max(1, len(groups))
    chosen = [c for group in groups.values() for c in group[:share]]
    rest = sorted((c for group in groups.values() for c in group[share:]), key=_likeliest_first)
    return sorted(chosen + rest[: places - len(chosen)], key=_likeliest_first)


def _likeliest_first(candidate: Candidate) -> float:
    return -candidate.total


@torch.inference_mode()
def phrase_search(
    model: Seq2Seq, src: Tensor, src_mask: Tensor, options: DecodingOptions, demands: Sequence[Demand]
) -> list[list[Hypothesis]]:
    """The n best hypotheses of each sentence; one that reaches its length limit first has what fits of its phrases."""
    constraints = Constraints(src_mask, options, demands)
    limits = constraints.limits.tolist()
    everyone = [Sentence(demand, limit, options) for demand, limit in zip(demands, limits, strict=True)]
    W = max(sentence.width for sentence in everyone)
    state = model.encode(src, src_mask).repeat(W)
    sentences, t = everyone, 0
    last = torch.full((len(src) * W, 1), BOS, device=src.device)
    tokens = last.new_empty(len(src), W, 0)
    while sentences:
        logits = model.logits(model.decode(last, state)[:, -1]).float().view(len(sentences), W, -1)
        for b, continuations in enumerate(_continuations(logits, tokens, sentences, constraints)):
            sentences[b].advance(tokens[b], continuations, None if constraints.cut is None else constraints.cut[b])
        t += 1
        parents = _table(tokens, [[h.parent for h in sentence.live] for sentence in sentences], W, 0)
        words = _table(tokens, [[h.word for h in sentence.live] for sentence in sentences], W, EOS)
        tokens = tokens.gather(1, parents[:, :, None].expand(-1, -1, t - 1))
        tokens = torch.cat([tokens, words[:, :, None]], dim=2)
        first_rows = torch.arange(0, len(sentences) * W, W, device=src.device)
        state = state.select((parents + first_rows[:, None]).flatten())
        open_ = [b for b, sentence in enumerate(sentences) if not sentence.is_done(t)]
        if len(open_) < len(sentences):
            sentences, kept = [sentences[b] for b in open_], torch.tensor(open_, dtype=torch.long, device=src.device)
            tokens, words = tokens[kept], words[kept]
            state = state.keep(kept)
            constraints.keep(kept)
        last = words.reshape(-1, 1)
    return [sentence.found[: options.n_best] for sentence in everyone]


def _continuations(
    logits: Tensor, tokens: Tensor, sentences: list[Sentence], constraints: Constraints
) -> list[dict[tuple[int, int], float]]:
    """For each sentence the log-probability of the likeliest words of each hypothesis, and of the forced ones."""
    _, W, V = logits.shape
    t = tokens.shape[2]
    log_p = logits.log_softmax(dim=2)
    forced = [sentence.forced(t) for sentence in sentences]
    places = [(b, w, word) for b, some in enumerate(forced) for w, word in some]
    index = torch.tensor(places, dtype=torch.long, device=logits.device).view(-1, 3).unbind(dim=1)
    forced_log_p = iter(log_p[index].tolist())  # before anything is ruled out: a phrase beats blocking
    constraints.apply(log_p, tokens)
    top, words = log_p.topk(min(W + 1, V), dim=2)
    continuations = []
    for b, (sentence, tops, some) in enumerate(zip(sentences, top.tolist(), words.tolist(), strict=True)):
        likeliest = {
            (w, word): value
            for w in range(len(sentence.live))
            for word, value in zip(some[w], tops[w], strict=True)
            if value > NEVER
        }
        continuations.append(likeliest | {place: next(forced_log_p) for place in forced[b]})
    return continuations


def _table(like: Tensor, rows: list[list[int]], W: int, filling: int) -> Tensor:
    return like.new_tensor([[*row, *[filling] * (W - len(row))] for row in rows])
