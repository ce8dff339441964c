"""Model to ids: search on the Seq2Seq protocol, whichever model it is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .options import DecodingOptions, Hypothesis

if TYPE_CHECKING:
    from torch import Tensor

    from clearhead.model import Seq2Seq

__all__ = ["DecodingOptions", "Hypothesis", "search"]


def search(
    model: "Seq2Seq",
    src: "Tensor",
    src_mask: "Tensor",
    options: DecodingOptions,
    prefixes: Sequence[list[int]] | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence the n best hypotheses found by greedy search, beam search or sampling.

    `prefixes` are ids with which the sentences' targets have to begin.
    """
    if options.temperature is not None:
        from .sampling import sample

        return sample(model, src, src_mask, options, prefixes)
    if options.beam == 1:
        from .greedy import greedy

        return greedy(model, src, src_mask, options, prefixes)
    from .beam import beam_search

    return beam_search(model, src, src_mask, options, prefixes)
