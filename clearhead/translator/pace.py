"""How many lines are translated together: about a second's, so that output comes steadily and little can be lost."""

import os

from clearhead.decoding import DecodingOptions

PER_CORE = 128  # lines of a search with a beam of BEAM; more at once save no time (benchmarks/LOG.md)
BEAM = 5
LEAST = 4  # lines
QUICK, SLOW = 0.8, 2.0  # seconds; what takes less is doubled, what takes more is halved


class Pace:
    """A quarter of what is best for speed at first, then twice or half as much, as long as it takes a second or so.

    Where the machine is fast enough, which it mostly is, two runs cut the same lines together.
    """

    def __init__(self, options: DecodingOptions) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        width = options.n_best if options.temperature is not None else options.beam
        self.most = max(LEAST, PER_CORE * cores * BEAM // width)
        self.lines = max(LEAST, self.most // 4)

    def took(self, seconds: float) -> None:
        """To translate as many lines as were allowed."""
        if seconds > SLOW:
            self.lines = max(LEAST, self.lines // 2)
        elif seconds < QUICK:
            self.lines = min(self.most, self.lines * 2)
