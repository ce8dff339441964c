"""Run by a test in a process of its own: forked trainers of one run, each killed at a failpoint; prints JSON."""

import json
import os
import signal
import sys
from pathlib import Path

from .toy import Toy


def is_killed(toy: Toy, run: Path, point: str) -> bool:
    child = os.fork()
    if not child:
        try:
            os.environ |= {"CLEARHEAD_TESTING": "1", "CLEARHEAD_FAILPOINT": f"{point}:kill"}
            os._exit(toy.train(run))
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0, f"{point} ended with {status}"
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


if __name__ == "__main__":
    folder, run, *points = sys.argv[1:]
    Toy(Path(folder)).train(Path(f"{run}-once"))  # what torch does at first use, it does here once for all
    print(json.dumps({point: is_killed(Toy(Path(folder)), Path(run), point) for point in points}))
    sys.exit(Toy(Path(folder)).train(Path(run)))
