"""Note 000 taken at its word: one matrix per Dense, heads concatenated without W_O, skips and no norm."""

from dataclasses import replace

import torch

from clearhead.model import SIZES
from clearhead.model.options import TransformerOptions
from clearhead.model.transformer import Transformer

from .experiment import (
    Bars,
    Experiment,
    Finding,
    Lines,
    Measured,
    Runs,
    Table,
    Text,
    curve,
    number,
    over,
    percent,
    row,
    verdict,
)
from .learn import SMALL, Lesson, drawn, learned, told_accuracy
from .tasks import reverse

LECTURE = SIZES["lecture"]
assert isinstance(LECTURE, TransformerOptions)
NOTE = replace(SMALL, output_projection=LECTURE.output_projection, dense=LECTURE.dense, norm=LECTURE.norm)
KINDS: dict[str, tuple[Text, TransformerOptions]] = {
    "lecture": (Text("note 000", "笔记 000"), NOTE),
    "post": (Text("note 000 and norm", "笔记 000 加归一化"), replace(NOTE, norm="post")),
    "paper": (Text("the paper's block", "论文的块"), replace(SMALL, norm="post")),
}
BLOCKS, TOKENS = 12, 32
LESSON = Lesson(steps=130, rate=3e-3)
LENGTH = 5


def measure_dense(seed: int) -> Measured:
    """Accuracy of each kind; and the size of the vectors after each of many new blocks."""
    measured: Measured = {}
    for kind, (_, options) in KINDS.items():
        deeper = replace(options, encoder_blocks=2, decoder_blocks=2)
        model, _ = learned(deeper, reverse(LENGTH), LESSON, seed)
        measured[kind] = [told_accuracy(model, drawn(reverse(LENGTH), seed))]
        measured[f"{kind} size"] = _sizes(replace(options, encoder_blocks=BLOCKS), seed)
    return measured


@torch.no_grad()
def _sizes(options: TransformerOptions, seed: int) -> list[float]:
    torch.manual_seed(seed)
    model = Transformer(options)
    x, mask = torch.randn(1, TOKENS, options.width), torch.ones(1, 1, 1, TOKENS, dtype=torch.bool)
    sizes = [x.pow(2).mean().sqrt().item()]
    for block in model.encoder:
        x = block(x, mask, lambda rotated: rotated)
        sizes.append(x.pow(2).mean().sqrt().item())
    return sizes


def conclude_dense(runs: Runs) -> Finding:
    right = {kind: over(runs, kind) for kind in KINDS}
    growth = {kind: over(runs, f"{kind} size", BLOCKS) for kind in KINDS}
    is_as_good = right["lecture"].mean > right["paper"].mean - 0.05
    is_stable = growth["lecture"].high < 10
    names = [name for name, _ in KINDS.values()]
    return Finding(
        verdict(is_as_good and is_stable, is_as_good or is_stable or right["post"].mean > right["paper"].mean - 0.05),
        Text(
            f"Right words: {percent(right['lecture'].mean)} with the note's block, "
            f"{percent(right['post'].mean)} with norm "
            f"added, {percent(right['paper'].mean)} with the paper's. After {BLOCKS} blocks the note's vectors are "
            f"{number(growth['lecture'].mean)} large where they began with 1; with norm {number(growth['post'].mean)}.",
            f"正确率：笔记的块 {percent(right['lecture'].mean)}，加上归一化 {percent(right['post'].mean)}，"
            f"论文的块 {percent(right['paper'].mean)}。经过 {BLOCKS} 块，笔记的向量从 1 增长到 "
            f"{number(growth['lecture'].mean)}，加上归一化则为 {number(growth['post'].mean)}。",
        ),
        Table(
            [Text("block", "块"), Text("right words", "正确率"), Text(f"size after {BLOCKS}", f"{BLOCKS} 块后的大小")],
            [row(name, right[kind], growth[kind]) for kind, (name, _) in KINDS.items()],
        ),
        [
            Bars(
                Text("Right words", "正确率"),
                Text("share", "比例"),
                names,
                [(names[0], list(right.values()))],
                high=1.0,
            ),
            Lines(
                Text("Size of the vectors by block", "向量大小随块数的变化"),
                Text("blocks", "块数"),
                Text("root mean square (log)", "均方根（对数）"),
                [(name, curve(runs, f"{kind} size", range(BLOCKS + 1))) for kind, (name, _) in KINDS.items()],
                log_y=True,
            ),
        ],
    )


DENSE = Experiment(
    "lecture-block",
    Text("The lecture's block against the paper's", "讲义的块与论文的块"),
    Text(
        "A block is multi-head self-attention and a dense layer, ReLU of one matrix, with skips; any number "
        "can be stacked.",
        "一个 Block 就是多头自注意力加全连接层（一个矩阵加 ReLU），带 Skip-Connection，想搭多少层都可以。",
    ),
    Text("note 000, stacked self-attention layers", "笔记 000，Stacked Self-Attention Layers"),
    Text(
        f"The note's block, the same with post-norm, and the paper's learn to reverse {LENGTH} words in {LESSON.steps} "
        f"steps with two and two blocks. Then random vectors go through {BLOCKS} new blocks of each kind.",
        f"笔记的块、加上后置归一化的同样的块、论文的块，各两块加两块，用 {LESSON.steps} 步学习反转 {LENGTH} 个词；"
        f"再让随机向量经过各 {BLOCKS} 个新块。",
    ),
    Text(
        "The note itself speaks of add-then-norm further on; its drawing of the block leaves it out.",
        "笔记后文自己也讲到先加后归一化，只是块的图里没有画。",
    ),
    (1, 2, 3),
    measure_dense,
    conclude_dense,
)
