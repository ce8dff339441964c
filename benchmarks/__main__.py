"""Clearhead side by side with its peers: measures, and writes RESULTS.md and RESULTS.json.

    python -m benchmarks [--quick] [--out FOLDER] [QUESTION …]
    python -m benchmarks faithful …        has a page and options of its own (benchmarks/faithful/run.py)

Without questions it asks all of them. What was measured before stays where it is not measured again. `--quick` takes
smaller samples and fewer rounds, leaves out what is slow, and writes to .bench/quick unless told otherwise, so that a
quick look does not replace what was measured carefully.
"""

import argparse
import sys
import time
from pathlib import Path
from types import ModuleType

from benchmarks import decoding_step, growth, pipeline, precision, processes, race, serve, training, translation
from benchmarks.environments import BENCH
from benchmarks.faithful import run as faithful
from benchmarks.machine import describe, peer_versions
from benchmarks.results import Result, load_results, page, save_results

HERE = Path(__file__).parent
QUESTIONS: dict[str, ModuleType] = {
    "training": training,
    "pipeline": pipeline,
    "race": race,
    "translation": translation,
    "decoding": decoding_step,
    "serving": serve,
    "growth": growth,
    "processes": processes,
    "precision": precision,
}
SLOW = ("pipeline", "race", "growth", "processes", "precision")  # left out of a quick look


def main() -> None:
    if sys.argv[1:2] == ["faithful"]:
        faithful.main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--quick", action="store_true", help=f"a few minutes; without {', '.join(SLOW)}")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.questions if name not in QUESTIONS]
    if unknown:
        parser.error(f"there is no question {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    asked = arguments.questions or [name for name in QUESTIONS if not (arguments.quick and name in SLOW)]
    out = arguments.out or (BENCH / "quick" if arguments.quick else HERE)
    out.mkdir(parents=True, exist_ok=True)
    for name in asked:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        results = load_results(out / "RESULTS.json")
        results[name] = ask(name, arguments.quick)
        in_order = {known: results[known] for known in QUESTIONS if known in results}
        save_results(in_order, out)  # after each: what was measured is kept if the next one is stopped
    answered = load_results(out / "RESULTS.json")
    print(page({name: answered[name] for name in asked}))
    left_out = [name for name in QUESTIONS if name not in asked]
    if left_out:
        print(f"not asked: {', '.join(left_out)}", file=sys.stderr)
    print(f"written to {out / 'RESULTS.md'}", file=sys.stderr)


def ask(name: str, quick: bool) -> Result:
    begun = time.perf_counter()
    tables = QUESTIONS[name].measure(quick)
    return Result(
        QUESTIONS[name].ASKS,
        f"python -m benchmarks {'--quick ' if quick else ''}{name}",
        {**describe(), **peer_versions()},
        (time.perf_counter() - begun) / 60,
        quick,
        tables,
    )


if __name__ == "__main__":
    main()
