"""What may come next: never PAD or BOS, no blocked n-gram, the length limits, and a forced prefix.

B sentences, W hypotheses per sentence, V vocabulary, t tokens so far.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.data.tokenizer import BOS, EOS, PAD

from .options import DecodingOptions, Demand

NEVER = float("-inf")
FREE = -1  # in the table of forced tokens: the model chooses


class Constraints:
    """Set up once per batch, applied at each step to logits (B, W, V), in place."""

    def __init__(self, src_mask: Tensor, options: DecodingOptions, demands: Sequence[Demand] | None) -> None:
        B, device = len(src_mask), src_mask.device
        demands = [Demand()] * B if demands is None else demands
        prefixes = [demand.prefix for demand in demands]
        longest = max(len(prefix) for prefix in prefixes)
        forced = [[*prefix, *[FREE] * (longest - len(prefix))] for prefix in prefixes]
        self.forced = torch.tensor(forced, device=device).view(B, longest)
        least = torch.tensor([max(options.min_length, len(prefix)) for prefix in prefixes], device=device)
        most = src_mask.sum(dim=1) + 50
        said = [options.max_length if demand.max_length is None else demand.max_length for demand in demands]
        if any(limit is not None for limit in said):
            longest_of_each = zip(said, most.tolist(), strict=True)
            most = most.new_tensor([usual if limit is None else limit for limit, usual in longest_of_each])
        self.limits = torch.maximum(most, least)  # (B,) tokens that each sentence may have, EOS not counted
        self._first_limit = int(self.limits.min())
        self.min_length = options.min_length
        self.ngram = options.block_ngrams
        self.cut: Tensor | None = None  # (B, W) which hypotheses had to end at the last step, and would not have

    def apply(self, logits: Tensor, tokens: Tensor) -> None:
        """Rule out the words that may not follow `tokens` (B, W, t)."""
        B, W, t = tokens.shape
        forced = self.forced[:, t] if t < self.forced.shape[1] else None
        as_it_was = None if forced is None else _pick(logits, forced.clamp(min=0))
        to_end = logits[..., EOS].flatten().clone()
        logits[..., [PAD, BOS]] = NEVER
        if t < self.min_length:
            logits[..., EOS] = NEVER
        if self.ngram and t >= self.ngram:
            self._block_ngrams(logits.view(B * W, -1), tokens.view(B * W, t), to_end)
        if t >= self._first_limit:
            must_end = torch.where(self.limits <= t, EOS, FREE)
            self.cut = (must_end == EOS)[:, None] & (logits.argmax(dim=2) != EOS)
            _force(logits, must_end, _pick(logits, must_end.clamp(min=0)))
        if forced is not None and as_it_was is not None:
            _force(logits, forced, as_it_was)

    def keep(self, sentences: Tensor) -> None:
        self.forced, self.limits = self.forced[sentences], self.limits[sentences]

    def _block_ngrams(self, logits: Tensor, tokens: Tensor, to_end: Tensor) -> None:
        n = self.ngram
        grams = tokens.unfold(1, n, 1)  # (B·W, t - n + 1, n)
        begins_alike = (grams[..., :-1] == tokens[:, None, tokens.shape[1] - n + 1 :]).all(dim=-1)
        rows, places = begins_alike.nonzero(as_tuple=True)
        logits[rows, grams[rows, places, -1]] = NEVER
        stuck = logits.amax(dim=-1) == NEVER  # every word is blocked: nothing is left but to end
        logits[:, EOS] = torch.where(stuck, to_end, logits[:, EOS])


def _pick(logits: Tensor, words: Tensor) -> Tensor:
    """The logit (B, W, 1) of one word (B,) per sentence."""
    return logits.gather(2, words[:, None, None].expand(-1, logits.shape[1], 1))


def _force(logits: Tensor, words: Tensor, value: Tensor) -> None:
    """Leave only `words` (B,) with this value (B, W, 1), where the word is not FREE."""
    rows = words != FREE
    logits[rows] = NEVER
    index = words[rows][:, None, None].expand(-1, logits.shape[1], 1)
    logits[rows] = logits[rows].scatter(2, index, value[rows])
