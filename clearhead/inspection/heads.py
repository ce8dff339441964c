"""What kind of head it is, from its weights alone: how sharp, how far, where to, and whether it aligns words.

Q positions that look, K positions that are looked at.
"""

from dataclasses import dataclass

import numpy as np

FORMULA = "0.5·(1 − entropy) + 0.3·coverage − 0.2·special_mass"
MOST = 0.5  # a pattern has its name if it holds this share of the weight
UNIFORM = 0.9  # entropy from which on a head looks everywhere alike


@dataclass(frozen=True)
class HeadStats:
    """All from 0 to 1, but for `distance`, which counts tokens, and `ablate_dlogp`."""

    kind: str
    layer: int
    head: int
    entropy: float  # of a row, as a share of the most that is possible
    distance: float  # from who looks to what is looked at
    special_mass: float  # weight on <s> and </s>
    coverage: float  # 1: all words are read alike, 0: one alone
    align_score: float | None  # of cross-attention: FORMULA
    pattern: str
    ablate_dlogp: float | None = None  # by how much the mean log-probability changes if the head is off

    @property
    def name(self) -> str:
        """As people count, from 1; numbers in code and JSON count from 0."""
        return f"{self.kind}:{self.layer + 1}:{self.head + 1}"


def head_stats(kind: str, layer: int, weights: np.ndarray, special: np.ndarray) -> list[HeadStats]:
    """Of each head of (H, Q, K); `special` (K,) says which keys are no words. Decoder rows see the past alone."""
    stats = []
    for head, rows in enumerate(weights):
        entropy = _entropy(rows, is_causal=kind == "decoder")
        special_mass = float(rows[:, special].sum(axis=1).mean())
        coverage = _evenness(rows[:, ~special].sum(axis=0))
        score = 0.5 * (1 - entropy) + 0.3 * coverage - 0.2 * special_mass if kind == "cross" else None
        offsets = np.arange(rows.shape[1])[None] - np.arange(len(rows))[:, None]  # (Q, K)
        distance = float((rows * abs(offsets)).sum(axis=1).mean())
        pattern = _pattern(kind, rows, offsets, entropy)
        stats.append(HeadStats(kind, layer, head, entropy, distance, special_mass, coverage, score, pattern))
    return stats


def _entropy(rows: np.ndarray, is_causal: bool) -> float:
    """Mean over rows that have a choice."""
    choices = np.arange(1, len(rows) + 1) if is_causal else np.full(len(rows), rows.shape[1])
    nats = -(rows * np.log(np.maximum(rows, 1e-30))).sum(axis=1)
    free = choices > 1
    return float((nats[free] / np.log(choices[free])).mean()) if free.any() else 0.0


def _evenness(amounts: np.ndarray) -> float:
    total = amounts.sum()
    if len(amounts) < 2 or total <= 0:
        return float(len(amounts) == 1)
    shares = amounts / total
    return float(-(shares * np.log(np.maximum(shares, 1e-30))).sum() / np.log(len(shares)))


def _pattern(kind: str, rows: np.ndarray, offsets: np.ndarray, entropy: float) -> str:
    """The name of where most of the weight lies, if there is one."""
    Q, K = rows.shape
    shares = {
        "first": rows[:, 0].mean(),
        "last": rows[:, -1].mean() if kind != "decoder" else 0.0,
        "previous": rows[offsets == -1].sum() / max(1, Q - 1),
        "self": rows[offsets == 0].sum() / min(Q, K),
        "next": rows[offsets == 1].sum() / max(1, Q - 1),
    }
    if kind == "cross":  # a source position has no "self" in the target; what counts is whether it walks along
        shares = {"first": shares["first"], "last": shares["last"], "diagonal": _walks_along(rows)}
    best = max(shares, key=lambda name: shares[name])
    if shares[best] >= MOST and Q > 1 and K > 1:
        return best
    return "uniform" if entropy >= UNIFORM else "broad"


def _walks_along(rows: np.ndarray) -> float:
    """How well the place that is read most follows the row, from 0 to 1, if it is read clearly."""
    places = rows.argmax(axis=1)
    if len(places) < 3 or places.std() == 0:
        return 0.0
    along = float(np.corrcoef(np.arange(len(places)), places)[0, 1])
    return max(0.0, along) if rows.max(axis=1).mean() >= MOST and along >= 0.8 else 0.0
