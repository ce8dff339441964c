"""Manifests are read line by line, what is wrong is said with its line; features on the disk are what files hold."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clearhead.data import prepare as module
from clearhead.data.corpus import Report
from clearhead.data.features import FeatureScale, Moments
from clearhead.data.manifest import manifest_fingerprint, read_manifest
from clearhead.data.options import DataOptions
from clearhead.data.prepare import Prepared, prepare
from clearhead.data.readers import read_features, scaled_features
from clearhead.errors import BAD_DATA, DISK, MISSING, USAGE, UserError
from tests.recordings import tone, write_melodies, write_series, write_wav

SPEECH = DataOptions(task="speech", tokenizer="characters", mel_bins=7)
SERIES = DataOptions(task="series", tokenizer="words")


def store(folder: Path, text: str) -> Path:
    path = folder / "m.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def ready(manifest: Path, options: DataOptions, valid: Path | None = None) -> Prepared:
    folder = manifest.parent / "cache"
    return prepare([manifest], [valid] if valid else [], options, 1, folder, lambda *_: None)


def test_lines_are_paths_and_texts_with_or_without_a_heading(tmp_path: Path) -> None:
    path = store(tmp_path, "path\ttext\na.wav\thello there\n\nsub/b.flac\t 7 \n")
    report = Report()
    pairs = list(read_manifest([path], report))
    assert [(pair.line, pair.source, pair.target) for pair in pairs] == [
        (2, "a.wav", "hello there"),
        (4, "sub/b.flac", "7"),
    ]
    assert report.read == report.kept == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a.wav", "line 2 of {} has 1 columns"),
        ("a.wav\tb\tc", "line 2 of {} has 3 columns"),
        ("a.wav\t ", "line 2 of {} has no text"),
        ("\thello", "line 2 of {} has no path"),
        ("/etc/a.wav\thello", "line 2 of {} names /etc/a.wav; expected a path inside"),
        ("b/../../a.wav\thello", "line 2 of {} names b/../../a.wav; expected a path inside"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = store(tmp_path, f"a.wav\tfine\n{line}\n")
    with pytest.raises(UserError) as refusal:
        list(read_manifest([path], Report()))
    assert said.format(path) in str(refusal.value)
    assert (refusal.value.code, refusal.value.exit_code) == ("MANIFEST", BAD_DATA)


def test_a_line_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.tsv").write_bytes(b"a.wav\tfine\nb.wav\t\xff\n")
    with pytest.raises(UserError, match=r"line 2 of .* is no UTF-8"):
        list(read_manifest([tmp_path / "m.tsv"], Report()))


def test_one_manifest_is_expected() -> None:
    with pytest.raises(UserError, match=r"found files: a\.wav, b\.txt; expected one manifest") as refusal:
        list(read_manifest([Path("a.wav"), Path("b.txt")], Report()))
    assert refusal.value.exit_code == USAGE


def test_a_file_that_is_missing_or_broken_is_named_with_its_line(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", tone(440, 0.1))
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    for name, code, expected in (("gone.wav", MISSING, "there is no file"), ("bad.wav", BAD_DATA, "cannot read")):
        path = store(tmp_path, f"a.wav\tx\n{name}\ty\n")
        with pytest.raises(UserError) as refusal:
            ready(path, SPEECH)
        assert refusal.value.exit_code == code
        assert expected in str(refusal.value)
        assert f"{tmp_path / name} (line 2 of {path})" in str(refusal.value)
        assert "a WAV or FLAC recording" in str(refusal.value)


def test_a_file_that_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    path = write_wav(tmp_path / "a.wav", tone(440, 0.1))
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UserError, match="Permission denied; check its permissions") as refusal:
        read_features(path, SPEECH)
    assert refusal.value.exit_code == DISK


def test_what_is_prepared_is_what_the_files_hold(tmp_path: Path) -> None:
    manifest = write_melodies(tmp_path / "train", 31)
    prepared = ready(manifest, SPEECH)
    assert len(prepared) + len(prepared.valid_source.ids) == 31
    scale = prepared.source.scale
    assert scale is not None
    raw = [read_features(manifest.parent / prepared.source.string(row), SPEECH) for row in range(len(prepared))]
    for row, frames in enumerate(raw):
        np.testing.assert_array_equal(prepared.source.ids[row], frames)
        np.testing.assert_array_equal(prepared.source.item(row), scale.apply(frames))
        used = scaled_features(manifest.parent / prepared.source.string(row), SPEECH, scale)
        np.testing.assert_array_equal(used, prepared.source.item(row))
        assert prepared.target.tokens(row) == prepared.target_tokenizer.encode(prepared.target.string(row))
    everything = np.concatenate(raw)
    np.testing.assert_allclose(scale.mean, everything.mean(axis=0, dtype=float), rtol=1e-5)
    np.testing.assert_allclose(scale.deviation, everything.std(axis=0, dtype=float), rtol=1e-5)
    assert prepared.source_tokenizer is prepared.target_tokenizer
    assert prepared.facts["languages"][0] == "speech"


def test_files_that_change_are_other_data(tmp_path: Path) -> None:
    manifest = write_melodies(tmp_path / "train", 11)
    before = manifest_fingerprint([manifest])
    assert manifest_fingerprint([manifest]) == before
    write_wav(manifest.parent / "3.wav", tone(440, 0.2))
    assert manifest_fingerprint([manifest]) != before


def test_what_is_too_long_is_counted(tmp_path: Path) -> None:
    manifest = write_melodies(tmp_path / "train", 31)
    long = [read_features(manifest.parent / f"{n}.wav", SPEECH).shape[0] > 40 for n in range(31)]
    prepared = ready(manifest, replace(SPEECH, max_steps=40, max_dropped=1.0))
    assert prepared.facts["report"]["dropped"]["too_many_steps"]["count"] == sum(long) > 0
    assert "more steps than data.max_steps" in json.dumps(prepared.facts["report_lines"])
    assert prepared.source.ids.lengths.max() <= 40


def test_validation_files_do_not_change_the_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 3)  # more than one chunk
    manifest, valid = write_series(tmp_path / "a", 11, "npy"), write_series(tmp_path / "b", 7, "csv", seed=8)
    prepared = ready(manifest, SERIES, valid)
    assert (len(prepared), len(prepared.valid_source.ids)) == (11, 7)
    everything = np.concatenate([np.load(manifest.parent / f"{n}.npy").astype(np.float32) for n in range(11)])
    assert prepared.source.scale is not None
    np.testing.assert_allclose(prepared.source.scale.mean, everything.mean(axis=0, dtype=float), rtol=1e-6)
    assert {prepared.target.string(row) for row in range(11)} <= {"slow", "fast", "flat"}


def test_all_files_have_the_same_features(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((5, 2)))
    np.save(tmp_path / "b.npy", np.ones((5, 3)))
    path = store(tmp_path, "a.npy\tx\nb.npy\ty\n")
    with pytest.raises(UserError, match=r"line 2 of .* has steps of 3 numbers, those before it of 2"):
        ready(path, SERIES)
    with pytest.raises(UserError, match="has steps of 3 numbers; the model was trained on 2"):
        scaled_features(tmp_path / "b.npy", SERIES, FeatureScale([0.0, 0.0], [1.0, 1.0]))


def test_moments_are_those_of_all_at_once() -> None:
    numbers = np.random.default_rng(1).normal(1e6, [1.0, 100.0], (101, 2))
    numbers = np.concatenate([numbers, np.full((101, 1), 7.0)], axis=1)
    moments = Moments()
    for part in np.split(numbers, [3, 50]):
        moments.add(part)
    scale = moments.scale()
    np.testing.assert_allclose(scale.mean, numbers.mean(axis=0))
    np.testing.assert_allclose(scale.deviation, [*numbers.std(axis=0)[:2], 1.0])
    assert abs(scale.apply(numbers)).max() < 6


@pytest.mark.parametrize(("mean", "deviation"), [([], []), ([1.0], []), ([1.0], [0.0]), ([float("nan")], [1.0])])
def test_a_scale_that_is_none_is_refused(mean: list[float], deviation: list[float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        FeatureScale(mean, deviation)


def test_a_scale_is_for_so_many_features() -> None:
    with pytest.raises(ValueError, match=r"shape \(5, 3\); expected steps of 2 features"):
        FeatureScale([0.0, 0.0], [1.0, 1.0]).apply(np.zeros((5, 3)))
