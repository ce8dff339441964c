"""Why several heads (note 003, "why multi-head"; note 002, section 2)."""

import random
from dataclasses import replace
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.data.tokenizer import SPECIALS
from clearhead.model.options import TransformerOptions
from clearhead.model.transformer import Transformer

from .experiment import (
    Bars,
    Experiment,
    Finding,
    Measured,
    Runs,
    Spread,
    Table,
    Text,
    number,
    over,
    percent,
    row,
    verdict,
)
from .learn import SMALL, Lesson, count_parameters, drawn, learned, mean_loss, teach_with, told_accuracy
from .recording import recorded
from .tasks import (
    ACTION_VOCABULARY,
    COMMAND_VOCABULARY,
    WORDS,
    Task,
    alphabet,
    command,
    date_pairs,
    date_task,
    random_words,
    reverse,
)

NOTE_003_HEADS = Text('note 003, "why multi-head"', "笔记 003，为什么要用 Multi-head")
HEADS = (1, 2, 4, 8)
LENGTH, BACK, AHEAD = 10, 1, 2
PLACES_LESSON = Lesson(steps=220, rate=5e-3)
# One attention layer: the feed-forward net is one number wide.
# Positions are random vectors: sinusoids of neighbours are so alike that it takes far longer to tell them apart.
ONE_LAYER = replace(SMALL, width=32, feed_forward=1, target_vocabulary=2 * WORDS, positions="own")


def measure_places(seed: int) -> Measured:
    """Share of words a place back and two places ahead that one layer of so many heads tells."""
    measured: Measured = {"back": [], "ahead": []}
    for heads in HEADS:
        torch.manual_seed(seed)
        places = torch.randn(LENGTH, ONE_LAYER.width)
        model = Transformer(replace(ONE_LAYER, heads=heads), places.__getitem__)

        def loss_of(rng: random.Random, model: Transformer = model) -> Tensor:
            words, back, ahead = _sequences(rng, 32)
            return sum((F.cross_entropy(z, y) for z, y in _both(model, words, back, ahead)), torch.zeros(()))

        teach_with(model, loss_of, PLACES_LESSON, seed)
        words, back, ahead = _sequences(random.Random(f"test {seed}"), 64)
        with torch.no_grad():
            found = [(z.argmax(dim=1) == y).float().mean().item() for z, y in _both(model, words, back, ahead)]
        measured["back"].append(found[0])
        measured["ahead"].append(found[1])
    return measured


