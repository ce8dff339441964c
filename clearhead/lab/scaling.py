"""Why scores are divided by √d_k (paper 3.2.1; note 003, step 3)."""

from dataclasses import replace

import torch

from clearhead.model.attention import attention_weights

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
    same,
    verdict,
)
from .learn import SMALL, Lesson, drawn, learned, smoothed, told_accuracy
from .tasks import reverse

WIDTHS = (4, 16, 64, 256, 1024)
KEYS, DRAWS = 32, 500
RAW, SCALED = Text("not scaled", "不缩放"), same("÷√d_k")
NOTE_003_STEP_3 = Text("note 003, step 3 of self-attention", "笔记 003，自注意力第 3 步")


def measure_saturation(seed: int) -> Measured:
    """For each head width: variance of q·k, the largest weight, and the slope of the softmax, scaled and not."""
    torch.manual_seed(seed)
    measured: Measured = {"variance": [], "top raw": [], "top scaled": [], "slope raw": [], "slope scaled": []}
    for width in WIDTHS:
        q, k = torch.randn(DRAWS, 1, width), torch.randn(DRAWS, KEYS, width)
        measured["variance"].append((q @ k.transpose(1, 2)).var().item())
        for name, scale in (("raw", 1.0), ("scaled", width**-0.5)):
            weights = attention_weights(q, k, None, scale).squeeze(1)  # (draws, keys)
            measured[f"top {name}"].append(weights.amax(dim=1).mean().item())
            slopes = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
            measured[f"slope {name}"].append(slopes.flatten(1).norm(dim=1).median().item())
    return measured


def conclude_saturation(runs: Runs) -> Finding:
    last = len(WIDTHS) - 1
    variance = over(runs, "variance", last)
    raw, scaled = over(runs, "top raw", last), over(runs, "top scaled", last)
    slope, slope_scaled = over(runs, "slope raw", last), over(runs, "slope scaled", last)
    follows = all(abs(over(runs, "variance", i).mean / width - 1) < 0.1 for i, width in enumerate(WIDTHS))
    saturates = raw.low > 2 * scaled.high and slope.high < 0.1 * slope_scaled.low
    kinds = ("variance", "top raw", "top scaled", "slope raw", "slope scaled")
    rows = [row(str(width), *(over(runs, key, i) for key in kinds)) for i, width in enumerate(WIDTHS)]
    tops = [(RAW, curve(runs, "top raw", WIDTHS)), (SCALED, curve(runs, "top scaled", WIDTHS))]
    slopes = [(RAW, curve(runs, "slope raw", WIDTHS)), (SCALED, curve(runs, "slope scaled", WIDTHS))]
    return Finding(
        verdict(follows and saturates, follows or saturates),
        Text(
            f"At d_k = {WIDTHS[-1]} the variance of q·k is {number(variance.mean)}; the largest of {KEYS} "
            "weights takes "
            f"{percent(raw.mean)} without scaling and {percent(scaled.mean)} with it; the slope of the softmax is "
            f"{number(slope.mean)} against {number(slope_scaled.mean)}.",
            f"d_k = {WIDTHS[-1]} 时，q·k 的方差为 {number(variance.mean)}；{KEYS} 个权重中最大的一个，"
            f"不缩放占 {percent(raw.mean)}，缩放后占 {percent(scaled.mean)}；"
            f"softmax 的斜率为 {number(slope.mean)}，缩放后为 {number(slope_scaled.mean)}。",
        ),
        Table(
            [
                same("d_k"),
                Text("variance of q·k", "q·k 的方差"),
                Text("top weight, raw", "最大权重，不缩放"),
                Text("top weight, ÷√d_k", "最大权重，÷√d_k"),
                Text("slope, raw", "斜率，不缩放"),
                Text("slope, ÷√d_k", "斜率，÷√d_k"),
            ],
            rows,
        ),
        [
            Lines(Text("The largest weight", "最大的权重"), same("d_k"), Text("weight", "权重"), tops, log_x=True),
            Lines(
                Text("Slope of the softmax", "softmax 的斜率"), same("d_k"), Text("norm", "范数"), slopes, log_x=True
            ),
        ],
    )


