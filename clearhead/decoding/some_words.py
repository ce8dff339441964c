"""A model that says only some of its words, so that a step of a search need not weigh all of them.

V words of the model, N of them that may be said. A search among them counts words from 0 to N - 1; the special tokens
come first in both, so they keep their numbers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from clearhead.model import Seq2Seq
from clearhead.model.linear import Linear, pack

from .options import Demand, Hypothesis


class SomeWords:
    """Speaks the protocol of `model`, in the numbers of the words that are said; its weights must not change."""

    def __init__(self, model: Seq2Seq, words: Sequence[int]) -> None:
        whole = model.output
        self._model = model
        self.words = words
        self._table = torch.tensor(words, device=whole.weight.device)  # (N,)
        self._numbers = {word: i for i, word in enumerate(words)}
        self.output = Linear(whole.in_features, len(words), bias=whole.bias is not None, device="meta")
        self.output.weight = _rows(whole.weight, self._table)
        if whole.bias is not None:
            self.output.bias = _rows(whole.bias, self._table)
        if self.output.weight.device.type == "cpu":
            pack(self.output)

    def encode(self, src: Tensor, src_mask: Tensor) -> Any:
        return self._model.encode(src, src_mask)

    def decode(self, tgt: Tensor, state: Any) -> Tensor:
        return self._model.decode(self._table[tgt], state)

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., N)."""
        return self.output(hidden)

    def __call__(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        return self._model(src, src_mask, self._table[tgt])

    def can_meet(self, demand: Demand) -> bool:
        """Phrases may need any word."""
        return not demand.phrases and all(word in self._numbers for word in demand.prefix)

    def numbered(self, demand: Demand) -> Demand:
        """The same in the numbers of the words that are said."""
        return replace(demand, prefix=[self._numbers[word] for word in demand.prefix])

    def named(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The same in the model's own numbers."""
        return [replace(one, tokens=[self.words[i] for i in one.tokens]) for one in hypotheses]


def _rows(parameter: Tensor, table: Tensor) -> torch.nn.Parameter:
    return torch.nn.Parameter(parameter.detach()[table], requires_grad=False)
