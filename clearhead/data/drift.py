"""Where two files of unequal line counts part: the place from which the lengths of their lines fit no more."""

from collections.abc import Iterable

import numpy as np


def line_lengths(blocks: Iterable[bytes]) -> np.ndarray:
    """Bytes in each line of blocks that hold whole lines."""
    ended = (block if block.endswith(b"\n") else block + b"\n" for block in blocks)
    ends = (np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) for block in ended)
    return np.concatenate([np.diff(end, prepend=-1).astype(np.int32) - 1 for end in ends])


def drift_of(source: np.ndarray, target: np.ndarray) -> int | None:
    """The line of the longer side where it goes out of step, if one insertion there explains the lengths well."""
    short, long = sorted((np.log(source + 5.0), np.log(target + 5.0)), key=len)
    n, extra = len(short), len(long) - len(short)
    if n < 20:
        return None
    usual = np.median(long) - np.median(short)
    before, after = (np.abs(side - short - usual) for side in (long[:n], long[extra:]))
    costs = np.concatenate([[0.0], np.cumsum(before)]) + np.concatenate([np.cumsum(after[::-1])[::-1], [0.0]])
    place = int(costs.argmin())
    by_chance = np.abs(np.roll(long[:n], n // 2) - short - usual).sum()
    return place + 1 if costs[place] < 0.8 * by_chance else None
