"""Recordings -> log-mel features: 80 numbers, or data.mel_bins, for every hundredth of a second.

A recording is mixed to one channel, brought to 16 kHz by a windowed sinc, and to one loudness, so that neither the
microphone nor the distance to it matters. Then, every 10 ms, of 25 ms under a Hann window the energy in triangular
bands that are equally wide in mel, as its logarithm (Davis & Mermelstein 1980 stop one step later).
"""

import io
import math
import wave
from functools import lru_cache
from pathlib import Path

import numpy as np

from .options import DataOptions

RATE = 16_000  # samples per second
SHIFT, WINDOW = 0.010, 0.025  # seconds from frame to frame, and of a frame
FFT = 512  # the next power of two
LOUDNESS = 0.1  # root of the mean square, of a largest value of 1
QUIET = 1e-6  # energy below which bands are alike
ZEROS = 16  # of the sinc on each side
RATES = 4_000, 384_000
KINDS = {  # how a file begins -> what it is
    b"RIFF": "WAV",
    b"fLaC": "FLAC",
    b"OggS": "Ogg",
    b"FORM": "AIFF",
    b"ID3": "MP3",
    b"\xff\xfb": "MP3",
    b"\xff\xf3": "MP3",
}
UNKNOWN_SIZE = 0x7FFFF000  # bytes or more in a header mean: whoever wrote it, into a pipe, did not know


def read_speech(path: Path, options: DataOptions) -> np.ndarray:
    """(frames, mel_bins) of a WAV or FLAC file."""
    samples, rate = read_samples(path)
    return log_mel(level(resample(samples, rate)), options.mel_bins)


def read_samples(path: Path) -> tuple[np.ndarray, int]:
    """One channel, from -1 to 1, and the samples per second; ValueError if it is no such file."""
    content = path.read_bytes()
    kind = _kind(content)
    _require_whole(content)
    if kind == "WAV" and _is_plain(content):
        samples, rate = _plain_wav(content)
    else:
        samples, rate = _by_soundfile(content, kind)
    if not RATES[0] <= rate <= RATES[1]:
        raise ValueError(f"it has {rate} samples per second; {RATES[0]} to {RATES[1]} can be read")
    return samples.mean(axis=1), rate


