"""Training on real text by the command line, and what the model says of test sets it has not seen.

    python -m benchmarks.quality multi30k-tok-en-de --minutes 60 [--seed 1] [--set model.dropout=0.3 …]

Each run is added to QUALITY.json, of which QUALITY.md is written, with the curve of validation BLEU over the minutes.
A run that was interrupted goes on where it stopped: the same command again.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.quality_table import written
from clearhead.evaluation.report import evaluate
from clearhead.figures import chart
from clearhead.training.report import Log

DATA = Path(__file__).parents[2] / "shared" / "data"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Task:
    """A corpus with its test sets; `recipe` is empty for the defaults alone."""

    folder: str
    ends: tuple[str, str]
    tests: tuple[str, ...] = ("test",)
    train: str = "train"
    valid: str = "valid"  # empty: some pairs of the training text
    recipe: str = ""
    tokenize: str | None = None  # BLEU's, if it is not the language's own

    def files(self, split: str) -> list[Path]:
        return [DATA / self.folder / f"{split}.{end}" for end in self.ends]


FLICKR = ("test_2016_flickr", "test_2017_flickr")
TASKS = {
    "multi30k-tok-en-de": Task("multi30k-tok", ("en", "de"), FLICKR, recipe="multi30k-en-de", tokenize="none"),
    "multi30k-en-de": Task("multi30k", ("en", "de"), FLICKR),
    "multi30k-de-en": Task("multi30k", ("de", "en"), FLICKR),
    "multi30k-en-fr": Task("multi30k", ("en", "fr"), FLICKR),
    "tatoeba-en-zh": Task("tatoeba-en-zh", ("en", "zh"), recipe="tatoeba-en-zh"),
    "tatoeba-en-de": Task("tatoeba-en-de", ("en", "de"), recipe="tatoeba-en-de"),
    "g2p-en": Task("g2p-en", ("graph", "phon"), recipe="g2p-en"),
    "scan-simple": Task("scan", ("cmd", "act"), ("simple.test",), "simple.train", "", recipe="scan"),
    "scan-length": Task("scan", ("cmd", "act"), ("length.test",), "length.train", "", recipe="scan"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--minutes", type=float, help="else as many steps as the recipe or the defaults say")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="an option in place of the recipe's")
    parser.add_argument("--defaults", action="store_true", help="without the task's recipe")
    parser.add_argument("--out", type=Path, default=Path("run"), help="where the runs' folders are")
    arguments = parser.parse_args()
    task = TASKS[arguments.task]
    options = [f"training.seed={arguments.seed}", *arguments.set]
    recipe = "" if arguments.defaults else task.recipe
    command = ["clearhead", "train", *([recipe] if recipe else []), "--train", *map(str, task.files(task.train))]
    command += ["--valid", *map(str, task.files(task.valid))] if task.valid else []
    command += ["--minutes", f"{arguments.minutes:g}"] if arguments.minutes else []
    command += [word for option in options for word in ("--set", option)]
    out = arguments.out / "-".join([arguments.task, recipe or "defaults", *options, f"{arguments.minutes or 0:g}"])
    curve = train([str(Path(sys.executable).with_name("clearhead")), *command[1:], "--out", str(out)], out)
    found = {
        "task": arguments.task,
        "command": shlex.join(command).replace(f"{DATA}/", ""),
        "seed": arguments.seed,
        "minutes": round(curve[-1][0], 1),
        "cpu_minutes": round(sum(os.times()[2:4]) / 60, 1),  # of all processes together, on a machine with other work
        "steps": json.loads((out / "plan.json").read_text(encoding="utf-8"))["steps"],
        "machine": describe(),
        "tests": {test: scores(out, task, test) for test in task.tests},
        "curve": curve,
    }
    record(found)


def train(command: list[str], out: Path) -> list[list[float]]:
    """Minutes and validation BLEU at each validation; the last is the time of the whole."""
    started = time.perf_counter()
    seen = {event["step"] for event in validations(out)}
    curve: list[list[float]] = []
    with subprocess.Popen(command) as process:
        while True:
            ended = process.poll() is not None
            for event in validations(out):
                if event["step"] not in seen:
                    seen.add(event["step"])
                    curve.append([(time.perf_counter() - started) / 60, event["bleu"]])
            if ended:
                break
            time.sleep(2)
    if process.returncode:
        raise SystemExit(process.returncode)
    return [*curve, [(time.perf_counter() - started) / 60, curve[-1][1] if curve else 0.0]]


def validations(out: Path) -> list[dict[str, Any]]:
    log = out / "log.jsonl"
    return [event for event in Log(log).events() if "bleu" in event] if log.exists() else []


def scores(run: Path, task: Task, test: str) -> dict[str, Any]:
    found = evaluate(run, task.files(test), tokenize=task.tokenize).to_dict()
    names = ("bleu", "chrf", "ter", "error_rate", "exact_match", "intervals", "signatures", "beam", "engine")
    return {name: found[name] for name in names}


def record(found: dict[str, Any]) -> None:
    path = HERE / "QUALITY.json"
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    runs = [*[run for run in runs if (run["command"], run["machine"]) != (found["command"], found["machine"])], found]
    path.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (HERE / "QUALITY.md").write_text(page(runs), encoding="utf-8")
    for task in TASKS:
        curves = {f"{run['minutes']:.0f} min": run["curve"] for run in runs if run["task"] == task}
        if curves:
            (HERE / f"quality-{task}.svg").write_text(chart(dict(list(curves.items())[-4:])), encoding="utf-8")
    print(page([found]))


ABOUT = """# What models learn here in minutes

Written by `python -m benchmarks.quality`; the plots show validation BLEU (greedy, 200 pairs) over minutes. Data:
`../shared/data`, see its README. BLEU and exact match are in per cent, intervals of 95 % by bootstrap in brackets; the
error rate is that of words, characters or phonemes."""
COLUMNS = [
    "minutes",
    "seed",
    "steps",
    "test set",
    "BLEU",
    "chrF",
    "error rate",
    "exact match",
    "CPU, commit",
    "command",
]


def page(runs: list[dict[str, Any]]) -> str:
    parts = [ABOUT]
    for task in TASKS:
        mine = [run for run in runs if run["task"] == task]
        if not mine:
            continue
        rows = [COLUMNS, ["---"] * len(COLUMNS)]
        rows += [cells(run, test, found) for run in mine for test, found in run["tests"].items()]
        signature = next(iter(mine[-1]["tests"].values()))["signatures"]["bleu"]
        machine = ", ".join(f"{name} {value}" for name, value in mine[-1]["machine"].items())
        parts += [f"## {task}", written(rows), f"BLEU: {signature}. The last run: {machine}."]
        parts.append(f"![BLEU over minutes](quality-{task}.svg)")
    return "\n\n".join(parts) + "\n"


def cells(run: dict[str, Any], test: str, found: dict[str, Any]) -> list[str]:
    low, high = found["intervals"]["bleu"]
    return [
        f"{run['minutes']:.1f}",
        str(run["seed"]),
        f"{run['steps']:,}",
        test,
        f"{found['bleu']:.1f} ({low:.1f}–{high:.1f})",
        f"{found['chrf']:.1f}",
        f"{found['error_rate']:.1f}",
        f"{100 * found['exact_match']:.1f}",
        f"{run['machine']['cpu']}, {run['machine']['commit']}",
        f"`{run['command']}`",
    ]


if __name__ == "__main__":
    main()
