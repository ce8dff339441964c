"""Ids to ids, fast: what a translator needs of an engine."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from clearhead.decoding import DecodingOptions, Demand, Hypothesis

if TYPE_CHECKING:
    import numpy as np


class Engine(Protocol):
    """Sources go in and hypotheses, best first, come out in the same order."""

    name: str
    aligns: bool  # whether hypotheses can come with their alignment
    works_ahead: bool  # `translate_batches` begins when it is called, not when its first result is waited for
    expects_more: bool  # set by whoever has more work than this, of seconds at least, and hands it over in turn

    def lacks(self, options: DecodingOptions, demands: Sequence[Demand] | None = None) -> str | None:
        """What of this the engine cannot do, in a few words; none: it can do all of it."""
        ...

    def translate(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Hypothesis]]: ...

    def translate_batches(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """As they are done: which of the sources, and their hypotheses."""
        ...

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[list[float]]:
        """The log-probability of each token of each target, EOS last."""
        ...

    def align(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list["np.ndarray"]:
        """The alignment of each pair as a hypothesis has it, (T + 1, S + 1); only of an engine that `aligns`."""
        ...

    def steps(self, source: list[int], limit: int) -> Iterator[int]:
        """Greedy search as it goes: token by token, without EOS, at most `limit` of them."""
        ...


def in_order(count: int, batches: Iterator[tuple[list[int], list[list[Hypothesis]]]]) -> list[list[Hypothesis]]:
    """What `translate_batches` yields, put back in the order of the sources."""
    results: list[list[Hypothesis]] = [[] for _ in range(count)]
    for places, found in batches:
        for place, hypotheses in zip(places, found, strict=True):
            results[place] = hypotheses
    return results
