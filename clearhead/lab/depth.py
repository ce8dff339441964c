"""Residual connections and depth (note 000, skip connection; notes 000, 001 and 004, six blocks)."""

from dataclasses import replace

import torch
from torch import Tensor

from clearhead.model.transformer import EncoderBlock, Transformer

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
from .learn import SMALL, Lesson, count_parameters, drawn, learned, smoothed, told_accuracy
from .tasks import reverse

NOTE_000_SKIP = Text("note 000, skip-connection", "笔记 000，Skip-Connection")
BLOCKS, TOKENS = 12, 32
KINDS = {
    "skip norm": Text("skip and norm", "残差＋归一化"),
    "skip": Text("skip, no norm", "有残差，无归一化"),
    "norm": Text("norm, no skip", "有归一化，无残差"),
    "bare": Text("neither", "都没有"),
}


def measure_gradients(seed: int) -> Measured:
    """The norm of the gradient at the output of each encoder block, from the first to the last, of new models."""
    return {kind: _gradients(kind, seed) for kind in KINDS}


def _gradients(kind: str, seed: int) -> list[float]:
    torch.manual_seed(seed)
    norm = "post" if "norm" in kind else "none"
    model = Transformer(replace(SMALL, encoder_blocks=BLOCKS, norm=norm, skip="skip" in kind))
    x = torch.randn(1, TOKENS, SMALL.width, requires_grad=True)
    mask = torch.ones(1, 1, 1, TOKENS, dtype=torch.bool)
    outputs = []
    for block in model.encoder:
        x = block(x, mask, lambda rotated: rotated)
        x.retain_grad()
        outputs.append(x)
    (x * torch.randn_like(x)).sum().backward()
    return [output.grad.norm().item() for output in outputs if output.grad is not None]


def conclude_gradients(runs: Runs) -> Finding:
    share = {kind: min(run[kind][0] / max(run[kind][-1], 1e-30) for run in runs) for kind in KINDS}
    survives, dies = share["skip norm"] > 0.05, share["bare"] < 0.05
    skip_is_enough = 0.05 < share["skip"] < 20 and share["norm"] < 0.05
    return Finding(
        verdict(survives and dies and skip_is_enough, survives and dies),
        Text(
            f"What is left of the last block's gradient in the first of {BLOCKS}: {number(share['skip norm'])} with "
            f"skip and norm, {number(share['skip'])} with skip alone, {number(share['norm'])} with norm alone, "
            f"{number(share['bare'])} with neither.",
            f"最后一块的梯度传到 {BLOCKS} 块中的第一块还剩多少倍：残差加归一化 {number(share['skip norm'])}，"
            f"只有残差 {number(share['skip'])}，只有归一化 {number(share['norm'])}，都没有 {number(share['bare'])}。",
        ),
        Table(
            [Text("model", "模型"), Text("first block", "第一块"), Text("last block", "最后一块")],
            [row(name, over(runs, kind, 0), over(runs, kind, BLOCKS - 1)) for kind, name in KINDS.items()],
        ),
        [
            Lines(
                Text("Gradient by block, before training", "训练之前各块的梯度"),
                Text("encoder block", "编码块"),
                Text("norm (log)", "范数（对数）"),
                [(name, curve(runs, kind, range(1, BLOCKS + 1))) for kind, name in KINDS.items()],
                log_y=True,
            )
        ],
    )


GRADIENTS = Experiment(
    "gradients",
    Text("Residual connections keep gradients alive", "残差连接保住梯度"),
    Text(
        "Skip connections let deep nets learn more easily and solve the problem of vanishing gradients.",
        "Skip-Connection 使深层网络更容易学习，同时解决梯度问题。",
    ),
    NOTE_000_SKIP,
    Text(
        f"New models with {BLOCKS} encoder blocks, with and without skip and norm. A random direction "
        "of the last output is sent back; we look at the gradient after each block.",
        f"新建的模型有 {BLOCKS} 个编码块，分别带或不带残差、归一化。"
        "从最后的输出沿一个随机方向反向传播，看每块之后的梯度。",
    ),
    Text(
        "Alive is from a twentieth to twenty times. Skips alone make gradients grow; norm alone may keep "
        "them alive too, but such a net cannot be trained: see the next experiment.",
        "二十分之一到二十倍之间算作“活着”。只有残差时梯度会增长；只用归一化也可能保住梯度，"
        "但这样的网络训练不好：见下一个实验。",
    ),
    (1, 2, 3),
    measure_gradients,
    conclude_gradients,
)

STACK = replace(SMALL, width=32, feed_forward=64, encoder_blocks=6, decoder_blocks=6)
STACK_LESSON = Lesson(steps=130, rate=2e-3)
STACKS = {
    "both": (Text("skip and norm", "残差＋归一化"), STACK),
    "no skip": (Text("norm, no skip", "有归一化，无残差"), replace(STACK, skip=False)),
    "no norm": (Text("skip, no norm", "有残差，无归一化"), replace(STACK, norm="none")),
}


