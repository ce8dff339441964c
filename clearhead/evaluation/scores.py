"""BLEU, chrF and TER as sacreBLEU has them, each with its signature; edits for the error rate, and exact match."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

# BLEU's tokenizer where 13a, which splits at spaces, does not fit.
TOKENIZERS = {
    **dict.fromkeys(("zh", "cmn", "lzh", "wuu", "yue"), "zh"),
    **dict.fromkeys(("ja", "ko", "th", "lo", "km", "my", "bo"), "char"),
}
BLEU_TOKENIZERS = ("13a", "intl", "zh", "char", "none")  # those that need nothing else
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

    def numbers(self) -> dict[str, float]:
        """For the log."""
        return {"bleu": self.bleu, "chrf": self.chrf, "exact_match": self.exact_match}


@dataclass(frozen=True)
class ErrorRates:
    """Of transcripts, in percent: the edits that mend them by what they should have; exact match is a share."""

    wer: float  # of words
    cer: float  # of characters, spaces too
    exact_match: float

    def __str__(self) -> str:
        return f"WER {self.wer:.1f} %, CER {self.cer:.1f} %, exact match {self.exact_match:.1%}"

    def numbers(self) -> dict[str, float]:
        """For the log."""
        return {"wer": self.wer, "cer": self.cer, "exact_match": self.exact_match}


def error_rates(hypotheses: Sequence[str], references: Sequence[str]) -> ErrorRates:
    """Of a whole test set."""

    def rate(parts: Callable[[str], Sequence[str]]) -> float:
        wrong = sum(edits(parts(ours), parts(theirs)) for ours, theirs in zip(hypotheses, references, strict=True))
        return 100 * wrong / max(1, sum(len(parts(theirs)) for theirs in references))

    same = sum(is_same(ours, theirs) for ours, theirs in zip(hypotheses, references, strict=True))
    return ErrorRates(rate(str.split), rate(spoken_characters), same / max(1, len(references)))


def spoken_characters(text: str) -> str:
    """What the character error rate counts: all of them, with one space between words."""
    return " ".join(text.split())


def score_translations(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Scores:
    """Scores of a whole test set without TER, which is slow; `language` is the target's."""
    metrics = {name: metric for name, metric in metrics_for(language).items() if name != "ter"}
    same = sum(is_same(ours, theirs) for ours, theirs in zip(hypotheses, references, strict=True))
    return Scores(
        **{name: metric.corpus_score(list(hypotheses), [list(references)]).score for name, metric in metrics.items()},
        exact_match=same / max(1, len(references)),
        signatures={name: str(metric.get_signature()) for name, metric in metrics.items()},
    )


def metrics_for(language: str, tokenize: str | None = None) -> "dict[str, Metric]":
    """sacreBLEU's metrics with the settings that suit a target language; zh-CN is zh. `tokenize` is BLEU's."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    code = _code(language)
    return {
        "bleu": BLEU(tokenize=tokenize or TOKENIZERS.get(code, "13a"), force=True),  # force: no advice on stderr
        "chrf": CHRF(),
        "ter": TER(normalized=code in ASIAN, asian_support=code in ASIAN),  # the latter does nothing without the first
    }


def is_same(hypothesis: str, reference: str) -> bool:
    """Whether it is an exact match: spaces around do not count."""
    return hypothesis.strip() == reference.strip()


def error_tokens(text: str, language: str) -> Sequence[str]:
    """What the error rate counts: words, or characters where words are not set apart by spaces."""
    words = text.split()
    return "".join(words) if _code(language) in TOKENIZERS else words


def edits(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """The fewest insertions, deletions and replacements that make one of the other (Levenshtein)."""
    above = list(range(len(reference) + 1))
    for i, ours in enumerate(hypothesis, 1):
        row = [i]
        for j, theirs in enumerate(reference, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (ours != theirs)))
        above = row
    return above[-1]


def _code(language: str) -> str:
    return re.split("[-_]", language.lower())[0]
