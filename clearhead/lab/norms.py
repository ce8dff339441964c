"""Layer norm: why not batch norm (note 002, section 6), and where it stands (notes 000, 001 and 002)."""

import random
from dataclasses import replace

import torch

from clearhead.data.batching import pad_sources
from clearhead.data.tokenizer import PAD
from clearhead.model.transformer import Transformer

from .experiment import (
    Bars,
    Experiment,
    Finding,
    Lines,
    Measured,
    Runs,
    Spread,
    Table,
    Text,
    curve,
    number,
    over,
    percent,
    row,
    verdict,
)
from .learn import SMALL, Lesson, drawn, learned, smoothed, told_accuracy
from .tasks import random_words, reverse

LENGTH, MATES, PADDINGS = 7, 5, (10, 50)
LAYER, BATCH = Text("layer norm", "层归一化"), Text("batch norm", "批归一化")


@torch.no_grad()
def measure_neighbours(seed: int) -> Measured:
    """How much a sentence's encoding changes with the other sentences of its batch, and with padding."""
    rng = random.Random(seed)
    sentence = random_words(rng, LENGTH)
    measured: Measured = {}
    for kind in ("layer", "batch"):
        torch.manual_seed(seed)
        model = Transformer(replace(SMALL, normalizer=kind, norm="post", encoder_blocks=2)).train()
        src, mask = pad_sources([sentence, random_words(rng, LENGTH)])
        first = model.read(src, mask)[0]
        changes = []
        for _ in range(MATES):
            src, mask = pad_sources([sentence, random_words(rng, LENGTH)])
            changes.append((model.read(src, mask)[0] - first).abs().max().item())
        measured[f"{kind} mates"] = [max(changes)]
        changes = []
        for extra in PADDINGS:
            padded = torch.full((2, LENGTH + 1 + extra), PAD)
            padded[:, : LENGTH + 1] = src
            seen = model.read(padded, torch.arange(padded.shape[1]).expand(2, -1) <= LENGTH)[0, : LENGTH + 1]
            changes.append((seen - model.read(src, mask)[0]).abs().max().item())
        measured[f"{kind} padding"] = [max(changes)]
    return measured


def conclude_neighbours(runs: Runs) -> Finding:
    cell = {(kind, by): over(runs, f"{kind} {by}") for kind in ("layer", "batch") for by in ("mates", "padding")}
    layer_most = max(cell["layer", "mates"].high, cell["layer", "padding"].high)
    batch_least = min(cell["batch", "mates"].low, cell["batch", "padding"].low)
    mates, padding = Text("other sentences", "同批的句子"), Text("padding", "填充")
    return Finding(
        verdict(layer_most < 1e-4 and batch_least > 0.1, layer_most < 1e-4),
        Text(
            f"With layer norm a sentence's encoding changes by {number(layer_most)} at most. With batch norm "
            f"other sentences change it by {number(cell['batch', 'mates'].mean)} and padding by "
            f"{number(cell['batch', 'padding'].mean)}.",
            f"用层归一化，句子的编码至多改变 {number(layer_most)}。用批归一化，同批的句子使它改变 "
            f"{number(cell['batch', 'mates'].mean)}，填充使它改变 {number(cell['batch', 'padding'].mean)}。",
        ),
        Table(
            [Text("changed by", "改变来自"), LAYER, BATCH],
            [
                row(mates, cell["layer", "mates"], cell["batch", "mates"]),
                row(padding, cell["layer", "padding"], cell["batch", "padding"]),
            ],
        ),
        [
            Bars(
                Text("Change of a sentence's encoding", "句子编码的变化"),
                Text("largest change", "最大变化"),
                [mates, padding],
                [
                    (LAYER, [cell["layer", "mates"], cell["layer", "padding"]]),
                    (BATCH, [cell["batch", "mates"], cell["batch", "padding"]]),
                ],
            )
        ],
    )


NEIGHBOURS = Experiment(
    "batch-norm",
    Text("Layer norm, not batch norm", "用层归一化，不用批归一化"),
    Text(
        "Layer norm works on each vector by itself and so does not depend on the batch; batch norm does.",
        "层归一化对每个向量单独进行，不受批次影响；批归一化则是跨样本的。",
    ),
    Text("note 001, layer normalisation; note 002, section 6", "笔记 001 层归一化；笔记 002 第 6 节"),
    Text(
        f"The same sentence goes through two encoder blocks in training mode, next to {MATES} different sentences, and "
        f"with {PADDINGS[0]} and {PADDINGS[1]} positions of padding behind it.",
        f"同一个句子在训练模式下经过两个编码块，旁边换 {MATES} 个不同的句子，"
        f"或者在后面加 {PADDINGS[0]} 个和 {PADDINGS[1]} 个填充位置。",
    ),
    Text(
        "In evaluation mode batch norm uses stored means and would not change either; training is where it differs.",
        "在评估模式下，批归一化用的是存下的均值，也不会变；差别在训练时。",
    ),
    (1, 2, 3),
    measure_neighbours,
    conclude_neighbours,
)