SATURATION = Experiment(
    "scale",
    Text("Why divide by √d_k", "为什么要除以 √d_k"),
    Text(
        "When d_k is large, q·k becomes large, the softmax saturates, and its gradient nearly vanishes.",
        "d_k 较大时，q·k 的值很大，softmax 饱和，梯度趋近于 0。",
    ),
    NOTE_003_STEP_3,
    Text(
        f"Queries and {KEYS} keys drawn from a normal distribution, {DRAWS} times for each d_k. We look at the "
        "variance of q·k, the largest weight, and the norm of the derivative of the softmax.",
        f"查询与 {KEYS} 个键取自正态分布，每个 d_k 取 {DRAWS} 次，看 q·k 的方差、最大权重和 softmax 导数的范数。",
    ),
    Text(
        "Random vectors are what a model starts with, not what it ends with: a trained head may well be sharp.",
        "随机向量只是模型的起点，不是终点：训练好的头完全可以很尖锐。",
    ),
    (1, 2, 3),
    measure_saturation,
    conclude_saturation,
)

LESSON = Lesson(steps=100, rate=2e-3)
LENGTH = 6
WIDE, NARROW = replace(SMALL, width=128, heads=1), replace(SMALL, width=64, heads=8)
SIZES = {"wide": (same(f"d_k = {WIDE.key_width}"), WIDE), "narrow": (same(f"d_k = {NARROW.key_width}"), NARROW)}


def measure_learning(seed: int) -> Measured:
    """Accuracy and loss with scaling and without, of one wide head and of eight narrow ones."""
    measured: Measured = {}
    for size, (_, options) in SIZES.items():
        for kind, scale in (("scaled", "head_width"), ("raw", "none")):
            model, losses = learned(replace(options, scale=scale), reverse(LENGTH), LESSON, seed)
            measured[f"{size} {kind}"] = [told_accuracy(model, drawn(reverse(LENGTH), seed))]
            measured[f"{size} {kind} loss"] = smoothed(losses)
    return measured


def conclude_learning(runs: Runs) -> Finding:
    cell = {(size, kind): over(runs, f"{size} {kind}") for size in SIZES for kind in ("scaled", "raw")}
    gain = {size: cell[size, "scaled"].mean - cell[size, "raw"].mean for size in SIZES}
    helps, more_if_wide = gain["wide"] > 0.15, gain["wide"] > gain["narrow"] + 0.1
    across = [(i + 0.5) * LESSON.steps / 10 for i in range(10)]
    curves = [(SCALED, "wide scaled loss"), (RAW, "wide raw loss")]
    return Finding(
        verdict(helps and more_if_wide, helps),
        Text(
            f"With d_k = {WIDE.key_width}, {percent(cell['wide', 'scaled'].mean)} are right with scaling and "
            f"{percent(cell['wide', 'raw'].mean)} without; with d_k = {NARROW.key_width}, "
            f"{percent(cell['narrow', 'scaled'].mean)} and {percent(cell['narrow', 'raw'].mean)}.",
            f"d_k = {WIDE.key_width} 时，缩放的正确率 {percent(cell['wide', 'scaled'].mean)}，"
            f"不缩放 {percent(cell['wide', 'raw'].mean)}；d_k = {NARROW.key_width} 时，分别为 "
            f"{percent(cell['narrow', 'scaled'].mean)} 和 {percent(cell['narrow', 'raw'].mean)}。",
        ),
        Table(
            [Text("heads", "头"), SCALED, RAW],
            [row(name, cell[size, "scaled"], cell[size, "raw"]) for size, (name, _) in SIZES.items()],
        ),
        [
            Bars(
                Text("Right words", "正确率"),
                Text("share", "比例"),
                [name for name, _ in SIZES.values()],
                [(name, [cell[size, kind] for size in SIZES]) for name, kind in ((SCALED, "scaled"), (RAW, "raw"))],
                high=1.0,
            ),
            Lines(
                Text(f"Loss with d_k = {WIDE.key_width}", f"d_k = {WIDE.key_width} 时的损失"),
                Text("step", "步"),
                Text("loss", "损失"),
                [(name, curve(runs, key, across)) for name, key in curves],
            ),
        ],
    )


