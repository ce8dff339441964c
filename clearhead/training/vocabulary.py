"""Which words the targets of a corpus have; the others get no share of label smoothing and are not searched."""

import numpy as np
import torch
from torch import Tensor

from clearhead.data.options import DataOptions
from clearhead.data.prepare import Prepared
from clearhead.data.tokenizer import SPECIALS
from clearhead.decoding.words import TargetWords

AT_A_TIME = 1 << 24  # ids


def target_words(prepared: Prepared, options: DataOptions) -> TargetWords:
    """Where words are broken up at random any piece may come, so none is left out."""
    if options.subword_dropout:
        return TargetWords()
    flat = prepared.target.ids.flat
    is_said = np.zeros(len(prepared.target_tokenizer), bool)
    is_said[:SPECIALS] = True
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
