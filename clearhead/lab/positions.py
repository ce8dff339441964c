"""Positions: what is lost without them, and what sinusoids are (paper 3.5; note 002, section 3)."""

from dataclasses import replace

import torch
from torch import Tensor

from clearhead.model.positions import angles, sinusoidal
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
from .learn import SMALL, Lesson, drawn, free_token_accuracy, learned
from .tasks import VOCABULARY, copy, reverse, sort

NOTE_002_POSITIONS = Text("note 002, section 3", "笔记 002 第 3 节")
TOKENS = 11
WITH, WITHOUT = Text("with positions", "有位置"), Text("without positions", "无位置")


def measure_permutation(seed: int) -> Measured:
    """How far the encoder's output for mixed words is from its mixed output, with positions and without."""
    torch.manual_seed(seed)
    src = torch.randint(4, VOCABULARY, (1, TOKENS))
    order = torch.randperm(TOKENS)
    return {name: [_change(name, src, order)] for name in ("none", "sinusoidal", "learned", "rotary")}


@torch.no_grad()
def _change(positions: str, src: Tensor, order: Tensor) -> float:
    model = Transformer(replace(SMALL, positions=positions, encoder_blocks=3)).eval()
    mask = torch.ones_like(src, dtype=torch.bool)
    straight, mixed = model.read(src, mask), model.read(src[:, order], mask)
    return (straight[:, order] - mixed).abs().max().item()


def conclude_permutation(runs: Runs) -> Finding:
    kinds = ("none", "sinusoidal", "learned", "rotary")
    names = [Text("none", "无"), Text("sinusoidal", "正弦"), Text("learned", "学习"), Text("rotary", "旋转")]
    without, least = over(runs, "none"), min(over(runs, kind).low for kind in kinds[1:])
    is_exact = without.high < 1e-4
    return Finding(
        verdict(is_exact and least > 0.01, is_exact),
        Text(
            f"Without positions the outputs move with their words, up to {number(without.high)}. With any "
            f"kind of positions they change, by {number(least)} at least.",
            f"没有位置编码时，输出只是跟着词一起换位，误差至多 {number(without.high)}。"
            f"有了位置编码，无论哪一种，输出都会改变，至少 {number(least)}。",
        ),
        Table(
            [Text("positions", "位置编码"), Text("largest change", "最大变化")],
            [row(name, over(runs, kind)) for name, kind in zip(names, kinds, strict=True)],
        ),
        [
            Bars(
                Text("Change when words are mixed", "打乱词序后的变化"),
                Text("largest change (log)", "最大变化（对数）"),
                names,
                [(Text("change", "变化"), [over(runs, kind) for kind in kinds])],
                log_y=True,
            )
        ],
    )


PERMUTATION = Experiment(
    "permutation",
    Text("Without positions, order is invisible", "没有位置编码就看不见顺序"),
    Text(
        "Self-attention has no information about positions: where a word stands has no influence.",
        "在自注意力里没有位置信息，位置对输出没有影响。",
    ),
    NOTE_002_POSITIONS,
    Text(
        f"{TOKENS} random words go through three encoder blocks, once in order and once mixed. We put the first output "
        "into the mixed order and compare.",
        f"{TOKENS} 个随机词经过三个编码块，一次按原顺序，一次打乱；把前一次的输出按同样的顺序打乱，再比较。",
    ),
    Text(
        "It is a property of the encoder. A decoder's causal mask gives some order away even without positions.",
        "这是编码器的性质。解码器的因果掩码即使没有位置编码，也会透露一些顺序。",
    ),
    (1, 2, 3, 4, 5),
    measure_permutation,
    conclude_permutation,
)

WIDTH, POSITIONS, SHIFT = 64, 128, 5
OFFSETS = (0, 1, 2, 5, 10, 20, 40, 60)


def measure_rotation(_: int) -> Measured:
    """How well one rotation per pair of channels moves every position by SHIFT; q·k by offset and its spread."""
    here = torch.arange(POSITIONS)
    table = sinusoidal(here, WIDTH).double()  # (T, D)
    turn = angles(torch.tensor([SHIFT]), WIDTH).double()  # (1, D/2)
    sine, cosine = table[:, 0::2], table[:, 1::2]
    moved = torch.stack([sine * turn.cos() + cosine * turn.sin(), cosine * turn.cos() - sine * turn.sin()], dim=-1)
    products = table @ table.t()
    by_offset = [products.diagonal(offset) for offset in OFFSETS]
    return {
        "residual": [(moved.flatten(1) - sinusoidal(here + SHIFT, WIDTH)).abs().max().item()],
        "product": [diagonal.mean().item() for diagonal in by_offset],
        "deviation": [diagonal.std().item() for diagonal in by_offset],
    }


