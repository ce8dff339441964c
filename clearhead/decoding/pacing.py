"""A search that can be stopped between two of its steps, and knows nothing of it."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from clearhead.model import Seq2Seq


class Paced:
    """A model that says what it says, and calls `between` before each step; what that raises ends the search."""

    def __init__(self, model: Seq2Seq, between: Callable[[], None]) -> None:
        self.output = model.output
        self.encode, self.logits = model.encode, model.logits
        self._model, self._between = model, between

    def decode(self, tgt: Tensor, state: Any) -> Tensor:
        self._between()
        return self._model.decode(tgt, state)

    def __call__(self, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
        return self._model(src, src_mask, tgt)
