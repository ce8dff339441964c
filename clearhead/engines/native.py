"""The engine on torch: sorted by length, batched by tokens, put back in order."""

from collections.abc import Iterator, Sequence

from clearhead.data.batching import pad_sources
from clearhead.decoding import DecodingOptions, Hypothesis, search
from clearhead.model import Seq2Seq

TOKENS_PER_BATCH = 4096  # source tokens times beam


class NativeEngine:
    """Runs a model of ours on the device where it is."""

    def __init__(self, model: Seq2Seq, device: str = "cpu") -> None:
        self.model = model
        self.device = device

    def translate(
        self, sources: Sequence[list[int]], options: DecodingOptions, prefixes: Sequence[list[int]] | None = None
    ) -> list[list[Hypothesis]]:
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for places, found in self.translate_batches(sources, options, prefixes):
            for place, hypotheses in zip(places, found, strict=True):
                results[place] = hypotheses
        return results

    def translate_batches(
        self, sources: Sequence[list[int]], options: DecodingOptions, prefixes: Sequence[list[int]] | None = None
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        for places in batches_by_length([len(source) for source in sources], options.beam):
            src, src_mask = pad_sources([sources[place] for place in places])
            some = None if prefixes is None else [prefixes[place] for place in places]
            found = search(self.model, src.to(self.device), src_mask.to(self.device), options, some)
            yield places, found


def batches_by_length(lengths: Sequence[int], beam: int) -> Iterator[list[int]]:
    """Places of the longest first, so that whoever runs out of memory does so at once."""
    batch: list[int] = []
    longest = 0
    for place in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = longest or lengths[place] + 1
        if batch and (len(batch) + 1) * longest * beam > TOKENS_PER_BATCH:
            yield batch
            batch, longest = [], lengths[place] + 1
        batch.append(place)
    if batch:
        yield batch