def _sequences(rng: random.Random, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Words (B, S), and what stands one place back and two ahead of those that have both."""
    words = torch.tensor([random_words(rng, LENGTH) for _ in range(count)])
    inner = slice(BACK, LENGTH - AHEAD)
    back, ahead = words.roll(BACK, 1)[:, inner], words.roll(-AHEAD, 1)[:, inner]
    return words, back - SPECIALS, ahead - SPECIALS


def _both(model: Transformer, words: Tensor, back: Tensor, ahead: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Logits and answers of both questions; each has one half of the output layer."""
    hidden = model.read(words, torch.ones_like(words, dtype=torch.bool))[:, BACK : LENGTH - AHEAD]
    first, second = model.logits(hidden).chunk(2, dim=-1)
    return [(first.flatten(0, 1), back.flatten()), (second.flatten(0, 1), ahead.flatten())]


def conclude_places(runs: Runs) -> Finding:
    worse = [Spread(tuple(min(run["back"][i], run["ahead"][i]) for run in runs)) for i in range(len(HEADS))]
    better = [Spread(tuple(max(run["back"][i], run["ahead"][i]) for run in runs)) for i in range(len(HEADS))]
    gain = max(spread.mean for spread in worse[1:]) - worse[0].mean
    names = Text("the worse of the two", "较差的一处"), Text("the better of the two", "较好的一处")
    return Finding(
        verdict(gain > 0.3 and worse[0].high < 0.8, gain > 0.1),
        Text(
            f"One head tells one place in {percent(better[0].mean)} and the other in {percent(worse[0].mean)}. "
            f"Two heads tell the worse one in {percent(worse[1].mean)}, four in {percent(worse[2].mean)} of the cases. "
            "All have the same number of parameters.",
            f"一个头读对一处 {percent(better[0].mean)}，另一处 {percent(worse[0].mean)}。"
            f"两个头时较差的一处 {percent(worse[1].mean)}，四个头 {percent(worse[2].mean)}。参数的数量都相同。",
        ),
        Table(
            [Text("heads", "头数"), *names],
            [row(str(heads), worse[i], better[i]) for i, heads in enumerate(HEADS)],
        ),
        [
            Bars(
                Text("Two places to read at once", "同时读两处"),
                Text("right words", "正确率"),
                [Text(f"{heads} heads", f"{heads} 头") for heads in HEADS],
                [(names[0], worse), (names[1], better)],
                high=1.0,
            )
        ],
    )


PLACES = Experiment(
    "places",
    Text("Several heads read several places", "多个头读多个地方"),
    Text(
        "Multi-head attention lets the model attend to different positions at the same time.",
        "多头注意力让模型同时关注不同位置的信息。",
    ),
    NOTE_003_HEADS,
    Text(
        f"One attention layer must tell, at each of {LENGTH} places, both the word {BACK} before and the word {AHEAD} "
        f"after; with 1, 2, 4 and 8 heads, {PLACES_LESSON.steps} steps.",
        f"一层注意力要在 {LENGTH} 个位置上同时说出前面第 {BACK} 个词和后面第 {AHEAD} 个词；"
        f"分别用 1、2、4、8 个头，训练 {PLACES_LESSON.steps} 步。",
    ),
    Text(
        "One head can be enough where a second layer or a feed-forward net does the rest.",
        "如果还有第二层或前馈网络帮忙，一个头也可能够用。",
    ),
    (1, 2, 3),
    measure_places,
    conclude_places,
)

OWN_LESSON = Lesson(steps=90, rate=5e-3)
OWN_LENGTH = 7


def measure_own(seed: int) -> Measured:
    """The mean weight on a token's own position in the encoder, of new and of trained models."""
    measured: Measured = {"new": [], "trained": []}
    for heads in HEADS:
        options = replace(SMALL, heads=heads)
        torch.manual_seed(seed)
        measured["new"].append(_own_weight(Transformer(options), seed))
        model, _ = learned(options, reverse(OWN_LENGTH), OWN_LESSON, seed)
        assert isinstance(model, Transformer)
        measured["trained"].append(_own_weight(model, seed))
    return measured


@torch.no_grad()
def _own_weight(model: Transformer, seed: int) -> float:
    src = torch.tensor([source for source, _ in drawn(reverse(OWN_LENGTH), seed, 32)])
    with recorded(model.encoder) as weights:
        model.read(src, torch.ones_like(src, dtype=torch.bool))
    return weights[0].diagonal(dim1=2, dim2=3).mean().item()


def conclude_own(runs: Runs) -> Finding:
    even = 1 / OWN_LENGTH
    new = [over(runs, "new", i) for i in range(len(HEADS))]
    trained = [over(runs, "trained", i) for i in range(len(HEADS))]
    is_excessive = min(new[0].low, trained[0].low) > 2 * even
    falls = trained[-1].mean < 0.7 * trained[0].mean
    return Finding(
        verdict(is_excessive and falls, is_excessive or falls),
        Text(
            f"Even weights would be {number(even)}. On its own position one head puts {number(new[0].mean)} before and "
            f"{number(trained[0].mean)} after training; eight heads put {number(new[-1].mean)} and "
            f"{number(trained[-1].mean)}.",
            f"平均分配的权重是 {number(even)}。一个头放在自身位置上的权重，训练前 {number(new[0].mean)}，训练后 "
            f"{number(trained[0].mean)}；八个头为 {number(new[-1].mean)} 和 {number(trained[-1].mean)}。",
        ),
        Table(
            [Text("heads", "头数"), Text("new model", "新模型"), Text("trained", "训练后")],
            [row(str(heads), new[i], trained[i]) for i, heads in enumerate(HEADS)],
        ),
        [
            Bars(
                Text("Weight on a token's own position", "自身位置上的权重"),
                Text("mean weight", "平均权重"),
                [Text(f"{heads} heads", f"{heads} 头") for heads in HEADS],
                [(Text("new model", "新模型"), new), (Text("trained", "训练后"), trained)],
            )
        ],
    )


OWN = Experiment(
    "own-position",
    Text("Does one head look too much at itself?", "单头会过度关注自己吗？"),
    Text(
        "The flaw of self-attention is that it concentrates too much on a token's own position; several "
        "heads solve it.",
        "自注意力的缺陷是会过度地将注意力集中于自身的位置，因此用多头来解决。",
    ),
    NOTE_003_HEADS,
    Text(
        "We measure the weight on the own position in the encoder of models with 1, 2, 4 and 8 heads, before "
        f"and after they learn to reverse {OWN_LENGTH} words. Too much is more than twice an even share.",
        f"测量 1、2、4、8 个头的模型在编码器里放在自身位置上的权重，分别在学习反转 {OWN_LENGTH} 个词之前和之后。"
        "超过平均份额的两倍算作过度。",
    ),
    Text(
        "One task and one layer. Where a word itself is what matters, looking at oneself is right.",
        "只有一个任务、一层。如果重要的正是这个词本身，关注自己就没有错。",
    ),
    (1, 2, 3),
    measure_own,
    conclude_own,
)

EQUAL_LESSON = Lesson(steps=110, rate=4e-3)
FEW, MANY = 1, 8
EQUAL_TASKS = {
    "dates": Text("dates, English to Chinese", "日期，英译中"),
    "commands": Text("commands to actions", "命令到动作"),
}


@cache
def _date_tasks() -> tuple[Task, Task, TransformerOptions]:
    """Dates to learn from, dates held out, and a model for their characters."""
    training, held_out = date_pairs()
    source = alphabet([pair[0] for pair in training + held_out])
    target = alphabet([pair[1] for pair in training + held_out])
    sizes = replace(SMALL, source_vocabulary=SPECIALS + len(source), target_vocabulary=SPECIALS + len(target))
    return date_task(training, source, target), date_task(held_out, source, target), sizes


def measure_equal(seed: int) -> Measured:
    """Loss and accuracy on unseen pairs with one head and with eight, and the number of parameters."""
    measured: Measured = {}
    commands = replace(SMALL, source_vocabulary=COMMAND_VOCABULARY, target_vocabulary=ACTION_VOCABULARY)
    dates, unseen_dates, sizes = _date_tasks()
    for name, task, test, options in (
        ("dates", dates, unseen_dates, sizes),
        ("commands", command, command, commands),
    ):
        for heads in (FEW, MANY):
            model, _ = learned(replace(options, heads=heads), task, EQUAL_LESSON, seed)
            pairs = drawn(test, seed)
            measured[f"{name} {heads}"] = [told_accuracy(model, pairs), mean_loss(model, pairs)]
            measured[f"{name} {heads} parameters"] = [float(count_parameters(model))]
    return measured


def conclude_equal(runs: Runs) -> Finding:
    right = {(task, heads): over(runs, f"{task} {heads}") for task in EQUAL_TASKS for heads in (FEW, MANY)}
    gains = {task: right[task, MANY].mean - right[task, FEW].mean for task in EQUAL_TASKS}
    clear = {task: right[task, MANY].low > right[task, FEW].high for task in EQUAL_TASKS}
    rows = [
        row(
            Text(f"{name.en}, {heads}", f"{name.zh}，{heads}"),
            right[task, heads],
            over(runs, f"{task} {heads}", 1),
            over(runs, f"{task} {heads} parameters"),
        )
        for task, name in EQUAL_TASKS.items()
        for heads in (FEW, MANY)
    ]
    return Finding(
        verdict(all(clear.values()) and min(gains.values()) > 0.03, max(gains.values()) > 0.01),
        Text(
            f"With {MANY} heads instead of {FEW}, {percent(right['dates', MANY].mean)} instead of "
            f"{percent(right['dates', FEW].mean)} of the characters of dates are right, and "
            f"{percent(right['commands', MANY].mean)} instead of {percent(right['commands', FEW].mean)} of "
            "the actions.",
            f"用 {MANY} 个头代替 {FEW} 个头，日期的字符正确率从 {percent(right['dates', FEW].mean)} 变为 "
            f"{percent(right['dates', MANY].mean)}，动作的正确率从 {percent(right['commands', FEW].mean)} 变为 "
            f"{percent(right['commands', MANY].mean)}。",
        ),
        Table(
            [
                Text("task, heads", "任务，头数"),
                Text("right", "正确率"),
                Text("loss", "损失"),
                Text("parameters", "参数"),
            ],
            rows,
        ),
        [
            Bars(
                Text("Unseen pairs", "没见过的句对"),
                Text("right", "正确率"),
                list(EQUAL_TASKS.values()),
                [
                    (Text(f"{heads} heads", f"{heads} 头"), [right[task, heads] for task in EQUAL_TASKS])
                    for heads in (FEW, MANY)
                ],
                high=1.0,
            )
        ],
    )


EQUAL = Experiment(
    "heads",
    Text("One head against eight, at equal size", "一个头与八个头，参数相同"),
    Text(
        "In translation, semantic parsing and the like, several heads are markedly better.",
        "在翻译、语义解析等场景下，多头注意力能显著取得更好的效果。",
    ),
    Text("note 002, section 2", "笔记 002 第 2 节"),
    Text(
        f"Dates from English to Chinese, and commands to actions in the manner of SCAN. {EQUAL_LESSON.steps} "
        f"steps with {FEW} and with {MANY} heads; the width is split, so the parameters are as many.",
        f"把英文日期译成中文，以及仿照 SCAN 把命令变成动作。{FEW} 个头和 {MANY} 个头各训练 {EQUAL_LESSON.steps} 步；"
        "宽度平分给各头，所以参数一样多。",
    ),
    Text(
        "Marked means clearly more in every seed, by three points. Small models, short training; differences "
        "may shrink or grow with both.",
        "“显著”指每个种子都明显更高，至少高三个百分点。模型小、训练短；换成别的规模，差别可能变小或变大。",
    ),
    (1, 2, 3),
    measure_equal,
    conclude_equal,
)
