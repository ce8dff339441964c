"""Clearhead and its peers trained for the same minutes on the same pairs, on several tasks and with two seeds.

    python -m benchmarks.equal_minutes [--minutes 20] [--only TASK] [--system SYSTEM] [--seed SEED] [--out DIR]

The systems take turns; what was measured before stays in EQUAL.json and is not done again, so it can be stopped at any
time. How many updates fit is settled at the start of each run and kept in its folder: a run that was stopped afterwards
makes just as many, on however many cores. A peer that cannot be installed or fails is said and left out.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.peers import PeerError
from benchmarks.quality import TASKS
from benchmarks.quality_table import BLEU, MEASURES, OURS, written
from benchmarks.trainers import SYSTEMS, Vocabulary, train, write_corpus
from clearhead.evaluation.significance import Counts, count, p_value

HERE = Path(__file__).parent
SEEDS = (1, 2)
PAIRS = 1000  # of validation and test
HYPOTHESES = "test.hyp"  # in the folder of a run: what the model says of the test set


@dataclass(frozen=True)
class Race:
    """A task of `benchmarks.quality`, with the vocabulary that the peers get."""

    task: str
    vocabulary: Vocabulary

    def write(self, folder: Path) -> Path:
        task = TASKS[self.task]
        return write_corpus(
            folder,
            {
                "train": (task.files(task.train), None),
                "valid": (task.files(task.valid), PAIRS),
                "test": (task.files(task.tests[0]), PAIRS),
            },
            self.vocabulary,
        )

    def words_of_ours(self) -> list[str]:
        """The defaults, or the recipe where text is not written in words."""
        task = TASKS[self.task]
        if self.vocabulary.model_type == "word":
            return [task.recipe]
        source, target = task.ends
        return ["--set", f"data.source_language={source}", "--set", f"data.target_language={target}"]


RACES = [
    Race("multi30k-en-de", Vocabulary(4000)),
    Race("tatoeba-en-zh", Vocabulary(4000)),
    Race("g2p-en", Vocabulary(200, "word")),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--only", choices=[race.task for race in RACES])
    parser.add_argument("--system", choices=SYSTEMS)
    parser.add_argument("--seed", type=int, choices=SEEDS)
    parser.add_argument("--out", type=Path, default=Path("run/equal"))
    arguments = parser.parse_args()
    for seed, race, system in turns(arguments.only, arguments.system, arguments.seed):
        if (seed, race.task, system, arguments.minutes) in {key(found) for found in results()}:
            continue
        corpus = race.write(arguments.out.absolute() / race.task)
        out = arguments.out.absolute() / f"{race.task}-{system}-{seed}-{arguments.minutes:g}"
        print(f"{race.task}, {system}, seed {seed}", file=sys.stderr, flush=True)
        try:
            lines = train(system, corpus, arguments.minutes, seed, out, race.words_of_ours())
        except PeerError as error:
            print(f"{system} {error}", file=sys.stderr, flush=True)
            continue
        (out / HYPOTHESES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        record(judged(race, system, seed, arguments.minutes, corpus, out))


def turns(task: str | None, only: str | None, number: int | None) -> Iterator[tuple[int, Race, str]]:
    for seed in SEEDS if number is None else (number,):
        for race in RACES:
            if task in (None, race.task):
                yield from ((seed, race, system) for system in SYSTEMS if only in (None, system))


def results() -> list[dict[str, Any]]:
    path = HERE / "EQUAL.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def key(found: dict[str, Any]) -> tuple[int, str, str, float]:
    return found["seed"], found["task"], found["system"], found["minutes"]


def judged(race: Race, system: str, seed: int, minutes: float, corpus: Path, out: Path) -> dict[str, Any]:
    """The scores of a run, and, where another system's run of the same seed lies beside it, how likely chance alone
    would set them so far apart."""
    task, measure = race.task, MEASURES.get(race.task, BLEU).of
    counts = counted(task, corpus, out)
    others = {other: out.with_name(f"{task}-{other}-{seed}-{minutes:g}") for other in SYSTEMS if other != system}
    rivals = {
        other: counted(task, corpus, folder) for other, folder in others.items() if (folder / HYPOTHESES).exists()
    }
    return {
        "task": task,
        "system": system,
        "seed": seed,
        "minutes": minutes,
        "updates": updates(out),
        **{name: counts[name].score for name in ("bleu", "chrf", "error_rate", "exact_match")},
        "p": {other: p_value(counts[measure], theirs[measure]) for other, theirs in rivals.items()},
        "signature": counts["bleu"].signature,
        "machine": describe(),
        "samples": read(out / HYPOTHESES)[:5],
    }


def counted(task: str, corpus: Path, out: Path) -> dict[str, Counts]:
    return count(read(out / HYPOTHESES), read(corpus / "test.tgt"), TASKS[task].ends[1])


def read(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


def updates(out: Path) -> int:
    """As our plan has them, or a peer's script."""
    plan = out / "plan.json"
    if plan.exists():
        return json.loads(plan.read_text(encoding="utf-8"))["steps"]
    return int((out / "updates.txt").read_text(encoding="utf-8"))


def record(found: dict[str, Any]) -> None:
    runs = [*[run for run in results() if key(run) != key(found)], found]
    (HERE / "EQUAL.json").write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (HERE / "EQUAL.md").write_text(page(runs), encoding="utf-8")


ABOUT = """# The same minutes of training, on the same pairs

Written by `python -m benchmarks.equal_minutes`: two cores, sizes of `tiny`, beam 5, the first 1,000 lines of the test
set. How many updates fit into the minutes is measured on both cores before each run, ours and theirs, and not corrected
if the machine turns out slower or faster: [LOG.md](LOG.md) has the runs that took far longer. BLEU, chrF and exact
match are better when higher, the error rate (of words, Chinese characters or phonemes) when lower; p is how likely
chance alone would set it and Clearhead's run of this seed so far apart (approximate randomisation, by BLEU, for g2p by
the error rate)."""
COLUMNS = ["task", "system", "minutes", "seed", "updates", "BLEU", "chrF", "error rate", "exact match", "p", "CPU"]


def page(runs: list[dict[str, Any]]) -> str:
    order = [race.task for race in RACES]
    in_order = sorted(runs, key=lambda run: (order.index(run["task"]), run["minutes"], run["seed"], run["system"]))
    rows = [
        COLUMNS,
        ["---"] * len(COLUMNS),
        *([*cells(run), apart(run, runs), run["machine"]["cpu"]] for run in in_order),
    ]
    machine = "The last run: " + ", ".join(f"{name} {value}" for name, value in runs[-1]["machine"].items())
    return "\n\n".join([ABOUT, written(rows), f"{machine}."]) + "\n"


def cells(run: dict[str, Any]) -> list[str]:
    updates = f"{run['updates']:,}" if "updates" in run else "–"  # older runs did not keep it
    scores = [run["bleu"], run["chrf"], run["error_rate"], 100 * run["exact_match"]]
    who = [run["task"], run["system"], f"{run['minutes']:g}", str(run["seed"])]
    return [*who, updates, *(f"{score:.1f}" for score in scores)]


def apart(run: dict[str, Any], runs: list[dict[str, Any]]) -> str:
    """Ours and a peer's: whichever was judged later has it."""
    ours = next((other for other in runs if key(other) == key({**run, "system": OURS})), {})
    p = run.get("p", {}).get(OURS, ours.get("p", {}).get(run["system"]))
    return "–" if p is None else f"{p:.4f}"


if __name__ == "__main__":
    main()
