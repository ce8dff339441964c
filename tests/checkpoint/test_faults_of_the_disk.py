"""F01 killed while saving, F05 disk full, F06 fsync fails, F07 read-only."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clearhead.checkpoint.disk import TEMPORARY, require_space
from clearhead.checkpoint.files import OLD
from clearhead.checkpoint.model import load_model
from clearhead.checkpoint.run import clean_run, newest_valid, steps
from clearhead.errors import DISK, UserError

from .states import STEPS, newest, save, save_all, value_of

pytestmark = pytest.mark.slow  # many small runs of the whole

ROOT = Path(__file__).parents[2]
EVERY = 1 if os.environ.get("CLEARHEAD_SOAK") else 7


def run_faults(*command: str) -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if "cannot trace" in done.stderr or "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"this machine does not allow it: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def traced() -> Iterator[tuple[Path, dict[str, Any]]]:
    """In memory where that is possible: kills find the same there, and a thousand fsyncs take no time."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        command = (sys.executable, "-m", "tests.checkpoint.faults", folder, str(EVERY))
        yield Path(folder), run_faults(*command)


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed")
    folder = tmp_path_factory.mktemp("disk") / "mount"
    folder.mkdir()
    return folder, run_faults("unshare", "-rm", sys.executable, "-m", "tests.checkpoint.faults", str(folder))


def leftovers(run: Path) -> list[str]:
    return [path.name for path in run.rglob(".*") if path.name.startswith((TEMPORARY, OLD))]


def test_F01_killed_at_any_system_call_of_a_save(traced: tuple[Path, dict[str, Any]]) -> None:
    folder, found = traced
    assert sum(found["killed"].values()) >= 12
    assert found["killed"]["rename"] >= 1
    for run in sorted((folder / "kill").iterdir()):
        saved = max([int(mark.name.removeprefix("saved-")) for mark in run.glob("saved-*")], default=0)
        assert len([name for name in leftovers(run) if name.startswith(TEMPORARY)]) <= 1, run
        checkpoint = newest_valid(run, pytest.fail)
        step = 0 if checkpoint is None else value_of(checkpoint)
        assert step in (0, *STEPS), run
        assert step >= saved, run
        if step > STEPS[0]:  # then a model of the step before was complete, and there is one at every moment
            model, config, model_folder = load_model(run)
            (value,) = {int(one) for parameter in model.parameters() for one in parameter.unique()}
            assert value in (step - 20, step), run
            assert config["about"]["step"] == value, run
            assert (model_folder / "words.txt").read_text() == str(value), run
        clean_run(run)
        assert leftovers(run) == [], run
        for mark in run.glob("saved-*"):
            mark.unlink()
        save_all(run, [one for one in STEPS if one >= step])
        assert value_of(newest(run)) == STEPS[-1]
        assert leftovers(run) == [], run


def test_F05_disk_full_keeps_what_was_saved(small_disk: tuple[Path, dict[str, Any]]) -> None:
    folder, found = small_disk
    full, before = found["full"], found["full_at"] - 1
    assert (full["code"], full["exit_code"]) == ("DISK_FULL", DISK)
    assert re.search(rf"No space left on device \(need .* MiB, free .* MiB\)\. Kept: step {before}\.", full["line"])
    assert found["left"] == [f"step-{step:08}" for step in range(1, before + 1)]
    assert value_of(newest(folder.with_name("copy"))) == before


def test_F05_no_room_is_said_before_the_work_begins(small_disk: tuple[Path, dict[str, Any]]) -> None:
    _, found = small_disk
    assert (found["room"]["code"], found["room"]["exit_code"]) == ("DISK_FULL", DISK)
    assert "need 200 MiB, free 0.1 MiB" in found["room"]["line"]


@contextmanager
def no_large_files() -> Iterator[None]:
    """Only while the body runs: the limit holds for pytest's own output too, if that goes to a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_F05_file_too_large(tmp_path: Path) -> None:
    too_large = r"File too large.*Kept: nothing, this is the first checkpoint"
    with pytest.raises(UserError, match=too_large) as error, no_large_files():
        save(tmp_path, 20)
    assert error.value.exit_code == DISK
    assert steps(tmp_path) == []
    assert leftovers(tmp_path) == []


def test_F06_a_failed_fsync_is_a_failed_save(traced: tuple[Path, dict[str, Any]]) -> None:
    folder, found = traced
    *failed, (last, nothing) = found["failed"].items()
    assert len(failed) >= 2
    assert nothing is None
    assert value_of(newest(folder / "fsync" / last)) == STEPS[1]
    for k, error in failed:
        assert (error["code"], error["exit_code"]) == ("DISK", DISK)
        assert "Input/output error" in error["line"]
        assert "Kept: step 20." in error["line"]
        assert leftovers(folder / "fsync" / k) == []
        assert value_of(newest(folder / "fsync" / k)) in STEPS[:2]  # the new one if only the parent's fsync failed


def test_F07_read_only(small_disk: tuple[Path, dict[str, Any]]) -> None:
    _, found = small_disk
    for one in (found["read_only"], found["read_only_start"]):
        assert (one["code"], one["exit_code"]) == ("DISK", DISK)
        assert "Read-only file system" in one["line"]


def test_F07_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    for work in (lambda: require_space(tmp_path / "run", 1), lambda: save(tmp_path / "run", 20)):
        with pytest.raises(UserError, match=r"cannot write .*Kept: .*Next: ") as error:
            work()
        assert error.value.exit_code == DISK


def test_room_is_enough(tmp_path: Path) -> None:
    require_space(tmp_path / "a" / "b", 1)
    assert list((tmp_path / "a" / "b").iterdir()) == []
