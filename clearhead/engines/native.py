"""The engine on torch: sorted by length, batched by tokens, put back in order."""

from collections.abc import Iterator, Sequence

from clearhead.data.batching import make_batch, pad_sources
from clearhead.decoding import DecodingOptions, Demand, Hypothesis, search
from clearhead.decoding.scoring import score
from clearhead.model import Seq2Seq

from . import in_order

TOKENS_PER_BATCH = 4096  # source tokens times beam


class NativeEngine:
    """Runs a model of ours on the device where it is."""

    name = "native"

    def __init__(self, model: Seq2Seq, device: str = "cpu") -> None:
        self.model = model
        self.device = device

    def lacks(self, options: DecodingOptions, demands: Sequence[Demand] | None = None) -> str | None:  # noqa: ARG002
        """Nothing: whatever the options can say was made for it."""
        return None

    def translate(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> list[list[Hypothesis]]:
        return in_order(len(sources), self.translate_batches(sources, options, demands))

    def translate_batches(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        for places in batches_by_length([len(source) for source in sources], options.beam):
            src, src_mask = pad_sources([sources[place] for place in places])
            some = None if demands is None else [demands[place] for place in places]
            found = search(self.model, src.to(self.device), src_mask.to(self.device), options, some)
            yield places, found

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[list[float]]:
        results: list[list[float]] = [[] for _ in sources]
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        for places in batches_by_length(lengths, beam=1):
            batch = make_batch([(sources[place], targets[place]) for place in places]).to(self.device)
            for place, log_probabilities in zip(places, score(self.model, batch), strict=True):
                results[place] = log_probabilities
        return results


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
