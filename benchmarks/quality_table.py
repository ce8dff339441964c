"""The short table of what models learn here, for the READMEs, from QUALITY.json and EQUAL.json."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

QUALITY, EQUAL = "QUALITY.json", "EQUAL.json"
OURS = "Clearhead"
Run = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """How a task's translations are judged; `of` is what it is called in the files, times `factor` in per cent."""

    of: str
    english: str
    chinese: str
    factor: float = 1.0


BLEU = Measure("bleu", "BLEU", "BLEU")
PHONEMES = Measure("error_rate", "% of phonemes wrong", "% 音素错误")
EXACT = Measure("exact_match", "% exactly right", "% 完全正确", 100.0)
MEASURES = {"g2p-en": PHONEMES, "scan-simple": EXACT, "scan-length": EXACT}


def quality_table(runs: Sequence[Run], is_chinese: bool) -> str:
    """Of each task the run that was best in its last validation: the test sets have no say in it."""
    header = (
        ["数据", "分钟", "CPU", "测试集", "结果"] if is_chinese else ["corpus", "minutes", "CPU", "test set", "result"]
    )
    rows = [header, ["---"] * len(header)]
    for task in dict.fromkeys(run["task"] for run in runs):
        measure = MEASURES.get(task, BLEU)
        best = max((run for run in runs if run["task"] == task), key=lambda run: run["curve"][-1][1])
        for i, (test, found) in enumerate(best["tests"].items()):
            low, high = (measure.factor * edge for edge in found["intervals"][measure.of])
            result = f"{measure.factor * found[measure.of]:.1f} ({low:.1f}–{high:.1f}) {_name(measure, is_chinese)}"
            tokens = re.search(r"tok:[\w-]+", found["signatures"]["bleu"]) if measure is BLEU else None
            result += f", {tokens[0]}" if tokens else ""
            about = [task, f"{best['minutes']:.0f}", best["machine"]["cpu"]]
            rows.append([*([""] * 3 if i else about), test, result])
    return written(rows)


def _name(measure: Measure, is_chinese: bool) -> str:
    return measure.chinese if is_chinese else measure.english


def equal_table(runs: Sequence[Run], is_chinese: bool) -> str:
    """The same minutes for everybody: the mean of the seeds, of which there are n. Ours is the first column.

    A seed that only one system has run is left out: the others' may be from a slower machine.
    """
    raced = Counter((run["task"], run["minutes"], run["seed"]) for run in runs)
    runs = [run for run in runs if raced[run["task"], run["minutes"], run["seed"]] > 1]
    systems = sorted(dict.fromkeys(run["system"] for run in runs), key=lambda system: system != OURS)
    rows = [[*(["数据", "分钟"] if is_chinese else ["corpus", "minutes"]), *systems], ["---"] * (2 + len(systems))]
    for task, minutes in dict.fromkeys((run["task"], run["minutes"]) for run in runs):
        measure = MEASURES.get(task, BLEU)
        cells = []
        for system in systems:
            key = task, minutes, system
            found = [run[measure.of] for run in runs if (run["task"], run["minutes"], run["system"]) == key]
            cells.append(f"{measure.factor * mean(found):.1f} (n={len(found)})" if found else "–")
        rows.append([f"{task}, {_name(measure, is_chinese)}", f"{minutes:g}", *cells])
    return written(rows)


def written(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