def measure_stack(seed: int) -> Measured:
    """Accuracy and loss of six and six blocks."""
    measured: Measured = {}
    for name, (_, options) in STACKS.items():
        model, losses = learned(options, reverse(5), STACK_LESSON, seed)
        measured[name] = [told_accuracy(model, drawn(reverse(5), seed))]
        measured[f"{name} loss"] = smoothed(losses)
    return measured


def conclude_stack(runs: Runs) -> Finding:
    cell = {name: over(runs, name) for name in STACKS}
    by_skip, by_norm = (cell["both"].mean - cell[name].mean for name in ("no skip", "no norm"))
    across = [(i + 0.5) * STACK_LESSON.steps / 10 for i in range(10)]
    curves = [(name, curve(runs, f"{kind} loss", across)) for kind, (name, _) in STACKS.items()]
    return Finding(
        verdict(by_skip > 0.2 and by_norm > 0.2, by_skip > 0.2),
        Text(
            f"Six and six blocks get {percent(cell['both'].mean)} right with both, "
            f"{percent(cell['no skip'].mean)} without skip, {percent(cell['no norm'].mean)} without norm, whose loss "
            f"at first is {number(over(runs, 'no norm loss', 0).mean)}.",
            f"编码、解码各六块，两者都有时正确率 {percent(cell['both'].mean)}，"
            f"没有残差 {percent(cell['no skip'].mean)}，没有归一化 {percent(cell['no norm'].mean)}，"
            f"其开头的损失为 {number(over(runs, 'no norm loss', 0).mean)}。",
        ),
        Table(
            [Text("model", "模型"), Text("right words", "正确率"), Text("loss, first tenth", "前十分之一的损失")],
            [row(name, cell[kind], over(runs, f"{kind} loss", 0)) for kind, (name, _) in STACKS.items()],
        ),
        [
            Lines(
                Text("Loss by step", "每步的损失"),
                Text("step", "步"),
                Text("loss (log)", "损失（对数）"),
                curves,
                log_y=True,
            )
        ],
    )


TRAINED_STACK = Experiment(
    "stack",
    Text("Can six blocks be trained without them?", "没有它们，六块还能训练吗？"),
    Text(
        "With residual connections more layers can be stacked, and deeper nets be trained.",
        "残差连接可以使网络的层数增加，训练更深的网络结构。",
    ),
    Text("note 000, skip-connection; note 001, residual connection", "笔记 000 Skip-Connection；笔记 001 残差连接"),
    Text(
        f"Six encoder and six decoder blocks learn to reverse five words in {STACK_LESSON.steps} steps, with and "
        "without skip, and without norm.",
        f"六个编码块和六个解码块用 {STACK_LESSON.steps} 步学习反转五个词：有残差、没有残差、没有归一化。",
    ),
    Text(
        "Other initialisations can train deep nets without skips; they are not what the notes describe.",
        "用别的初始化方法，没有残差的深网络也能训练；那不是笔记讲的内容。",
    ),
    (1, 2, 3),
    measure_stack,
    conclude_stack,
)

DEEPEST = 24
SPREADS = {
    "attention": Text("attention alone", "只有注意力"),
    "bare": Text("attention and feed-forward", "注意力＋前馈"),
    "post": Text("with skip, post-norm", "加残差，后置归一"),
    "pre": Text("with skip, pre-norm", "加残差，前置归一"),
}
SHOWN_BLOCKS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)


@torch.no_grad()
def measure_rank(seed: int) -> Measured:
    """After each of some blocks, how much the positions still differ: ‖X - mean‖ / ‖X‖."""
    torch.manual_seed(seed)
    x = torch.randn(1, TOKENS, SMALL.width)
    return {kind: _differences(kind, x, seed) for kind in SPREADS}


def _differences(kind: str, x: Tensor, seed: int) -> list[float]:
    torch.manual_seed(seed)
    norm = kind if kind in ("post", "pre") else "none"
    model = Transformer(replace(SMALL, encoder_blocks=DEEPEST, norm=norm, skip=norm != "none"))
    mask = torch.ones(1, 1, 1, TOKENS, dtype=torch.bool)
    differences = [_difference(x)]
    for block in model.encoder:
        assert isinstance(block, EncoderBlock)
        x = block.attention(x, x, None) if kind == "attention" else block(x, mask, lambda rotated: rotated)
        differences.append(_difference(x))
    return [differences[i] for i in SHOWN_BLOCKS]


def _difference(x: Tensor) -> float:
    return ((x - x.mean(dim=1, keepdim=True)).norm() / x.norm().clamp(min=1e-30)).item()


