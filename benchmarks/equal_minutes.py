"""Clearhead, JoeyNMT and Hugging Face's Seq2SeqTrainer trained for the same minutes on the same pairs.

    python -m benchmarks.equal_minutes --joeynmt PYTHON --transformers PYTHON [--minutes 20] [--only TASK] [--out DIR]

The systems take turns; what was measured before stays in EQUAL.json and is not done again, so it can be stopped at any
time. PYTHON are interpreters that have joeynmt, and transformers with accelerate. All see the same text; ours makes its
own vocabulary, the others get one of the same size by SentencePiece. Beam 5. What is compared is the model after so
many minutes of training, tokenizer, plan and validations included; translating the test set does not count.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceTrainer

from benchmarks.machine import describe
from benchmarks.quality import TASKS
from clearhead.evaluation.scores import edits, error_tokens, score_translations

HERE = Path(__file__).parent
SEEDS = (1, 2)
SYSTEMS = ("clearhead", "joeynmt", "transformers")


@dataclass(frozen=True)
class Race:
    """A task of `benchmarks.quality`, with the vocabulary that the peers get."""

    task: str
    words: int
    model_type: str = "bpe"
    valid: int = 1000  # pairs
    test: int = 1000


RACES = [Race("multi30k-en-de", 4000), Race("tatoeba-en-zh", 4000), Race("g2p-en", 200, "word")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--joeynmt", type=Path, required=True)
    parser.add_argument("--transformers", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--only", choices=[race.task for race in RACES])
    parser.add_argument("--out", type=Path, default=Path("run/equal"))
    arguments = parser.parse_args()
    pythons = {"joeynmt": arguments.joeynmt, "transformers": arguments.transformers}
    for seed, race, system in turns(arguments.only):
        if (seed, race.task, system, arguments.minutes) in {key(found) for found in results()}:
            continue
        corpus = write_corpus(race, arguments.out / race.task)
        out = arguments.out / f"{race.task}-{system}-{seed}-{arguments.minutes:g}"
        print(f"{race.task}, {system}, seed {seed}", file=sys.stderr, flush=True)
        if system == "clearhead":
            lines = ours(race, corpus, arguments.minutes, seed, out)
        else:
            lines = theirs(pythons[system], system, corpus, arguments.minutes, seed, out)
        record(race, system, seed, arguments.minutes, corpus, lines)


def turns(only: str | None) -> Iterator[tuple[int, Race, str]]:
    for seed in SEEDS:
        for race in RACES:
            if only in (None, race.task):
                yield from ((seed, race, system) for system in SYSTEMS)


def write_corpus(race: Race, folder: Path) -> Path:
    """train, valid and test in .src and .tgt, and for the peers a joint vocabulary."""
    task = TASKS[race.task]
    if (folder / "joint.model").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    splits = ("train", task.train, None), ("valid", task.valid, race.valid), ("test", task.tests[0], race.test)
    for name, split, most in splits:
        for file, end in zip(task.files(split), ("src", "tgt"), strict=True):
            lines = file.read_text(encoding="utf-8").split("\n")[:-1]
            (folder / f"{name}.{end}").write_text("".join(f"{line}\n" for line in lines[:most]), encoding="utf-8")
    SentencePieceTrainer.train(
        input=[str(folder / "train.src"), str(folder / "train.tgt")],
        model_prefix=str(folder / "joint"),
        vocab_size=race.words,
        model_type=race.model_type,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        byte_fallback=race.model_type == "bpe",
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    return folder


def ours(race: Race, corpus: Path, minutes: float, seed: int, out: Path) -> list[str]:
    """The defaults, or the recipe where text is not written in words."""
    task = TASKS[race.task]
    source, target = task.ends
    recipe = [task.recipe] if race.model_type == "word" else []
    files = ["--train", str(corpus / "train.src"), str(corpus / "train.tgt")]
    files += ["--valid", str(corpus / "valid.src"), str(corpus / "valid.tgt")]
    languages = [] if recipe else ["--set", f"data.source_language={source}", "--set", f"data.target_language={target}"]
    clearhead = str(Path(sys.executable).with_name("clearhead"))
    options = ["--minutes", f"{minutes:g}", "--set", f"training.seed={seed}", *languages]
    subprocess.run([clearhead, "train", *recipe, *files, *options, "--out", str(out)], check=True)
    command = [clearhead, "translate", str(out), str(corpus / "test.src"), "--beam", "5"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


def theirs(python: Path, system: str, corpus: Path, minutes: float, seed: int, out: Path) -> list[str]:
    module = f"benchmarks.peers.train_{system}"
    subprocess.run([str(python), "-m", module, str(corpus), f"{minutes:g}", str(seed), str(out)], check=True)
    return (out / "test.hyp").read_text(encoding="utf-8").split("\n")[:-1]


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
        "machine": describe(2),
        "samples": lines[:5],
    }
    runs = [*results(), found]
    (HERE / "EQUAL.json").write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (HERE / "EQUAL.md").write_text(page(runs), encoding="utf-8")


ABOUT = """# The same minutes of training, on the same pairs

Written by `python -m benchmarks.equal_minutes`: two cores, sizes of `tiny`, beam 5, the first 1,000 lines of the test
set. BLEU, chrF and exact match are better when higher, the error rate (of words, Chinese characters or phonemes) when
lower."""
HEADER = "| task | system | minutes | seed | BLEU | chrF | error rate | exact match |\n" + "|---" * 8 + "|"


def page(runs: list[dict[str, Any]]) -> str:
    order = [race.task for race in RACES]
    rows = [
        f"| {run['task']} | {run['system']} | {run['minutes']:g} | {run['seed']} | {run['bleu']:.1f} "
        f"| {run['chrf']:.1f} | {run['error_rate']:.1f} | {100 * run['exact_match']:.1f} |"
        for run in sorted(runs, key=lambda run: (order.index(run["task"]), run["minutes"], run["seed"], run["system"]))
    ]
    machine = ", ".join(f"{name} {value}" for name, value in runs[-1]["machine"].items())
    return "\n\n".join([ABOUT, "\n".join([HEADER, *rows]), f"{machine}."]) + "\n"


if __name__ == "__main__":
    main()
