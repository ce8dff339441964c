"""How good translations are: BLEU and chrF with sacreBLEU's signatures, and exact match."""

from collections.abc import Sequence
from dataclasses import dataclass

# sacreBLEU's own rule for these languages; 13a for all others.
TOKENIZERS = {"zh": "zh", "ja": "char", "ko": "char", "th": "char"}


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
    """Scores of a whole test set; `language` is the target's and chooses BLEU's tokenizer."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    bleu, chrf = BLEU(tokenize=TOKENIZERS.get(language, "13a")), CHRF()
    same = sum(ours.strip() == theirs.strip() for ours, theirs in zip(hypotheses, references, strict=True))
    return Scores(
        bleu=bleu.corpus_score(list(hypotheses), [list(references)]).score,
        chrf=chrf.corpus_score(list(hypotheses), [list(references)]).score,
        exact_match=same / max(1, len(references)),
        signatures={"bleu": str(bleu.get_signature()), "chrf": str(chrf.get_signature())},
    )
