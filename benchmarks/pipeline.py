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
from clearhead.versions import has_bfloat16

ASKS = "How fast does it train from files?"
OURS = {
    "Clearhead": [],
    "Clearhead, Adam": ["training.optimizer=adam"],
    "Clearhead, Adam, float32": ["training.optimizer=adam", "training.precision=float32"],
}
PEERS = {system: (system, False) for system in SYSTEMS if system != "Clearhead"}
LOW_PEERS = {"transformers, bfloat16": ("transformers", True)}
PAIRS, TOKENS = 128, 2048  # of a batch, where the peer counts pairs or tokens
SPEED = Column("target tokens/s", HIGHER)
ABOUT = f"""{{corpus}}, {{words:,}} words for both sides together, batches of {TOKENS:,} tokens or {PAIRS} pairs,
{THREADS} threads: the time of {MORE - FEW} updates of each system's own trainer after the first {FEW}, with all that it
does to make batches of text. Our processes, threads, precision (bfloat16 where it is measured to be faster) and
optimizer (Muon, which costs time and saves steps) are the defaults; further rows are ours with Adam, which the others
have, and in float32, as theirs are unless told otherwise. Of transformers there is a row with its own `bf16` where the
CPU multiplies that."""


def measure(quick: bool) -> list[Table]:
    names = ["tiny"] if quick else ["tiny", "small"]
    return [measure_size(name, 1 if quick else 3, first=name == names[0]) for name in names]


def measure_size(name: str, rounds: int, first: bool) -> Table:
    corpus = sample()
    words = 4000 if corpus.languages == ("en", "de") else 300
    peers = {**PEERS, **(LOW_PEERS if has_bfloat16() else {})}
    speeds: dict[str, list[float]] = {system: [] for system in (*OURS, *peers)}
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
                try:
                    if system in OURS:
                        speeds[system].append(our_pace(ours, [*options, *OURS[system]], MORE, out)[0])
                    else:
                        peer, low = peers[system]
                        speeds[system].append(pace(peer, folder, replace(sizes, low=low), out))
                except PeerError as error:
                    errors[system] = str(error)
                    print(f"{system} {error}", file=sys.stderr, flush=True)
    rows: dict[str, dict[str, Cell]] = {
        system: {SPEED.name: each} for system, each in speeds.items() if system not in errors
    }
    about = ABOUT.format(corpus=corpus.name, words=words) if first else ""
    return Table(f"`{name}`", [SPEED], rows, list(OURS), errors, about)
