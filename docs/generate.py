"""Writes what docs/ has from the code: options.md in both languages, and the lines that pages link to.

A link such as [`causal_mask`](../clearhead/model/attention.py#L23) names a function, class, method or constant; its
line is looked up anew each time, and a test finds those that are out of date.
"""

import ast
import dataclasses
import inspect
import math
import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from clearhead.data.options import DataOptions
from clearhead.decoding import DecodingOptions
from clearhead.model import SIZES, RNNOptions, TransformerOptions, build
from clearhead.training.options import TrainingOptions
from clearhead.training.plan import DROPOUTS, ENOUGH_STEPS, LEARNS_SOON, TABLE

DOCS = Path(__file__).parent
PAGE = DOCS / "options.md"
CHINESE_PAGE = DOCS / "options.zh-CN.md"
CHINESE = tomllib.loads((DOCS / "options.zh-CN.toml").read_text(encoding="utf-8"))
LINE_LINK = re.compile(r"\[`([\w.]+)`\]\((\.\./[\w./-]+\.py)#L\d+\)")
PAPER = {"base": "65 M", "big": "213 M"}
WORDS = 37000


def option_table(options: type, chinese: dict[str, str] | None = None) -> str:
    """The fields of an options class; what they mean is the comment on their line, or its Chinese."""
    source = inspect.getsource(options)
    heads = "| option | default | meaning |" if chinese is None else "| 选项 | 默认值 | 含义 |"
    rows = [heads, "|---|---|---|"]
    for option in dataclasses.fields(options):
        line = re.search(rf"^    {option.name}: .*$", source, re.MULTILINE)
        assert line is not None
        comment = line.group().partition("  # ")[2].replace("|", "or")
        meaning = (chinese or {}).get(option.name, comment)
        default = "" if option.default is None else f"`{option.default!r}`"
        rows.append(f"| `{option.name}` | {default} | {meaning} |")
    return "\n".join(rows)


INSTEAD = ", ".join(f'`{name} = "{value}"`' for name, value in LEARNS_SOON.items())
CHOSEN = (
    f"From the number of pairs in the corpus. Transformers of a named size get {INSTEAD} instead of the paper's, "
    "unless `norm` is said (sources of numbers keep the paper's positions). Where `--minutes` allow fewer than "
    f"{', '.join(str(epochs) for epochs, _ in DROPOUTS)} epochs, dropout is at most "
    f"{', '.join(f'{most:g}' for _, most in DROPOUTS)}. "
    f"Where they allow fewer than {ENOUGH_STEPS:,} steps, the row of the next smaller model is used."
)
CHINESE_CHOSEN = (
    f"由语料的句对数决定。没有指定 `norm` 时，有名字的大小用 {INSTEAD}，而不是论文的（源端是数值时，位置仍用论文的）；"
    f"`--minutes` 只够跑不到 {'、'.join(str(epochs) for epochs, _ in DROPOUTS)} 轮时，"
    f"dropout 分别至多 {'、'.join(f'{most:g}' for _, most in DROPOUTS)}；"
    f"不够 {ENOUGH_STEPS:,} 步时，用小一号模型的那一行。"
)
SIZE_HEAD = "| size | blocks | width | heads | feed-forward | parameters | the paper prints |"
CHINESE_SIZE_HEAD = "| 名字 | 块数 | 宽度 | 头数 | 前馈宽度 | 参数 | 论文印的 |"
FITTING_HEAD = "| pairs up to | preset | dropout | peak rate | warm-up | epochs | tokens | optimizer |"
CHINESE_FITTING_HEAD = "| 句对至多 | preset | dropout | 最高学习率 | 预热 | 轮数 | 每批词元 | 优化器 |"
SECTIONS: list[tuple[str, type]] = [
    ("[data]", DataOptions),
    ("[model], the Transformer", TransformerOptions),
    ("[model], the RNN", RNNOptions),
    ("[training]", TrainingOptions),
    ("[decoding]", DecodingOptions),
]


def size_table(head: str = SIZE_HEAD) -> str:
    """Exact counts, at the paper's 37,000 shared words."""
    rows = [head, "|---|---|---|---|---|---|---|"]
    for name, options in SIZES.items():
        if isinstance(options, TransformerOptions):
            shape = f"{options.encoder_blocks} + {options.decoder_blocks} | {options.width} | {options.heads}"
            shape += f" | {options.feed_forward if options.dense != 'one' else '–'}"
        else:
            shape = f"{options.layers} + {options.layers} layers | {options.width} | – | –"
        rows.append(f"| `{name}` | {shape} | {count_parameters(name):,} | {PAPER.get(name, '')} |")
    return "\n".join(rows)


def fitting_table(head: str = FITTING_HEAD) -> str:
    rows = [head, "|---|---|---|---|---|---|---|---|"]
    for row in TABLE:
        pairs = "more" if math.isinf(row.pairs) else f"{row.pairs:,}"
        rates = row.dropout, row.peak_rate, row.warmup, row.epochs
        values = pairs, row.preset, *rates, f"{row.tokens_per_batch:,}", row.optimizer
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
    for title, options in SECTIONS:
        parts.append(f"## {title}: `{options.__name__}`\n\n{inspect.getdoc(options)}\n\n{option_table(options)}")
    return "\n\n".join(parts) + "\n"


def chinese_page() -> str:
    """The same page; what an option means is taken from options.zh-CN.toml."""
    parts = [
        "# 选项\n\n由 `make docs` 从代码生成；每个默认值只写在代码里的一个地方。",
        f"## 有名字的大小\n\n词表 {WORDS:,}，源语言和目标语言共用（`rnn`：目标嵌入与输出层共用）。",
        size_table(CHINESE_SIZE_HEAD),
        f"## 什么都不说的时候\n\n{CHINESE_CHOSEN}\n\n{fitting_table(CHINESE_FITTING_HEAD)}",
    ]
    for title, options in SECTIONS:
        words = CHINESE[options.__name__]
        heading = title.replace(", the Transformer", "，Transformer").replace(", the RNN", "，RNN")
        parts.append(f"## {heading}：`{options.__name__}`\n\n{words['']}\n\n{option_table(options, words)}")
    return "\n\n".join(parts) + "\n"


@cache
def lines_of(path: Path) -> dict[str, int]:
    """Where each function, class, method (Class.method) and constant of a file begins."""
    found: dict[str, int] = {}

    def visit(nodes: list[ast.stmt], inside: str) -> None:
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[inside + node.name] = node.lineno
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{inside}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update({inside + one.id: node.lineno for one in targets if isinstance(one, ast.Name)})

    visit(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


def with_true_lines(text: str) -> str:
    """A page with the lines of all its links to code looked up; ValueError if a name is not in its file."""

    def renew(link: re.Match[str]) -> str:
        name, path = link.groups()
        line = lines_of(DOCS / path).get(name)
        if line is None:
            raise ValueError(f"there is no {name} in {path.removeprefix('../')}, but a page links to it")
        return f"[`{name}`]({path}#L{line})"

    return LINE_LINK.sub(renew, text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    CHINESE_PAGE.write_text(chinese_page(), encoding="utf-8")
    for path in sorted(DOCS.glob("*.md")):
        path.write_text(with_true_lines(path.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE.name}, {CHINESE_PAGE.name} and the lines that pages link to")
