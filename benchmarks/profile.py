"""Where the time of a training step and of a decoding step goes, as Markdown for LOG.md.

    python -m benchmarks.profile [--size tiny]

Self time of torch's operators by its profiler, and its share by kind. Backward counts with the kind of its forward.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.decoding_step import BEAM, SENTENCES, SOURCE
from benchmarks.machine import THREADS, describe
from benchmarks.training import PAIRS, TOKENS, VOCABULARY
from clearhead.data.batching import make_batch, pad_sources
from clearhead.data.tokenizer import SPECIALS
from clearhead.decoding import DecodingOptions
from clearhead.decoding.beam import beam_search
from clearhead.model import SIZES, TransformerOptions
from clearhead.model.transformer import Transformer
from clearhead.training.step import make_optimizer, update

TARGET = 50  # tokens of a search
TOP = 12
# The first kind of which a part is in an operator's name.
KINDS = {
    "optimizer": ("adam",),
    "attention": ("attention",),
    "norms": ("layer_norm", "layernorm", "rms_norm"),
    "matrix products": ("mm", "linear", "mkldnn", "matmul"),
    "loss and softmax": ("softmax", "logsumexp", "loss", "aten::exp_", "scatter"),
    "dropout": ("random", "bernoulli", "dropout"),
    "copies": ("copy", "index", "::cat", "clone", "fill", "zero", "embedding", "contiguous"),
    "views": ("expand", "view", "strided", "slice", "select", "transpose", "reshape"),
    "choosing": ("topk", "sort", "max", "gather", "where"),
}


@dataclass(frozen=True)
class Operator:
    name: str
    seconds: float  # its own
    calls: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--size", choices=[n for n, o in SIZES.items() if isinstance(o, TransformerOptions)])
    sizes = [asked] if (asked := parser.parse_args().size) else ["tiny", "base"]
    torch.set_num_threads(THREADS)
    for size in sizes:
        step = f"A training step of `{size}`, {PAIRS} pairs of {TOKENS} tokens, vocabulary {VOCABULARY:,}"
        print(section(step, profiled(training_step(size))))
        search = f"A beam search of `{size}`, {SENTENCES} × {BEAM} rows, {TARGET} steps"
        print(section(search, profiled(decoding(size))))
    print(", ".join(f"{name} {value}" for name, value in describe().items()))


def _options(size: str) -> TransformerOptions:
    named = SIZES[size]
    assert isinstance(named, TransformerOptions)
    return replace(named, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)


def training_step(size: str) -> Callable[[], object]:
    torch.manual_seed(1)
    model = Transformer(_options(size))
    optimizer = make_optimizer(model)
    ids = torch.randint(SPECIALS, VOCABULARY, (2, PAIRS, TOKENS - 1)).tolist()
    batch = make_batch(list(zip(*ids, strict=True)))
    return lambda: update(model, [batch], optimizer, 1e-4, 0.1)


def decoding(size: str) -> Callable[[], object]:
    torch.manual_seed(1)
    model = Transformer(_options(size)).eval()
    src, src_mask = pad_sources(torch.randint(SPECIALS, VOCABULARY, (SENTENCES, SOURCE)).tolist())
    options = DecodingOptions(beam=BEAM, min_length=TARGET, max_length=TARGET)
    return lambda: beam_search(model, src, src_mask, options)


def profiled(call: Callable[[], object]) -> list[Operator]:
    """The operators of one call after one to warm up, slowest first."""
    call()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        call()
    operators = [Operator(each.key, each.self_cpu_time_total / 1e6, each.count) for each in found.key_averages()]
    return sorted(operators, key=lambda operator: -operator.seconds)


def kind_of(name: str) -> str:
    lower = name.lower()
    return next((kind for kind, parts in KINDS.items() if any(part in lower for part in parts)), "rest")


def section(title: str, operators: list[Operator]) -> str:
    total = sum(operator.seconds for operator in operators)
    shares: dict[str, float] = {}
    for operator in operators:
        kind = kind_of(operator.name)
        shares[kind] = shares.get(kind, 0.0) + operator.seconds / total
    ranked = sorted(shares.items(), key=lambda share: -share[1])
    lines = [f"**{title}**: {1e3 * total:,.0f} ms in operators. By kind: "]
    lines[0] += ", ".join(f"{kind} {share:.0%}" for kind, share in ranked if share >= 0.005) + "."
    lines += ["", "| operator | self, ms | share | calls |", "|---|---|---|---|"]
    for operator in operators[:TOP]:
        cells = f"{1e3 * operator.seconds:,.1f} | {operator.seconds / total:.0%} | {operator.calls:,}"
        lines.append(f"| `{operator.name}` | {cells} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