def resample(samples: np.ndarray, rate: int) -> np.ndarray:
    """At 16 kHz: each new sample is the old ones around it, weighted by a sinc under a Hann window.

    The sinc passes what lies below half of the lower of both rates, so that nothing is folded back.
    """
    if rate == RATE:
        return samples
    cut = min(1.0, RATE / rate)
    reach = math.ceil(ZEROS / cut)  # samples on each side
    around = np.arange(-reach + 1, reach + 1)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(samples, reach), len(around))[1:]
    common = math.gcd(rate, RATE)
    turns, step = RATE // common, rate // common  # after so many new samples and old ones the weights are the same
    found = np.zeros(len(samples) * RATE // rate)
    for turn in range(min(turns, len(found))):
        whole, part = divmod(turn * step, turns)
        distance = part / turns - around  # in old samples
        weights = cut * np.sinc(cut * distance) * (0.5 + 0.5 * np.cos(np.pi * np.clip(distance / reach, -1, 1)))
        places = found[turn::turns]
        places[:] = windows[whole::step][: len(places)] @ weights
    return found


def level(samples: np.ndarray) -> np.ndarray:
    """At the same loudness as every other; silence stays silent."""
    loudness = math.sqrt(float(np.mean(samples**2))) if len(samples) else 0.0
    return samples * (LOUDNESS / loudness) if loudness > 1e-5 else samples


def log_mel(samples: np.ndarray, bins: int) -> np.ndarray:
    """(frames, bins) of samples at 16 kHz."""
    size, shift = round(WINDOW * RATE), round(SHIFT * RATE)
    if len(samples) < size:
        raise ValueError(f"it lasts {len(samples) / RATE:.3f} s, less than one frame of {WINDOW} s")
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[::shift]
    energy = np.abs(np.fft.rfft(frames * np.hanning(size), FFT)) ** 2  # (frames, FFT / 2 + 1)
    return np.log(energy @ mel_bands(bins) + QUIET).astype(np.float32)


@lru_cache(4)
def mel_bands(bins: int) -> np.ndarray:
    """(FFT / 2 + 1, bins): triangles from 0 to 8 kHz, each as high as one, its feet at its neighbours' tops."""
    tops = hertz(np.linspace(0, mel(RATE / 2), bins + 2))
    frequencies = np.linspace(0, RATE / 2, FFT // 2 + 1)[:, None]
    low, top, high = tops[:-2], tops[1:-1], tops[2:]
    rising, falling = (frequencies - low) / (top - low), (high - frequencies) / (high - top)
    bands = np.maximum(0, np.minimum(rising, falling))
    bands.flags.writeable = False
    return bands


def mel(hertz: float | np.ndarray) -> np.ndarray:
    return 2595 * np.log10(1 + np.asarray(hertz) / 700)


def hertz(mel: float | np.ndarray) -> np.ndarray:
    return 700 * (10 ** (np.asarray(mel) / 2595) - 1)


def _kind(content: bytes) -> str:
    """What kind of sound file it is, by how it begins."""
    if not content:
        raise ValueError("it is empty")
    found = next((kind for start, kind in KINDS.items() if content.startswith(start)), None)
    if found is None:
        is_text = not any(byte < 32 and byte not in b"\t\n\r" for byte in content[:1024])
        raise ValueError(f"it is no sound file, {'but text' if is_text else 'or of a kind that is not known here'}")
    return found


def _require_whole(content: bytes) -> None:
    """A WAV file says how much sound it has; less than that was cut off on its way."""
    place = 12
    while content[:4] == b"RIFF" and place + 8 <= len(content):
        name, size = content[place : place + 4], int.from_bytes(content[place + 4 : place + 8], "little")
        if name == b"data":
            there = len(content) - place - 8
            if there < size < UNKNOWN_SIZE:
                raise ValueError(
                    f"it was cut off: its header promises {size:,} bytes of sound, and {there:,} are there"
                )
            break
        place += 8 + size + size % 2


def _is_plain(content: bytes) -> bool:
    """Whether the standard library reads it: whole numbers, not floating point or compressed."""
    try:
        with wave.open(io.BytesIO(content)):
            return True
    except (wave.Error, EOFError):
        return False


def _plain_wav(content: bytes) -> tuple[np.ndarray, int]:
    with wave.open(io.BytesIO(content)) as file:
        rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
        raw = file.readframes(file.getnframes())
    if width not in (1, 2, 3, 4) or not raw or len(raw) % (width * channels):
        raise ValueError(f"it has {len(raw)} bytes of sound, which is nothing or no whole number of samples")
    if width == 1:  # unsigned, as the only one
        whole = np.frombuffer(raw, np.uint8).astype(float) - 128
    elif width == 3:
        parts = np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.int32)
        whole = ((parts[:, 0] << 8 | parts[:, 1] << 16 | parts[:, 2] << 24) >> 8).astype(float)
    else:
        whole = np.frombuffer(raw, f"<i{width}").astype(float)
    return whole.reshape(-1, channels) / 2 ** (8 * width - 1), rate


def _by_soundfile(content: bytes, kind: str) -> tuple[np.ndarray, int]:
    """FLAC, and WAV of other kinds."""
    try:
        import soundfile
    except ImportError as error:
        found = "WAV with anything but whole numbers" if kind == "WAV" else kind
        raise ValueError(f"{found} needs soundfile: pip install 'clearhead[speech]'") from error
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            promised, rate = file.frames, file.samplerate
            samples = file.read(dtype="float64", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise ValueError("it is no sound file that can be read, or it is damaged") from error
    if not len(samples):
        raise ValueError("it has no sound")
    if len(samples) < promised < UNKNOWN_SIZE:
        seconds = f"{promised / rate:.2f} s of sound, and {len(samples) / rate:.2f} s"
        raise ValueError(f"it was cut off: its header promises {seconds} are there")
    return samples, rate
