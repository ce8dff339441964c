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
from benchmarks.trainers import SYSTEMS, Vocabulary, train, write_corpus
from clearhead.evaluation.scores import edits, error_tokens, score_translations

HERE = Path(__file__).parent
SEEDS = (1, 2)
PAIRS = 1000  # of validation and test


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
        record(race, system, seed, arguments.minutes, corpus, lines)


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


def record(race: Race, system: str, seed: int, minutes: float, corpus: Path, lines: list[str]) -> None:
    references = (corpus / "test.tgt").read_text(encoding="utf-8").split("\n")[:-1]
    language = TASKS[race.task].ends[1]
    scores = score_translations(lines, references, language)
    words = [[error_tokens(line, language) for line in side] for side in (lines, references)]
    wrong = sum(edits(found, wanted) for found, wanted in zip(*words, strict=True))
    found = {
        "task": race.task,
        "system": system,
        "seed": seed,
        "minutes": minutes,
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "error_rate": 100 * wrong / max(1, sum(map(len, words[1]))),
        "exact_match": scores.exact_match,
        "signature": scores.signatures["bleu"],
        "machine": describe(),
        "samples": lines[:5],
    }
    runs = [*results(), found]
    (HERE / "EQUAL.json").write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (HERE / "EQUAL.md").write_text(page(runs), encoding="utf-8")


ABOUT = """# The same minutes of training, on the same pairs

Written by `python -m benchmarks.equal_minutes`: two cores, sizes of `tiny`, beam 5, the first 1,000 lines of the test
set. How many updates fit into the minutes is measured on both cores before each run, ours and theirs, and not corrected
if the machine turns out slower or faster: [LOG.md](LOG.md) has the runs that took far longer. BLEU, chrF and exact
match are better when higher, the error rate (of words, Chinese characters or phonemes) when lower."""
HEADER = "| task | system | minutes | seed | BLEU | chrF | error rate | exact match | CPU |\n" + "|---" * 9 + "|"


def page(runs: list[dict[str, Any]]) -> str:
    order = [race.task for race in RACES]
    rows = [
        f"| {run['task']} | {run['system']} | {run['minutes']:g} | {run['seed']} | {run['bleu']:.1f} "
        f"| {run['chrf']:.1f} | {run['error_rate']:.1f} | {100 * run['exact_match']:.1f} | {run['machine']['cpu']} |"
        for run in sorted(runs, key=lambda run: (order.index(run["task"]), run["minutes"], run["seed"], run["system"]))
    ]
    machine = "The last run: " + ", ".join(f"{name} {value}" for name, value in runs[-1]["machine"].items())
    return "\n\n".join([ABOUT, "\n".join([HEADER, *rows]), f"{machine}."]) + "\n"


if __name__ == "__main__":
    main()