LEARNING = Experiment(
    "scale-learning",
    Text("Does √d_k matter for learning?", "√d_k 对学习重要吗？"),
    Text(
        "Without scaling the gradients become very small when d_k is large, which is bad for training.",
        "d_k 较大时若不缩放，梯度非常小，不利于网络的训练。",
    ),
    NOTE_003_STEP_3,
    Text(
        f"Models learn to reverse {LENGTH} words in {LESSON.steps} steps: one head of {WIDE.key_width}, or eight of "
        f"{NARROW.key_width}, with and without the scale.",
        f"模型用 {LESSON.steps} 步学习反转 {LENGTH} 个词：一个 {WIDE.key_width} 维的头，或八个 "
        f"{NARROW.key_width} 维的头，缩放或不缩放。",
    ),
    Text(
        "Longer training or another initialisation can make up for a missing scale.",
        "训练更久或换一种初始化，也能弥补不缩放的影响。",
    ),
    (1, 2, 3),
    measure_learning,
    conclude_learning,
)

ROOTS = {
    "head_width": Text("√d_k (paper, 003, 004)", "√d_k（论文、003、004）"),
    "width": Text("√width (note 001)", "√嵌入维度（笔记 001）"),
}
ROOT_LESSON = Lesson(steps=80, rate=3e-3)


def measure_root(seed: int) -> Measured:
    """Accuracy and loss with the root of the head's width and of the model's width; the largest weight at first."""
    measured: Measured = {}
    for scale in ROOTS:
        model, losses = learned(replace(NARROW, scale=scale), reverse(LENGTH), ROOT_LESSON, seed)
        measured[scale] = [told_accuracy(model, drawn(reverse(LENGTH), seed))]
        measured[f"{scale} loss"] = smoothed(losses)
    q, k = torch.randn(DRAWS, 1, NARROW.key_width), torch.randn(DRAWS, KEYS, NARROW.key_width)
    for scale, divisor in (("head_width", NARROW.key_width), ("width", NARROW.width)):
        measured[f"{scale} top"] = [attention_weights(q, k, None, divisor**-0.5).amax(dim=-1).mean().item()]
    return measured


def conclude_root(runs: Runs) -> Finding:
    ours, note = over(runs, "head_width"), over(runs, "width")
    tops = over(runs, "head_width top"), over(runs, "width top")
    gap = ours.mean - note.mean
    across = [(i + 0.5) * ROOT_LESSON.steps / 10 for i in range(10)]
    return Finding(
        verdict(abs(gap) < 0.05, gap < 0.2),
        Text(
            f"After {ROOT_LESSON.steps} steps {percent(ours.mean)} are right with √d_k and {percent(note.mean)} with "
            f"√width. Dividing by more makes new heads flatter: the largest of {KEYS} weights is "
            f"{number(tops[0].mean)} and {number(tops[1].mean)}.",
            f"{ROOT_LESSON.steps} 步之后，√d_k 的正确率 {percent(ours.mean)}，√嵌入维度 {percent(note.mean)}。"
            f"除数更大，未训练的头更平：{KEYS} 个权重中最大的分别为 {number(tops[0].mean)} 和 {number(tops[1].mean)}。",
        ),
        Table(
            [
                Text("divided by", "除以"),
                Text("right words", "正确率"),
                Text("largest weight at first", "开始时的最大权重"),
            ],
            [row(name, over(runs, scale), over(runs, f"{scale} top")) for scale, name in ROOTS.items()],
        ),
        [
            Lines(
                Text("Loss by step", "每步的损失"),
                Text("step", "步"),
                Text("loss", "损失"),
                [(name, curve(runs, f"{scale} loss", across)) for scale, name in ROOTS.items()],
            )
        ],
    )


ROOT = Experiment(
    "root",
    Text("√d_k or the root of the embedding's width?", "√d_k 还是嵌入维度的平方根？"),
    Text(
        "Scores are divided by a constant, usually the root of the embedding vector's width.",
        "得分要除以一个常数，通常是嵌入向量的维度的平方根。",
    ),
    Text("note 001, scaling; notes 003 and 004 say √d_k", "笔记 001 缩放；笔记 003、004 用 √d_k"),
    Text(
        f"A model of {NARROW.heads} heads of {NARROW.key_width} learns to reverse {LENGTH} words with either divisor. "
        "The claim counts as true if the note's does as well.",
        f"一个有 {NARROW.heads} 个 {NARROW.key_width} 维头的模型，用两种除数分别学习反转 {LENGTH} 个词。"
        "如果笔记的除数一样好，就算成立。",
    ),
    Text(
        "With one head both are the same. A model can learn larger q and k, which undoes any constant in time.",
        "只有一个头时两者相同。模型可以学出更大的 q 和 k，时间一长，常数的影响就消失了。",
    ),
    (1, 2, 3),
    measure_root,
    conclude_root,
)
