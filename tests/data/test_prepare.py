"""What training reads from the cache is what tokenizing by hand gives; the work is done once; nothing leaks."""

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.data import prepare as module
from clearhead.data.corpus import Pair, Report, read_pairs
from clearhead.data.folders import default_cache, load_tokenizers, tokenizer_files
from clearhead.data.options import DataOptions
from clearhead.data.prepare import Prepared, open_prepared, prepare
from clearhead.data.storage import Side
from clearhead.data.tokenizer import Tokenizer, train
from clearhead.errors import BAD_DATA, DISK, USAGE, UserError

CHARACTERS = DataOptions(tokenizer="characters")
PAIRS = [(f"number {n} is here", f"hier ist Nummer {n}") for n in range(1009)]


def store(folder: Path, pairs: list[tuple[str, str]], name: str = "train") -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}.en", folder / f"{name}.de"]
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in side), encoding="utf-8", newline="\n")
    return paths


class Work:
    """A cache of its own, and what was reported while working."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.reported: list[tuple[str, int]] = []

    def prepare(
        self,
        files: list[Path],
        valid: list[Path] | None = None,
        options: DataOptions = CHARACTERS,
        seed: int = 1,
        tokenizers_of: Path | None = None,
    ) -> Prepared:
        progress = lambda what, done: self.reported.append((what, done))  # noqa: E731
        return prepare(files, valid or [], options, seed, self.cache, progress, tokenizers_of)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "cache")


def strings(source: Side, target: Side) -> list[tuple[str, str]]:
    return [(source.string(row), target.string(row)) for row in range(len(source.ids))]


def refused(work: Work, files: list[Path], options: DataOptions = CHARACTERS) -> UserError:
    with pytest.raises(UserError) as caught:
        work.prepare(files, options=options)
    left = list(work.cache.glob("*")) if work.cache.exists() else []
    assert left == []
    return caught.value


# -- what is in it --------------------------------------------------------------------------------------------------

ODD_PAIRS = [*PAIRS[:101], ("中文，好。", "Chinesisch, gut."), ("e\u0301 😀", "é"), ("", "empty"), ("tab\there", "x y")]


@pytest.mark.parametrize("tokenizer", ["bpe", "unigram", "characters", "words"])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("chunk", [7, 20_000])
def test_equals_tokenizing_by_hand(
    tokenizer: str, joint: bool, chunk: int, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    files = store(tmp_path, ODD_PAIRS)
    options = DataOptions(tokenizer=tokenizer, joint=joint, vocabulary=400)
    prepared = work.prepare(files, options=options)
    by_line = {pair.line: pair for pair in read_pairs(files, Report())}
    assert len(prepared) + len(prepared.valid_source.ids) == len(by_line) == len(ODD_PAIRS) - 1
    assert len(prepared) == len(prepared.source.ids) == len(prepared.target.text)
    assert (prepared.source_tokenizer is prepared.target_tokenizer) == joint
    for row, line in enumerate(prepared.lines):
        pair = by_line.pop(int(line))
        assert prepared.source.string(row) == pair.source
        assert prepared.target.string(row) == pair.target
        assert prepared.source.ids[row].tolist() == prepared.source_tokenizer.encode(pair.source)
        assert prepared.target.ids[row].tolist() == prepared.target_tokenizer.encode(pair.target)
        assert prepared.source.ids.lengths[row] == len(prepared.source_tokenizer.encode(pair.source))
    rest = sorted((pair.source, pair.target) for pair in by_line.values())
    assert sorted(strings(prepared.valid_source, prepared.valid_target)) == rest
    assert prepared.facts["vocabularies"] == [len(prepared.source_tokenizer), len(prepared.target_tokenizer)]


def test_it_is_mapped_not_loaded(work: Work, tmp_path: Path) -> None:
    prepared = work.prepare(store(tmp_path, PAIRS))
    for side in (prepared.source, prepared.target, prepared.valid_source, prepared.valid_target):
        for rows in (side.ids, side.text):
            assert isinstance(rows.flat.base, np.memmap)
            assert isinstance(rows.offsets.base, np.memmap)
    assert isinstance(prepared.lines, np.memmap)


def test_facts_say_what_was_read(work: Work, tmp_path: Path) -> None:
    facts = work.prepare(store(tmp_path, ODD_PAIRS)).facts
    assert facts["languages"] == ["en", "de"]
    assert facts["report"]["read"] == len(ODD_PAIRS)
    assert facts["report"]["dropped"] == {"empty": {"count": 1, "lines": [ODD_PAIRS.index(("", "empty")) + 1]}}
    assert facts["valid_report"] is None
    assert "1: one side is empty" in " ".join(facts["report_lines"])
    assert json.loads((Path(facts["folder"]) / "facts.json").read_text())["prints"] == facts["prints"]


def test_progress_is_shown_for_each_part(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 500)
    work.prepare(store(tmp_path, PAIRS))
    assert work.reported == [
        ("reading", 500),
        ("reading", 1000),
        ("learning the vocabulary", 1009),
        ("tokenizing", 500),
        ("tokenizing", 1000),
        ("tokenizing", 1009),
        ("learning to align words", 959),
        ("aligning words", 500),
        ("aligning words", 959),
    ]


# -- what is left out -----------------------------------------------------------------------------------------------


def test_long_and_uneven_pairs_are_left_out(work: Work, tmp_path: Path) -> None:
    """A length with EOS up to max_tokens stays, and so does a ratio of up to max_ratio to the shorter side and one."""
    planted = [("a" * 19, "b" * 19), ("a" * 20, "b" * 19), ("a" * 9, "b" * 2), ("a" * 10, "b" * 2), ("ab", "ba" * 7)]
    files = store(tmp_path, [(f"{n}", f"{n}") for n in range(100, 120)] + planted)
    options = replace(CHARACTERS, max_tokens=20, max_ratio=3.0)
    valid = store(tmp_path, [("x", "y"), ("z" * 40, "z")], "valid")
    prepared = work.prepare(files, valid, options)
    kept = strings(prepared.source, prepared.target)
    assert [pair in kept for pair in planted] == [True, False, True, False, False]
    assert prepared.facts["report"]["dropped"] == {
        "too_long": {"count": 1, "lines": [22]},
        "length_ratio": {"count": 2, "lines": [24, 25]},
    }
    assert prepared.facts["valid_report"]["dropped"] == {"too_long": {"count": 1, "lines": [2]}}
    assert strings(prepared.valid_source, prepared.valid_target) == [("x", "y")]


def test_first_lines_are_the_first_whether_held_out_or_not(work: Work, tmp_path: Path) -> None:
    files = store(tmp_path, [(f"{n} {'x' * 30 * (n % 10 == 0)}", f"{n}") for n in range(100)])
    dropped = work.prepare(files, options=replace(CHARACTERS, max_tokens=20)).facts["report"]["dropped"]
    assert dropped == {"too_long": {"count": 10, "lines": [1, 11, 21, 31, 41]}}


def test_too_many_dropped(work: Work, tmp_path: Path) -> None:
    pairs = [("a", "b") if n % 4 == 0 else (f"s{n}", f"t{n}") for n in range(100)]
    files = store(tmp_path, [(s * (60 if s == "a" else 1), t) for s, t in pairs])
    options = replace(CHARACTERS, max_tokens=50)
    error = refused(work, files, options)
    assert (error.code, error.exit_code) == ("TOO_MANY_DROPPED", BAD_DATA)
    assert "25% of the pairs" in str(error)
    assert "expected at most 20%" in str(error)
    assert len(work.prepare(files, options=replace(options, max_dropped=0.25))) > 0


def test_nothing_left(work: Work, tmp_path: Path) -> None:
    error = refused(work, store(tmp_path, PAIRS), replace(CHARACTERS, max_tokens=5))
    assert (error.code, error.exit_code) == ("NOTHING_LEFT", BAD_DATA)
    assert "0 of 1,009 pairs kept" in str(error)


def test_nothing_left_to_validate_on(work: Work, tmp_path: Path) -> None:
    files, valid = store(tmp_path, PAIRS), store(tmp_path, [("", "x")], "valid")
    with pytest.raises(UserError, match=r"no usable pair is left of .*valid\.en and .*valid\.de \(0 of 1 pairs kept"):
        work.prepare(files, valid)


def test_swapped_files(work: Work, tmp_path: Path) -> None:
    files = store(tmp_path, PAIRS)
    error = refused(work, files, replace(CHARACTERS, source_language="de", target_language="en"))
    assert (error.code, error.exit_code) == ("SWAPPED", BAD_DATA)


# -- held-out pairs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pairs", "held_out"), [(7, 1), (100, 20), (1009, 50), (7919, 79)])
def test_one_percent_is_held_out(pairs: int, held_out: int, work: Work, tmp_path: Path) -> None:
    prepared = work.prepare(store(tmp_path, [(f"s{n}", f"t{n}") for n in range(pairs)]))
    assert len(prepared.valid_source.ids) == held_out
    assert len(prepared) == pairs - held_out


def test_no_more_than_the_most_is_held_out() -> None:
    hashes = np.arange(1, 1_000_001, dtype=np.uint64)
    assert module._held_out(hashes, []) == 2000


def test_many_targets_of_few_sources_do_not_swell_what_is_held_out() -> None:
    hashes = np.repeat(np.arange(1, 1001, dtype=np.uint64), 1000)
    assert (hashes <= module._held_out(hashes, [])).sum() == 2000


def test_no_source_is_on_both_sides(work: Work, tmp_path: Path) -> None:
    pairs = [(f"source {n % 211}", f"target {n}") for n in range(1009)]
    prepared = work.prepare(store(tmp_path, pairs))
    training = Counter(source for source, _ in strings(prepared.source, prepared.target))
    validation = Counter(source for source, _ in strings(prepared.valid_source, prepared.valid_target))
    assert not training.keys() & validation.keys()
    assert training + validation == Counter(source for source, _ in pairs)
    assert 40 <= validation.total() <= 50


def test_what_is_held_out_depends_on_the_sources_alone(work: Work, tmp_path: Path) -> None:
    one = work.prepare(store(tmp_path / "one", PAIRS))
    other = work.prepare(store(tmp_path / "two", [(s, f"{t}!") for s, t in reversed(PAIRS)]), seed=5)
    sources = [sorted(s for s, _ in strings(p.valid_source, p.valid_target)) for p in (one, other)]
    assert sources[0] == sources[1]


def test_a_single_source_is_too_few(work: Work, tmp_path: Path) -> None:
    error = refused(work, store(tmp_path, [("same", "a"), ("same", "b")]))
    assert (error.code, error.exit_code) == ("TOO_FEW", BAD_DATA)


def test_validation_files_instead(work: Work, tmp_path: Path) -> None:
    held = [("these are", "das sind"), ("for validation", "zum Validieren")]
    prepared = work.prepare(store(tmp_path, PAIRS), store(tmp_path, held, "valid"))
    assert strings(prepared.source, prepared.target) == PAIRS
    assert strings(prepared.valid_source, prepared.valid_target) == held
    assert prepared.facts["valid_report"]["kept"] == 2


# -- the cache ------------------------------------------------------------------------------------------------------


def test_a_cache_hit_does_no_work(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, valid = store(tmp_path, PAIRS), store(tmp_path, PAIRS[:3], "valid")
    first = work.prepare(files, valid)
    monkeypatch.setattr(module, "read_pairs", None)
    monkeypatch.setattr(module, "train", None)
    work.reported.clear()
    again = work.prepare(files, valid)
    assert again.facts == first.facts
    assert work.reported == []
    elsewhere = store(tmp_path / "copy", PAIRS)
    assert work.prepare(elsewhere, valid).facts["folder"] == first.facts["folder"]


def test_whatever_matters_is_another_entry(work: Work, tmp_path: Path) -> None:
    files, valid = store(tmp_path, PAIRS), store(tmp_path, PAIRS[:3], "valid")
    other_names = store(tmp_path, PAIRS, "other")
    changed = store(tmp_path / "changed", [*PAIRS[:-1], ("number", "Nummer")])
    folders = {
        work.prepare(*arguments).facts["folder"]
        for arguments in (
            (files,),
            (files, valid),
            (files, None, replace(CHARACTERS, max_tokens=99)),
            (files, None, CHARACTERS, 2),
            (other_names,),
            (changed,),
        )
    }
    assert len(folders) == 6


def test_nothing_is_left_of_work_that_failed_or_was_killed(work: Work, tmp_path: Path) -> None:
    work.cache.mkdir()
    old, new = work.cache / ".tmp-old", work.cache / ".tmp-new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (0, 0))
    prepared = work.prepare(store(tmp_path, PAIRS))
    assert {path.name for path in work.cache.iterdir()} == {".tmp-new", Path(prepared.facts["folder"]).name}


def test_somebody_else_was_faster(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = store(tmp_path, PAIRS)
    settle = module._settle

    def settle_late(scratch: Path, folder: Path) -> None:
        monkeypatch.setattr(module, "_settle", settle)
        work.prepare(files)
        settle(scratch, folder)

    monkeypatch.setattr(module, "_settle", settle_late)
    assert len(work.prepare(files)) == len(PAIRS) - 50
    assert len(list(work.cache.iterdir())) == 1


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    files = store(tmp_path, PAIRS)
    with pytest.raises(UserError) as caught:
        Work(files[0] / "cache").prepare(files)
    assert (caught.value.code, caught.value.exit_code) == ("CACHE", DISK)
    assert "name another folder in CLEARHEAD_CACHE" in str(caught.value)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_CACHE", "/here")
    assert default_cache() == Path("/here")
    monkeypatch.delenv("CLEARHEAD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/there")
    assert default_cache() == Path("/there/clearhead")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "clearhead"


# -- files that change ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["longer", "other", "valid"])
def test_F25_files_that_change_while_being_read(
    change: str, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, valid = store(tmp_path, PAIRS), store(tmp_path, PAIRS[:3], "valid")

    def change_and_learn(*arguments: Any) -> Tokenizer:
        if change == "valid":
            store(tmp_path, PAIRS[:5], "valid")
        else:
            store(tmp_path, PAIRS * 2 if change == "longer" else [("new", "neu"), *PAIRS[1:]])
        return train(*arguments)

    monkeypatch.setattr(module, "train", change_and_learn)
    with pytest.raises(UserError) as caught:
        work.prepare(files, valid)
    assert (caught.value.code, caught.value.exit_code) == ("FILES_CHANGED", BAD_DATA)
    assert ("valid.en" if change == "valid" else "train.en") in str(caught.value)
    assert list(work.cache.iterdir()) == []


# -- vocabularies ---------------------------------------------------------------------------------------------------


def test_the_vocabulary_follows_the_size_of_the_corpus(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def ask_and_learn(*arguments: Any) -> Tokenizer:
        asked.append(arguments[-1])
        return train(*arguments)

    monkeypatch.setattr(module, "train", ask_and_learn)
    files = store(tmp_path, PAIRS)
    work.prepare(files)
    work.prepare(files, options=replace(CHARACTERS, vocabulary=300))
    assert asked == [2000, 2000, 300, 300]


def test_fewer_pieces_than_asked_for_if_the_text_has_no_more(work: Work, tmp_path: Path) -> None:
    prepared = work.prepare(store(tmp_path, PAIRS), options=DataOptions(vocabulary=8000))
    assert 260 < len(prepared.source_tokenizer) < 8000
    assert prepared.facts["vocabularies"] == [len(prepared.source_tokenizer), len(prepared.target_tokenizer)]


def test_a_vocabulary_that_is_too_small(work: Work, tmp_path: Path) -> None:
    error = refused(work, store(tmp_path, PAIRS), replace(CHARACTERS, vocabulary=100))
    assert error.exit_code == USAGE


@pytest.mark.parametrize("joint", [True, False])
def test_tokenizers_of_another_model(joint: bool, work: Work, tmp_path: Path) -> None:
    first = work.prepare(store(tmp_path / "first", PAIRS), options=replace(CHARACTERS, joint=joint))
    model = Path(first.facts["folder"])
    files = store(tmp_path / "second", [(f"Zähl {n}!", f"compte {n} ?") for n in range(211)])
    prepared = work.prepare(files, options=DataOptions(), tokenizers_of=model)
    assert len(tokenizer_files(model)) == (1 if joint else 2)
    for file in tokenizer_files(model):
        assert (Path(prepared.facts["folder"]) / file.name).read_bytes() == file.read_bytes()
    source, target = load_tokenizers(model)
    assert prepared.source.ids[3].tolist() == source.encode(prepared.source.string(3))
    assert prepared.target.ids[3].tolist() == target.encode(prepared.target.string(3))
    assert prepared.facts["folder"] != work.prepare(files, options=DataOptions()).facts["folder"]


def test_the_sample_is_fair_and_seeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_PAIRS", 101)
    files = store(tmp_path, PAIRS)

    def sample(seed: int) -> list[Pair]:
        silent = module._Preparation(tmp_path, files, [], DataOptions(), seed, lambda *_: None, None)
        return silent._scan()[1]

    assert sample(1) == sample(1) != sample(2)
    lines = [pair.line for pair in sample(1)]
    assert len(set(lines)) == 101
    assert 350 < np.mean(lines) < 650


def test_it_can_be_opened_by_its_folder(work: Work, tmp_path: Path) -> None:
    prepared = work.prepare(store(tmp_path, PAIRS))
    assert open_prepared(Path(prepared.facts["folder"])).facts == prepared.facts
