"""What cross attention aligns, which heads matter, and whether attention says what is important.

All on one small model of two blocks that has learned to reverse: there the right alignment is known.
"""

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from clearhead.data.batching import make_batch
from clearhead.data.tokenizer import SPECIALS
from clearhead.inspection.record import attention_layers
from clearhead.model.attention import MultiHeadAttention, ScaledDotProduct
from clearhead.model.transformer import Transformer

from .experiment import (
    Bars,
    Experiment,
    Finding,
    HeatMap,
    Measured,
    Runs,
    Spread,
    Table,
    Text,
    over,
    percent,
    row,
    same,
    verdict,
)
from .learn import SMALL, Lesson, drawn, learned, told_accuracy
from .recording import recorded, silenced
from .tasks import VOCABULARY, reverse

LENGTH, HEADS, BLOCKS, PAIRS = 7, 4, 2, 61
LESSON = Lesson(steps=170, rate=4e-3)
OPTIONS = replace(SMALL, heads=HEADS, encoder_blocks=BLOCKS, decoder_blocks=BLOCKS)
KINDS = {
    "encoder": Text("encoder", "编码器"),
    "decoder": Text("decoder, itself", "解码器自身"),
    "cross": Text("cross", "交叉"),
}


@cache
def _model(seed: int) -> Transformer:
    model, _ = learned(OPTIONS, reverse(LENGTH), LESSON, seed)
    assert isinstance(model, Transformer)
    return model


def _products(model: Transformer) -> list[tuple[str, ScaledDotProduct]]:
    """Every attention with its kind, block by block."""
    layers = attention_layers(model).items()
    return [(place.kind, layer.dot_product) for place, layer in layers if isinstance(layer, MultiHeadAttention)]


@torch.no_grad()
def _cross_weights(model: Transformer, seed: int) -> Tensor:
    """(block, B, H, T, S) without the ends of the sentences: each of the T words should look at one of S."""
    batch = make_batch(drawn(reverse(LENGTH), seed, PAIRS))
    with recorded(model.decoder) as weights:
        model(batch.src, batch.src_mask, batch.tgt_in)
    return torch.stack(weights[1::2])[:, :, :, :LENGTH, :LENGTH]


def measure_aligned(seed: int) -> Measured:
    """For each head of cross attention, and for the mean of a block, how often it looks most at the right word."""
    model = _model(seed)
    weights = _cross_weights(model, seed)
    right = torch.arange(LENGTH).flip(0)
    return {
        "heads": (weights.argmax(dim=-1) == right).float().mean(dim=(1, 3)).flatten().tolist(),
        "mean": (weights.mean(dim=2).argmax(dim=-1) == right).float().mean(dim=(1, 2)).tolist(),
        "accuracy": [told_accuracy(model, drawn(reverse(LENGTH), seed))],
        "map": weights[-1, 0].mean(dim=0).flatten().tolist(),
    }


def conclude_aligned(runs: Runs) -> Finding:
    best = Spread(tuple(max(run["heads"]) for run in runs))
    worst = Spread(tuple(min(run["heads"]) for run in runs))
    means = [over(runs, "mean", block) for block in range(BLOCKS)]
    grid = [[over(runs, "heads", block * HEADS + head).mean for head in range(HEADS)] for block in range(BLOCKS)]
    picture = [runs[0]["map"][i * LENGTH : (i + 1) * LENGTH] for i in range(LENGTH)]
    every_head = worst.low > 0.8
    return Finding(
        verdict(every_head, best.low > 0.8),
        Text(
            f"The best head looks at the right word in {percent(best.mean)}, the worst in {percent(worst.mean)} of the "
            f"cases. The mean of all heads does so in {percent(means[0].mean)} in the first block and "
            f"{percent(means[1].mean)} in the second. The model itself has "
            f"{percent(over(runs, 'accuracy').mean)} right.",
            f"最好的头有 {percent(best.mean)} 的时候看着正确的词，最差的头只有 {percent(worst.mean)}。"
            f"各头取平均，第一块为 {percent(means[0].mean)}，第二块为 {percent(means[1].mean)}。模型本身的正确率是 "
            f"{percent(over(runs, 'accuracy').mean)}。",
        ),
        Table(
            [Text("block", "块"), *(Text(f"head {h + 1}", f"头 {h + 1}") for h in range(HEADS)), Text("mean", "平均")],
            [
                row(str(b + 1), *(over(runs, "heads", b * HEADS + h) for h in range(HEADS)), means[b])
                for b in range(BLOCKS)
            ],
        ),
        [
            HeatMap(
                Text("Share of right looks", "看对的比例"),
                Text("block", "块"),
                Text("head", "头"),
                grid,
                1.0,
                [str(b + 1) for b in range(BLOCKS)],
                [str(h + 1) for h in range(HEADS)],
            ),
            HeatMap(
                Text("One sentence: second block, mean of heads", "一个句子：第二块，各头平均"),
                Text("word said", "说出的词"),
                Text("word looked at", "看着的词"),
                picture,
            ),
        ],
    )


