"""Recordings to log-mel features, each step against a second way to the same numbers."""

from pathlib import Path

import numpy as np
import pytest

from clearhead.data.options import DataOptions
from clearhead.data.speech import FFT, LOUDNESS, RATE, hertz, level, log_mel, mel, mel_bands, read_samples, read_speech
from clearhead.data.speech import resample as at_16_khz
from tests.recordings import tone, write_wav

soundfile = pytest.importorskip("soundfile")


@pytest.mark.parametrize("frequency", [310.0, 1000.0, 2903.0, 6100.0])
def test_a_tone_lies_in_the_band_that_has_its_frequency(frequency: float) -> None:
    found = log_mel(tone(frequency, 0.31), 41)
    tops = hertz(np.linspace(0, mel(RATE / 2), 43))[1:-1]
    assert set(found.argmax(axis=1)) == {int(abs(mel(tops) - mel(frequency)).argmin())}


def test_features_are_those_of_the_formula_frame_by_frame() -> None:
    samples = np.random.default_rng(2).normal(0, 0.1, 1777)
    found = log_mel(samples, 7)
    assert found.shape == (1 + (1777 - 400) // 160, 7)
    bands = mel_bands(7)
    for frame, row in enumerate(found):
        cut = samples[160 * frame : 160 * frame + 400] * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399))
        waves = np.exp(-2j * np.pi * np.outer(np.arange(FFT // 2 + 1), np.arange(400)) / FFT)
        energy = abs(waves @ cut) ** 2
        np.testing.assert_allclose(row, np.log(energy @ bands + 1e-6), rtol=1e-5)


def test_bands_reach_one_and_overlap_their_neighbours() -> None:
    bands = mel_bands(13)
    inside = bands.sum(axis=1)[(bands.argmax(axis=1) > 0) & (bands.argmax(axis=1) < 12)]
    np.testing.assert_allclose(inside, 1)  # one rises as the other falls
    np.testing.assert_allclose(mel(hertz(np.array([0.0, 700.0, 2840.0]))), [0.0, 700.0, 2840.0])


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000])
def test_resampling_keeps_the_wave(rate: int) -> None:
    found = at_16_khz(tone(1234.5, 0.29, rate), rate)
    expected = tone(1234.5, 0.29)[: len(found)]
    assert abs(len(found) - 0.29 * RATE) <= 1
    np.testing.assert_allclose(found[200:-200], expected[200:-200], atol=1e-3)


def test_what_16_khz_cannot_have_is_not_folded_back() -> None:
    assert abs(at_16_khz(tone(10_007, 0.29, 48_000), 48_000))[200:-200].max() < 0.002
    assert at_16_khz(np.zeros(3), RATE).shape == (3,)
    assert at_16_khz(np.zeros(0), 8_000).shape == (0,)


def test_loudness_does_not_matter() -> None:
    samples = tone(440, 0.1)
    np.testing.assert_allclose(level(samples * 0.01), level(samples))
    assert np.sqrt(np.mean(level(samples) ** 2)) == pytest.approx(LOUDNESS)
    assert not level(np.zeros(7)).any()


@pytest.mark.parametrize(("width", "step"), [(1, 2**-7), (2, 2**-15), (3, 2**-23), (4, 2**-31)])
def test_wav_of_every_width(tmp_path: Path, width: int, step: float) -> None:
    left, right = 0.5 * tone(440, 0.05), 0.25 * tone(880, 0.05)
    path = write_wav(tmp_path / "a.wav", np.stack([left, right], axis=1), 16_000, width, channels=2)
    samples, rate = read_samples(path)
    assert rate == 16_000
    np.testing.assert_allclose(samples, (left + right) / 2, atol=1.5 * step)


@pytest.mark.parametrize(("ending", "subtype"), [("flac", "PCM_16"), ("wav", "FLOAT"), ("wav", "PCM_24")])
def test_other_files_hold_the_same(tmp_path: Path, ending: str, subtype: str) -> None:
    samples = 0.5 * tone(440, 0.3, 22_050)
    path = tmp_path / f"a.{ending}"
    soundfile.write(str(path), samples, 22_050, subtype=subtype)
    plain = read_speech(write_wav(tmp_path / "b.wav", samples, 22_050), DataOptions(mel_bins=11))
    np.testing.assert_allclose(
        read_speech(path, DataOptions(mel_bins=11)), plain, atol=0.35
    )  # rounding, in silent bands
    assert plain.shape == (28, 11)


def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
    def refused(content: bytes) -> str:
        (tmp_path / "a.wav").write_bytes(content)
        with pytest.raises(ValueError) as refusal:
            read_speech(tmp_path / "a.wav", DataOptions())
        return str(refusal.value)

    whole = write_wav(tmp_path / "b.wav", tone(440, 0.1)).read_bytes()
    assert refused(b"hello\tyou\n") == "it is no sound file, but text"
    assert refused(bytes(range(99))) == "it is no sound file, or of a kind that is not known here"
    assert refused(b"") == "it is empty"
    assert "cannot be read" in refused(b"RIFF and nothing more") or "damaged" in refused(b"RIFF and nothing more")
    assert refused(whole[:500]) == "it was cut off: its header promises 3,200 bytes of sound, and 456 are there"
    assert "promises 3,200 bytes of sound, and 0 are there" in refused(whole[:44])
    assert "0 bytes of sound" in refused(write_wav(tmp_path / "c.wav", np.zeros(0)).read_bytes())
    assert "it lasts 0.011 s, less than one frame of 0.025 s" in refused(
        write_wav(tmp_path / "c.wav", np.zeros(176)).read_bytes()
    )
    assert "it has 200 samples per second; 4000 to 384000" in refused(
        write_wav(tmp_path / "c.wav", np.zeros(176), rate=200).read_bytes()
    )


def test_without_soundfile_plain_wav_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    path = write_wav(tmp_path / "a.wav", tone(440, 0.1))
    assert len(read_samples(path)[0]) == 1600
    path.write_bytes(b"fLaC")
    with pytest.raises(ValueError, match=r"FLAC needs soundfile: pip install 'clearhead\[speech\]'"):
        read_samples(path)


def test_sound_that_was_cut_off_is_refused_unless_nobody_knew_its_size(tmp_path: Path) -> None:
    content = write_wav(tmp_path / "a.wav", tone(440, 0.1)).read_bytes()
    unknown = content[:40] + b"\xff\xff\xff\xff" + content[44 : 44 + 2 * 800]  # as ffmpeg writes into a pipe
    (tmp_path / "a.wav").write_bytes(unknown)
    assert len(read_samples(tmp_path / "a.wav")[0]) == 800
    soundfile.write(str(tmp_path / "a.flac"), np.random.default_rng(1).uniform(-1, 1, 16_000), 16_000)
    (tmp_path / "a.flac").write_bytes((tmp_path / "a.flac").read_bytes()[:9_000])
    with pytest.raises(ValueError, match=r"it was cut off: its header promises 1.00 s of sound, and|damaged"):
        read_samples(tmp_path / "a.flac")
