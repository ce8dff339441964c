"""Translating Multi30k's Test2016, text to text: ours against transformers, JoeyNMT and CTranslate2 used directly.

    python -m benchmarks.translation TINY_RUN BASE_RUN [--joeynmt PYTHON] [--rounds 7]

All have the same weights. Each peer is a process that stays loaded; in every round each of them gets the same lines in
turn, so that a slow minute slows all of them. A peer's number of threads is the better of those that its users can set.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from benchmarks.machine import describe
from benchmarks.peers import Peer
from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.data.folders import load_tokenizers
from clearhead.engines.ct2_form import ct2_form
from clearhead.exchange import export_model

DATA = Path(__file__).parents[2] / "shared" / "data" / "multi30k"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Task:
    """What is translated: so many lines at once or one after the other."""

    beam: int
    lines: int
    alone: bool

    def __str__(self) -> str:
        how = "one at a time" if self.alone else "as a file"
        return (
            f"beam {self.beam}, {self.lines:,} lines {how}" if self.beam > 1 else f"greedy, {self.lines:,} lines {how}"
        )


TASKS = {
    "tiny": [Task(5, 1000, False), Task(1, 1000, False), Task(5, 50, True), Task(1, 50, True)],
    "base": [Task(5, 100, False), Task(1, 100, False), Task(5, 10, True), Task(1, 10, True)],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("tiny", type=Path)
    parser.add_argument("base", type=Path)
    parser.add_argument("--joeynmt", type=Path, help="the python of an environment that has JoeyNMT")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    results = {}
    for size in TASKS:
        results[size] = measure(getattr(arguments, size), TASKS[size], arguments.joeynmt, arguments.rounds)
    page = [
        "# Translating, text to text",
        "Written by `python -m benchmarks.translation`. " + ", ".join(f"{k} {v}" for k, v in describe(2).items()) + ".",
        "Target tokens per second, the median of the rounds with their range; and how many times as fast as "
        "transformers, and as CTranslate2 used directly at its best setting: medians of the rounds' own ratios.",
        *(f"## {size}, {task}\n\n{table(rows)}" for size, tasks in results.items() for task, rows in tasks.items()),
    ]
    (HERE / "TRANSLATION.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
    (HERE / "TRANSLATION.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n\n".join(page))


def measure(run: Path, tasks: list[Task], joeynmt: Path | None, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Of each task and peer the target tokens per second, round by round."""
    model = find_model(run)
    _, target = load_tokenizers(model)
    lines = (DATA / "test_2016_flickr.en").read_text(encoding="utf-8").splitlines()
    rates: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        peers = {name: stack.enter_context(peer) for name, peer in _peers(model, joeynmt, stack)}
        for task in tasks:
            found = rates[str(task)] = {name: [] for name in peers}
            for turn in range(rounds + 1):
                for name, peer in peers.items():
                    answer = peer.translate(lines[: task.lines], task.beam, task.alone)
                    tokens = sum(len(target.encode(line)) + 1 for line in answer.lines)
                    if turn:
                        found[name].append(tokens / answer.seconds)
            print(f"{run} {task}", {name: round(statistics.median(some)) for name, some in found.items()}, flush=True)
    return rates


def table(rows: dict[str, list[float]]) -> str:
    direct = _best(rows, "CTranslate2 directly")
    lines = ["| | tokens/s | × transformers | × CTranslate2 |", "|---|---|---|---|"]
    for name, rates in rows.items():
        against = [_ratio(rates, rows[_best(rows, "transformers")]), _ratio(rates, rows[direct])]
        spread = f"{statistics.median(rates):,.0f} ({min(rates):,.0f}–{max(rates):,.0f})"
        lines.append(f"| {name} | {spread} | {against[0]} | {against[1]} |")
    return "\n".join(lines)


def _best(rows: dict[str, list[float]], name: str) -> str:
    """Of a peer's settings the one with the highest median."""
    return max((key for key in rows if key.startswith(name)), key=lambda key: statistics.median(rows[key]))


def _ratio(ours: list[float], theirs: list[float]) -> str:
    return f"{statistics.median(a / b for a, b in zip(ours, theirs, strict=True)):.2f}"


