"""Which pairs of neighbouring pieces the training sources had, and about how often: kept with a model in `seen.bin`.

A count-min sketch (Cormode and Muthukrishnan 2005): a pair has one cell in each of two rows, and its count is at most
the smaller of them. Of a count only its magnitude is kept, in four bits, so that the file has 1 MiB at the most.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .storage import Ragged
from .tokenizer import EOS

SEEN = "seen.bin"
MAGIC = b"seen1\0\0"  # and a byte that says how many bits a cell's number has
LEAST_BITS, MOST_BITS = 8, 20
CROWDED = 1 / 8  # a table is halved while so few of its cells are used
ROWS_AT_A_TIME = 50_000
MOST = 15  # the largest magnitude: 16,384 times and more
SALTS = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93  # of the rows


@dataclass(frozen=True)
class Familiarity:
    """How much a source is like those that the model was trained on, its beginning and end counted."""

    unseen: float  # share of its pairs of neighbouring pieces that were never seen
    often: float  # mean magnitude of the others and these: 0 for never, 1 for once, and 1 more for each doubling


@dataclass(frozen=True)
class Seen:
    """Magnitudes, two rows of as many cells: (2, cells) in uint8."""

    table: np.ndarray

    def magnitude(self, left: int, right: int) -> int:
        """Of two neighbouring ids: 0 for never, 1 for once, and 1 more for each doubling."""
        return int(self._found(np.array([left, right], np.uint64))[0])

    def familiarity(self, ids: Sequence[int]) -> Familiarity:
        """Of a source without EOS."""
        found = self._found(np.array([EOS, *ids, EOS], np.uint64))
        return Familiarity(1 - np.count_nonzero(found) / len(found), float(found.mean()))

    def _found(self, padded: np.ndarray) -> np.ndarray:
        """The magnitude of each pair of neighbours."""
        found = (row[_cells(padded, i, len(row))] for i, row in enumerate(self.table))
        return np.minimum(*found)

    def to_bytes(self) -> bytes:
        bits = self.table.shape[1].bit_length() - 1
        return MAGIC + bytes([bits]) + (self.table[:, ::2] | self.table[:, 1::2] << 4).tobytes()

    @staticmethod
    def from_bytes(content: bytes) -> "Seen":
        """ValueError if `to_bytes` did not write this."""
        start = len(MAGIC) + 1
        bits = content[start - 1] if len(content) >= start and content.startswith(MAGIC) else 0
        if not LEAST_BITS <= bits <= MOST_BITS or len(content) != start + (1 << bits):
            raise ValueError(
                f"found {len(content)} bytes that begin with {content[:start]!r}; expected a table of pairs"
            )
        packed = np.frombuffer(content, np.uint8, offset=start).reshape(2, -1)
        return Seen(np.stack([packed & 15, packed >> 4], axis=2).reshape(2, -1))


def seen_pairs(sources: Ragged) -> Seen:
    """Of the ids of all training sources; a table as large as they need."""
    counts = np.zeros((2, 1 << MOST_BITS), np.int64)
    for padded in _padded(sources):
        for row in range(2):
            counts[row] += np.bincount(_cells(padded, row, counts.shape[1]), minlength=counts.shape[1])
    while counts.shape[1] > 1 << LEAST_BITS and np.count_nonzero(counts) < CROWDED * counts.size:
        counts = counts.reshape(2, 2, -1).sum(axis=1)
    # In a full table every cell has counts of strangers too: about the median, which is nothing elsewhere.
    counts = np.maximum(counts - np.median(counts, axis=1, keepdims=True).astype(np.int64), 0)
    return Seen(np.minimum(np.frexp(counts)[1], MOST).astype(np.uint8))


def _padded(sources: Ragged) -> Iterator[np.ndarray]:
    """The ids of some rows at a time, with an EOS before, between and after them."""
    offsets = np.asarray(sources.offsets, np.int64)
    for start in range(0, len(sources), ROWS_AT_A_TIME):
        some = offsets[start : start + ROWS_AT_A_TIME + 1]
        lengths = np.diff(some)
        padded = np.full(int(some[-1] - some[0]) + len(some), EOS, np.uint64)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        padded[np.arange(len(rows)) + rows + 1] = sources.flat[some[0] : some[-1]]
        yield padded


def _cells(padded: np.ndarray, row: int, cells: int) -> np.ndarray:
    """Where each pair of neighbours is counted: the highest bits of a product mixed well (Fibonacci hashing, twice)."""
    key = (padded[:-1] << np.uint64(32)) | padded[1:]
    key = key * np.uint64(SALTS[row])
    key = (key ^ (key >> np.uint64(29))) * np.uint64(SALTS[1 - row])
    return ((key >> np.uint64(40)) & np.uint64(cells - 1)).astype(np.int64)
