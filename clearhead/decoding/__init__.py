"""Model to ids: search on the Seq2Seq protocol, whichever model it is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .options import DecodingOptions, Demand, Hypothesis

if TYPE_CHECKING:
    from torch import Tensor

    from clearhead.model import Seq2Seq

__all__ = ["DecodingOptions", "Demand", "Hypothesis", "search"]


def search(
    model: "Seq2Seq",
    src: "Tensor",
    src_mask: "Tensor",
    options: DecodingOptions,
    demands: Sequence[Demand] | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence the n best hypotheses found by greedy search, beam search or sampling.

    `demands` has for each sentence what its target must be like.
    """
    if options.temperature is not None:
        from .sampling import sample

        return sample(model, src, src_mask, options, demands)
    if options.beam == 1:
        from .greedy import greedy

        return greedy(model, src, src_mask, options, demands)
    from .beam import beam_search

    return beam_search(model, src, src_mask, options, demands)
