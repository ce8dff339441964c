"""BLEU, chrF and TER as sacreBLEU has them, each with its signature, and exact match."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

# BLEU's tokenizer where 13a, which splits at spaces, does not fit.
TOKENIZERS = {
    **dict.fromkeys(("zh", "cmn", "lzh", "wuu", "yue"), "zh"),
    **dict.fromkeys(("ja", "ko", "th", "lo", "km", "my", "bo"), "char"),
}
# Where TER counts characters: the scripts that its tokenizer knows how to take apart.
ASIAN = ("zh", "cmn", "lzh", "wuu", "yue", "ja")


@dataclass(frozen=True)
class Scores:
    """Higher is better for all three; exact match is a share."""

    bleu: float
    chrf: float
    exact_match: float
    signatures: dict[str, str]

    def __str__(self) -> str:
        return f"BLEU {self.bleu:.1f}, chrF {self.chrf:.1f}, exact match {self.exact_match:.1%}"


def score_translations(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Scores:
    """Scores of a whole test set without TER, which is slow; `language` is the target's."""
    metrics = {name: metric for name, metric in metrics_for(language).items() if name != "ter"}
    same = sum(is_same(ours, theirs) for ours, theirs in zip(hypotheses, references, strict=True))
    return Scores(
        **{name: metric.corpus_score(list(hypotheses), [list(references)]).score for name, metric in metrics.items()},
        exact_match=same / max(1, len(references)),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
    )


def metrics_for(language: str) -> "dict[str, Metric]":
    """sacreBLEU's metrics with the settings that suit a target language; zh-CN is zh."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    code = re.split("[-_]", language.lower())[0]
    return {
        "bleu": BLEU(tokenize=TOKENIZERS.get(code, "13a"), force=True),  # force: no advice on stderr
        "chrf": CHRF(),
        "ter": TER(normalized=code in ASIAN, asian_support=code in ASIAN),  # the latter does nothing without the first
    }


def is_same(hypothesis: str, reference: str) -> bool:
    """Whether it is an exact match: spaces around do not count."""
    return hypothesis.strip() == reference.strip()
