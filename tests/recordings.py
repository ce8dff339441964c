"""Recordings that need no voice: tones that spell words, and series of numbers that mean one."""

import wave
from pathlib import Path

import numpy as np

TONES = {"a": 400, "b": 700, "c": 1100, "d": 1700}  # hertz
LENGTH = 0.12  # seconds of a tone


def write_wav(path: Path, samples: np.ndarray, rate: int = 16_000, width: int = 2, channels: int = 1) -> Path:
    """Samples from -1 to 1, (time,) or (time, channels)."""
    largest = 2 ** (8 * width - 1) - 1
    whole = np.round(samples * largest).astype(np.int64).reshape(-1)
    raw = (whole + 128).astype(np.uint8).tobytes() if width == 1 else whole.astype("<i8").tobytes()
    if width > 1:
        raw = np.frombuffer(raw, np.uint8).reshape(-1, 8)[:, :width].tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(raw)
    return path


def tone(hertz: float, seconds: float, rate: int = 16_000) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def melody(words: str, rate: int = 8_000) -> np.ndarray:
    """A tone for each word, with a rest after it, and the same noise always."""
    rest = np.zeros(round(0.04 * rate))
    tones = np.concatenate([part for word in words.split() for part in (tone(TONES[word], LENGTH, rate), rest)])
    return 0.9 * tones + np.random.default_rng(2).normal(0, 0.005, len(tones))


def write_melodies(folder: Path, count: int, seed: int = 3) -> Path:
    """A manifest of one to three different words, and their recordings, each of another loudness."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    lines = ["path\ttext\n"]
    for number in range(count):
        words = " ".join(rng.permutation(list(TONES))[: rng.integers(1, 4)])
        samples = melody(words) * rng.uniform(0.2, 1.0)
        write_wav(folder / f"{number}.wav", samples + rng.normal(0, 0.005, len(samples)), 8_000)
        lines.append(f"{number}.wav\t{words}\n")
    (folder / "melodies.tsv").write_text("".join(lines), encoding="utf-8")
    return folder / "melodies.tsv"


def write_series(folder: Path, count: int, ending: str, seed: int = 5) -> Path:
    """A manifest of slow and fast waves of two features, which are labelled as such."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        label = ("slow", "fast", "flat")[int(rng.integers(3))]
        turns = {"slow": 0.1, "fast": 0.9, "flat": 0.0}[label] * np.arange(int(rng.integers(20, 31)))
        steps = 100 + np.stack([np.sin(turns), np.cos(turns)], axis=1) + rng.normal(0, 0.05, (len(turns), 2))
        path = folder / f"{number}.{ending}"
        if ending == "npy":
            np.save(path, steps)
        else:
            rows = "".join(f"{left},{right}\n" for left, right in steps)
            path.write_text(f"left,right\n{rows}", encoding="utf-8")
        lines.append(f"{path.name}\t{label}\n")
    (folder / "series.tsv").write_text("".join(lines), encoding="utf-8")
    return folder / "series.tsv"
