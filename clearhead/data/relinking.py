"""Links between the pieces of a pair after its words were broken up anew, as subword dropout does in each epoch.

Both ways of breaking up a text have the same bytes, so each new piece begins within one old one.
"""

import numpy as np

from .aligner import NONE
from .tokenizer import LEARNED, SPACE, SPECIALS, Tokenizer


def piece_widths(tokenizer: Tokenizer) -> np.ndarray:
    """How many bytes of text each piece of a vocabulary with bytes is."""
    pieces = tokenizer.pieces(list(range(len(tokenizer))))
    widths = [len(piece.replace(SPACE, " ").encode()) for piece in pieces]
    return np.array([0] * SPECIALS + [1] * (LEARNED - SPECIALS) + widths[LEARNED:])


def relinked(
    links: np.ndarray,
    source_widths: tuple[np.ndarray, np.ndarray],
    target_widths: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """For each new target piece the first new source piece of what the old one was linked to.

    Widths are those of the old pieces of a side and of its new ones.
    """
    old_target, new_target = map(_begins, target_widths)
    old_source, new_source = map(_begins, source_widths)
    of_new = links[np.searchsorted(old_target, new_target, side="right") - 1]
    found = np.full(len(of_new), NONE, np.uint16)
    is_linked = of_new != NONE
    begins = old_source[of_new[is_linked]]
    found[is_linked] = np.searchsorted(new_source, begins, side="right") - 1
    return found


def _begins(widths: np.ndarray) -> np.ndarray:
    return np.cumsum(widths) - widths
