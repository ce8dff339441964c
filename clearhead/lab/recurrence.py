"""Against recurrence: far words, and the same tasks (note 003, the two weaknesses; note 000, RNN seq2seq)."""

from dataclasses import replace

import torch
from torch import Tensor

from clearhead.model import ModelOptions, RNNOptions, build
from clearhead.model.rnn import RNN
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
from .learn import SMALL, Lesson, drawn, free_token_accuracy, learned
from .tasks import VOCABULARY, Task, middle_word, reverse, sort

NOTE_003_FAR = Text("note 003, first weakness of the RNN", "笔记 003，RNN 的第一个弱点")
PLAIN = RNNOptions(VOCABULARY, VOCABULARY, 64, 1, "tanh", attention=False, dropout=0.0, tied="none")
LSTM = replace(PLAIN, cell="lstm")
WITH_ATTENTION = replace(PLAIN, cell="gru", attention=True)
MODELS: dict[str, tuple[Text, ModelOptions]] = {
    "tanh": (Text("RNN (tanh)", "RNN（tanh）"), PLAIN),
    "lstm": (Text("LSTM", "LSTM"), LSTM),
    "attention": (Text("one attention block", "一个注意力块"), SMALL),
}

REACH = 100
DISTANCES = (1, 3, 10, 30, 60, 99)


def measure_reach(seed: int) -> Measured:
    """How much the last encoder output changes with a word so far back, in new models."""
    measured: Measured = {}
    for name, (_, options) in MODELS.items():
        torch.manual_seed(seed)
        x = torch.randn(1, REACH, 64, requires_grad=True)
        last = _last_output(build(options), x)
        (gradient,) = torch.autograd.grad((last * torch.randn_like(last)).sum(), x)
        measured[name] = [gradient[0, REACH - 1 - distance].norm().item() for distance in DISTANCES]
    return measured


def _last_output(model: Transformer | RNN, x: Tensor) -> Tensor:
    """Of the encoder, for word vectors x; of an RNN the direction that has read all words before."""
    if isinstance(model, RNN):
        assert model.encoder is not None
        return model.encoder(x)[0][:, -1, : model.options.width]
    mask = torch.ones(1, 1, 1, REACH, dtype=torch.bool)
    return model.encoder[0](x, mask, lambda rotated: rotated)[:, -1]


def conclude_reach(runs: Runs) -> Finding:
    kept = {name: over(runs, name, len(DISTANCES) - 1).mean / over(runs, name, 0).mean for name in MODELS}
    is_flat, fades = kept["attention"] > 0.1, max(kept["tanh"], kept["lstm"]) < 1e-3
    return Finding(
        verdict(is_flat and fades, is_flat or fades),
        Text(
            f"From distance 1 to {DISTANCES[-1]} the influence of a word falls to {number(kept['tanh'])} of "
            "what it was "
            f"in the RNN, {number(kept['lstm'])} in the LSTM, {number(kept['attention'])} under attention.",
            f"从距离 1 到 {DISTANCES[-1]}，一个词的影响在 RNN 里降到原来的 {number(kept['tanh'])}，"
            f"在 LSTM 里 {number(kept['lstm'])}，在注意力里 {number(kept['attention'])}。",
        ),
        Table(
            [Text("distance", "距离"), *(name for name, _ in MODELS.values())],
            [row(str(n), *(over(runs, kind, i) for kind in MODELS)) for i, n in enumerate(DISTANCES)],
        ),
        [
            Lines(
                Text("Influence of a word by distance", "词的影响随距离的变化"),
                Text("distance", "距离"),
                Text("gradient (log)", "梯度（对数）"),
                [(name, curve(runs, kind, DISTANCES)) for kind, (name, _) in MODELS.items()],
                log_y=True,
            )
        ],
    )


