"""Several processes: they compute what one does, and F17, F18, F19: what happens when one is lost."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest

from clearhead.checkpoint.run import steps
from clearhead.errors import DISK, DIVERGED, INTERRUPTED, TERMINATED, TRY_AGAIN
from clearhead.training import distributed
from clearhead.training.distributed import launch
from clearhead.training.position import Stopped

from .conftest import Straight
from .toy import DROPOUT, SAVE, Toy, environment, events, losses, outcome

TWO = ("training.processes=2",)
SAME = ("model.dropout=0", *DROPOUT)  # what does not depend on the number of processes, as the model's dropout does
WINDOW = f"train.step.{SAVE + 3}:sleep:1.5"  # time for a fault, between two saves
Fail = Callable[[str], None]


def children(parent: int) -> dict[int, int]:
    """Process ids by rank of the trainers that this process has started."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_child = int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent
            rank = re.search(rb"(?:^|\0)RANK=(\d+)\0", (folder / "environ").read_bytes()) if is_child else None
        except OSError:
            continue
        if rank:
            found[int(rank[1])] = int(folder.name)
    return found


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_for(is_so: Callable[[], object], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """In another thread, while this one watches a team."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def wait_for_window(out: Path, after: str) -> None:
    """Until this stands in the run's log, and a moment longer."""
    wait_for(lambda: (out / "run.log").exists() and after in (out / "run.log").read_text())
    time.sleep(0.4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sets", "error"),
    [((), 1e-4), (("training.optimizer=muon", "training.precision=bfloat16"), 0.02)],
    ids=["float32", "muon in bfloat16"],
)
def test_two_processes_compute_what_one_does(straight: Straight, sets: tuple[str, ...], error: float) -> None:
    """The same global batches, and the gradient of all target tokens, however many subword dropout makes of them."""
    one, two = straight(*SAME, *sets), straight(*SAME, *sets, *TWO)
    np.testing.assert_allclose(losses(two), losses(one), rtol=error / 10)
    for name in ("norm", "valid_loss"):
        of_one, of_two = ([event[name] for event in events(run) if name in event] for run in (one, two))
        np.testing.assert_allclose(of_two, of_one, rtol=error)


@pytest.mark.slow
def test_F17_F19_a_process_that_is_stopped_or_killed_is_replaced(
    toy: Toy,
    tmp_path: Path,
    straight: Straight,
    fail_at: Fail,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that waits for a stopped one ends with 75 after the timeout and names it; our launcher then kills the
    stopped one and starts both again, as it does, without waiting, when one is killed."""
    out = tmp_path / "run"
    monkeypatch.setattr(distributed, "NOTICE", 0.5)
    fail_at(WINDOW)
    stopped: list[int] = []

    def stop_one_then_kill_one() -> None:
        wait_for_window(out, after=f"step {SAVE + 2}: validation loss")
        stopped.append(children(os.getpid())[1])
        os.kill(stopped[0], signal.SIGSTOP)
        wait_for_window(out, after=f"going on after step {SAVE + 2}")
        os.kill(children(os.getpid())[1], signal.SIGKILL)

    with meanwhile(stop_one_then_kill_one):
        assert toy.train(out, *SAME, *TWO, "training.collective_timeout=3") == 0
    said = capfd.readouterr().err
    assert "error[E_PEER_LOST]: process 0 of 2 waited for process 1, which did not answer within 3 s" in said
    assert f"(exit {TRY_AGAIN}); starting all 2 again from the last checkpoint" in said  # nobody was killed yet
    assert f"(exit -{signal.SIGKILL}); starting all 2 again from the last checkpoint" in said
    assert not is_alive(stopped[0])
    assert outcome(out) == outcome(straight(*SAME, *TWO))


@pytest.mark.slow
def test_F18_a_killed_launcher_takes_its_processes_along(toy: Toy, tmp_path: Path) -> None:
    out = tmp_path / "run"
    points = environment(CLEARHEAD_TESTING="1", CLEARHEAD_FAILPOINT=f"train.step.{SAVE + 3}:sleep:60")
    command = [sys.executable, "-m", "clearhead", *toy.arguments(out, *TWO)]
    with subprocess.Popen(command, env=points, stderr=subprocess.DEVNULL) as launcher:
        wait_for_window(out, after=f"step {SAVE + 2}: validation loss")
        workers = children(launcher.pid)
        assert sorted(workers) == [0, 1]
        launcher.kill()
    wait_for(lambda: not any(is_alive(pid) for pid in workers.values()), seconds=3)


@pytest.mark.slow
def test_F04_two_processes_told_to_stop(toy: Toy, tmp_path: Path, straight: Straight, fail_at: Fail) -> None:
    """As Ctrl-C in a terminal: the processes are in a group of their own, and are told once, by us."""
    out = tmp_path / "run"
    fail_at(WINDOW)
    groups: list[int] = []

    def interrupt() -> None:
        wait_for_window(out, after=f"step {SAVE + 2}: validation loss")
        groups.extend(os.getpgid(pid) for pid in children(os.getpid()).values())
        os.kill(os.getpid(), signal.SIGINT)

    with meanwhile(interrupt), pytest.raises(Stopped, match=f"saved step {SAVE + 3}") as stopped:
        toy.train(out, *SAME, *TWO)
    assert stopped.value.exit_code == INTERRUPTED
    assert os.getpgrp() not in groups
    assert steps(out)[-1] == SAVE + 3
    assert losses(out) == losses(straight(*SAME, *TWO))[: SAVE + 3]


@pytest.mark.slow
def test_torchrun(toy: Toy, tmp_path: Path, straight: Straight) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command += ["clearhead", *toy.arguments(out, *SAME)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("done: BLEU") == 1
    assert json.loads((out / "plan.json").read_text())["processes"] == 2
    assert losses(out) == losses(straight(*SAME, *TWO))


# -- the launcher alone ---------------------------------------------------------------------------------------------


def launched(folder: Path, *what: str) -> int:
    return launch(["tests.training.worker", what[0], str(folder), *what[1:]], 2, folder)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [("0,0", 0), (f"{DISK},{TRY_AGAIN}", DISK), (f"{TRY_AGAIN},{DIVERGED}", DIVERGED), ("0,70", 70)],
)
def test_the_exit_code_is_that_of_the_process_that_knows(tmp_path: Path, codes: str, expected: int) -> None:
    assert launched(tmp_path, "exit", codes) == expected
    assert len(list(tmp_path.glob("started-*"))) == 2


def test_F17_restarted_three_times_and_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert launched(tmp_path, "exit", f"0,{TRY_AGAIN}") == TRY_AGAIN
    assert len(list(tmp_path.glob("started-*"))) == 2 * 4
    assert capsys.readouterr().err.count("starting all 2 again") == 3


def test_F17_restarted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert launched(tmp_path, "kill-once") == 0
    assert capsys.readouterr().err.count("(exit -9); starting all 2 again from the last checkpoint") == 1


@pytest.mark.parametrize("says", [TERMINATED, TRY_AGAIN, DISK])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_F04_F08_signals_are_passed_on_and_nothing_is_restarted(tmp_path: Path, says: int, number: int) -> None:
    with signalled(tmp_path, number):
        code = launched(tmp_path, "wait", str(says))
    assert code == (DISK if says == DISK else TERMINATED if number == signal.SIGTERM else INTERRUPTED)
    assert len(list(tmp_path.glob("started-*"))) == 2


def test_F08_the_second_interrupt_ends_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "send_signal", lambda *_: None)  # nobody listens to the first
    monkeypatch.setattr(subprocess.Popen, "kill", lambda process: os.kill(process.pid, signal.SIGKILL))
    started = time.monotonic()
    with signalled(tmp_path, signal.SIGINT, signal.SIGINT):
        assert launched(tmp_path, "wait", "0") == INTERRUPTED
    assert time.monotonic() - started < 10


def signalled(folder: Path, *numbers: int) -> AbstractContextManager[None]:
    """These signals for us, once both workers are ready."""

    def send() -> None:
        wait_for(lambda: len(list(folder.glob("ready-*"))) == 2)
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.1)

    return meanwhile(send)


def test_a_launcher_that_is_process_1_is_no_dead_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container the launcher may be process 1, which is also what orphans see as their parent."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: type("libc", (), {"prctl": lambda *_: 0}))
    monkeypatch.setattr(os, "getppid", lambda: 1)
    distributed.die_with_parent(1)
    assert ended == []
    distributed.die_with_parent(17)
    assert ended == [TRY_AGAIN]