def _peers(model: Path, joeynmt: Path | None, stack: ExitStack) -> Iterator[tuple[str, Peer]]:
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    export_model(model, scratch / "hf", "hf")
    form = ct2_form(model)
    export_model(model, scratch / "ct2", "ct2", "float32")
    pieces = [str(model / "source.model"), str(model / "source.model")]
    for engine in ("auto", "native"):
        yield f"clearhead {engine}", Peer("clearhead_translator", [str(model), engine])
    settings = {
        "its defaults": "1 0 0",
        "2 × 1 threads, 32 at a time": "2 1 32",
        "1 × 2 threads, 32 at a time": "1 2 32",
    }
    for name, setting in settings.items():
        yield f"CTranslate2 directly, {name}", Peer("ctranslate2_direct", [str(form), *pieces, *setting.split()])
    yield (
        "CTranslate2 float32, 2 × 1 threads",
        Peer("ctranslate2_direct", [str(scratch / "ct2"), *pieces, "2", "1", "32"]),
    )
    yield "transformers", Peer("transformers_generate", [str(scratch / "hf"), "2"])
    if joeynmt:
        write_for_joeynmt(model, scratch / "joeynmt")
        yield "JoeyNMT", Peer("joeynmt_search", [str(scratch / "joeynmt"), "2"], joeynmt)


def write_for_joeynmt(model: Path, out: Path) -> None:
    """Our weights under JoeyNMT's names; its special ids are UNK PAD BOS EOS."""
    out.mkdir()
    options = read_config(model)["model"]
    weights = load_file(model / "model.safetensors")
    embedding = weights.pop("source_embedding.weight")[[3, 0, 1, 2, *range(4, options["source_vocabulary"])]]
    renamed = {name: embedding.copy() for name in ("src_embed.lut.weight", "trg_embed.lut.weight")}
    renamed["decoder.output_layer.weight"] = embedding.copy()
    for name, value in weights.items():
        side, block, part, *rest = name.split(".")
        renamed |= dict(_for_joeynmt(f"{side}.layers.{block}", side, part, rest, value))
    save_file(renamed, out / "model.safetensors")
    (out / "source.model").write_bytes((model / "source.model").read_bytes())
    source, _ = load_tokenizers(model)
    words = source.pieces(list(range(4, len(source))))
    (out / "vocabulary.json").write_text(json.dumps(words), encoding="utf-8")
    stack = {
        "type": "transformer", "hidden_size": options["width"], "ff_size": options["feed_forward"],
        "num_heads": options["heads"], "dropout": 0.0, "layer_norm": "post", "activation": options["activation"],
        "embeddings": {"embedding_dim": options["width"], "scale": True, "dropout": 0.0},
    }  # fmt: skip
    config = {
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": {**stack, "num_layers": options["encoder_blocks"]},
        "decoder": {**stack, "num_layers": options["decoder_blocks"]},
    }
    (out / "config.json").write_text(json.dumps(config), encoding="utf-8")


def _for_joeynmt(
    layer: str, side: str, part: str, rest: list[str], value: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    attention = "src_src_att" if side == "encoder" else "trg_trg_att"
    names = {"attention": attention, "cross_attention": "src_trg_att"}
    norms = {
        "around_attention": "layer_norm" if side == "encoder" else "x_layer_norm",
        "around_cross_attention": "dec_layer_norm",
        "around_feed_forward": "feed_forward.layer_norm",
    }
    if part in norms:
        yield f"{layer}.{norms[part]}.{rest[-1]}", value
    elif part == "feed_forward":
        yield f"{layer}.feed_forward.pwff_layer.{0 if rest[0] == 'inner' else 3}.{rest[-1]}", value
    else:
        matrices = {"q": value} if rest[0] == "output" else dict(zip("qkv", np.split(value, 3), strict=True))
        for letter, matrix in matrices.items():
            name = "output_layer" if rest[0] == "output" else f"{letter}_layer"
            yield f"{layer}.{names[part]}.{name}.weight", np.ascontiguousarray(matrix)
            yield f"{layer}.{names[part]}.{name}.bias", np.zeros(len(matrix), np.float32)


if __name__ == "__main__":
    main()
