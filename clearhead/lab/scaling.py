"""Why scores are divided by √d_k (paper 3.2.1; note 003, step 3)."""

import torch

from clearhead.model.attention import attention_weights

from .experiment import (
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

WIDTHS = (4, 16, 64, 256, 1024)
KEYS, DRAWS = 32, 500


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
            f"The variance of q·k is d_k. At d_k = {WIDTHS[-1]} the largest of {KEYS} weights takes "
            f"{percent(raw.mean)} without scaling and {percent(scaled.mean)} with it; the slope of the softmax is "
            f"{number(slope.mean)} against {number(slope_scaled.mean)}.",
            f"q·k 的方差就是 d_k。当 d_k = {WIDTHS[-1]} 时，{KEYS} 个权重中最大的一个，不缩放占 {percent(raw.mean)}，"
            f"缩放后占 {percent(scaled.mean)}；"
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


RAW, SCALED = Text("not scaled", "不缩放"), same("÷√d_k")
NOTE_003_STEP_3 = Text("note 003, step 3 of self-attention", "笔记 003，自注意力第 3 步")

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
