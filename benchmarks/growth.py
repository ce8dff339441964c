"""What it costs as things grow: targets, beam, batch, vocabulary, sentences in training, and the corpus."""

import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import Sizes
from benchmarks.prepare_large import write_pairs
from benchmarks.results import Cell, Column, Table
from benchmarks.rounds import Field, started
from benchmarks.sample import sample, trained_model
from benchmarks.training import sizes_of, starts
from benchmarks.translators import CT2, NATIVE, TRANSFORMERS, translators
from clearhead.data.options import DataOptions
from clearhead.data.prepare import prepare

ASKS = "What does it cost as things grow?"
SENTENCES, BEAM, LENGTH = 32, 5, 16
LENGTHS, BEAMS, BATCHES = (8, 16, 32, 64, 128), (1, 2, 5, 10), (1, 4, 16, 64)
VOCABULARIES, SENTENCE_LENGTHS, STEP_TOKENS = (1000, 4000, 16_000, 64_000), (7, 14, 28, 56, 112), 3584
CORPORA = (10_000, 30_000, 100_000, 300_000)
PER_TOKEN = "ms per target token"


def measure(quick: bool) -> list[Table]:
    rounds = 1 if quick else 3
    every = 3 if quick else 1  # so-manieth point
    tables = _decoding(rounds, every)
    tables.append(
        _training("vocabulary", "words", {size: sizes_of("tiny", size) for size in VOCABULARIES[::every]}, rounds)
    )
    lengths = {n: sizes_of("tiny", pairs=STEP_TOKENS // n, tokens=n) for n in SENTENCE_LENGTHS[::every]}
    tables.append(_training("sentences", "tokens of a sentence", lengths, rounds))
    return [*tables, _corpus(CORPORA[:2] if quick else CORPORA, 1 if quick else 2)]


def _decoding(rounds: int, every: int) -> list[Table]:
    """Of the trained `tiny`, with targets of a given length."""
    with tempfile.TemporaryDirectory() as scratch:
        all_of_them = translators(trained_model(), Path(scratch))
        with started({name: all_of_them[name] for name in (NATIVE, CT2, TRANSFORMERS)}) as field:
            by_length = {n: (8, BEAM, n) for n in LENGTHS[::every]}
            by_beam = {n: (SENTENCES, n, LENGTH) for n in BEAMS[::every]}
            by_batch = {n: (n, BEAM, LENGTH) for n in BATCHES[::every]}
            return [
                _searches(field, rounds, "length", "tokens of a target", by_length, f"8 lines, beam {BEAM}"),
                _searches(field, rounds, "beam", "beam", by_beam, f"{SENTENCES} lines, {LENGTH} tokens"),
                _searches(field, rounds, "batch", "lines at once", by_batch, f"beam {BEAM}, {LENGTH} tokens"),
            ]


def _searches(
    field: Field, rounds: int, what: str, across: str, points: dict[int, tuple[int, int, int]], about: str
) -> Table:
    """A point is lines, beam and length."""
    lines = sample().sources
    rows: dict[str, dict[str, Cell]] = {name: {} for name in field.peers}
    for x, (count, beam, length) in points.items():
        some = (lines * (1 + count // len(lines)))[:count]
        answers = field.each_round(rounds, lambda _, peer, __: peer.translate(some, beam, length).seconds)  # noqa: B023
        for name, seconds in answers.items():
            rows[name][f"{x:,}"] = [1e3 * one / (count * (length + 1)) for one in seconds]
    title = f"Translating with `tiny`, {about}: {PER_TOKEN} by {across}"
    return _table(title, what, across, list(points), rows, field.errors)


def _training(what: str, across: str, points: dict[int, Sizes], rounds: int) -> Table:
    rows: dict[str, dict[str, Cell]] = {}
    errors: dict[str, str] = {}
    for x, sizes in points.items():
        every = starts(sizes)
        with started({name: every[name] for name in ("Clearhead", "torch.nn.Transformer")}) as field:
            for name, seconds in field.each_round(rounds, lambda _, peer, __: peer.step()).items():
                each: Cell = [1e3 * one / (sizes.pairs * sizes.tokens) for one in seconds]
                rows.setdefault(name, {})[f"{x:,}"] = each
            errors |= field.errors
    title = f"A training step of `tiny`: {PER_TOKEN} by {across}"
    return _table(title, what, across, list(points), rows, errors)


def _corpus(points: Sequence[int], rounds: int) -> Table:
    """Preparing made-up pairs: cleaning, the vocabulary, ids on disk."""
    found: dict[str, Cell] = {}
    for pairs in points:
        seconds = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                files = write_pairs(Path(folder), pairs)
                begun = time.perf_counter()
                prepare(files, [], DataOptions(), 1, Path(folder) / "cache", lambda *_: None)
                seconds.append(time.perf_counter() - begun)
        found[f"{pairs:,}"] = seconds
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB here
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    title = f"Preparing a corpus: seconds by pairs; memory of the measuring process at most {peak:,.0f} MiB"
    return _table(title, "corpus", "pairs", points, {"Clearhead": found}, {}, "seconds")


def _table(
    title: str,
    what: str,
    across: str,
    points: Sequence[int],
    rows: dict[str, dict[str, Cell]],
    errors: dict[str, str],
    up: str = PER_TOKEN,
) -> Table:
    columns = [Column(f"{x:,}") for x in points]
    return Table(title, columns, rows, [], dict(errors), figure=f"growth-{what}.svg", axes=[across, up])
