"""Which sources are done together."""

from collections.abc import Iterator, Sequence

FILLED = 0.7  # of a batch, at least, before the next sentence is left to the next batch


def batches_by_length(lengths: Sequence[int], tokens: int, enough: int | None = None) -> Iterator[list[int]]:
    """Places in batches of at most so many tokens, EOS and padding counted; one that is longer is alone.

    The longest come first, so that whoever runs out of memory does so at once. A batch that has `enough` sentences
    takes no more that are far shorter than its longest: padding costs as much as words.
    """
    batch: list[int] = []
    longest = 0
    for place in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = longest or lengths[place] + 1
        is_full = (len(batch) + 1) * longest > tokens
        is_enough = enough is not None and len(batch) >= enough and lengths[place] + 1 < FILLED * longest
        if batch and (is_full or is_enough):
            yield batch
            batch, longest = [], lengths[place] + 1
        batch.append(place)
    if batch:
        yield batch
