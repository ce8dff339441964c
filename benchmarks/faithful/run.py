"""The command: python -m benchmarks faithful [--part PART …] [--model NAME=FOLDER …] [--tree TREE --system before].

What was measured stays; `--again` measures it once more. Without models it trains its own, which takes minutes each.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

from benchmarks.environments import BENCH, ROOT
from benchmarks.faithful import addresses, alignment, confidence, numbers, paragraphs, plain, segments, terms
from benchmarks.faithful.corpora import CORPORA, model_of
from benchmarks.faithful.measures import Asked, Found
from benchmarks.faithful.page import NOW, PARTS, add, load, result_of
from benchmarks.faithful.system import System
from benchmarks.machine import describe

HERE = Path(__file__).parents[1]
MEASURES: dict[str, ModuleType] = {
    "segments": segments,
    "paragraphs": paragraphs,
    "numbers": numbers,
    "addresses": addresses,
    "terms": terms,
    "confidence": confidence,
    "plain": plain,
    "alignment": alignment,
}

BESIDE = ("plain", "confidence")  # parts that also ask the tree before


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks faithful", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--part", action="append", choices=PARTS, help="all, if none is named")
    named = "a run or model folder for " + ", ".join(CORPORA)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help=named)
    parser.add_argument(
        "--only-given", action="store_true", help="no models but those given are asked, none is trained"
    )
    parser.add_argument("--tree", type=Path, default=ROOT, help="whose code is judged; else this one's")
    parser.add_argument("--system", default=NOW, help="what the page calls it: now, before")
    parser.add_argument("--before", type=Path, metavar="TREE", help="that plain lines and confidence are compared with")
    parser.add_argument(
        "--before-model", action="append", default=[], metavar="NAME=FOLDER", help="if it needs its own"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=float, default=1.0, help="the share of the usual sample; below 1 kept apart")
    parser.add_argument("--again", action="store_true", help="also what was measured before")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    models, old_models = named_folders(parser, given.model), named_folders(parser, given.before_model)
    out = given.out or (HERE if given.sample >= 1 else BENCH / "quick")
    out.mkdir(parents=True, exist_ok=True)
    names = [name for name in CORPORA if name in models or not given.only_given]
    for name in names:
        parts = [part for part in given.part or PARTS if name in MEASURES[part].MODELS]
        done = {one.key for one in load(out / "FAITHFUL.json")}
        parts = [part for part in parts if given.again or (part, name, given.system) not in done]
        if not parts:
            continue
        with ExitStack() as stack:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            model = models.get(name) or model_of(name, given.seed)
            system = stack.enter_context(System(given.tree, model))
            for part in parts:
                print(f"measuring {part} of {name}", file=sys.stderr, flush=True)
                before = None
                if part in BESIDE and given.before:
                    before = stack.enter_context(System(given.before, old_models.get(name, model)))
                started = time.perf_counter()
                found: Found = MEASURES[part].measure(Asked(system, name, given.seed, given.sample, before, work))
                if not found.rows:
                    print(f"{part} cannot be measured here", file=sys.stderr)
                    continue
                minutes = (time.perf_counter() - started) / 60
                command = f"python -m benchmarks faithful --part {part} --model {name}={model.name}"
                command += f" --before {given.before.name}" if before and given.before else ""
                command += f" --sample {given.sample:g}" if given.sample != 1 else ""
                about = {"part": part, "model": name, "system": given.system, "command": command, "seed": given.seed}
                machine = {**describe(), "commit": commit(given.tree), "engine": system.engine}
                add(result_of(found, **about, machine=machine, minutes=minutes), out)
                for row in found.rows:
                    mark = {None: " ", True: "✓", False: "✗"}[row.is_met]
                    print(f"{mark} {row.asked}: {row.found}", file=sys.stderr, flush=True)
    print(f"written to {out / 'FAITHFUL.md'}", file=sys.stderr)


def named_folders(parser: argparse.ArgumentParser, given: Sequence[str]) -> dict[str, Path]:
    found = {}
    for one in given:
        name, _, folder = one.partition("=")
        if name not in CORPORA or not folder:
            parser.error(f"{shlex.quote(one)} is no NAME=FOLDER; names are {', '.join(CORPORA)}")
        if not Path(folder).is_dir():
            parser.error(f"there is no folder {folder}")
        found[name] = Path(folder)
    return found


def commit(tree: Path) -> str:
    """What the tree has checked out, with a + if it was changed since."""
    asked = ["git", "-C", str(tree), "describe", "--always", "--exclude=*", "--dirty=+"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "?"
