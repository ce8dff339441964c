"""Started by a test as a process of a team; it does what the first argument says, and has no torch to load."""

import os
import signal
import sys
import time
from pathlib import Path


def main(what: str, folder: Path, rank: int) -> int:
    (folder / f"started-{rank}-{os.getpid()}").touch()
    if what == "exit":  # the code of each rank, such as 0,74
        return int(sys.argv[3].split(",")[rank])
    if what == "kill-once" and rank == 1 and len(list(folder.glob("started-1-*"))) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "wait":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(sys.argv[3])))
        (folder / f"ready-{rank}").touch()
        time.sleep(60)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), int(os.environ["RANK"])))
