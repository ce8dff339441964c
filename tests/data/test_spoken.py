"""The corpus that espeak-ng speaks: its words, its sets, and that it is the same again."""

import random
import shutil
from pathlib import Path

import pytest

from clearhead.data.options import DataOptions
from clearhead.data.speech import read_speech
from clearhead.data.spoken import SPEAKERS, Sizes, main, make_corpus, ordinal, sentence, year
from clearhead.errors import UserError

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")


def test_numbers_as_they_are_said() -> None:
    assert [ordinal(n) for n in (1, 12, 20, 21, 30, 31)] == [
        "first", "twelfth", "twentieth", "twenty first", "thirtieth", "thirty first",
    ]  # fmt: skip
    assert len({ordinal(n) for n in range(1, 32)}) == 31
    assert [year(n) for n in (1950, 1999, 2000, 2007, 2010, 2019, 2026)] == [
        "nineteen fifty", "nineteen ninety nine", "two thousand", "two thousand seven", "twenty ten", "twenty nineteen",
        "twenty twenty six",
    ]  # fmt: skip
    assert len({year(n) for n in range(1950, 2050)}) == 100


def test_half_are_digits_and_half_are_dates() -> None:
    sentences = [sentence(random.Random(seed)) for seed in range(401)]
    digits = [
        text
        for text in sentences
        if all(word in "zero one two three four five six seven eight nine" for word in text.split())
    ]
    assert 150 < len(digits) < 250
    assert {len(text.split()) for text in digits} == set(range(1, 8))


def test_nobody_speaks_in_two_sets() -> None:
    names = [name for speakers in SPEAKERS.values() for name in speakers.split()]
    assert len(names) == len(set(names))


def test_without_espeak_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UserError, match="apt-get install espeak-ng"):
        make_corpus(tmp_path, Sizes(1, 1, 1))


@needs_espeak
@pytest.mark.slow
def test_recordings_are_spoken_and_the_same_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        assert main([str(tmp_path / name), "--train", "3", "--valid", "2", "--test", "2"]) == 0
    assert "train.tsv" in capsys.readouterr().out
    for manifest, count in (("train", 3), ("valid", 2), ("test", 2)):
        lines = (tmp_path / "one" / f"{manifest}.tsv").read_text(encoding="utf-8").splitlines()
        assert len(lines) == count
        for line in lines:
            path, text = line.split("\t")
            assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()
            seconds = len(read_speech(tmp_path / "one" / path, DataOptions(task="speech"))) / 100
            assert 0.1 * len(text.split()) < seconds < 2 * len(text.split()), (text, seconds)


@needs_espeak
def test_a_voice_that_is_not_there_and_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="cannot make the folder"):
        make_corpus(tmp_path / "file", Sizes(1, 1, 1))
    monkeypatch.setattr("clearhead.data.spoken.ACCENTS", "xx-nobody")
    with pytest.raises(UserError, match=r"cannot speak as xx-nobody\+"):
        make_corpus(tmp_path / "new", Sizes(1, 0, 0))
