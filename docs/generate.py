"""Writes docs/options.md: all options with their defaults and comments."""

import dataclasses
import inspect
import math
import re
from dataclasses import replace
from pathlib import Path

import torch

from clearhead.data.options import DataOptions
from clearhead.decoding import DecodingOptions
from clearhead.model import SIZES, RNNOptions, TransformerOptions, build
from clearhead.training.options import TrainingOptions
from clearhead.training.plan import FEW_EPOCHS, LITTLE_DROPOUT, NORM, TABLE

PAGE = Path(__file__).parent / "options.md"
PAPER = {"base": "65 M", "big": "213 M"}
WORDS = 37000


def option_table(options: type) -> str:
    """The fields of an options class; what they mean is the comment on their line."""
    source = inspect.getsource(options)
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for option in dataclasses.fields(options):
        line = re.search(rf"^    {option.name}: .*$", source, re.MULTILINE)
        assert line is not None
        comment = line.group().partition("  # ")[2]
        default = "" if option.default is None else f"`{option.default!r}`"
        rows.append(f"| `{option.name}` | {default} | {comment.replace('|', 'or')} |")
    return "\n".join(rows)


CHOSEN = (
    f'From the number of pairs in the corpus. Transformers of a named size get `norm = "{NORM}"` instead of '
    f"`post`, the paper's, and dropout {LITTLE_DROPOUT} where `--minutes` allow fewer than {FEW_EPOCHS} epochs."
)


def size_table() -> str:
    """Exact counts, at the paper's 37,000 shared words."""
    rows = [
        "| size | blocks | width | heads | feed-forward | parameters | the paper prints |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, options in SIZES.items():
        if isinstance(options, TransformerOptions):
            shape = f"{options.encoder_blocks} + {options.decoder_blocks} | {options.width} | {options.heads}"
            shape += f" | {options.feed_forward if options.dense != 'one' else '–'}"
        else:
            shape = f"{options.layers} + {options.layers} layers | {options.width} | – | –"
        rows.append(f"| `{name}` | {shape} | {count_parameters(name):,} | {PAPER.get(name, '')} |")
    return "\n".join(rows)


def fitting_table() -> str:
    rows = [
        "| pairs up to | preset | dropout | peak rate | warm-up | epochs | tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in TABLE:
        pairs = "more" if math.isinf(row.pairs) else f"{row.pairs:,}"
        values = pairs, row.preset, row.dropout, row.peak_rate, row.warmup, row.epochs, f"{row.tokens_per_batch:,}"
        rows.append("| " + " | ".join(map(str, values)) + " |")
    return "\n".join(rows)


def count_parameters(size: str) -> int:
    with torch.device("meta"):
        model = build(replace(SIZES[size], source_vocabulary=WORDS, target_vocabulary=WORDS))
    return sum(parameter.numel() for parameter in model.parameters())


def page() -> str:
    parts = [
        "# Options\n\nWritten by `make docs` from the code; each default stands there and nowhere else.",
        f"## Named sizes\n\nAt {WORDS:,} words, shared by source and target (`rnn`: by target and output).",
        size_table(),
        f"## What is taken where nothing is said\n\n{CHOSEN}\n\n{fitting_table()}",
    ]
    for title, options in (
        ("[data]", DataOptions),
        ("[model], the Transformer", TransformerOptions),
        ("[model], the RNN", RNNOptions),
        ("[training]", TrainingOptions),
        ("[decoding]", DecodingOptions),
    ):
        parts.append(f"## {title}: `{options.__name__}`\n\n{inspect.getdoc(options)}\n\n{option_table(options)}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
