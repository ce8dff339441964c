"""Which source token each target token of a corpus translates, found from the corpus itself: word alignment.

Two models of the kind of fast_align (Dyer et al. 2013), a translation table and a prior over how far tokens lie from
the diagonal, one from the source to the target and one back. They are fitted together by agreement (Liang et al. 2006):
what counts is the product of their posteriors, so that both tables are one count of pairs of tokens, normalised by
either side. A link is kept where that product is high, which symmetrises the two.

Everything is a pure function of the ids, in numpy, on pairs of the same lengths at once.

n pairs, S source tokens, T target tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .storage import Ragged

NONE = 0xFFFF  # in place of the source position of a target token that has none
MOST_PAIRS = 200_000  # a model is fitted on at most so many pairs ...
MOST_CELLS = 1 << 25  # ... and pairs of tokens in them
ITERATIONS = 5
BUCKETS = 1 << 24  # counts of pairs of tokens at most; two of a large vocabulary may share one
AT_ONCE = 50_000  # pairs that are sorted by their lengths
CELLS = 1 << 18  # of pairs of tokens, that are computed with at once: they stay in the CPU's cache
LEAST = 0.05  # times what a pair of tokens has before anything is known: less than this is not counted
BINS = 32  # of the distance from the diagonal, from -1 to 1
UNALIGNED = 0.08  # probability before looking that a token has no counterpart, as in fast_align
FLOOR = 1e-7  # added to each probability of the table, so that tokens never seen together may be aligned by place
AT_FIRST = 0.25  # how fast the prior falls with the distance, before anything was seen
SURE = 0.3  # the root of the product of both posteriors from which a link is kept


@dataclass(frozen=True)
class Aligner:
    """What both models know."""

    counts: np.ndarray  # of pairs of tokens; each has a place of its own where vocabularies are small enough for that
    of_source: np.ndarray  # (source vocabulary,) their sums
    of_target: np.ndarray
    unigram_source: np.ndarray  # what tokens without a counterpart are drawn from
    unigram_target: np.ndarray
    near: np.ndarray  # (BINS,) how dense links are so far from the diagonal

    def align(self, sources: Ragged, targets: Ragged, start: int, stop: int) -> np.ndarray:
        """The source position, or NONE, of each target token of these pairs, one after the other."""
        links = np.full(int(targets.offsets[stop] - targets.offsets[start]), NONE, np.uint16)
        begin = targets.offsets[start]
        for rows, src, tgt in _alike(sources, targets, np.arange(start, stop)):
            agreed = np.sqrt(self._posteriors(src, tgt)[0])  # (n, S, T)
            best = agreed.argmax(axis=1)  # (n, T)
            found = np.where(agreed.max(axis=1) >= SURE, best, NONE)
            links[targets.offsets[rows][:, None] - begin + np.arange(tgt.shape[1])] = found
        return links

    def _posteriors(self, src: np.ndarray, tgt: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The product of both models' posteriors (n, S, T), the bucket of each pair, and the bin (S, T) of each."""
        S, T = src.shape[1], tgt.shape[1]
        pairs = (src.astype(np.int64) * len(self.of_target))[:, :, None] + tgt[:, None]
        buckets = pairs & (len(self.counts) - 1)
        counts = self.counts[buckets]  # (n, S, T)
        bins = _bins(S, T)
        near = self.near[bins]
        to_target = counts / self.of_source[src][:, :, None]
        to_target += FLOOR
        to_target *= near / near.sum(axis=0)
        none = self.unigram_target[tgt] * (UNALIGNED / (1 - UNALIGNED))
        to_target /= (to_target.sum(axis=1) + none)[:, None]
        to_source = counts
        to_source /= self.of_target[tgt][:, None]
        to_source += FLOOR
        to_source *= near / near.sum(axis=1, keepdims=True)
        none = self.unigram_source[src] * (UNALIGNED / (1 - UNALIGNED))
        to_source /= (to_source.sum(axis=2) + none)[:, :, None]
        to_source *= to_target
        return to_source, buckets, bins


