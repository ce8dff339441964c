"""Which sources are done together."""

from collections.abc import Iterator, Sequence


def batches_by_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Places in batches of at most so many tokens, EOS and padding counted; one that is longer is alone.

    The longest come first, so that whoever runs out of memory does so at once.
    """
    batch: list[int] = []
    longest = 0
    for place in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = longest or lengths[place] + 1
        if batch and (len(batch) + 1) * longest > tokens:
            yield batch
            batch, longest = [], lengths[place] + 1
        batch.append(place)
    if batch:
        yield batch
