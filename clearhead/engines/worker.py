"""One of the processes that the native engine shares its work with.

    python -m clearhead.engines.worker MODEL THREADS PRODUCT      (PRODUCT: the type in which it multiplies)

It says which weights it has loaded, and then answers batches, a JSON object a line, until its input ends.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from clearhead.checkpoint.manifest import read_manifest
from clearhead.checkpoint.weights import WEIGHTS
from clearhead.decoding import DecodingOptions, Demand, Hypothesis

from .native import NativeEngine, open_native


def main(folder: Path, threads: int, product: str, asked: Iterable[str], answers: TextIO) -> None:
    torch.set_num_threads(threads)
    engine = open_native(folder)
    engine.in_bfloat16 = product == "bfloat16"
    print(json.dumps(read_manifest(folder)[WEIGHTS].sha256), file=answers, flush=True)
    for line in asked:
        print(json.dumps(_answer(engine, json.loads(line))), file=answers, flush=True)


def _answer(engine: NativeEngine, batch: dict[str, Any]) -> list[list[dict[str, Any]]]:
    demands = None if batch["demands"] is None else [Demand(**demand) for demand in batch["demands"]]
    sources = [np.array(one, np.float32) if one and isinstance(one[0], list) else one for one in batch["sources"]]
    found = engine.search(sources, DecodingOptions(**batch["options"]), demands)
    return [[_plain(hypothesis) for hypothesis in hypotheses] for hypotheses in found]


def _plain(hypothesis: Hypothesis) -> dict[str, Any]:
    """Numbers in float32 stay what they are on their way through JSON."""
    weights = hypothesis.alignment
    return {**vars(hypothesis), "alignment": None if weights is None else weights.tolist()}


if __name__ == "__main__":
    output, sys.stdout = sys.stdout, sys.stderr  # what else is printed must not be taken for an answer
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.stdin, output)
