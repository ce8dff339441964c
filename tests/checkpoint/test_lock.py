"""F09: two trainers on one run folder."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from clearhead.checkpoint.lock import lock
from clearhead.errors import TRY_AGAIN, UserError

HOLD = """
import sys, time
from pathlib import Path
from clearhead.checkpoint.lock import lock
with lock(Path(sys.argv[1])):
    print("torch" in sys.modules, flush=True)
    time.sleep(60)
"""

FORK = """
import os, sys, time
from pathlib import Path
from clearhead.checkpoint.lock import lock
with lock(Path(sys.argv[1])):
    if not os.fork():
        print(os.getpid(), flush=True)
    time.sleep(60)
"""


def test_F09_the_second_trainer_is_told_who_is_first(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "False\n"  # the lock needs no torch
        pattern = rf"locked by pid {first.pid} on host {socket.gethostname()} since \d{{4}}-"
        with pytest.raises(UserError, match=pattern) as error, lock(tmp_path):
            pass
        assert (error.value.code, error.value.exit_code) == ("LOCKED", TRY_AGAIN)
        first.send_signal(signal.SIGKILL)
    with lock(tmp_path):  # the dead one's is taken over
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
    assert (tmp_path / "lock").read_text() == ""


def test_F09_also_in_one_process_and_free_afterwards(tmp_path: Path) -> None:
    with lock(tmp_path), pytest.raises(UserError, match="locked by pid"), lock(tmp_path):
        pass
    with lock(tmp_path):
        pass


def test_F09_a_holder_that_left_no_name(tmp_path: Path) -> None:
    with lock(tmp_path):
        (tmp_path / "lock").write_text("")
        with pytest.raises(UserError, match="locked by another process"), lock(tmp_path):
            pass


def test_F09_a_child_does_not_keep_the_lock_of_a_dead_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", FORK, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
        try:
            with lock(tmp_path):
                os.kill(child, 0)  # it lives, and does not hold the lock
        finally:
            os.kill(child, signal.SIGKILL)


def test_F09_a_forked_child_does_not_release_the_lock(tmp_path: Path) -> None:
    context = lock(tmp_path)
    with context:
        child = os.fork()
        if not child:
            context.__exit__(None, None, None)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(UserError, match="locked by pid"), lock(tmp_path):
            pass
