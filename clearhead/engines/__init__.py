"""Ids to ids, fast: what a translator needs of an engine."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from clearhead.decoding import DecodingOptions, Demand, Hypothesis


class Engine(Protocol):
    """Sources go in and hypotheses, best first, come out in the same order."""

    name: str
    works_ahead: bool  # `translate_batches` begins when it is called, not when its first result is waited for

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