def conclude_rank(runs: Runs) -> Finding:
    last = len(SHOWN_BLOCKS) - 1
    ends = {kind: over(runs, kind, last) for kind in SPREADS}
    third = over(runs, "attention", SHOWN_BLOCKS.index(3))
    six = SHOWN_BLOCKS.index(6)
    collapses, is_kept = third.high < 0.01, min(over(runs, kind, six).low for kind in ("post", "pre")) > 0.1
    return Finding(
        verdict(collapses and is_kept, collapses or is_kept),
        Text(
            f"With attention alone the positions differ by {number(third.mean)} of their size after 3 blocks. With "
            f"skips {number(over(runs, 'post', six).mean)} (post-norm) and {number(over(runs, 'pre', six).mean)} "
            f"(pre-norm) are left after 6, and {number(ends['post'].mean)} and {number(ends['pre'].mean)} after "
            f"{DEEPEST}.",
            f"只有注意力时，3 块之后各位置的差别只剩 {number(third.mean)}。加上残差，6 块之后还剩 "
            f"{number(over(runs, 'post', six).mean)}（后置）和 {number(over(runs, 'pre', six).mean)}（前置），"
            f"{DEEPEST} 块之后是 {number(ends['post'].mean)} 和 {number(ends['pre'].mean)}。",
        ),
        Table(
            [Text("blocks", "块数"), *SPREADS.values()],
            [row(str(n), *(over(runs, kind, i) for kind in SPREADS)) for i, n in enumerate(SHOWN_BLOCKS)],
        ),
        [
            Lines(
                Text("How much positions differ", "各位置的差别"),
                Text("blocks", "块数"),
                Text("‖X − mean‖ / ‖X‖ (log)", "‖X − 均值‖ / ‖X‖（对数）"),
                [(name, curve(runs, kind, SHOWN_BLOCKS)) for kind, name in SPREADS.items()],
                log_y=True,
            )
        ],
    )


RANK = Experiment(
    "rank",
    Text("Attention alone makes all words the same", "只有注意力，所有词会变得一样"),
    Text(
        "The residual connection keeps information of the input, so that it is not lost in the transformations.",
        "通过残差连接可以保留输入的一部分原始信息，防止信息在变换中丢失。",
    ),
    NOTE_000_SKIP,
    Text(
        f"{TOKENS} random vectors go through {DEEPEST} untrained blocks. After each we measure how far the positions "
        "are from their mean.",
        f"{TOKENS} 个随机向量经过 {DEEPEST} 个未训练的块，每块之后量各位置离平均值有多远。",
    ),
    Text(
        "It is about new models. Training can sharpen attention, which slows the collapse (Dong et al. 2021).",
        "这里是新建的模型。训练会使注意力变尖，从而减慢这种坍缩（Dong 等，2021）。",
    ),
    (1, 2, 3),
    measure_rank,
    conclude_rank,
)

DEPTHS = (1, 2, 6)
DEPTH_LESSON = Lesson(steps=130)


def measure_depth(seed: int) -> Measured:
    """Accuracy by depth after as many steps each, and parameters."""
    measured: Measured = {"accuracy": [], "parameters": []}
    for blocks in DEPTHS:
        options = replace(SMALL, width=32, feed_forward=64, encoder_blocks=blocks, decoder_blocks=blocks)
        model, _ = learned(options, reverse(6), DEPTH_LESSON, seed)
        measured["accuracy"].append(told_accuracy(model, drawn(reverse(6), seed)))
        measured["parameters"].append(float(count_parameters(model)))
    return measured


def conclude_depth(runs: Runs) -> Finding:
    accuracies = [over(runs, "accuracy", i) for i in range(len(DEPTHS))]
    six, best = accuracies[-1], max(spread.mean for spread in accuracies)
    is_best = six.mean >= best and six.mean > accuracies[0].mean + 0.02
    return Finding(
        verdict(is_best, False),
        Text(
            "Right words after the same number of steps: "
            + ", ".join(f"{percent(a.mean)} with {n}" for n, a in zip(DEPTHS, accuracies, strict=True))
            + (". Six are the best." if is_best else ". More blocks are not better here."),
            "训练步数相同时的正确率："
            + "，".join(f"{n} 块 {percent(a.mean)}" for n, a in zip(DEPTHS, accuracies, strict=True))
            + ("。六块最好。" if is_best else "。在这里，块更多并不更好。"),
        ),
        Table(
            [Text("blocks on each side", "每边的块数"), Text("right words", "正确率"), Text("parameters", "参数")],
            [row(str(n), accuracies[i], over(runs, "parameters", i)) for i, n in enumerate(DEPTHS)],
        ),
        [
            Bars(
                Text("Right words by depth", "深度与正确率"),
                Text("share", "比例"),
                [same(str(n)) for n in DEPTHS],
                [(Text("right words", "正确率"), accuracies)],
                high=1.0,
            )
        ],
    )


WHY_SIX = Experiment(
    "why-six",
    Text("Why six blocks?", "为什么是六块？"),
    Text("Encoder and decoder have six blocks each.", "编码器和解码器各有 6 个 Block。"),
    Text("notes 000, 001 and 004", "笔记 000、001、004"),
    Text(
        f"Models of 1, 2 and 6 blocks on each side learn to reverse six words in {DEPTH_LESSON.steps} steps. The "
        "claim counts as true here if six are the best.",
        f"每边 1、2、6 块的模型用 {DEPTH_LESSON.steps} 步学习反转六个词。如果六块最好，就算这一说法成立。",
    ),
    Text(
        "Six is a size for millions of sentences and days of training. A toy task cannot say what they need.",
        "六块适合上百万句子和好几天的训练。小任务说明不了它们需要多深。",
    ),
    (1, 2, 3),
    measure_depth,
    conclude_depth,
)
