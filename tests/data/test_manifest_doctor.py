"""A manifest is checked file by file: what is missing, cut off, silent, twice, or in the test set."""

import json
from pathlib import Path

import numpy as np
import pytest

from clearhead.cli import run
from clearhead.data.manifest_doctor import examine_manifest
from clearhead.data.options import DataOptions
from clearhead.errors import BAD_DATA, OK, UserError
from tests.recordings import tone, write_series, write_wav

SPEECH = DataOptions(task="speech", mel_bins=11, max_steps=40)


def write_recordings(folder: Path) -> Path:
    good = write_wav(folder / "good.wav", tone(440, 0.2))
    write_wav(folder / "other.wav", tone(880, 0.2))
    (folder / "again.wav").write_bytes(good.read_bytes())
    (folder / "cut.wav").write_bytes(good.read_bytes()[:500])
    (folder / "text.wav").write_text("path\ttext\n")
    write_wav(folder / "silent.wav", np.zeros(3_200))
    write_wav(folder / "long.wav", tone(440, 0.7))
    names = ["good", "gone", "cut", "text", "silent", "long", "again", "other"]
    lines = "".join(f"{name}.wav\tsomething\n" for name in names)
    (folder / "all.tsv").write_text(f"path\ttext\n{lines}no tab\n../outside.wav\ttext\n")
    return folder / "all.tsv"


def test_every_file_is_read(tmp_path: Path) -> None:
    manifest = write_recordings(tmp_path)
    (tmp_path / "test.tsv").write_text("other.wav\tsomething\n")
    found = examine_manifest([manifest], SPEECH, [tmp_path / "test.tsv"])
    assert {finding.name: finding.lines for finding in found.findings} == {
        "wrong_line": [10, 11],
        "missing": [3],
        "unreadable": [4, 5],
        "silent": [6],
        "too_many_steps": [7],
        "duplicate_file": [8],
        "leaked_file": [1],
    }
    assert (found.read, found.usable) == (10, 3)
    shown = "\n".join(found.lines(100))
    assert "3 of 10 files can be trained on" in shown
    assert "it was cut off: its header promises 6,400 bytes of sound" in shown
    assert f"line 3 of {manifest}" in shown
    json.dumps(found.to_dict())
    found.require_some()


def test_series_are_checked_too(tmp_path: Path) -> None:
    manifest = write_series(tmp_path / "series", 7, "csv")
    found = examine_manifest([manifest], DataOptions(task="series"))
    assert found.read == 7
    assert {finding.name for finding in found.findings} <= {"silent"}


def test_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = write_recordings(tmp_path)
    options = ["--set", "data.task=speech", "--set", "data.max_steps=40"]
    assert run(["check", str(manifest), *options]) == OK
    assert "- 1 pair: files that are not there (line 3)" in capsys.readouterr().out
    bad = tmp_path / "bad.tsv"
    bad.write_text("gone.wav\ttext\n")
    for extra in ([], ["--json"]):
        with pytest.raises(
            UserError, match=f"none of the 1 files of {bad} is usable; expected a WAV or FLAC"
        ) as caught:
            run(["check", str(bad), *options, *extra])
        assert caught.value.exit_code == BAD_DATA
        assert "missing" in capsys.readouterr().out or not extra


def test_a_corpus_of_which_nothing_is_usable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.en").write_text("x\n\n")
    (tmp_path / "a.de").write_text("\ny\n")
    with pytest.raises(UserError, match=r"none of the 2 pairs of .*a.en and .*a.de is usable") as caught:
        run(["check", str(tmp_path / "a.en"), str(tmp_path / "a.de")])
    assert caught.value.exit_code == BAD_DATA
    assert "read, but none is usable" in capsys.readouterr().out
