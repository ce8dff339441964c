"""A corpus of speech that a machine makes itself: digit strings and dates, spoken by espeak-ng in many voices.

    python -m clearhead.data.spoken FOLDER

writes FOLDER/{train,valid,test}.tsv and the recordings. Nobody who speaks in valid or test speaks in train. Which
words, voice, speed, pitch and noise a recording has follows from the seed.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clearhead.errors import DISK, USAGE, UserError, exit_code_of
from clearhead.progress import progress

from .speech import RATE, read_samples, resample

SPEAKERS = {  # espeak-ng's variants, which differ in their formants, by the set that they speak in
    "train": "m1 m2 m4 m5 m7 m8 f1 f3 f4 f5 klatt klatt3 Alex Andy Annie Denis Gene Hugo Lee Marco Mike Nguyen adam "
    "anika antonio aunty belinda caleb ed edward grandma iven john linda max miguel norbert pablo rob quincy sandro "
    "shelby steph2 travis victor zac",
    "valid": "m3 Jacky benjamin marcelo",
    "test": "m6 f2 Michael Alicia david robert steph paul",
}
ACCENTS = "en-us en-gb en-gb-scotland en-gb-x-rp en-gb-x-gbclan en-gb-x-gbcwmd en-029"
DIGITS = "zero one two three four five six seven eight nine"
TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
MONTHS = "january february march april may june july august september october november december"
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)


@dataclass(frozen=True)
class Sizes:
    """Recordings in each set."""

    train: int = 5000
    valid: int = 150
    test: int = 300


def make_corpus(folder: Path, sizes: Sizes, seed: int = 1) -> None:
    """The three manifests and their recordings, anew."""
    if shutil.which("espeak-ng") is None:
        message = "espeak-ng is not installed, which speaks the corpus; expected it on the PATH. Next: apt-get install "
        raise UserError("NO_ESPEAK", f"{message}espeak-ng (or brew install espeak-ng)", USAGE)
    done, total = 0, sizes.train + sizes.valid + sizes.test
    with progress("speaking") as bar, tempfile.TemporaryDirectory() as scratch:
        for name, count in (("train", sizes.train), ("valid", sizes.valid), ("test", sizes.test)):
            try:
                (folder / name).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                message = f"cannot make the folder {folder / name}: {error.strerror}; name another one"
                raise UserError("DISK", message, DISK) from error
            lines = []
            for number in range(count):
                rng = random.Random(f"{seed} {name} {number}")
                text, path = sentence(rng), f"{name}/{number:05}.wav"
                _write(folder / path, _speak(text, SPEAKERS[name].split(), rng, Path(scratch) / "spoken.wav"))
                lines.append(f"{path}\t{text}\n")
                done += 1
                bar.update(done, total, "recordings")
            (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def sentence(rng: random.Random) -> str:
    """One to seven digits, or a date or a part of it: from what is short a model learns where to listen."""
    if rng.random() < 0.5:
        return " ".join(rng.choices(DIGITS.split(), k=rng.randint(1, 7)))
    day = f"{rng.choice(MONTHS.split())} {ordinal(rng.randint(1, 31))}"
    written = year(rng.randint(1950, 2049))
    return rng.choice([f"{day} {written}", f"{day} {written}", day, written])


def ordinal(number: int) -> str:
    """Of 1 to 31."""
    if number <= 20:
        return ORDINALS.split()[number - 1]
    if number == 30:
        return "thirtieth"
    return f"{'twenty' if number < 30 else 'thirty'} {ORDINALS.split()[number % 10 - 1]}"


def year(number: int) -> str:
    """Of 1950 to 2049, in two parts, as people say it; but two thousand, two thousand one, …"""
    tens, ones = divmod(number % 100, 10)
    one = f" {DIGITS.split()[ones]}" if ones else ""
    if 2000 <= number < 2010:
        return f"two thousand{one}"
    rest = TEENS.split()[ones] if tens == 1 else TENS.split()[tens - 2] + one
    return f"{'nineteen' if number < 2000 else 'twenty'} {rest}"


def _speak(text: str, speakers: Sequence[str], rng: random.Random, scratch: Path) -> np.ndarray:
    """Samples at 16 kHz: a voice, its speed and pitch, silence around it, and noise."""
    voice = f"{rng.choice(ACCENTS.split())}+{rng.choice(speakers)}"
    speed, pitch = rng.randint(130, 200), rng.randint(25, 75)
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-w", str(scratch), text]
    spoken = subprocess.run(command, capture_output=True, text=True, check=False)
    if spoken.returncode or not scratch.is_file():
        said = spoken.stderr.strip() or "it wrote nothing"
        raise UserError("ESPEAK", f"espeak-ng cannot speak as {voice}: {said}; install its voices anew", USAGE)
    samples = resample(*read_samples(scratch))
    scratch.unlink()
    noise = np.random.default_rng(rng.getrandbits(32))
    silence = [np.zeros(int(RATE * rng.uniform(0.05, 0.3))) for _ in range(2)]
    samples = np.concatenate([silence[0], samples, silence[1]])
    decibels = rng.uniform(15, 40)  # how much louder the voice is
    loudness = np.sqrt(np.mean(samples**2)) * 10 ** (-decibels / 20)
    return samples + noise.normal(0, loudness, len(samples))


def _write(path: Path, samples: np.ndarray) -> None:
    whole = np.clip(samples * 0.7 / max(1e-9, float(np.abs(samples).max())), -1, 1) * 32767
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(whole.astype("<i2").tobytes())


def main(arguments: Sequence[str]) -> int:
    """The command."""
    own = Sizes()
    parser = argparse.ArgumentParser(prog="python -m clearhead.data.spoken", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="where manifests and recordings go")
    parser.add_argument("--train", type=int, default=own.train, help=f"recordings to train on ({own.train})")
    parser.add_argument("--valid", type=int, default=own.valid, help=f"recordings to validate on ({own.valid})")
    parser.add_argument("--test", type=int, default=own.test, help=f"recordings to test on ({own.test})")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    make_corpus(given.folder, Sizes(given.train, given.valid, given.test), given.seed)
    print(f"{given.folder}/train.tsv  valid.tsv  test.tsv")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(lambda: main(sys.argv[1:])))
