"""Label smoothing (paper 5.4)."""

from dataclasses import replace

import torch

from clearhead.data.batching import make_batch

from .experiment import (
    Bars,
    Experiment,
    Finding,
    Measured,
    Runs,
    Table,
    Text,
    number,
    over,
    percent,
    row,
    same,
    verdict,
)
from .learn import SMALL, Lesson, Model, drawn, learned, mean_loss, told_accuracy
from .tasks import Pair, noisy, reverse

LENGTH, NOISE, EPSILON = 6, 0.15, 0.1
LESSON = Lesson(steps=120, rate=4e-3)
PLAIN, SMOOTHED = same("ε = 0"), same(f"ε = {EPSILON}")
CASES = (("plain", PLAIN, 0.0), ("smooth", SMOOTHED, EPSILON))


def measure_smoothing(seed: int) -> Measured:
    """Accuracy on clean targets, loss on noisy ones and confidence, without and with smoothing."""
    measured: Measured = {}
    task = noisy(reverse(LENGTH), NOISE)
    for name, _, epsilon in CASES:
        model, _losses = learned(SMALL, task, replace(LESSON, smoothing=epsilon), seed)
        clean = drawn(reverse(LENGTH), seed)
        numbers = told_accuracy(model, clean), mean_loss(model, drawn(task, seed)), _confidence(model, clean)
        measured[name] = list(numbers)
    return measured


@torch.no_grad()
def _confidence(model: Model, pairs: list[Pair]) -> float:
    batch = make_batch(pairs)
    return model.logits(model(batch.src, batch.src_mask, batch.tgt_in)).softmax(dim=-1).amax(dim=-1).mean().item()


def conclude_smoothing(runs: Runs) -> Finding:
    right, loss, sure = ([over(runs, name, i) for name, *_ in CASES] for i in range(3))
    is_no_worse, costs, is_humbler = (
        right[1].mean > right[0].mean - 0.02,
        loss[1].mean > loss[0].mean,
        sure[1].mean < sure[0].mean - 0.02,
    )
    return Finding(
        verdict(is_no_worse and costs and is_humbler, is_no_worse and is_humbler),
        Text(
            f"With smoothing {percent(right[1].mean)} are right instead of {percent(right[0].mean)}; the loss is "
            f"{number(loss[1].mean)} instead of {number(loss[0].mean)}; the model is {percent(sure[1].mean)} "
            f"sure instead of {percent(sure[0].mean)}.",
            f"加上平滑，正确率从 {percent(right[0].mean)} 变为 {percent(right[1].mean)}；损失从 "
            f"{number(loss[0].mean)} 变为 "
            f"{number(loss[1].mean)}；模型的把握从 {percent(sure[0].mean)} 变为 {percent(sure[1].mean)}。",
        ),
        Table(
            [
                Text("smoothing", "平滑"),
                Text("right words", "正确率"),
                Text("loss", "损失"),
                Text("largest p", "最大概率"),
            ],
            [row(name, right[i], loss[i], sure[i]) for i, (_, name, _) in enumerate(CASES)],
        ),
        [
            Bars(
                Text("Accuracy, loss and confidence", "正确率、损失与把握"),
                Text("value", "值"),
                [Text("right words", "正确率"), Text("loss", "损失"), Text("largest p", "最大概率")],
                [(name, [right[i], loss[i], sure[i]]) for i, (_, name, _) in enumerate(CASES)],
            )
        ],
    )


SMOOTHING = Experiment(
    "smoothing",
    Text("Label smoothing", "标签平滑"),
    Text(
        "Label smoothing makes the model less sure and the perplexity worse, but not the accuracy.",
        "标签平滑使模型不那么自信，困惑度变差，但正确率不变差。",
    ),
    Text("paper 5.4; the notes don't mention it", "论文 5.4 节；笔记没有提到"),
    Text(
        f"Reversing {LENGTH} words, with {percent(NOISE)} of the target words replaced at random in training, without "
        f"smoothing and with ε = {EPSILON}.",
        f"反转 {LENGTH} 个词，训练时目标里有 {percent(NOISE)} 的词被随机替换；一次不平滑，一次 ε = {EPSILON}。",
    ),
    Text(
        "The paper reports a better BLEU in translation; on this task there is nothing left to gain.",
        "论文报告翻译的 BLEU 有提高；这个任务已没有提高的余地。",
    ),
    (1, 2, 3),
    measure_smoothing,
    conclude_smoothing,
)
