"""Target tokens per second of whole training runs: files, batches, steps, as each system's own trainer does it."""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.machine import THREADS
from benchmarks.peers import FEW, MORE, PeerError
from benchmarks.results import HIGHER, Cell, Column, Table
from benchmarks.sample import sample
from benchmarks.trainers import SYSTEMS, Vocabulary, our_pace, pace, write_corpus
from benchmarks.training import sizes_of

ASKS = "How fast does it train from files?"
PEERS = [system for system in SYSTEMS if system != "Clearhead"]
PAIRS, TOKENS = 128, 2048  # of a batch, where the peer counts pairs or tokens
SPEED = Column("target tokens/s", HIGHER)
ABOUT = f"""{{corpus}}, {{words:,}} words for both sides together, batches of {TOKENS:,} tokens or {PAIRS} pairs,
{THREADS} threads: the time of {MORE - FEW} updates of each system's own trainer after the first {FEW}, with all that it
does to make batches of text. Our processes, threads and optimizer (Muon, which costs time and saves steps) are the
defaults; the second row is ours with Adam, which the others have."""


def measure(quick: bool) -> list[Table]:
    names = ["tiny"] if quick else ["tiny", "small"]
    return [measure_size(name, 1 if quick else 3, first=name == names[0]) for name in names]


def measure_size(name: str, rounds: int, first: bool) -> Table:
    corpus = sample()
    words = 4000 if corpus.languages == ("en", "de") else 300
    speeds: dict[str, list[float]] = {"Clearhead": [], "Clearhead, Adam": [], **{peer: [] for peer in PEERS}}
    errors: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        splits = {"train": (corpus.train, None), "valid": (corpus.valid, 20), "test": (corpus.test, 20)}
        folder = write_corpus(Path(scratch) / "corpus", splits, Vocabulary(words))
        files = [str(folder / f"{split}.{end}") for split in ("train", "valid") for end in ("src", "tgt")]
        ours = ["--preset", name, "--train", *files[:2], "--valid", *files[2:]]
        options = [f"training.tokens_per_batch={TOKENS}", "data.joint=true", f"data.vocabulary={words}"]
        sizes = replace(sizes_of(name, words), pairs=PAIRS)
        for turn in range(rounds):
            for system in [one for one in speeds if one not in errors]:
                out = Path(scratch) / f"{system}-{turn}"
                adam = ["training.optimizer=adam"] if "Adam" in system else []
                try:
                    if system in PEERS:
                        speeds[system].append(pace(system, folder, sizes, out))
                    else:
                        speeds[system].append(our_pace(ours, [*options, *adam], MORE, out)[0])
                except PeerError as error:
                    errors[system] = str(error)
                    print(f"{system} {error}", file=sys.stderr, flush=True)
    rows: dict[str, dict[str, Cell]] = {
        system: {SPEED.name: each} for system, each in speeds.items() if system not in errors
    }
    about = ABOUT.format(corpus=corpus.name, words=words) if first else ""
    return Table(f"`{name}`", [SPEED], rows, ["Clearhead", "Clearhead, Adam"], errors, about)