def conclude_rotation(runs: Runs) -> Finding:
    residual, deviation = over(runs, "residual"), max(over(runs, "deviation", i).high for i in range(len(OFFSETS)))
    first, last = over(runs, "product", 0), over(runs, "product", len(OFFSETS) - 1)
    is_rotation, is_relative = residual.high < 1e-4, deviation < 1e-3
    return Finding(
        verdict(is_rotation and is_relative, is_rotation or is_relative),
        Text(
            f"One rotation moves every position by {SHIFT}, up to {number(residual.high)}. The product of two position "
            f"vectors depends on their distance alone (deviation {number(deviation)}): {number(first.mean)} at "
            f"distance 0, {number(last.mean)} at {OFFSETS[-1]}.",
            f"同一个旋转把每个位置都移动 {SHIFT}，误差不超过 {number(residual.high)}。两个位置向量的内积只取决于距离"
            f"（偏差 {number(deviation)}）：距离 0 时为 {number(first.mean)}，"
            f"距离 {OFFSETS[-1]} 时为 {number(last.mean)}。",
        ),
        Table(
            [Text("distance", "距离"), Text("product", "内积"), Text("deviation over positions", "随位置的偏差")],
            [row(str(o), over(runs, "product", i), over(runs, "deviation", i)) for i, o in enumerate(OFFSETS)],
        ),
        [
            Lines(
                Text("PE(p) · PE(p+k)", "PE(p) · PE(p+k)"),
                Text("distance k", "距离 k"),
                Text("product", "内积"),
                [(Text("product", "内积"), curve(runs, "product", OFFSETS))],
            )
        ],
    )


ROTATION = Experiment(
    "rotation",
    Text("Sinusoids are rotations", "正弦位置编码就是旋转"),
    Text(
        "Position vectors can be made of sines and cosines; then a fixed linear map leads from one place to the next.",
        "位置向量可以用三角函数生成；这时从一个位置到另一个位置是一个固定的线性变换。",
    ),
    Text("note 002, section 3; paper 3.5", "笔记 002 第 3 节；论文 3.5 节"),
    Text(
        f"We turn each pair of sine and cosine of {POSITIONS} positions by the angle of {SHIFT} steps, and compare "
        f"with the vectors {SHIFT} positions on. Then we multiply all pairs of vectors.",
        f"把 {POSITIONS} 个位置的每一对正弦、余弦转过 {SHIFT} 步的角度，与 {SHIFT} 个位置之后的向量比较；"
        "再把所有向量两两相乘。",
    ),
    Text(
        "That distance can be read off does not mean that a model learns to read it; see the experiment on longer "
        "sequences.",
        "距离可以读出来，不等于模型能学会去读；见“比训练时更长”的实验。",
    ),
    (1,),
    measure_rotation,
    conclude_rotation,
)

LENGTH = 6
ORDER_LESSON = Lesson(steps=140, rate=5e-3)
ORDER_CASES = [(task, kind) for task in ("reverse", "sort") for kind in ("sinusoidal", "none")]


def measure_order(seed: int) -> Measured:
    """Accuracy of free generation on a task of order and on one of sets, with positions in the encoder and without."""
    return {f"{task} {kind}": [_order_accuracy(task, kind, seed)] for task, kind in ORDER_CASES}


def _order_accuracy(task_name: str, positions: str, seed: int) -> float:
    task = reverse(LENGTH) if task_name == "reverse" else sort(LENGTH)
    model, _ = learned(replace(SMALL, positions=positions), task, ORDER_LESSON, seed)
    return free_token_accuracy(model, drawn(task, seed))


def conclude_order(runs: Runs) -> Finding:
    cell = {case: over(runs, f"{case[0]} {case[1]}") for case in ORDER_CASES}
    loss_of_order = cell["reverse", "sinusoidal"].low - cell["reverse", "none"].high
    loss_of_sets = cell["sort", "sinusoidal"].mean - cell["sort", "none"].mean
    names = {"reverse": Text("reverse", "反转"), "sort": Text("sort", "排序")}
    return Finding(
        verdict(loss_of_order > 0.3 and loss_of_sets < 0.15, loss_of_order > 0.3),
        Text(
            f"Reversing falls from {percent(cell['reverse', 'sinusoidal'].mean)} to "
            f"{percent(cell['reverse', 'none'].mean)} without positions; sorting, which asks only which words there "
            f"are, goes from {percent(cell['sort', 'sinusoidal'].mean)} to {percent(cell['sort', 'none'].mean)}.",
            f"去掉位置编码，反转从 {percent(cell['reverse', 'sinusoidal'].mean)} 降到 "
            f"{percent(cell['reverse', 'none'].mean)}；排序只问有哪些词，"
            f"从 {percent(cell['sort', 'sinusoidal'].mean)} 变为 {percent(cell['sort', 'none'].mean)}。",
        ),
        Table(
            [Text("task", "任务"), WITH, WITHOUT],
            [row(names[task], cell[task, "sinusoidal"], cell[task, "none"]) for task in names],
        ),
        [
            Bars(
                Text("Right words, generated freely", "自由生成的正确率"),
                Text("share", "比例"),
                list(names.values()),
                [(WITH, _bars(cell, "sinusoidal")), (WITHOUT, _bars(cell, "none"))],
                high=1.0,
            )
        ],
    )


def _bars(cell: dict[tuple[str, str], Spread], kind: str) -> list[Spread]:
    return [cell["reverse", kind], cell["sort", kind]]


