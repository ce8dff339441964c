"""How good translations are: BLEU and chrF with sacreBLEU's signatures, and exact match."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# BLEU's tokenizer where 13a, which splits at spaces, does not fit.
TOKENIZERS = {
    **dict.fromkeys(("zh", "cmn", "lzh", "wuu", "yue"), "zh"),
    **dict.fromkeys(("ja", "ko", "th", "lo", "km", "my", "bo"), "char"),
}


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

    code = re.split("[-_]", language.lower())[0]  # zh-CN is zh
    bleu, chrf = BLEU(tokenize=TOKENIZERS.get(code, "13a")), CHRF()
    same = sum(ours.strip() == theirs.strip() for ours, theirs in zip(hypotheses, references, strict=True))
    return Scores(
        bleu=bleu.corpus_score(list(hypotheses), [list(references)]).score,
        chrf=chrf.corpus_score(list(hypotheses), [list(references)]).score,
        exact_match=same / max(1, len(references)),
        signatures={"bleu": str(bleu.get_signature()), "chrf": str(chrf.get_signature())},
    )
