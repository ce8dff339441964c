"""What the parts count with, and what each of them gives."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from benchmarks.faithful.system import System

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"  # scripts without spaces between words
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
EXAMPLES = 20  # of each part, at most


@dataclass(frozen=True)
class Row:
    """One thing that was asked; `is_met` is None where a figure is only stated."""

    asked: str
    found: str
    is_met: bool | None = None


@dataclass(frozen=True)
class Example:
    """A translation that was judged wrong, or the worst of the right ones."""

    what: str
    source: str
    translation: str
    warnings: list[str]


@dataclass
class Found:
    """What a part found of one model."""

    rows: list[Row] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """What a part is given."""

    system: System
    name: str  # of the model: ende, enzh, m30k, help
    seed: int
    sample: float  # the share of the usual sample
    before: System | None = None  # for the parts that take turns
    work: Path | None = None  # scratch

    def many(self, usual: int) -> int:
        return max(1, round(usual * self.sample))


def words(text: str) -> list[str]:
    """Lower-cased words; of Chinese characters each is one."""
    return WORD.findall(text.lower())


def is_unspaced(language: str) -> bool:
    return language.split("-")[0] in ("zh", "ja", "yue", "cmn")


def join(parts: Sequence[str], language: str) -> str:
    """Translations of sentences as one text."""
    return ("" if is_unspaced(language) else " ").join(part.strip() for part in parts)


def bleu(translations: Sequence[str], references: Sequence[str], language: str, lowercase: bool = False) -> float:
    metric = BLEU(tokenize="zh" if is_unspaced(language) else "13a", lowercase=lowercase, force=True)
    return metric.corpus_score([one_line(text) for text in translations], [list(references)]).score


def chrf(translations: Sequence[str], references: Sequence[str]) -> float:
    return CHRF().corpus_score(list(translations), [list(references)]).score


def one_line(text: str) -> str:
    return " ".join(text.split())


def share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / whole:.2f} %)" if whole else "none asked"


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
