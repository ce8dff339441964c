"""Word alignments of corpora whose true alignments are known, and their place beside the prepared corpus."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from clearhead.data import aligner as module
from clearhead.data.aligner import NONE, fit
from clearhead.data.options import DataOptions
from clearhead.data.prepare import prepare
from clearhead.data.storage import Ragged

WORDS, PAIRS = 101, 1009


def silent(what: str, done: int) -> None:
    """Progress that nobody wants to see."""


def ragged(rows: list[np.ndarray]) -> Ragged:
    flat = np.concatenate([*rows, np.zeros(0, np.uint32)]).astype(np.uint32)
    return Ragged(flat, np.cumsum([0, *map(len, rows)]))


def planted(shuffle: str, seed: int = 1) -> tuple[Ragged, Ragged, list[np.ndarray]]:
    """Sources, their translations word for word in another order, and where each target word comes from."""
    rng = np.random.default_rng(seed)
    translation = rng.permutation(WORDS)
    frequencies = 1 / np.arange(1, WORDS + 1)
    sources, targets, truths = [], [], []
    for _ in range(PAIRS):
        length = int(rng.integers(1, 13))
        # No word twice: then it could not be said which of them a target word comes from.
        source = rng.choice(WORDS, length, replace=False, p=frequencies / frequencies.sum())
        order = np.arange(length)
        if shuffle == "anyhow":
            order = rng.permutation(length)
        elif shuffle == "backwards":
            order = order[::-1]
        elif shuffle == "neighbours":
            order = np.argsort(order + rng.uniform(0, 2.5, length), kind="stable")
        sources.append(source)
        targets.append(translation[source[order]])
        truths.append(order)
    return ragged(sources), ragged(targets), truths


def error_rate(found: np.ndarray, truth: np.ndarray) -> float:
    """AER of links that are all sure: one less twice the right ones, by those that are there and those found."""
    return 1 - 2 * int((found == truth).sum()) / (len(truth) + int((found != NONE).sum()))


@pytest.mark.parametrize("shuffle", ["not", "neighbours", "backwards", "anyhow"])
def test_planted_alignments_are_found(shuffle: str) -> None:
    sources, targets, truths = planted(shuffle)
    aligner = fit(sources, targets, (WORDS, WORDS), seed=1)
    found = aligner.align(sources, targets, 0, PAIRS)
    assert error_rate(found, np.concatenate(truths)) < 0.05


def test_what_was_put_in_has_no_link() -> None:
    """A word without a counterpart, put into every third target."""
    sources, targets, truths = planted("neighbours")
    rows, wanted = [], []
    for row in range(PAIRS):
        added = [WORDS] if row % 3 == 0 else []
        rows.append(np.concatenate([targets[row], added]))
        wanted.append(np.concatenate([truths[row], np.full(len(added), NONE)]))
    added_to = ragged(rows)
    found = fit(sources, added_to, (WORDS, WORDS + 1), seed=1).align(sources, added_to, 0, PAIRS)
    truth = np.concatenate(wanted)
    assert (found[truth == NONE] == NONE).mean() > 0.75
    assert (found == truth)[truth != NONE].mean() > 0.95


def test_in_parts_and_in_few_buckets_as_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets, truths = planted("neighbours")
    whole = fit(sources, targets, (WORDS, WORDS), seed=1)
    found = whole.align(sources, targets, 0, PAIRS)
    for name, value in {"AT_ONCE": 97, "CELLS": 211}.items():
        monkeypatch.setattr(module, name, value)
    parts = fit(sources, targets, (WORDS, WORDS), seed=1)
    np.testing.assert_allclose(parts.near, whole.near, rtol=1e-4)
    cuts = [0, 1, 7, 500, PAIRS]
    pieces = [parts.align(sources, targets, start, stop) for start, stop in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(pieces), found)
    monkeypatch.setattr(module, "BUCKETS", 1 << 13)  # 10,201 pairs of words must share them
    shared = fit(sources, targets, (WORDS, WORDS), seed=1).align(sources, targets, 0, PAIRS)
    assert error_rate(shared, np.concatenate(truths)) < 0.1


def test_a_sample_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets, truths = planted("neighbours")
    monkeypatch.setattr(module, "MOST_PAIRS", 503)
    links = [fit(sources, targets, (WORDS, WORDS), seed).align(sources, targets, 0, PAIRS) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(links[0], links[1])
    assert all(error_rate(found, np.concatenate(truths)) < 0.1 for found in links)
    monkeypatch.setattr(module, "MOST_CELLS", 1)  # one pair at least
    assert fit(sources, targets, (WORDS, WORDS), seed=1).counts.sum() > 0


def test_links_are_beside_the_prepared_corpus(tmp_path: Path) -> None:
    sources, targets, truths = planted("anyhow")
    files = [tmp_path / "train.en", tmp_path / "train.de"]
    for file, side, language in zip(files, (sources, targets), "ed", strict=True):
        lines = (" ".join(f"{language}{word}" for word in side[row]) for row in range(PAIRS))
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = DataOptions(tokenizer="words", vocabulary=200)
    prepared = prepare(files, [], options, 1, tmp_path / "cache", silent)
    assert prepared.links is not None
    np.testing.assert_array_equal(prepared.links.offsets, prepared.target.ids.offsets)
    truth = np.concatenate([truths[line - 1] for line in prepared.lines])
    assert error_rate(prepared.links.flat, truth) < 0.05
    assert prepared.facts["lines"]["longest"] == 12
    continued = prepare(files[:1], [], replace(options, task="generate"), 1, tmp_path / "cache", silent)
    assert continued.links is None
    assert continued.facts["lines"] is None
