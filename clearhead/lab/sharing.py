"""What all positions share: one matrix for every word, and a feed-forward net that sees one word at a time."""

from collections.abc import Callable
from time import process_time

import torch
from torch import Tensor

from clearhead.model.attention import causal_mask
from clearhead.model.transformer import EncoderBlock, Transformer

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
    number,
    over,
    row,
    verdict,
)
from .learn import SMALL

POSITIONS = 8
PARTS = {
    "feed-forward": Text("feed-forward", "前馈网络"),
    "norm": Text("layer norm", "层归一化"),
    "attention": Text("self-attention", "自注意力"),
    "masked": Text("masked self-attention", "带掩码的自注意力"),
}


def measure_jacobian(seed: int) -> Measured:
    """‖∂y_i/∂x_j‖ for each pair of positions, row by row, of the parts of a block."""
    torch.manual_seed(seed)
    block = Transformer(SMALL).encoder[0]
    assert isinstance(block, EncoderBlock)
    x = torch.randn(1, POSITIONS, SMALL.width)
    mask = causal_mask(POSITIONS)
    parts: dict[str, Callable[[Tensor], Tensor]] = {
        "feed-forward": block.feed_forward,
        "norm": block.around_attention.norm,
        "attention": lambda x: block.attention(x, x, None),
        "masked": lambda x: block.attention(x, x, mask),
    }
    return {name: _block_norms(part, x) for name, part in parts.items()}


def _block_norms(part: Callable[[Tensor], Tensor], x: Tensor) -> list[float]:
    blocks = torch.autograd.functional.jacobian(lambda x: part(x[None])[0], x[0])  # (T, D, T, D)
    return blocks.pow(2).sum(dim=(1, 3)).sqrt().flatten().tolist()


def conclude_jacobian(runs: Runs) -> Finding:
    matrices = {name: [torch.tensor(run[name]).view(POSITIONS, POSITIONS) for run in runs] for name in PARTS}
    off = {name: max((m - m.diag().diag()).max().item() for m in matrices[name]) for name in PARTS}
    future = max(m.triu(1).max().item() for m in matrices["masked"])
    alone = off["feed-forward"] == 0 and off["norm"] == 0
    return Finding(
        verdict(alone and future == 0 and off["attention"] > 0.01, alone),
        Text(
            f"The derivative of one position by another is {number(off['feed-forward'])} in the feed-forward net and "
            f"{number(off['norm'])} in layer norm, but up to {number(off['attention'])} in attention; with the mask it "
            f"is {number(future)} towards the future.",
            f"一个位置对另一个位置的导数，在前馈网络里是 {number(off['feed-forward'])}，"
            f"在层归一化里是 {number(off['norm'])}，"
            f"在注意力里最大为 {number(off['attention'])}；加上掩码，对未来的导数是 {number(future)}。",
        ),
        Table(
            [
                Text("part", "部分"),
                Text("own position, mean", "自己的位置，平均"),
                Text("other, largest", "别的位置，最大"),
            ],
            [
                row(
                    name,
                    Spread(tuple(m.diag().mean().item() for m in matrices[part])),
                    Spread(tuple((m - m.diag().diag()).max().item() for m in matrices[part])),
                )
                for part, name in PARTS.items()
            ],
        ),
        [
            HeatMap(name, Text("output", "输出"), Text("input", "输入"), matrices[part][0].tolist())
            for part, name in PARTS.items()
        ],
    )


ALONE = Experiment(
    "alone",
    Text("The feed-forward net sees one position at a time", "前馈网络只看一个位置"),
    Text(
        "In self-attention the paths of the words depend on each other; in the feed-forward layer they don't.",
        "在自注意力中，各个词的路径相互依赖；前馈网络没有这种依赖。",
    ),
    Text('note 004, "Bring the tensors into the picture"', "笔记 004，Bring the tensors into the picture"),
    Text(
        f"For {POSITIONS} random vectors we compute how each output position changes with each input position, "
        "exactly, for every part of a block. White means not at all.",
        f"取 {POSITIONS} 个随机向量，对块的每一部分精确计算每个输出位置随每个输入位置的变化。白色表示完全不变。",
    ),
    Text(
        "It says which paths exist, not which of them a trained model uses.",
        "它说明有哪些路径，不说明训练好的模型用哪一条。",
    ),
    (1, 2, 3),
    measure_jacobian,
    conclude_jacobian,
)

