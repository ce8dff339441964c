"""Model to ids: search on the Seq2Seq protocol, whichever model it is."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .options import DecodingOptions, Demand, Hypothesis

if TYPE_CHECKING:
    from torch import Tensor

    from clearhead.model import Seq2Seq

__all__ = ["DecodingOptions", "Demand", "Hypothesis", "search", "search_steps"]


def search(
    model: "Seq2Seq",
    src: "Tensor",
    src_mask: "Tensor",
    options: DecodingOptions,
    demands: Sequence[Demand] | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence the n best hypotheses found by greedy search, beam search or sampling.

    `demands` has for each sentence what its target must be like. Those that must contain phrases are searched apart
    from the others, with a wider beam: `beam = 1` is no greedy search for them.
    """
    if demands is not None and len(demands) != len(src):
        raise ValueError(f"there are {len(demands)} demands for {len(src)} sentences; expected one for each")
    if demands is not None and any(demand.phrases for demand in demands):
        return _search_apart(model, src, src_mask, options, demands)
    if options.temperature is not None:
        from .sampling import sample

        return sample(model, src, src_mask, options, demands)
    if options.beam == 1:
        from .greedy import greedy

        return greedy(model, src, src_mask, options, demands)
    from .beam import beam_search

    return beam_search(model, src, src_mask, options, demands)


def search_steps(model: "Seq2Seq", src: "Tensor", options: DecodingOptions, demand: Demand) -> Iterator[int]:
    """The words of one source (1, S) as they are found: by greedy search, or with a temperature of one sample.

    A forced prefix is among them, EOS is not.
    """
    if options.temperature is not None:
        from .sampling import sample_steps

        return sample_steps(model, src, options, demand)
    from .greedy import greedy_steps

    return greedy_steps(model, src, demand)


def _search_apart(
    model: "Seq2Seq", src: "Tensor", src_mask: "Tensor", options: DecodingOptions, demands: Sequence[Demand]
) -> list[list[Hypothesis]]:
    from .phrase_search import phrase_search

    if options.temperature is not None:
        raise ValueError("phrases are demanded of samples; expected a search without temperature, or no phrases")
    found: list[list[Hypothesis]] = [[] for _ in demands]
    for searched, has_phrases in ((phrase_search, True), (search, False)):
        places = [i for i, demand in enumerate(demands) if bool(demand.phrases) == has_phrases]
        if places:
            some = searched(model, src[places], src_mask[places], options, [demands[i] for i in places])
            for place, hypotheses in zip(places, some, strict=True):
                found[place] = hypotheses
    return found