REACHES = Experiment(
    "reach",
    Text("How far back a word is felt", "一个词的影响能传多远"),
    Text(
        "An RNN has trouble with dependencies between words that are far apart; attention has not.",
        "句子很长时，RNN/LSTM 难以处理相距较远的词之间的依赖关系；注意力解决了这个问题。",
    ),
    NOTE_003_FAR,
    Text(
        f"New encoders of one layer read {REACH} random vectors. We compute how the last output changes with the word "
        "so many places before.",
        f"单层的新编码器读入 {REACH} 个随机向量，计算最后一个输出随前面第几个词的变化。",
    ),
    Text(
        "New models only. An RNN can learn to keep something, if there is a gradient to learn from.",
        "只看新模型。如果还有梯度可用，RNN 也能学会记住一些东西。",
    ),
    (1, 2, 3),
    measure_reach,
    conclude_reach,
)

LENGTHS = (7, 31)
RECALL_LESSON = Lesson(steps=90, rate=4e-3)


def measure_recall(seed: int) -> Measured:
    """Share of words in the middle that are told, by length of the source."""
    measured: Measured = {name: [] for name in MODELS}
    for name, (_, options) in MODELS.items():
        for length in LENGTHS:
            model, _ = learned(options, middle_word(length), RECALL_LESSON, seed)
            measured[name].append(free_token_accuracy(model, drawn(middle_word(length), seed)))
    return measured


def conclude_recall(runs: Runs) -> Finding:
    short = {name: over(runs, name, 0) for name in MODELS}
    far = {name: over(runs, name, 1) for name in MODELS}
    remembers = far["attention"].mean > 0.8
    forgetful = [far[name].mean < far["attention"].mean - 0.3 for name in ("tanh", "lstm")]
    return Finding(
        verdict(remembers and all(forgetful), remembers and any(forgetful)),
        Text(
            f"In the middle of {LENGTHS[0]} words the RNN finds {percent(short['tanh'].mean)}, the LSTM "
            f"{percent(short['lstm'].mean)}, attention {percent(short['attention'].mean)}; in the middle of "
            f"{LENGTHS[1]} they find {percent(far['tanh'].mean)}, {percent(far['lstm'].mean)} and "
            f"{percent(far['attention'].mean)}.",
            f"{LENGTHS[0]} 个词的正中，RNN 找对 {percent(short['tanh'].mean)}，LSTM {percent(short['lstm'].mean)}，"
            f"注意力 {percent(short['attention'].mean)}；{LENGTHS[1]} 个词的正中，分别为 {percent(far['tanh'].mean)}、"
            f"{percent(far['lstm'].mean)}、{percent(far['attention'].mean)}。",
        ),
        Table(
            [Text("words", "词数"), *(name for name, _ in MODELS.values())],
            [row(str(n), *(over(runs, kind, i) for kind in MODELS)) for i, n in enumerate(LENGTHS)],
        ),
        [
            Bars(
                Text("Recalling the word in the middle", "回忆正中的词"),
                Text("right words", "正确率"),
                [Text(f"{n} words", f"{n} 个词") for n in LENGTHS],
                [(name, [short[kind], far[kind]]) for kind, (name, _) in MODELS.items()],
                high=1.0,
            )
        ],
    )


RECALL = Experiment(
    "recall",
    Text("Recalling a word from far away", "回忆远处的词"),
    Text(
        "When a sentence is long, RNN and LSTM can hardly connect words that are far apart.",
        "当句子很长时，RNN/LSTM 难以处理相距较远的词之间的长距离依赖关系。",
    ),
    NOTE_003_FAR,
    Text(
        "The answer is the one word of another kind, in the middle of the source, as far from both ends as "
        "can be: the RNNs here read in "
        f"both directions. Without attention they pass on one vector. {RECALL_LESSON.steps} steps.",
        "答案是唯一一个不同类的词，在原句正中，离两端都最远（这里的 RNN 是双向的）。没有注意力时，它们只传一个向量。"
        f"训练 {RECALL_LESSON.steps} 步。",
    ),
    Text(
        "With more steps an LSTM gets further. And an RNN with attention (Bahdanau) has the same short way.",
        "训练更久，LSTM 会记得更远。而加了注意力的 RNN（Bahdanau）也有同样短的路径。",
    ),
    (1, 2, 3),
    measure_recall,
    conclude_recall,
)