def fit(sources: Ragged, targets: Ragged, vocabularies: tuple[int, int], seed: int) -> Aligner:
    """Learn from a sample of the pairs, which `seed` picks."""
    rows = _sample(sources, targets, seed)
    unigrams = [_unigram(side, rows, size) for side, size in zip((sources, targets), vocabularies, strict=True)]
    ones = [np.ones(size, np.float32) for size in vocabularies]
    # Before the first look links lie a little rather about the diagonal; languages that go backwards are found as well.
    distance = np.abs(np.arange(BINS) + 0.5 - BINS / 2) / (BINS / 2)
    near = np.exp(-AT_FIRST * distance).astype(np.float32)
    buckets = min(BUCKETS, 1 << (vocabularies[0] * vocabularies[1]).bit_length())
    aligner = Aligner(np.ones(buckets, np.float32), ones[0], ones[1], unigrams[0], unigrams[1], near)
    for _ in range(ITERATIONS):
        aligner = _again(aligner, sources, targets, rows)
    return aligner


def _again(aligner: Aligner, sources: Ragged, targets: Ragged, rows: np.ndarray) -> Aligner:
    """One iteration of EM: what is expected to be linked is counted."""
    counts = np.zeros_like(aligner.counts)
    of_source, of_target = np.zeros(len(aligner.of_source)), np.zeros(len(aligner.of_target))
    linked, possible = np.zeros(BINS), np.zeros(BINS)
    for start in range(0, len(rows), AT_ONCE):
        for _, src, tgt in _alike(sources, targets, rows[start : start + AT_ONCE]):
            expected, buckets, bins = aligner._posteriors(src, tgt)
            of_source += np.bincount(src.ravel(), expected.sum(axis=2).ravel(), len(of_source))
            of_target += np.bincount(tgt.ravel(), expected.sum(axis=1).ravel(), len(of_target))
            linked += np.bincount(bins.ravel(), expected.sum(axis=0).ravel(), BINS)
            possible += len(src) * np.bincount(bins.ravel(), minlength=BINS)
            counted = expected > LEAST / len(bins.ravel())
            np.add.at(counts, buckets[counted], expected[counted])
    near = (linked + 1e-3) / (possible + 1)
    return replace(
        aligner,
        counts=counts,
        of_source=(of_source + 1e-3).astype(np.float32),
        of_target=(of_target + 1e-3).astype(np.float32),
        near=(near / near.max()).astype(np.float32),
    )


def _sample(sources: Ragged, targets: Ragged, seed: int) -> np.ndarray:
    """Rows in a random order, as many as may be fitted on."""
    rows = np.random.default_rng(seed).permutation(len(sources))[:MOST_PAIRS]
    cells = np.ones(len(rows), np.int64)
    for side in (sources, targets):
        cells *= side.offsets[rows + 1] - side.offsets[rows]
    return rows[: max(1, int(np.searchsorted(cells.cumsum(), MOST_CELLS, side="right")))]


def _alike(sources: Ragged, targets: Ragged, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The rows that have the same lengths, and their ids (n, S) and (n, T), a few at a time."""
    S, T = (side.offsets[rows + 1] - side.offsets[rows] for side in (sources, targets))
    order = np.lexsort((T, S))
    rows, S, T = rows[order], S[order], T[order]
    changes = np.flatnonzero((np.diff(S) != 0) | (np.diff(T) != 0)) + 1
    for start, stop in zip([0, *changes.tolist()], [*changes.tolist(), len(rows)], strict=True):
        if stop == start or not (S[start] and T[start]):
            continue
        at_once = max(1, CELLS // int(S[start] * T[start]))
        for first in range(start, stop, at_once):
            some = rows[first : min(first + at_once, stop)]
            src = sources.flat[sources.offsets[some][:, None] + np.arange(S[start])]
            tgt = targets.flat[targets.offsets[some][:, None] + np.arange(T[start])]
            yield some, src, tgt


def _bins(S: int, T: int) -> np.ndarray:
    """(S, T): how far each pair of places lies from the diagonal, and on which side."""
    distance = (np.arange(S)[:, None] + 0.5) / S - (np.arange(T) + 0.5) / T
    return ((distance + 1) * (BINS / 2)).astype(np.int64)


def _unigram(side: Ragged, rows: np.ndarray, vocabulary: int) -> np.ndarray:
    counts = np.zeros(vocabulary)
    for start in range(0, len(rows), AT_ONCE):
        some = np.sort(rows[start : start + AT_ONCE])
        ids = np.concatenate([side.flat[side.offsets[row] : side.offsets[row + 1]] for row in some.tolist()])
        counts += np.bincount(ids, minlength=vocabulary)
    return (counts / counts.sum()).astype(np.float32)
