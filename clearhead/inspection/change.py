"""What if: a translation that is made otherwise before it is looked at; without torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """Another beginning, in ids (with EOS at its end: the whole of it), and heads that are switched off."""

    prefix: tuple[int, ...] = ()
    off: tuple[tuple[str, int, int], ...] = ()  # kind, layer, head; from 0


NOTHING = Change()
