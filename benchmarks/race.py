"""Minutes of training to a given BLEU: each system trained for a few minutes, then anew for longer."""

import sys
import tempfile
from pathlib import Path

from benchmarks.machine import THREADS
from benchmarks.peers import PeerError
from benchmarks.results import Cell, Column, Table
from benchmarks.sample import sample
from benchmarks.trainers import SYSTEMS, Vocabulary, train, write_corpus
from clearhead.evaluation.scores import score_translations

ASKS = "How soon is a model useful?"
LADDER = (1.5, 3.0)  # minutes
WANTED = 15.0  # BLEU
TEST, SEED = 200, 1
ABOUT = f"""{{corpus}}, the first {TEST} lines, beam 5, one run of each (seed {SEED}), sizes of `tiny`, {THREADS}
threads. A run of so many minutes has a schedule that fits them: ours by `--minutes`, theirs by two short runs before
it, which do not count. Reading, our tokenizer, plan and validations do; translating does not. These are the minutes of
the first run that reached BLEU {WANTED:g}. Longer runs are in [QUALITY.md](QUALITY.md), and
`python -m benchmarks.equal_minutes` makes more."""


def measure(quick: bool) -> list[Table]:
    corpus = sample()
    ladder = (0.3,) if quick else LADDER
    splits = {
        "train": (corpus.train, None),
        "valid": (corpus.valid, TEST),
        "test": (corpus.test, 20 if quick else TEST),
    }
    languages = [f"data.source_language={corpus.languages[0]}", f"data.target_language={corpus.languages[1]}"]
    extra = ["--preset", "tiny", *(word for option in languages for word in ("--set", option))]
    rows: dict[str, dict[str, Cell]] = {system: {} for system in SYSTEMS}
    errors: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        vocabulary = Vocabulary(4000 if corpus.languages == ("en", "de") else 300)
        folder = write_corpus(Path(scratch) / "corpus", splits, vocabulary)
        references = (folder / "test.tgt").read_text(encoding="utf-8").split("\n")[:-1]
        for minutes in ladder:
            for system in [name for name in SYSTEMS if name not in errors]:
                out = Path(scratch) / f"{SYSTEMS[system] or 'clearhead'}-{minutes:g}"
                try:
                    lines = train(system, folder, minutes, SEED, out, extra)
                except PeerError as error:
                    errors[system] = str(error)
                    print(f"{system} {error}", file=sys.stderr, flush=True)
                    continue
                bleu = score_translations(lines, references, corpus.languages[1]).bleu
                rows[system][f"BLEU in {minutes:g} minutes"] = [bleu]
    wanted = Column(f"minutes to BLEU {WANTED:g}")
    for cells in rows.values():
        cells[wanted.name] = first_reaching(cells, ladder)
    columns = [*(Column(f"BLEU in {minutes:g} minutes") for minutes in ladder), wanted]
    finished = {system: cells for system, cells in rows.items() if system not in errors}
    return [Table("", columns, finished, errors=errors, about=ABOUT.format(corpus=corpus.name))]


def first_reaching(cells: dict[str, Cell], ladder: tuple[float, ...]) -> str:
    for minutes in ladder:
        found = cells.get(f"BLEU in {minutes:g} minutes")
        if isinstance(found, list) and found[0] >= WANTED:
            return f"{minutes:g}"
    return f"more than {ladder[-1]:g}"