DID_TRAIN = Text(
    f"A model of two and two blocks learns to reverse {LENGTH} words in {LESSON.steps} steps; there word t of "
    "the answer is the t-th last of the source. ",
    f"编码、解码各两块的模型用 {LESSON.steps} 步学习反转 {LENGTH} 个词；答案的第 t 个词就是原句倒数第 t 个词。",
)

ALIGNED = Experiment(
    "align",
    Text("Heads that align", "会对齐的头"),
    Text(
        "Attention to the source lets the decoder look at the relevant part of the input sentence.",
        "注意力层帮助解码器关注输入句子的相关部分。",
    ),
    Text("note 004, decoder", "笔记 004 解码器"),
    Text(
        DID_TRAIN.en
        + "We look where each head of cross attention looks most. The claim holds in full if every head is "
        "right in four of five cases, in part if one is.",
        DID_TRAIN.zh
        + "看交叉注意力的每个头最看重哪里。如果每个头五次里有四次看对，算完全成立；只有某个头做到，算部分成立。",
    ),
    Text(
        "A word's vector in the encoder's output may carry its neighbours too; the place looked at is not all that is "
        "read.",
        "编码器输出中一个词的向量也可能带着邻词的信息；看着的位置不等于读到的全部。",
    ),
    (1, 2, 3),
    measure_aligned,
    conclude_aligned,
)


def measure_needed(seed: int) -> Measured:
    """How much accuracy falls when one head is silenced, for each head in turn."""
    model, pairs = _model(seed), drawn(reverse(LENGTH), seed, PAIRS)
    full = told_accuracy(model, pairs)
    losses: Measured = {kind: [] for kind in KINDS}
    for kind, product in _products(model):
        for head in range(HEADS):
            with silenced(product, head):
                losses[kind].append(full - told_accuracy(model, pairs))
    return losses


