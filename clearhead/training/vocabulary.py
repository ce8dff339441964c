"""Which words the targets of a corpus have; the others get no share of label smoothing and are not searched."""

import numpy as np
import torch
from torch import Tensor

from clearhead.data.prepare import Prepared
from clearhead.data.tokenizer import LEARNED, SPECIALS, Words
from clearhead.decoding.words import TargetWords

from .settings import Settings

AT_A_TIME = 1 << 24  # ids


def target_words(prepared: Prepared, settings: Settings) -> TargetWords:
    """None is left out where words are broken up at random, as any piece may come, or where a model learned earlier
    what this corpus does not show. Bytes, of which unknown characters are made, and marks always may be said."""
    if settings.data.subword_dropout or settings.init_from:
        return TargetWords()
    flat, marks = prepared.target.ids.flat, prepared.target_tokenizer.marks
    is_said = np.zeros(len(prepared.target_tokenizer), bool)
    is_said[: SPECIALS if isinstance(prepared.target_tokenizer, Words) else LEARNED] = True
    is_said[marks] = True
    for start in range(0, len(flat), AT_A_TIME):
        is_said[flat[start : start + AT_A_TIME]] = True
    return TargetWords.without(np.flatnonzero(~is_said).tolist())


def spread_over(words: TargetWords, vocabulary: int, device: str) -> Tensor | None:
    """The share (V,) of each word in label smoothing; none where all have the same."""
    said = words.said(vocabulary)
    if said is None:
        return None
    shares = torch.zeros(vocabulary, device=device)
    shares[said] = 1 / len(said)
    return shares
