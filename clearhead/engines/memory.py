"""Memory that a search needs again at once stays with the process."""

import contextlib
import ctypes

KEPT_BLOCK, KEPT = 32 << 20, 512 << 20  # bytes: freed blocks up to this size, and so many in all, are kept


def keep_memory() -> None:
    """Where malloc is glibc's: a twentieth of a search's time went into giving back and fetching the same pages."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-3, KEPT_BLOCK)  # M_MMAP_THRESHOLD
        mallopt(-1, KEPT)  # M_TRIM_THRESHOLD