DEEP = replace(SMALL, width=32, feed_forward=64, encoder_blocks=3, decoder_blocks=3)
ORDER_LESSON = Lesson(steps=120, rate=2e-3, warmup=1, is_cooled=False)
WARMUP = 40
ORDERS = {
    "post": Text("post: LN(x+F(x)), paper", "后置：LN(x+F(x))，论文"),
    "warm": Text(f"post, {WARMUP} steps of warm-up", f"后置，预热 {WARMUP} 步"),
    "pre": Text("pre: x+F(LN(x))", "前置：x+F(LN(x))"),
    "branch": Text("branch: x+LN(F(x)), note 001", "分支：x+LN(F(x))，笔记 001"),
}


def measure_orders(seed: int) -> Measured:
    """Accuracy and loss curve with each order."""
    measured: Measured = {}
    task = reverse(5)
    for name in ORDERS:
        lesson = replace(ORDER_LESSON, warmup=WARMUP) if name == "warm" else ORDER_LESSON
        model, losses = learned(replace(DEEP, norm="post" if name == "warm" else name), task, lesson, seed)
        measured[name] = [told_accuracy(model, drawn(task, seed))]
        measured[f"{name} loss"] = smoothed(losses)
    return measured


def conclude_orders(runs: Runs) -> Finding:
    cell = {name: over(runs, name) for name in ORDERS}
    pre_wins = cell["pre"].mean > cell["post"].mean + 0.1
    branch_works = cell["branch"].mean > 0.5
    helps = cell["warm"].mean > cell["post"].mean + 0.1
    across = [(i + 0.5) * ORDER_LESSON.steps / 10 for i in range(10)]
    return Finding(
        verdict(branch_works and pre_wins and helps, branch_works or pre_wins or helps),
        Text(
            f"After {ORDER_LESSON.steps} steps, {percent(cell['pre'].mean)} right with pre-norm, "
            f"{percent(cell['branch'].mean)} with the branch order of note 001, {percent(cell['post'].mean)} with the "
            f"paper's post-norm, and {percent(cell['warm'].mean)} when that is warmed up.",
            f"{ORDER_LESSON.steps} 步之后的正确率：前置 {percent(cell['pre'].mean)}，笔记 001 的分支顺序 "
            f"{percent(cell['branch'].mean)}，论文的后置 {percent(cell['post'].mean)}，"
            f"后置加预热 {percent(cell['warm'].mean)}。",
        ),
        Table(
            [Text("order", "顺序"), Text("right words", "正确率")],
            [row(name, cell[kind]) for kind, name in ORDERS.items()],
        ),
        [
            Lines(
                Text("Loss by step", "每步的损失"),
                Text("step", "步"),
                Text("loss", "损失"),
                [(name, _capped(curve(runs, f"{kind} loss", across))) for kind, name in ORDERS.items()],
            )
        ],
    )


def _capped(points: list[tuple[float, Spread]], most: float = 5.0) -> list[tuple[float, Spread]]:
    """For a plot: a curve that shot up would leave the others flat."""
    return [(x, Spread(tuple(min(value, most) for value in spread.values))) for x, spread in points]


NORM_ORDERS = Experiment(
    "norm-order",
    Text("Three orders of norm and residual", "归一化与残差的三种顺序"),
    Text(
        "Layer norm and the residual connection make training stable: in note 000 first add, then norm; in note 001 "
        "first norm, then add. With post-norm a deep stack needs care, such as a warm-up.",
        "层归一化和残差连接使训练稳定：笔记 000 先加后归一化，笔记 001 先归一化后加。后置时深的网络需要小心，"
        "例如预热。",
    ),
    Text(
        "notes 000 and 002 (add, then norm), note 001 (norm, then add)",
        "笔记 000、002（先加后归一），笔记 001（先归一后加）",
    ),
    Text(
        f"Models of three and three blocks learn to reverse five words at a rate of {ORDER_LESSON.rate} from the first "
        f"step on; once more with {WARMUP} steps of warm-up.",
        f"编码、解码各三块的模型学习反转五个词，从第一步起学习率就是 {ORDER_LESSON.rate}；"
        f"后置的另外再试一次 {WARMUP} 步预热。",
    ),
    Text(
        "The paper's post-norm reaches good ends in long training; here only the start is seen.",
        "论文的后置顺序在长时间训练后效果很好；这里只看到开头。",
    ),
    (1, 2, 3),
    measure_orders,
    conclude_orders,
)