WORDS_AT_ONCE = 64


@torch.no_grad()
def measure_product(seed: int) -> Measured:
    """Queries, keys and values of all words in one product and word by word: largest difference, and both times."""
    torch.manual_seed(seed)
    block = Transformer(SMALL).encoder[0]
    assert isinstance(block, EncoderBlock)
    x = torch.randn(1, WORDS_AT_ONCE, SMALL.width)
    attention = block.attention

    def one_by_one() -> Tensor:
        q, k, v = zip(*(attention.queries_keys_values(word) for word in x.split(1, dim=1)), strict=True)
        keys, values = torch.cat(k, dim=2), torch.cat(v, dim=2)
        return torch.cat([attention.attend(query, keys, values, None) for query in q], dim=1)

    together, apart = attention(x, x, None), one_by_one()
    return {
        "difference": [(together - apart).abs().max().item()],
        "together": [_milliseconds(lambda: attention(x, x, None))],
        "apart": [_milliseconds(one_by_one)],
    }


def _milliseconds(work: Callable[[], Tensor], times: int = 7) -> float:
    """The fastest of a few, in time of the CPU, whatever else the machine does."""
    seconds = []
    for _ in range(times):
        started = process_time()
        work()
        seconds.append(process_time() - started)
    return 1000 * min(seconds)


def conclude_product(runs: Runs) -> Finding:
    difference, together, apart = (over(runs, key) for key in ("difference", "together", "apart"))
    is_equal, is_faster = difference.high < 1e-5, together.mean < apart.mean
    return Finding(
        verdict(is_equal and is_faster, is_equal),
        Text(
            f"Both ways differ by {number(difference.high)} at most. For {WORDS_AT_ONCE} words the matrix "
            f"product takes {number(together.mean)} ms and the loop {number(apart.mean)} ms.",
            f"两种算法的结果至多相差 {number(difference.high)}。{WORDS_AT_ONCE} 个词，"
            f"矩阵乘法用 {number(together.mean)} 毫秒，逐词循环用 {number(apart.mean)} 毫秒。",
        ),
        Table(
            [Text("way", "算法"), Text("milliseconds", "毫秒"), Text("largest difference", "最大差别")],
            [row(TOGETHER, together, difference), row(APART, apart, difference)],
        ),
        [
            Bars(
                Text("The same attention, computed in two ways", "同一个注意力的两种算法"),
                Text("milliseconds", "毫秒"),
                [TOGETHER, APART],
                [(Text("time", "时间"), [together, apart])],
            )
        ],
    )


TOGETHER, APART = Text("one product", "一次矩阵乘法"), Text("word by word", "逐词循环")

PRODUCT = Experiment(
    "product",
    Text("One matrix product for all words", "所有词一次矩阵乘法"),
    Text(
        "All q, k and v come from one matrix product each; the result is that of computing word by word, in parallel.",
        "把所有词拼成矩阵，一次乘法就得到 Q、K、V，与逐个计算结果相同，而且可以并行。",
    ),
    Text("note 002, section 1", "笔记 002 第 1 节"),
    Text(
        f"Self-attention of {WORDS_AT_ONCE} random vectors, all at once and in a loop over the words.",
        f"对 {WORDS_AT_ONCE} 个随机向量做自注意力，一次全部算，或者逐词循环。",
    ),
    Text(
        "Part of the gain is that a loop in Python is slow; on one core nothing runs in parallel here.",
        "一部分差距只是因为 Python 的循环慢；在单核上其实没有任何并行。",
    ),
    (1, 2, 3),
    measure_product,
    conclude_product,
)
