"""Ids to ids, fast: what a translator needs of an engine."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from clearhead.decoding import DecodingOptions, Hypothesis


class Engine(Protocol):
    """Sources go in and hypotheses, best first, come out in the same order."""

    def translate(
        self, sources: Sequence[list[int]], options: DecodingOptions, prefixes: Sequence[list[int]] | None = None
    ) -> list[list[Hypothesis]]: ...

    def translate_batches(
        self, sources: Sequence[list[int]], options: DecodingOptions, prefixes: Sequence[list[int]] | None = None
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """As they are done: which of the sources, and their hypotheses."""
        ...
