"""Pages that a search gives back and fetches again are counted by the system."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, sys
import numpy as np
from clearhead.engines.memory import keep_memory

if sys.argv[1] == "kept":
    keep_memory()
for turn in range(13):
    blocks = [np.ones(20 << 20, np.uint8) for _ in range(5)]
    if turn == 2:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    found = subprocess.run([sys.executable, "-c", COUNT, how], check=True, capture_output=True, text=True)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is another one here")
def test_kept_memory_is_not_fetched_again() -> None:
    """By pages of whatever size: huge ones are fetched five hundred times less often."""
    assert 10 * faults("kept") < faults("given back")
