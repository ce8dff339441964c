"""Confidence, by benchmarks/confidence.py, whose numbers of the judged tree are held against what is asked."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from benchmarks.faithful.corpora import CORPORA, DATA
from benchmarks.faithful.measures import Asked, Found, Row, signed
from benchmarks.faithful.system import System

MODELS = ("ende", "enzh", "m30k")
HOME = Path(__file__).parents[1] / "confidence.py"
LINES = 1000
APART, SURELY = 0.95, 0.95  # AUROC; share of nonsense below 0.1
ERROR, WORSE = 0.05, 0.01  # expected calibration error; how much more than before on the validation set
NONSENSE = ("random pieces", "another language")
SHIFTED = ("typos", "capitals")
DOMAIN = "domain "
BINS = 10
# In a process with the judged tree on its path; the file is loaded by its place, as that tree may not have it.
TELL = """
import importlib.util, json, pathlib, sys
spec = importlib.util.spec_from_file_location("confidence", sys.argv[1])
module = sys.modules["confidence"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
asked = json.load(sys.stdin)
languages = module.other_languages(pathlib.Path(asked["data"]), asked["each"])
found = module.measure_confidence(pathlib.Path(asked["model"]), asked["own"], languages, asked["others"])
print("\\n" + json.dumps(found))
"""


def measure(asked: Asked) -> Found:
    """Nothing if there is no benchmarks/confidence.py."""
    if not HOME.exists():
        return Found()
    lines = asked.many(LINES)
    languages = CORPORA[asked.name].languages
    others = {
        name: corpus.pairs()[:lines]
        for name, corpus in CORPORA.items()
        if name != asked.name and corpus.languages == languages
    }
    given = {
        "model": str(asked.system.model),
        "data": str(DATA),
        "each": max(1, lines // 3),
        "own": CORPORA[asked.name].pairs()[:lines],
        "others": others,
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", TELL, str(HOME)],
        input=json.dumps(given),
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(asked.system.tree)},
        check=True,
    )
    found = Found(rows_of(json.loads(done.stdout.splitlines()[-1])))
    valid = CORPORA[asked.name].pairs("valid")[:lines]
    here = error_of(asked.system, valid)
    if asked.before is None:
        found.rows.append(Row("calibration error on the validation set", f"{here:.3f}"))
    else:
        there = error_of(asked.before, valid)
        about = "calibration error on the validation set (at most 0.01 above the tree before)"
        found.rows.append(Row(about, f"{here:.3f} ({signed(here - there)})", here <= there + WORSE))
    return found


def rows_of(found: dict[str, Any]) -> list[Row]:
    rows = []
    for name in (name for name in NONSENSE if name in found):
        auroc, below = found[name]["auroc"], found[name]["below"]
        rows += [
            Row(f"AUROC between clean text and {name} (at least 0.95)", f"{auroc:.3f}", auroc >= APART),
            Row(f"{name} with a confidence below 0.1 (at least 95 %)", f"{100 * below:.1f} %", below >= SURELY),
        ]
    for name in (name for name in found if name in SHIFTED or name.startswith(DOMAIN)):
        error = found[name]["ece"]
        rows.append(Row(f"calibration error of {name} (at most 0.05)", f"{error:.3f}", error <= ERROR))
    for name, numbers in found.items():
        if "ece" in numbers and not (name in SHIFTED or name.startswith(DOMAIN)):
            rows.append(Row(f"calibration error of {name}", f"{numbers['ece']:.3f}"))
        elif "auroc" in numbers and name not in NONSENSE:
            rows.append(Row(f"AUROC between clean text and {name}", f"{numbers['auroc']:.3f}"))
    return rows


def error_of(system: System, pairs: list[tuple[str, str]]) -> float:
    """The mean distance of confidence and chrF over bins of as many lines each, in order of confidence."""
    said = system.translate([source for source, _ in pairs])
    chrf = CHRF()
    quality = np.array(
        [chrf.sentence_score(one.text, [right]).score / 100 for one, (_, right) in zip(said, pairs, strict=True)]
    )
    confidence = np.array([one.confidence or 0.0 for one in said])
    bins = [some for some in np.array_split(np.argsort(confidence, kind="stable"), BINS) if len(some)]
    return sum(len(some) * abs(confidence[some].mean() - quality[some].mean()) for some in bins) / len(pairs)
