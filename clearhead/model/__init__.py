"""The models, tensors to tensors, and the protocol by which everything else knows them.

B sentences, S source tokens, T target tokens, D width, V vocabulary.
Ids and masks come from `clearhead.data.batching`; masks are boolean and True means "may look".
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from .options import SIZES, ModelOptions, RNNOptions, TransformerOptions

if TYPE_CHECKING:
    from torch import Tensor

    from .linear import Linear
    from .rnn import RNN
    from .transformer import Transformer

__all__ = ["SIZES", "ModelOptions", "RNNOptions", "Seq2Seq", "State", "TransformerOptions", "build"]


class State(Protocol):
    """What decoding needs of the source and of the tokens so far. One handed to select or keep is dead."""

    def repeat(self, n: int) -> Self:
        """n hypotheses per sentence, alike so far; once. Row b·n + w is hypothesis w of sentence b."""
        ...

    def select(self, rows: "Tensor") -> Self:
        """Row i goes on from what was row rows[i], a row of the same sentence."""
        ...

    def keep(self, sentences: "Tensor") -> Self:
        """Only these sentences, in this order, each with all its hypotheses."""
        ...


S = TypeVar("S", bound=State)


class Seq2Seq(Protocol[S]):
    """Teacher forcing is `decode` with T tokens, search is `decode` with one: one code path for both."""

    @property
    def output(self) -> "Linear":
        """Hidden -> logits; the fused loss takes its weight."""
        ...

    def encode(self, src: "Tensor", src_mask: "Tensor") -> S:
        """Read the source (B, S)."""
        ...

    def decode(self, tgt: "Tensor", state: S) -> "Tensor":
        """Extend every hypothesis by `tgt` (B, T); the hidden state at each new position, (B, T, D)."""
        ...

    def logits(self, hidden: "Tensor") -> "Tensor":
        """(..., D) -> (..., V)."""
        ...

    def __call__(self, src: "Tensor", src_mask: "Tensor", tgt: "Tensor") -> "Tensor":
        """Hidden states (B, T, D) of a whole target: the one entry for training."""
        ...


def build(options: ModelOptions, rule: "Callable[[Tensor], Tensor] | None" = None) -> "Transformer | RNN":
    """The model that `options` describe; `rule` is the position rule of `positions = "own"`."""
    if isinstance(options, RNNOptions):
        from .rnn import RNN

        return RNN(options)
    from .transformer import Transformer

    return Transformer(options, rule)
