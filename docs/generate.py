"""Writes docs/options.md: every option with its default and comment, and the named sizes with their parameters."""

import dataclasses
import inspect
import re
from dataclasses import replace
from pathlib import Path

import torch

from clearhead.decoding import DecodingOptions
from clearhead.model import SIZES, RNNOptions, TransformerOptions, build

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


def count_parameters(size: str) -> int:
    with torch.device("meta"):
        model = build(replace(SIZES[size], source_vocabulary=WORDS, target_vocabulary=WORDS))
    return sum(parameter.numel() for parameter in model.parameters())


def page() -> str:
    parts = [
        "# Options\n\nWritten by `make docs` from the code; each default stands there and nowhere else.",
        f"## Named sizes\n\nAt {WORDS:,} words, shared by source and target (`rnn`: not shared).\n\n{size_table()}",
    ]
    for title, options in (
        ("The Transformer", TransformerOptions),
        ("The RNN", RNNOptions),
        ("Decoding", DecodingOptions),
    ):
        parts.append(f"## {title}: `{options.__name__}`\n\n{inspect.getdoc(options)}\n\n{option_table(options)}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
