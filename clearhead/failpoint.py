"""Places where a test may stop the program: nothing happens unless CLEARHEAD_TESTING=1.

CLEARHEAD_FAILPOINT names one or more, separated by commas: `ckpt.after_model:kill`, `...:raise`, `...:sleep:30`.
"""

import os
import signal
import time


class FailpointError(Exception):
    """What `raise` raises: no part of the program expects it."""


def failpoint(name: str) -> None:
    """Do what CLEARHEAD_FAILPOINT says should happen here."""
    if os.environ.get("CLEARHEAD_TESTING") != "1":
        return
    for one in os.environ.get("CLEARHEAD_FAILPOINT", "").split(","):
        place, _, action = one.partition(":")
        if place == name:
            _act(name, action)


def _act(name: str, action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "raise":
        raise FailpointError(name)
    elif action.startswith("sleep:"):
        time.sleep(float(action.removeprefix("sleep:")))
    else:
        raise ValueError(f"CLEARHEAD_FAILPOINT has {name}:{action}; expected kill, raise or sleep:SECONDS")