ORDER = Experiment(
    "order",
    Text("Tasks of order need positions, tasks of sets don't", "有顺序的任务需要位置，集合任务不需要"),
    Text(
        "Positions have to be added, or the model cannot use the order of the words.",
        "必须加上位置编码，否则模型用不上词的顺序。",
    ),
    NOTE_002_POSITIONS,
    Text(
        f"A model of one encoder and one decoder block learns to reverse, or to sort, {LENGTH} words in "
        f"{ORDER_LESSON.steps} steps, with sinusoids or with no positions at all.",
        f"一个编码块加一个解码块的模型，用 {ORDER_LESSON.steps} 步学习把 {LENGTH} 个词反转或排序，"
        "一次用正弦位置编码，一次完全不用。",
    ),
    Text(
        "Both sides lose their positions here. The decoder still has its causal mask, from which it can count.",
        "这里编码器和解码器都去掉了位置；解码器还有因果掩码，可以靠它数数。",
    ),
    (1, 2, 3),
    measure_order,
    conclude_order,
)

SHORTEST, LONGEST = 4, 10
TEST_LENGTHS = (8, 10, 11, 12, 14, 20)
LONGER_LESSON = Lesson(steps=250)
LONGER_KINDS = {
    "sinusoidal": Text("sinusoidal", "正弦"),
    "learned": Text("learned table", "学习的表"),
}


def measure_longer(seed: int) -> Measured:
    """Accuracy of copying by length, beyond the lengths that were trained on."""
    measured: Measured = {}
    for kind in LONGER_KINDS:
        options = replace(SMALL, positions=kind, max_positions=TEST_LENGTHS[-1] + 6)
        model, _ = learned(options, copy(SHORTEST, LONGEST), LONGER_LESSON, seed)
        measured[kind] = [free_token_accuracy(model, drawn(copy(n, n), seed, 61)) for n in TEST_LENGTHS]
    return measured


def conclude_longer(runs: Runs) -> Finding:
    longest, beyond = TEST_LENGTHS.index(LONGEST), TEST_LENGTHS.index(14)
    ends = {kind: (over(runs, kind, longest), over(runs, kind, beyond)) for kind in LONGER_KINDS}
    keeps = ends["sinusoidal"][1].mean > 0.9
    degrade = all(outside.mean < inside.mean - 0.1 for inside, outside in ends.values())
    is_better = ends["sinusoidal"][1].mean > ends["learned"][1].mean + 0.05
    return Finding(
        verdict(keeps and is_better, is_better),
        Text(
            f"At length {LONGEST}, the longest in training, sinusoids have {percent(ends['sinusoidal'][0].mean)} "
            f"right and the table {percent(ends['learned'][0].mean)}; at 14 they have "
            f"{percent(ends['sinusoidal'][1].mean)} and {percent(ends['learned'][1].mean)}."
            + (" Both degrade." if degrade else ""),
            f"长度 {LONGEST}（训练中最长）时，正弦正确 {percent(ends['sinusoidal'][0].mean)}，"
            f"学习的表 {percent(ends['learned'][0].mean)}；长度 14 时分别为 {percent(ends['sinusoidal'][1].mean)} 和 "
            f"{percent(ends['learned'][1].mean)}。" + ("两者都变差。" if degrade else ""),
        ),
        Table(
            [Text("length", "长度"), *LONGER_KINDS.values()],
            [row(str(n), *(over(runs, kind, i) for kind in LONGER_KINDS)) for i, n in enumerate(TEST_LENGTHS)],
        ),
        [
            Lines(
                Text(f"Copying; trained on {SHORTEST} to {LONGEST}", f"复制；训练长度 {SHORTEST} 到 {LONGEST}"),
                Text("length", "长度"),
                Text("right words", "正确率"),
                [(name, curve(runs, kind, TEST_LENGTHS)) for kind, name in LONGER_KINDS.items()],
                low=0.0,
                high=1.0,
            )
        ],
    )


LONGER = Experiment(
    "longer",
    Text("Longer than anything seen in training", "比训练时更长"),
    Text(
        "Sinusoids can be computed for any position, so a model with sinusoids extends to longer sequences.",
        "三角函数对任何位置都能算，所以用正弦位置编码的模型可以推广到更长的序列。",
    ),
    Text("note 002, section 3; paper 3.5", "笔记 002 第 3 节；论文 3.5 节"),
    Text(
        f"Models learn to copy {SHORTEST} to {LONGEST} words in {LONGER_LESSON.steps} steps and are then given longer "
        "ones. They differ only in their positions.",
        f"模型用 {LONGER_LESSON.steps} 步学习复制 {SHORTEST} 到 {LONGEST} 个词，然后给它更长的。"
        "各模型只有位置编码不同。",
    ),
    Text(
        "A toy task and short training. Sinusoids have a value everywhere; that a model can use it is another matter.",
        "任务很小，训练很短。正弦在任何位置都有值，并不保证模型会用。",
    ),
    (1, 2, 3),
    measure_longer,
    conclude_longer,
)
