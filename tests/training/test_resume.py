"""F02, F03: a run that was interrupted anywhere ends like one that was not, bit for bit."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.checkpoint.run import checkpoint_folder, steps
from clearhead.failpoint import FailpointError

from .conftest import Straight
from .toy import DROPOUT, EPOCH, SAVE, STEPS, VALIDATE, Toy, environment, events, losses, outcome, weights

pytestmark = pytest.mark.slow  # many small runs of the whole

ROOT = Path(__file__).parents[2]
SOAK = bool(os.environ.get("CLEARHEAD_SOAK"))
# The first step, mid epoch, the first of an epoch and the last of one, after a validation, the last step.
STEPS_TRIED = range(1, STEPS + 1) if SOAK else [1, VALIDATE + 1, EPOCH, EPOCH + 1, STEPS]
VALIDATIONS_TRIED = [*range(VALIDATE, STEPS, VALIDATE), STEPS] if SOAK else [VALIDATE, STEPS]
VARIANTS = {
    "plain": (),
    "accumulation": ("training.micro_tokens=17",),
    "subword dropout": DROPOUT,
    "muon, then agreement": ("training.optimizer=muon", "training.agreement=3", "training.agreement_from=0.5"),
    "muon in bfloat16": ("training.optimizer=muon", "training.precision=bfloat16"),
    "half of the pairs with marks": ("data.marks=0.5", "training.micro_tokens=17"),
    "save never but at the end": (f"training.save_every={STEPS}", f"training.validate_every={STEPS}"),
}
Fail = Callable[[str], None]


def interrupted(toy: Toy, out: Path, fail_at: Fail, points: list[str], *sets: str) -> None:
    for point in points:
        fail_at(f"{point}:raise")
        with pytest.raises(FailpointError):
            toy.train(out, *sets)
    fail_at("")
    assert toy.train(out, *sets) == 0


def test_the_toy_is_what_the_tests_think(straight: Straight) -> None:
    run = straight()
    assert json.loads((run / "plan.json").read_text())["batches_per_epoch"] == EPOCH
    assert [event["step"] for event in events(run) if "loss" in event] == list(range(1, STEPS + 1))
    assert [event["step"] for event in events(run) if "valid_loss" in event] == [4, 8, 12, 14]
    assert losses(run)[-1] < losses(run)[0]


@pytest.mark.parametrize("step", STEPS_TRIED)
def test_F03_interrupted_at_a_step(toy: Toy, tmp_path: Path, straight: Straight, fail_at: Fail, step: int) -> None:
    interrupted(toy, tmp_path / "run", fail_at, [f"train.step.{step}"])
    assert outcome(tmp_path / "run") == outcome(straight())


@pytest.mark.parametrize("step", VALIDATIONS_TRIED)
def test_F03_interrupted_while_validating(
    toy: Toy, tmp_path: Path, straight: Straight, fail_at: Fail, step: int
) -> None:
    interrupted(toy, tmp_path / "run", fail_at, [f"train.validate.{step}"])
    assert outcome(tmp_path / "run") == outcome(straight())


@pytest.mark.parametrize("variant", VARIANTS)
def test_F03_interrupted_again_and_again(
    toy: Toy, tmp_path: Path, straight: Straight, fail_at: Fail, variant: str
) -> None:
    sets = VARIANTS[variant]
    run = tmp_path / "run"
    points = ["train.step.2", "train.step.5", "train.validate.14", "ckpt.before_rename", "model.before_rename"]
    interrupted(toy, run, fail_at, points, *sets)
    assert outcome(run) == outcome(straight(*sets))
    assert [path.name for path in run.rglob(".*")] == []  # nothing temporary is left


def test_accumulation_and_dropout_change_what_they_should(straight: Straight) -> None:
    assert weights(straight(), STEPS) != weights(straight(*VARIANTS["accumulation"]), STEPS)
    without = straight(*(one for one in DROPOUT if "dropout" not in one))
    assert losses(without) != losses(straight(*DROPOUT))


def test_F03_a_finished_run_is_left_alone(toy: Toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def stamps() -> dict[Path, tuple[int, int]]:
        """Of all files but the lock, which everyone takes who looks."""
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_ino)
            for path in (tmp_path / "run").rglob("*")
            if path.is_file() and path.name != "lock"
        }

    assert toy.train(tmp_path / "run") == 0
    before = stamps()
    assert toy.train(tmp_path / "run") == 0
    assert toy.train(tmp_path / "run", train=[], valid=[]) == 0
    assert capsys.readouterr().err.count(f"already finished: {STEPS} of {STEPS} steps") == 2
    assert stamps() == before


def test_F03_more_steps_on_a_finished_run(toy: Toy, tmp_path: Path, straight: Straight) -> None:
    more = f"training.steps={STEPS + 7}"
    run = tmp_path / "run"
    assert toy.train(run) == 0
    assert toy.train(run, more) == 0
    assert losses(run) == losses(straight(more))
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert weights(run, STEPS + 7)[name] == weights(straight(more), STEPS + 7)[name]
    assert json.loads((run / "model" / "config.json").read_text())["about"]["of_steps"] == STEPS + 7
    (checkpoint,) = {checkpoint_folder(run, step) for step in steps(run)[-1:]}
    assert json.loads((checkpoint / "state.json").read_text())["planned"] == STEPS + 7


KILLS = [
    "train.step.1",
    "ckpt.after_model",  # in the first save
    f"train.step.{SAVE + 1}",
    f"train.validate.{VALIDATE}",
    f"train.step.{EPOCH}",
    "ckpt.after_optimizer",
    f"train.step.{EPOCH + 1}",
    "ckpt.before_rename",
    f"train.validate.{STEPS}",
    "ckpt.after_rename",
    "model.before_rename",
]
EVERYWHERE = [f"train.step.{step}" for step in range(1, STEPS + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("points", [KILLS, EVERYWHERE] if SOAK else [KILLS])
def test_F02_killed_again_and_again(toy: Toy, tmp_path: Path, straight: Straight, points: list[str]) -> None:
    """Also in the middle of saves; each time the same command is given again."""
    command = [sys.executable, "-m", "tests.training.killed", str(toy.folder), str(tmp_path / "run"), *points]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    killed = json.loads(done.stdout)
    assert killed == dict.fromkeys(points, True)
    assert outcome(tmp_path / "run") == outcome(straight())
