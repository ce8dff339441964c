"""Must W_Q and W_K differ? (notes 001 to 004: three different matrices)."""

import random
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.data.tokenizer import SPECIALS
from clearhead.model.attention import MultiHeadAttention
from clearhead.model.transformer import EncoderBlock, Transformer

from .experiment import Bars, Experiment, Finding, Measured, Runs, Table, Text, over, percent, row, verdict
from .learn import SMALL, Lesson, teach_with

RING = 8  # keys, and payloads
LESSON = Lesson(steps=250, rate=5e-3, sentences=48)
# The sources are the question, a key, and then one token for each key with its payload.
OPTIONS = replace(
    SMALL,
    source_vocabulary=SPECIALS + RING + RING * RING,
    target_vocabulary=RING,
    positions="none",
    feed_forward=64,
)
CASES = {
    "apart": (Text("W_Q ≠ W_K, 1 head", "W_Q ≠ W_K，1 头"), 1, False),
    "tied": (Text("W_Q = W_K, 1 head", "W_Q = W_K，1 头"), 1, True),
    "tied 4": (Text("W_Q = W_K, 4 heads", "W_Q = W_K，4 头"), 4, True),
}


def measure_ring(seed: int) -> Measured:
    """Share of questions whose answer, the payload of the next key on the ring, is found."""
    measured: Measured = {}
    for name, (_, heads, is_tied) in CASES.items():
        torch.manual_seed(seed)
        model = Transformer(replace(OPTIONS, heads=heads))
        block = model.encoder[0]
        assert isinstance(block, EncoderBlock)
        if is_tied:
            tie(block.attention)

        def loss_of(rng: random.Random, model: Transformer = model) -> Tensor:
            sources, answers = _questions(rng, LESSON.sentences)
            return F.cross_entropy(_answer(model, sources), answers)

        teach_with(model, loss_of, LESSON, seed)
        sources, answers = _questions(random.Random(f"test {seed}"), 256)
        with torch.no_grad():
            measured[name] = [(_answer(model, sources).argmax(dim=1) == answers).float().mean().item()]
    return measured


def tie(attention: MultiHeadAttention) -> None:
    """Make W_K the same as W_Q, and give both the same gradients from now on, so that they stay the same."""
    weight, size = attention.projections.weight, attention.joined
    with torch.no_grad():
        weight[size : 2 * size] = weight[:size]

    def share(gradient: Tensor) -> Tensor:
        both = (gradient[:size] + gradient[size : 2 * size]) / 2
        return torch.cat([both, both, gradient[2 * size :]])

    weight.register_hook(share)


def _questions(rng: random.Random, count: int) -> tuple[Tensor, Tensor]:
    sources, answers = [], []
    for _ in range(count):
        payloads = [rng.randrange(RING) for _ in range(RING)]
        asked = rng.randrange(RING)
        tokens = [SPECIALS + RING + key * RING + payload for key, payload in enumerate(payloads)]
        sources.append([SPECIALS + asked, *rng.sample(tokens, RING)])
        answers.append(payloads[(asked + 1) % RING])
    return torch.tensor(sources), torch.tensor(answers)


def _answer(model: Transformer, sources: Tensor) -> Tensor:
    return model.logits(model.read(sources, torch.ones_like(sources, dtype=torch.bool))[:, 0])


def conclude_ring(runs: Runs) -> Finding:
    right = {name: over(runs, name) for name in CASES}
    gap = right["apart"].mean - right["tied"].mean
    gap_of_many = right["apart"].mean - right["tied 4"].mean
    return Finding(
        verdict(gap > 0.1 and gap_of_many > 0.1, gap > 0.1),
        Text(
            f"With matrices of their own {percent(right['apart'].mean)} are right; with W_Q = W_K "
            f"{percent(right['tied'].mean)} with one head and {percent(right['tied 4'].mean)} with four.",
            f"两个矩阵不同时正确率 {percent(right['apart'].mean)}；W_Q = W_K 时，一个头 {percent(right['tied'].mean)}，"
            f"四个头 {percent(right['tied 4'].mean)}。",
        ),
        Table(
            [Text("attention", "注意力"), Text("right answers", "正确率")],
            [row(name, right[kind]) for kind, (name, *_) in CASES.items()],
        ),
        [
            Bars(
                Text("The next key on a ring", "环上的下一个键"),
                Text("right answers", "正确率"),
                [name for name, *_ in CASES.values()],
                [(Text("right", "正确"), list(right.values()))],
                high=1.0,
            )
        ],
    )


RING_TASK = Experiment(
    "query-key",
    Text("Must queries and keys have different matrices?", "查询和键必须用不同的矩阵吗？"),
    Text(
        "Each word vector is multiplied by three different matrices for query, key and value.",
        "每个词向量分别乘以三个不同的权重矩阵，得到查询、键和值。",
    ),
    Text("note 001, how self-attention is computed; note 004, self-attention", "笔记 001 自注意力的计算；笔记 004"),
    Text(
        f"{RING} keys on a ring, each with a payload; asked for one key, tell the payload of the next. With "
        "W_Q = W_K the "
        "scores are symmetric, and no single head can prefer next to previous all the way round. Both "
        "matrices are kept equal by giving them the same gradients.",
        f"环上有 {RING} 个键，每个带一个值；问一个键，要答下一个键的值。W_Q = W_K 时得分对称，"
        "单个头不可能绕一整圈都偏向“下一个”而不是“上一个”。给两个矩阵同样的梯度，使它们一直相等。",
    ),
    Text(
        "Only a task that goes in circles shows the limit; for “the word before” equal matrices are enough.",
        "只有绕圈的任务才显出这一限制；对“前一个词”这样的任务，相同的矩阵就够了。",
    ),
    (1, 2, 3),
    measure_ring,
    conclude_ring,
)