SAME_LENGTH = 5
SAME_LESSON = Lesson(steps=130, rate=4e-3)
SAME_TASKS: dict[str, tuple[Text, Task]] = {
    "reverse": (Text("reverse", "反转"), reverse(SAME_LENGTH)),
    "sort": (Text("sort", "排序"), sort(SAME_LENGTH)),
}
SAME_MODELS: dict[str, tuple[Text, ModelOptions]] = {
    "rnn": (Text("RNN with attention", "带注意力的 RNN"), WITH_ATTENTION),
    "transformer": (Text("Transformer", "Transformer"), SMALL),
}


def measure_same(seed: int) -> Measured:
    """Accuracy of free generation of both models on both tasks."""
    measured: Measured = {}
    for name, (_, options) in SAME_MODELS.items():
        for task_name, (_, task) in SAME_TASKS.items():
            model, _ = learned(options, task, SAME_LESSON, seed)
            measured[f"{name} {task_name}"] = [free_token_accuracy(model, drawn(task, seed))]
    return measured


def conclude_same(runs: Runs) -> Finding:
    cell = {(name, task): over(runs, f"{name} {task}") for name in SAME_MODELS for task in SAME_TASKS}
    gaps = [cell["rnn", task].mean - cell["transformer", task].mean for task in SAME_TASKS]
    return Finding(
        verdict(max(gaps) < 0.05, min(gaps) < 0.05),
        Text(
            f"Reversing: the RNN has {percent(cell['rnn', 'reverse'].mean)} right, the Transformer "
            f"{percent(cell['transformer', 'reverse'].mean)}. Sorting: {percent(cell['rnn', 'sort'].mean)} and "
            f"{percent(cell['transformer', 'sort'].mean)}.",
            f"反转：RNN 正确 {percent(cell['rnn', 'reverse'].mean)}，Transformer "
            f"{percent(cell['transformer', 'reverse'].mean)}。排序：{percent(cell['rnn', 'sort'].mean)} 和 "
            f"{percent(cell['transformer', 'sort'].mean)}。",
        ),
        Table(
            [Text("task", "任务"), *(name for name, _ in SAME_MODELS.values())],
            [row(name, *(cell[model, task] for model in SAME_MODELS)) for task, (name, _) in SAME_TASKS.items()],
        ),
        [
            Bars(
                Text("The same tasks, generated freely", "同样的任务，自由生成"),
                Text("right words", "正确率"),
                [name for name, _ in SAME_TASKS.values()],
                [(name, [cell[model, task] for task in SAME_TASKS]) for model, (name, _) in SAME_MODELS.items()],
                high=1.0,
            )
        ],
    )


SAME = Experiment(
    "same-tasks",
    Text("What an RNN can do, the Transformer can do", "RNN 能做的，Transformer 都能做"),
    Text(
        "Inputs and outputs are the same, so whatever an RNN seq2seq model can do, the Transformer can do.",
        "输入输出完全一样，因此 RNN Seq2Seq 能做的，Transformer 都能做。",
    ),
    Text("note 000, RNN seq2seq", "笔记 000，回顾 RNN Seq2Seq 模型"),
    Text(
        f"Both learn to reverse and to sort {SAME_LENGTH} words in {SAME_LESSON.steps} steps at the same "
        "width. The claim holds if the Transformer is nowhere five points behind.",
        f"两种模型宽度相同，都用 {SAME_LESSON.steps} 步学习把 {SAME_LENGTH} 个词反转和排序。"
        "如果 Transformer 没有一处落后五个百分点，算成立。",
    ),
    Text(
        "Same interface does not prove same ability. Two tasks are no proof; long counting, for one, is "
        "easier for an RNN.",
        "接口相同不能证明能力相同，两个任务也不是证明；例如很长的计数，RNN 反而容易。",
    ),
    (1, 2, 3),
    measure_same,
    conclude_same,
)
