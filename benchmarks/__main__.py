"""`make bench`: measure everything, write RESULTS.md and RESULTS.json."""

import json
import statistics
from pathlib import Path

from benchmarks import decoding_step, training_step
from benchmarks.machine import describe

THREADS = 2
HERE = Path(__file__).parent


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    machine = describe(THREADS)
    training = training_step.measure(THREADS)
    decoding = decoding_step.measure(THREADS)
    first = statistics.median(decoding[decoding_step.STEPS[0]])
    decoding_rows = [
        [
            str(step),
            f"{statistics.median(some) * 1e3:.1f} ({min(some) * 1e3:.1f}–{max(some) * 1e3:.1f})",
            f"{statistics.median(some) / first:.2f}×",
        ]
        for step, some in decoding.items()
    ]
    page = f"""# Results

Written by `make bench`. {", ".join(f"{name} {value}" for name, value in machine.items())}.
Medians with the range of all rounds in brackets. What was tried on the way is in [LOG.md](LOG.md).

## A training step

Forward, backward and Adam with label smoothing on {training_step.PAIRS} pairs of {training_step.TOKENS} tokens,
vocabulary {training_step.VOCABULARY:,}, in one interleaved run with `torch.nn.Transformer` as its documentation
has it. GFLOP/s and the share of the measured peak of a plain matrix product are ours.

{table(training_step.HEADER, [row.cells for row in training])}

{"" if any(row.precision == "bfloat16" for row in training) else NO_BFLOAT16}
## A step of beam search

{decoding_step.SENTENCES} sentences × beam {decoding_step.BEAM} = {decoding_step.SENTENCES * decoding_step.BEAM} rows,
`tiny`, vocabulary {decoding_step.VOCABULARY:,}: the whole step, from one call of the decoder to the next.

{table(["step", "ms", "against step 10"], decoding_rows)}
"""
    (HERE / "RESULTS.md").write_text(page, encoding="utf-8")
    raw = {
        "machine": machine,
        "training_step": [
            {"size": r.size, "precision": r.precision, "ours": r.ours.seconds, "theirs": r.theirs.seconds}
            for r in training
        ],
        "decoding_step": decoding,
    }
    (HERE / "RESULTS.json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    print(page)


NO_BFLOAT16 = """bfloat16 is left out: this CPU has neither avx512_bf16 nor amx_bf16, and emulates it far more slowly.
"""

if __name__ == "__main__":
    main()