def conclude_needed(runs: Runs) -> Finding:
    every = [loss for run in runs for kind in KINDS for loss in run[kind]]
    free = sum(loss < 0.01 for loss in every) / len(every)
    most = {kind: Spread(tuple(max(run[kind]) for run in runs)) for kind in KINDS}
    median = {kind: Spread(tuple(sorted(run[kind])[len(run[kind]) // 2] for run in runs)) for kind in KINDS}
    names = [f"{name.en} {b + 1}" for name in KINDS.values() for b in range(BLOCKS)]
    grid = [
        [max(0.0, over(runs, kind, b * HEADS + h).mean) for h in range(HEADS)] for kind in KINDS for b in range(BLOCKS)
    ]
    return Finding(
        verdict(free < 0.1, free < 0.75),
        Text(
            f"{percent(free)} of all heads can be silenced, one at a time, for less than one point of "
            "accuracy. The most "
            f"important one costs {percent(most['encoder'].mean)} in the encoder, "
            f"{percent(most['decoder'].mean)} in the "
            f"decoder's self-attention and {percent(most['cross'].mean)} in cross attention.",
            f"逐个关掉，{percent(free)} 的头损失不到一个百分点。最重要的头，在编码器里值 "
            f"{percent(most['encoder'].mean)}，"
            f"在解码器自注意力里值 {percent(most['decoder'].mean)}，在交叉注意力里值 {percent(most['cross'].mean)}。",
        ),
        Table(
            [Text("attention", "注意力"), Text("median loss", "损失的中位数"), Text("largest loss", "最大损失")],
            [row(name, median[kind], most[kind]) for kind, name in KINDS.items()],
        ),
        [
            HeatMap(
                Text("Accuracy lost without a head", "关掉一个头损失的正确率"),
                Text("block", "块"),
                Text("head", "头"),
                grid,
                None,
                names,
                [str(h + 1) for h in range(HEADS)],
            )
        ],
    )


NEEDED = Experiment(
    "needed",
    Text("Heads that don't matter", "可有可无的头"),
    Text(
        "Each head contributes other information, so all of them are needed.",
        "每个头从不同的子空间提取信息，因此每个头都有用。",
    ),
    Text("notes 001 and 003, multi-head attention", "笔记 001、003 多头注意力"),
    Text(
        DID_TRAIN.en
        + "Then we set the output of one head to zero, for each head in turn. The claim holds if fewer than "
        "a tenth can be spared, in part if fewer than three quarters can.",
        DID_TRAIN.zh + "然后逐个把头的输出置零。可省的头少于十分之一，算成立；少于四分之三，算部分成立。",
    ),
    Text(
        "Heads that can be spared alone cannot all be spared together: others step in for one that is missing.",
        "单独可省的头，不能一起省掉：少了一个，别的会顶上。",
    ),
    (1, 2, 3),
    measure_needed,
    conclude_needed,
)


@torch.no_grad()
def measure_occluded(seed: int) -> Measured:
    """How often the word with most attention, or the word whose replacement hurts most, is the right one."""
    model, pairs = _model(seed), drawn(reverse(LENGTH), seed, PAIRS)
    batch = make_batch(pairs)
    before = _log_probabilities(model, batch.src, batch.src_mask, batch.tgt_in, batch.tgt_out)
    hurts = []
    for place in range(LENGTH):
        changed = batch.src.clone()
        changed[:, place] = SPECIALS + (changed[:, place] - SPECIALS + 1) % (VOCABULARY - SPECIALS)
        hurts.append(before - _log_probabilities(model, changed, batch.src_mask, batch.tgt_in, batch.tgt_out))
    hurt = torch.stack(hurts, dim=-1)[:, :LENGTH]  # (B, T, S)
    right = torch.arange(LENGTH).flip(0)
    weights = _cross_weights(model, seed).mean(dim=2)  # (block, B, T, S)
    agrees = [(w.argmax(dim=-1) == hurt.argmax(dim=-1)).float().mean().item() for w in weights]
    return {
        "occlusion": [(hurt.argmax(dim=-1) == right).float().mean().item()],
        "attention": [(w.argmax(dim=-1) == right).float().mean().item() for w in weights],
        "agreement": agrees,
    }


def _log_probabilities(model: Transformer, src: Tensor, mask: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
    logits = model.logits(model(src, mask, tgt_in)).log_softmax(dim=-1)
    return logits.gather(2, tgt_out[:, :, None]).squeeze(2)  # (B, T)


def conclude_occluded(runs: Runs) -> Finding:
    occlusion = over(runs, "occlusion")
    blocks = [over(runs, "attention", block) for block in range(BLOCKS)]
    agreement = [over(runs, "agreement", block) for block in range(BLOCKS)]
    names = [
        Text("replacing words", "替换词"),
        *(Text(f"attention, block {b + 1}", f"注意力，第 {b + 1} 块") for b in range(2)),
    ]
    return Finding(
        verdict(min(spread.low for spread in agreement) > 0.9, max(spread.mean for spread in agreement) > 0.5),
        Text(
            f"The word whose replacement hurts most is the right one in {percent(occlusion.mean)} of the "
            "cases; the word "
            f"with most attention in {percent(blocks[0].mean)} (block 1) and {percent(blocks[1].mean)} (block "
            f"2). The two agree in {percent(agreement[0].mean)} and {percent(agreement[1].mean)}.",
            f"替换后影响最大的词，{percent(occlusion.mean)} 正是该看的词；注意力最大的词，第 1 块 "
            f"{percent(blocks[0].mean)}，"
            f"第 2 块 {percent(blocks[1].mean)}。两者一致的比例是 {percent(agreement[0].mean)} 和 "
            f"{percent(agreement[1].mean)}。",
        ),
        Table(
            [
                Text("by", "依据"),
                Text("finds the right word", "找对的比例"),
                Text("agrees with replacing", "与替换一致"),
            ],
            [
                row(names[0], occlusion, same("–")),
                *(row(names[b + 1], blocks[b], agreement[b]) for b in range(BLOCKS)),
            ],
        ),
        [
            Bars(
                Text("Finding the word that counts", "找出起作用的词"),
                Text("share", "比例"),
                names,
                [(Text("right word", "找对"), [occlusion, *blocks])],
                high=1.0,
            )
        ],
    )


OCCLUDED = Experiment(
    "occlusion",
    Text("Is attention importance?", "注意力就是重要性吗？"),
    Text(
        "The attention weights say how important each element of the input is for the current one.",
        "注意力权重反映输入序列中各个元素对当前元素的重要性。",
    ),
    Text("note 001, how self-attention is computed", "笔记 001，自注意力的计算过程"),
    Text(
        DID_TRAIN.en
        + "Then each source word is replaced by another, and we see which replacement hurts each word of the "
        "answer most. The claim holds if attention names the same word in nine of ten cases in both blocks.",
        DID_TRAIN.zh
        + "然后逐个替换原句的词，看对答案的每个词哪个替换影响最大。如果两块的注意力十次有九次指向同一个词，算成立。",
    ),
    Text(
        "A task with one right word for each place. In real sentences several words count, and the two differ more.",
        "这个任务里每处只有一个该看的词。真实句子里有好几个词起作用，两者差得更多。",
    ),
    (1, 2, 3),
    measure_occluded,
    conclude_occluded,
)
