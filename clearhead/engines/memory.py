"""Memory that is needed again at once stays with the process."""

import contextlib
import ctypes

BLOCK = 32 << 20  # bytes: freed blocks up to this size are kept; malloc takes no larger limit
KEPT, ALL = 512 << 20, (1 << 31) - 1  # so many bytes of them, or as many as malloc can be told


def keep_memory(most: int = KEPT) -> None:
    """Where malloc is glibc's: a twentieth of a search's or a step's time went into fetching the same pages again."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-3, BLOCK)  # M_MMAP_THRESHOLD
        mallopt(-1, most)  # M_TRIM_THRESHOLD
