"""How long a large corpus takes until training can start, and how much memory.

    python -m benchmarks.prepare_large [PAIRS]        5,000,000 unless told otherwise

Generates short pairs, prepares them as `clearhead train` does, builds the order of one epoch and prints seconds,
pairs per second and the peak of resident memory; the limit is 2 GiB.
"""

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from clearhead.data.batching import epoch_batches
from clearhead.data.options import DataOptions
from clearhead.data.prepare import prepare
from clearhead.progress import progress

LIMIT_MIB = 2048
TOKENS = 4096
WORDS = 50_000  # in the made-up language


def main(pairs: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        files = write_pairs(Path(folder), pairs)
        size = sum(file.stat().st_size for file in files) / 2**20
        say("generated", started, pairs, f"{size:,.0f} MiB of text")
        started = time.perf_counter()
        with progress("preparing") as bar:
            prepared = prepare(
                files,
                [],
                DataOptions(),
                1,
                Path(folder) / "cache",
                lambda what, done: bar.update(done, None, f"pairs, {what}"),
            )
        say("prepared", started, pairs, f"{len(prepared):,} for training, {len(prepared.source_tokenizer):,} pieces")
        started = time.perf_counter()
        lengths = prepared.source.ids.lengths, prepared.target.ids.lengths
        batches = epoch_batches(*lengths, TOKENS, seed=1, epoch=0)
        say("ordered", started, pairs, f"{len(batches):,} batches")
    return 0 if peak_mib() < LIMIT_MIB else 1


def write_pairs(folder: Path, pairs: int) -> list[Path]:
    """Sentences of 3 to 12 made-up words, the frequent ones far more often than the rare."""
    rng = random.Random(1)
    vocabularies = [[made_up(rng) for _ in range(WORDS)] for _ in range(2)]
    files = [folder / "train.en", folder / "train.de"]
    with files[0].open("w", encoding="utf-8") as source, files[1].open("w", encoding="utf-8") as target:
        for _ in range(pairs):
            places = [int(WORDS ** rng.random()) - 1 for _ in range(rng.randint(3, 12))]
            source.write(" ".join([vocabularies[0][place] for place in places]) + "\n")
            target.write(" ".join([vocabularies[1][place] for place in reversed(places)]) + "\n")
    return files


def made_up(rng: random.Random) -> str:
    syllables = (rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 4)))
    return "".join(syllables)


def say(what: str, started: float, pairs: int, more: str) -> None:
    seconds = time.perf_counter() - started
    print(
        f"{what:<10} {seconds:8.1f} s  {pairs / seconds:12,.0f} pairs/s  peak {peak_mib():,.0f} MiB  {more}", flush=True
    )


def peak_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB here
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000))
