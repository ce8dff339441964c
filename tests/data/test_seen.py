"""The sketch of pairs of pieces against exact counts."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from clearhead.data.seen import LEAST_BITS, MOST_BITS, Seen, seen_pairs
from clearhead.data.storage import Ragged
from clearhead.data.tokenizer import EOS


def corpus(rows: int, words: int, seed: int = 1) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 13, rows)
    return [np.minimum(rng.geometric(0.05, length) + 3, words).tolist() for length in lengths]


def ragged(rows: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, rows)])
    return Ragged(np.array([i for row in rows for i in row], np.uint32), offsets)


def exact(rows: list[list[int]]) -> Counter[tuple[int, int]]:
    return Counter(pair for row in rows for pair in pairwise([EOS, *row, EOS]))


def test_familiarity_is_that_of_exact_counts() -> None:
    rows = corpus(997, 101)
    seen, counts = seen_pairs(ragged(rows)), exact(rows)
    differences = []
    for row in corpus(97, 131, seed=2):
        found = seen.familiarity(row)
        wanted = [counts[pair] for pair in pairwise([EOS, *row, EOS])]
        differences.append(np.mean(np.array(wanted) == 0) - found.unseen)
        often = np.mean([count.bit_length() for count in wanted])
        assert found.often == pytest.approx(often, abs=0.7)
    assert np.mean(differences) == pytest.approx(0, abs=0.03)


def test_what_was_seen_is_never_unseen() -> None:
    rows = corpus(307, 41)
    seen = seen_pairs(ragged(rows))
    assert all(seen.familiarity(row).unseen == 0 for row in rows)
    assert seen.familiarity([]).unseen == 1  # no text was empty


def test_rows_do_not_run_into_each_other() -> None:
    seen = seen_pairs(ragged([[5, 7], [11, 13]]))
    assert seen.familiarity([5, 7]).unseen == 0
    assert seen.familiarity([7, 11]).unseen == 1


@pytest.mark.parametrize(("rows", "bits"), [(1, LEAST_BITS), (997, None)])
def test_a_file_and_back(rows: int, bits: int | None) -> None:
    seen = seen_pairs(ragged(corpus(rows, 101)))
    content = seen.to_bytes()
    np.testing.assert_array_equal(Seen.from_bytes(content).table, seen.table)
    assert len(content) <= (1 << MOST_BITS) + 8
    if bits is not None:
        assert len(content) == (1 << bits) + 8


@pytest.mark.parametrize("content", [b"", b"seen", b"seen1\0\0\x08" + b"x" * 255, b"seen1\0\0\x28", b"other" * 99])
def test_a_damaged_file_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=f"found {len(content)} bytes that begin with .*; expected a table of pairs"):
        Seen.from_bytes(content)


def test_a_full_table_does_not_take_everything_for_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.data.seen.MOST_BITS", 10)
    monkeypatch.setattr("clearhead.data.seen.LEAST_BITS", 8)
    rng = np.random.default_rng(3)
    seen = seen_pairs(ragged([rng.integers(4, 401, 7).tolist() for _ in range(997)]))
    strange = [seen.familiarity(rng.integers(1000, 5000, 7).tolist()).unseen for _ in range(97)]
    assert np.mean(strange) > 0.5
