"""The probability that a model gives to a target it did not choose itself.

B sentences, T target tokens, D width, V vocabulary.
"""

import torch

from clearhead.data.batching import Batch
from clearhead.data.tokenizer import PAD
from clearhead.model import Seq2Seq


@torch.inference_mode()
def score(model: Seq2Seq, batch: Batch) -> list[list[float]]:
    """For each pair the log-probability of every target token, EOS last."""
    hidden = model(batch.src, batch.src_mask, batch.tgt_in)
    scores = []
    for states, words in zip(hidden, batch.tgt_out, strict=True):  # a sentence at a time: (T, V) logits fit
        real = words != PAD
        logits = model.logits(states[real]).float()
        chosen = logits.gather(1, words[real][:, None]).squeeze(1)
        scores.append((chosen - logits.logsumexp(dim=1)).tolist())
    return scores
