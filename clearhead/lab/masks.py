"""The causal mask: a decoder that sees the future learns nothing else (paper 3.2.3)."""

import math

import torch

from clearhead.model import build

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
from .learn import SMALL, Lesson, Model, drawn, free_token_accuracy, smoothed, teach, told_accuracy
from .recording import unmasked
from .tasks import WORDS, Task, reverse, unrelated

LESSON = Lesson(steps=90, rate=5e-3)
LENGTH = 6
CHANCE = math.log(WORDS) * LENGTH / (LENGTH + 1)  # per token: words are guessed, and the end is known
MASKED, OPEN = Text("with mask", "有掩码"), Text("without mask", "无掩码")


def measure_mask(seed: int) -> Measured:
    """Loss on targets that cannot be known, with and without mask; then reversing, told and free."""
    measured: Measured = {}
    for name, is_masked in (("masked", True), ("open", False)):
        _, losses = _taught(unrelated(LENGTH), is_masked, seed)
        measured[f"{name} loss"] = smoothed(losses)
        model, _ = _taught(reverse(LENGTH), is_masked, seed)
        pairs = drawn(reverse(LENGTH), seed)
        if is_masked:
            measured[f"{name} told"] = [told_accuracy(model, pairs)]
        else:
            with unmasked(model.decoder):
                measured[f"{name} told"] = [told_accuracy(model, pairs)]
        measured[f"{name} free"] = [free_token_accuracy(model, pairs)]
    return measured


def _taught(task: Task, is_masked: bool, seed: int) -> tuple[Model, list[float]]:
    torch.manual_seed(seed)
    model = build(SMALL)
    if is_masked:
        return model, teach(model, task, LESSON, seed)
    with unmasked(model.decoder):
        return model, teach(model, task, LESSON, seed)


def conclude_mask(runs: Runs) -> Finding:
    last = {name: over(runs, f"{name} loss", 9) for name in ("masked", "open")}
    told, free = over(runs, "open told"), over(runs, "open free")
    cheats, is_honest = last["open"].high < 0.6 * CHANCE, last["masked"].low > 0.9 * CHANCE
    across = [(i + 0.5) * LESSON.steps / 10 for i in range(10)]
    return Finding(
        verdict(cheats and is_honest, cheats or is_honest),
        Text(
            f"Where guessing costs {number(CHANCE)}, the loss with mask ends at {number(last['masked'].mean)}, without "
            f"it at {number(last['open'].mean)}. When reversing, such a model has "
            f"{percent(told.mean)} right while it sees the target, and {percent(free.mean)} on its own.",
            f"纯猜测的损失是 {number(CHANCE)}。有掩码时损失停在 {number(last['masked'].mean)}，没有掩码降到 "
            f"{number(last['open'].mean)}。做反转时，这样的模型看得到目标时正确率 "
            f"{percent(told.mean)}，自己生成时 {percent(free.mean)}。",
        ),
        Table(
            [
                Text("decoder", "解码器"),
                Text("loss, nothing to learn", "损失（无可学）"),
                Text("reverse, told", "反转，给出前文"),
                Text("reverse, free", "反转，自由生成"),
            ],
            [
                row(name, last[kind], over(runs, f"{kind} told"), over(runs, f"{kind} free"))
                for name, kind in ((MASKED, "masked"), (OPEN, "open"))
            ],
        ),
        [
            Lines(
                Text("Loss where nothing can be learned", "无可学时的损失"),
                Text("step", "步"),
                Text("loss", "损失"),
                [(MASKED, curve(runs, "masked loss", across)), (OPEN, curve(runs, "open loss", across))],
                low=0.0,
            ),
            Bars(
                Text("Reversing: told and free", "反转：给出前文与自由生成"),
                Text("right words", "正确率"),
                [MASKED, OPEN],
                [
                    (Text("told", "给出前文"), [over(runs, "masked told"), told]),
                    (Text("free", "自由生成"), [over(runs, "masked free"), free]),
                ],
                high=1.0,
            ),
        ],
    )


CAUSAL = Experiment(
    "mask",
    Text("Without the causal mask the decoder cheats", "没有因果掩码，解码器会作弊"),
    Text(
        "A decoder may look only at what was said so far; else it learns to copy the answer.",
        "解码器只能看已经生成的部分，否则它学会的只是抄答案。",
    ),
    Text("notes 000 and 004, decoder; paper 3.2.3", "笔记 000、004 解码器；论文 3.2.3 节"),
    Text(
        "Targets are drawn at random, so nothing can be learned, and we train with and without the mask. Then the same "
        "for reversing, tested with the target in view and by free generation.",
        "目标是随机的，没有任何规律可学，分别在有、无掩码下训练；再用反转任务做同样的比较，"
        "一次让它看到目标，一次让它自由生成。",
    ),
    Text(
        "A model without mask need not fail altogether: what it can also read off the source, it may learn as well.",
        "没有掩码的模型不一定完全失败：能从源句读到的，它也可能学会。",
    ),
    (1, 2, 3),
    measure_mask,
    conclude_mask,
)
