"""Translating Multi30k's Test2016, text to text: ours against transformers, JoeyNMT and CTranslate2 used directly.

    python -m benchmarks.translation TINY_RUN [--joeynmt PYTHON] [--rounds 7]

TINY_RUN is trained on Multi30k, post-norm, as transformers and JoeyNMT have it: `clearhead train --preset tiny --set
model.norm=post …`. Of `base` there are random weights, as nobody trains it on two cores; every target of theirs is made
to have 16 tokens. All peers have the same weights. Each is a process that stays loaded; in every round each of them
gets the same lines in turn, so that a slow minute slows all of them. CTranslate2 is measured with its defaults and with
the best of the settings that its users have.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from benchmarks.machine import describe
from benchmarks.peers import Peer
from clearhead.checkpoint.model import save_model
from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.data.folders import load_tokenizers, tokenizer_files
from clearhead.engines.ct2_form import ct2_form
from clearhead.exchange import export_model
from clearhead.model import SIZES, build

DATA = Path(__file__).parents[2] / "shared" / "data" / "multi30k"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Task:
    """What is translated: so many lines at once or one after the other."""

    beam: int
    lines: int
    alone: bool
    length: int | None = None  # of every target, in tokens

    def __str__(self) -> str:
        search = f"beam {self.beam}" if self.beam > 1 else "greedy"
        return f"{search}, {self.lines:,} lines {'one at a time' if self.alone else 'as a file'}"


TASKS = {
    "tiny": [Task(5, 1000, False), Task(1, 1000, False), Task(5, 50, True), Task(1, 50, True)],
    "base": [Task(5, 64, False, 16), Task(1, 128, False, 16), Task(5, 7, True, 16), Task(1, 7, True, 16)],
}
JOEYNMT_LINES = 32  # it would take minutes for a thousand
SLOW_ROUNDS = 3  # of those that are much slower than CTranslate2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("tiny", type=Path)
    parser.add_argument("--joeynmt", type=Path, help="the python of an environment that has JoeyNMT")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", choices=TASKS, help="measure this one alone, and keep what is known of the other")
    arguments = parser.parse_args()
    known = HERE / "TRANSLATION.json"
    results = json.loads(known.read_text(encoding="utf-8")) if arguments.size and known.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        tiny = find_model(arguments.tiny)
        models = {"tiny": tiny, "base": random_base(Path(scratch) / "base", tiny)}
        for size, tasks in TASKS.items():
            if arguments.size not in (None, size):
                continue
            results[size] = measure(models[size], tasks, arguments.joeynmt, arguments.rounds)
    page = [
        "# Translating, text to text",
        "Written by `python -m benchmarks.translation`. " + ", ".join(f"{k} {v}" for k, v in describe(2).items()) + ".",
        "Target tokens per second, the median of the rounds with their range; and how many times as fast as "
        "transformers, and as CTranslate2 used directly at its best setting: medians of the rounds' own ratios.",
        *(f"## {size}, {task}\n\n{table(rows)}" for size, tasks in results.items() for task, rows in tasks.items()),
    ]
    (HERE / "TRANSLATION.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
    known.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n\n".join(page))


def random_base(folder: Path, like: Path) -> Path:
    """A model of the paper's size with the tokenizers of another."""
    config = read_config(like)
    torch.manual_seed(1)
    options = replace(
        SIZES["base"],
        source_vocabulary=config["model"]["source_vocabulary"],
        target_vocabulary=config["model"]["target_vocabulary"],
    )
    files = {file.name: file.read_bytes() for file in tokenizer_files(like)}
    save_model(folder, build(options).eval(), {"data": config["data"]}, files)
    return folder


def measure(model: Path, tasks: list[Task], joeynmt: Path | None, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Of each task and peer the target tokens per second, round by round; the first is to warm up."""
    _, target = load_tokenizers(model)
    lines = (DATA / "test_2016_flickr.en").read_text(encoding="utf-8").splitlines()
    rates: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        peers = {name: stack.enter_context(peer) for name, peer in _peers(model, joeynmt, stack)}
        for task in tasks:
            found: dict[str, list[float]] = {name: [] for name in peers}
            for turn in range(rounds + 1):
                for name, peer in peers.items():
                    if turn > SLOW_ROUNDS and not _is_fast(name):
                        continue
                    if task.length and name == "clearhead auto":
                        continue  # a forced length makes it rank anew, which nobody else does
                    some = lines[: min(task.lines, JOEYNMT_LINES) if name == "JoeyNMT" else task.lines]
                    answer = peer.translate(some, task.beam, task.length, task.alone)
                    of_each = (task.length or len(target.encode(line)) for line in answer.lines)
                    if turn:
                        found[name].append(sum(tokens + 1 for tokens in of_each) / answer.seconds)
            rates[str(task)] = found = {name: each for name, each in found.items() if each}
            print(task, {name: round(statistics.median(each)) for name, each in found.items()}, flush=True)
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
    return f"{statistics.median(a / b for a, b in zip(ours, theirs, strict=False)):.2f}"


def _is_fast(name: str) -> bool:
    return name == "clearhead auto" or name.startswith("CTranslate2")


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
