"""What can go wrong while one process trains: F04, F05, F08, F09, F11, F13, F14, F15."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from clearhead.checkpoint import disk, files
from clearhead.checkpoint.lock import lock
from clearhead.checkpoint.run import newest_valid, steps
from clearhead.checkpoint.weights import WEIGHTS
from clearhead.data.batching import epoch_batches
from clearhead.data.prepare import open_prepared
from clearhead.errors import BAD_DATA, DISK, DIVERGED, INTERRUPTED, TERMINATED, TRY_AGAIN, USAGE, UserError
from clearhead.training import gradients, loop, run
from clearhead.training.position import Stopped
from clearhead.training.run import read_run
from clearhead.training.step import backward

from .conftest import Straight
from .toy import SAVE, STEPS, VALIDATE, Toy, environment, events, losses, outcome

pytestmark = pytest.mark.slow  # many small runs of the whole

Disturb = Callable[[int, Any], Tensor | None]  # of the number of the call and the model; the loss, if it is another


def disturb_backward(monkeypatch: pytest.MonkeyPatch, disturb: Disturb) -> None:
    """After the gradients of each step were made, before they are used."""
    calls = iter(range(1, 1000))

    def disturbed(model: Any, *arguments: Any) -> Tensor:
        loss = backward(model, *arguments)
        other = disturb(next(calls), model)
        return loss if other is None else other

    monkeypatch.setattr(gradients, "backward", disturbed)


def send(number: int, at: int) -> Disturb:
    return lambda call, _: os.kill(os.getpid(), number) if call == at else None


def log_of(out: Path) -> str:
    return (out / "run.log").read_text(encoding="utf-8")


# -- signals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, TERMINATED), (signal.SIGINT, INTERRUPTED)])
@pytest.mark.parametrize("step", [1, 7, STEPS])
def test_F04_F08_told_to_stop_it_finishes_the_step_and_saves(
    toy: Toy, tmp_path: Path, straight: Straight, number: int, code: int, step: int
) -> None:
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        disturb_backward(patch, send(number, step))
        with pytest.raises(Stopped, match=rf"saved step {step}\. Next: ") as stopped:
            toy.train(out)
    assert stopped.value.exit_code == code
    assert steps(out)[-1] == step
    assert toy.train(out) == 0
    final = outcome(out)
    assert (final["model"], final["log"]) == (outcome(straight())["model"], outcome(straight())["log"])
    assert final["last"] == outcome(straight())["last"]


@pytest.mark.parametrize(
    ("place", "saved"), [("validation_loss", VALIDATE + 1), ("save_checkpoint", SAVE + 1), ("prepare", 0)]
)
def test_F04_told_to_stop_at_other_times(toy: Toy, tmp_path: Path, straight: Straight, place: str, saved: int) -> None:
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        module = run if place == "prepare" else loop
        real = getattr(module, place)

        def stop_and_go_on(*arguments: Any) -> Any:
            os.kill(os.getpid(), signal.SIGTERM)
            return real(*arguments)

        patch.setattr(module, place, stop_and_go_on)
        with pytest.raises(Stopped, match=f"saved step {saved}" if saved else "nothing was trained yet") as stopped:
            toy.train(out)
    assert stopped.value.exit_code == TERMINATED
    assert max(steps(out), default=0) == saved
    assert toy.train(out) == 0
    assert outcome(out)["model"] == outcome(straight())["model"]


def test_F04_told_to_stop_after_the_last_step(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost then, and the message does not say so."""
    monkeypatch.setattr(run, "model_card", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped, match=f"saved step {STEPS}") as stopped:
        toy.train(tmp_path / "run")
    assert stopped.value.exit_code == TERMINATED


def test_F04_what_takes_longer_than_the_grace_is_given_up(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: Any) -> float:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
        return 1.0

    monkeypatch.setattr(loop, "validation_loss", slow)
    started = time.monotonic()
    with pytest.raises(Stopped, match=f"saved step {SAVE}"):
        toy.train(tmp_path / "run", "training.grace=0.2")
    assert time.monotonic() - started < 10
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_F08_interrupted_twice_it_ends_at_once(toy: Toy, tmp_path: Path, straight: Straight, gap: float) -> None:
    out = tmp_path / "run"

    def twice(call: int, _: Any) -> None:
        if call == SAVE + 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(gap)
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("it went on")

    with pytest.MonkeyPatch.context() as patch:
        disturb_backward(patch, twice)
        with pytest.raises(KeyboardInterrupt):
            toy.train(out)
    assert steps(out) == [SAVE]
    assert toy.train(out) == 0
    assert outcome(out) == outcome(straight())


@pytest.mark.slow
def test_F04_exit_code_and_message_of_the_command(toy: Toy, tmp_path: Path) -> None:
    out = tmp_path / "run"
    points = environment(CLEARHEAD_TESTING="1", CLEARHEAD_FAILPOINT=f"train.step.{SAVE + 1}:sleep:2")
    command = [sys.executable, "-m", "clearhead", *toy.arguments(out)]
    with subprocess.Popen(command, env=points, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: SAVE in steps(out))
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    assert process.returncode == TERMINATED
    assert re.search(rf"^clearhead: error\[E_STOPPED\]: .*saved step {SAVE + 1}\. Next: .+", said, re.MULTILINE)
    assert "Traceback" not in said


def wait_for(is_so: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


# -- the disk -------------------------------------------------------------------------------------------------------


def fill_disk(monkeypatch: pytest.MonkeyPatch, failing: Container[int]) -> None:
    """No room for the weights of these steps."""

    def write_some(path: Path, content: disk.Content) -> str:
        found = re.search(r"step-(\d+)", path.parent.name)
        if found and int(found[1]) in failing and path.name == WEIGHTS:
            path.write_bytes(b"half of it")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return disk.write_file(path, content)

    monkeypatch.setattr(files, "write_file", write_some)


@pytest.mark.parametrize("failing", [{2}, {4, 6}, {8, 10, 14}])
def test_F05_disk_full_for_a_while(
    toy: Toy, tmp_path: Path, straight: Straight, monkeypatch: pytest.MonkeyPatch, failing: set[int]
) -> None:
    """The last save of {8, 10, 14} fails too, but a run that is told so and given room is only continued."""
    out = tmp_path / "run"
    fill_disk(monkeypatch, failing)
    if STEPS in failing:
        with pytest.raises(UserError, match=r"No space left on device \(need .* MiB, free .* MiB\)\. Kept: step 12\."):
            toy.train(out)
        monkeypatch.undo()
        monkeypatch.setenv("CLEARHEAD_CACHE", str(tmp_path / "cache"))
    assert toy.train(out) == 0
    assert log_of(out).count("clearhead: warning[E_DISK_FULL]: ") == len(failing - {STEPS})
    assert outcome(out)["last"] == outcome(straight())["last"]
    assert outcome(out)["log"] == outcome(straight())["log"]


def test_F05_the_third_failure_in_a_row_ends_the_run(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_disk(monkeypatch, range(4, STEPS))
    with pytest.raises(UserError, match=r"Kept: step 2\. Next: free some space") as error:
        toy.train(tmp_path / "run")
    assert error.value.exit_code == DISK
    assert [event["step"] for event in events(tmp_path / "run") if "loss" in event][-1] == 8
    assert steps(tmp_path / "run") == [2]
    assert [path.name for path in (tmp_path / "run").rglob(".*")] == []


def test_F05_no_room_at_the_start(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=9000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(UserError, match=r"cannot write to .*need .* MiB, free 0\.0 MiB") as error:
        toy.train(tmp_path / "run")
    assert error.value.exit_code == DISK
    assert not (tmp_path / "run" / "log.jsonl").exists()


def test_F05_no_room_for_the_log_is_no_reason_to_stop(
    toy: Toy, tmp_path: Path, straight: Straight, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real = tmp_path / "run", Path.open

    def no_room(path: Path, mode: str = "r", **options: Any) -> Any:
        if mode == "a":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, mode, **options)

    monkeypatch.setattr(Path, "open", no_room)
    assert toy.train(out) == 0
    assert not (out / "log.jsonl").exists()
    monkeypatch.undo()
    assert newest(out).state["step"] == STEPS
    assert (
        outcome(straight())["last"][WEIGHTS]
        == json.loads((newest(out).folder / "MANIFEST.json").read_text())["files"][WEIGHTS]["sha256"]
    )


def newest(out: Path) -> Any:
    found = newest_valid(out, pytest.fail)
    assert found is not None
    return found


@pytest.mark.parametrize("name", [WEIGHTS, "optimizer.safetensors", "state.json", "MANIFEST.json"])
def test_F10_a_damaged_checkpoint_costs_one_interval(
    toy: Toy, tmp_path: Path, straight: Straight, fail_at: Callable[[str], None], name: str
) -> None:
    out = tmp_path / "run"
    fail_at("train.step.8:raise")
    with pytest.raises(Exception, match=r"train\.step\.8"):
        toy.train(out)
    fail_at("")
    damaged = newest(out).folder
    content = bytearray((damaged / name).read_bytes())
    content[len(content) // 2] ^= 1
    (damaged / name).write_bytes(content)
    assert toy.train(out) == 0
    assert "clearhead: warning[E_CKPT_CORRUPT]: " in log_of(out)
    assert "going on after step 4 of 14" in log_of(out)
    assert damaged.with_name(f"{damaged.name}.corrupt").is_dir()
    assert outcome(out) == outcome(straight())


def test_F07_a_file_in_place_of_the_run_folder(toy: Toy, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(UserError, match="is a file; expected a folder for the run") as error:
        toy.train(tmp_path / "run")
    assert error.value.exit_code == DISK


# -- the wrong run --------------------------------------------------------------------------------------------------


def test_F09_a_second_trainer(toy: Toy, tmp_path: Path) -> None:
    with lock(tmp_path), pytest.raises(UserError, match=rf"locked by pid {os.getpid()} on host") as error:
        toy.train(tmp_path)
    assert error.value.exit_code == TRY_AGAIN


@pytest.mark.parametrize(
    ("sets", "keys"),
    [
        (["training.label_smoothing=0.3"], ["training.label_smoothing: 0.1, now 0.3"]),
        (["model.width=32", "training.seed=7"], ["model.width: 16, now 32", "training.seed: 1, now 7"]),
        (["data.max_tokens=99", "decoding.beam=7"], ["data.max_tokens: 256, now 99", "decoding.beam: 2, now 7"]),
        (["decoding.beam=5"], ["decoding.beam: 2, now 5"]),  # the default, but said
        (["preset=small"], ["preset: 'tiny', now 'small'"]),
    ],
)
def test_F11_other_options(toy: Toy, straight: Straight, sets: list[str], keys: list[str]) -> None:
    with pytest.raises(UserError, match="holds a run with other options") as error:
        toy.train(straight(), *sets)
    assert error.value.exit_code == USAGE
    for key in keys:
        assert key in str(error.value)


def test_F11_another_model_to_start_from(toy: Toy, straight: Straight) -> None:
    with pytest.raises(UserError, match="init_from: '', now 'elsewhere'") as error:
        toy.train(straight(), init_from=Path("elsewhere"))
    assert error.value.exit_code == USAGE


def test_F25_files_that_change_during_training(tmp_path: Path, straight: Straight) -> None:
    """They are read before step one and never again: the run ends as if nothing had happened, and more is refused."""
    own, out = Toy(tmp_path / "corpus").write(), tmp_path / "run"

    def change(call: int, _: Any) -> None:
        if call == 3:
            own.files[0].write_text("feige\n" * 58, encoding="utf-8")

    with pytest.MonkeyPatch.context() as patch:
        disturb_backward(patch, change)
        assert own.train(out) == 0
    assert outcome(out)["model"] == outcome(straight())["model"]
    with pytest.raises(UserError, match="was trained on other data") as error:
        own.train(out, f"training.steps={STEPS + 1}")
    assert error.value.exit_code == BAD_DATA


def test_F11_fewer_steps_than_there_are(toy: Toy, straight: Straight) -> None:
    with pytest.raises(UserError, match=f"has done {STEPS} steps; training.steps=3 asks for fewer") as error:
        toy.train(straight(), "training.steps=3")
    assert error.value.exit_code == USAGE


def test_F11_other_data(tmp_path: Path, straight: Straight) -> None:
    other = Toy(tmp_path / "other").write()
    text = other.files[0].read_bytes()
    other.files[0].write_bytes(text[:-2] + b"x\n")
    with pytest.raises(UserError, match=r"was trained on other data: SHA-256 .*Next: ") as error:
        other.train(straight())
    assert error.value.exit_code == BAD_DATA


def test_the_same_data_elsewhere_goes_on(
    toy: Toy, tmp_path: Path, straight: Straight, monkeypatch: pytest.MonkeyPatch, fail_at: Callable[[str], None]
) -> None:
    """Files and cache may move, and the cache may be emptied."""
    fail_at("train.step.5:raise")
    with pytest.raises(Exception, match=r"train\.step\.5"):
        toy.train(tmp_path / "run")
    fail_at("")
    monkeypatch.setenv("CLEARHEAD_CACHE", str(tmp_path / "cache"))
    assert Toy(tmp_path / "other").write().train(tmp_path / "run") == 0
    assert outcome(tmp_path / "run") == outcome(straight())
    assert read_run(tmp_path / "run")[1].prepared.startswith(str(tmp_path / "cache"))


# -- numbers --------------------------------------------------------------------------------------------------------


def bad_loss(at: Container[int]) -> Disturb:
    return lambda call, _: torch.tensor(float("nan")) if call in at else None


def bad_gradient(at: Container[int]) -> Disturb:
    def spoil(call: int, model: Any) -> None:
        if call in at:
            next(model.parameters()).grad[0, 0] = float("inf")

    return spoil


@pytest.mark.parametrize("bad", [bad_loss, bad_gradient])
@pytest.mark.parametrize("at", [[3], [3, 4, 5], [2, 3, 4, 6, 7, 8]])
def test_F13_a_few_updates_without_a_finite_loss_are_skipped(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: Callable[[list[int]], Disturb], at: list[int]
) -> None:
    out = tmp_path / "run"
    disturb_backward(monkeypatch, bad(at))
    assert toy.train(out, "data.marks=0") == 0  # so that the batches are those of the corpus' own lengths
    written = [json.loads(line) for line in (out / "bad_batches.jsonl").read_text().splitlines()]
    assert [one["step"] for one in written] == at
    settings, plan = read_run(out)
    prepared = open_prepared(Path(plan.prepared))
    lengths = prepared.source.ids.lengths, prepared.target.ids.lengths
    for one in written:
        epoch, place = divmod(one["step"] - 1, plan.batches_per_epoch)
        batches = epoch_batches(*lengths, plan.tokens_per_batch, settings.training.seed, epoch)
        assert one["lines"] == prepared.lines[np.sort(np.concatenate(batches[place]))].tolist()
    assert log_of(out).count("clearhead: warning[E_NOT_FINITE]: ") == len(at)
    assert [event["step"] for event in events(out) if "loss" in event] == list(range(1, STEPS + 1))
    assert "nan" not in (out / "loss.svg").read_text()


def test_F13_a_skipped_update_changes_no_weight(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disturb_backward(monkeypatch, bad_gradient([3, 4]))
    assert toy.train(tmp_path / "run", "training.steps=4", "training.average=9", "training.keep_best=9") == 0
    two, four = (outcome_of_step(tmp_path / "run", step) for step in (2, 4))
    assert two == four


def outcome_of_step(out: Path, step: int) -> str:
    manifest = json.loads((out / "checkpoints" / f"step-{step:08}" / "MANIFEST.json").read_text())
    return manifest["files"][WEIGHTS]["sha256"]


def test_F13_a_run_with_skipped_updates_resumes_exactly(
    toy: Toy, tmp_path: Path, fail_at: Callable[[str], None]
) -> None:
    for name in ("straight", "resumed"):
        with pytest.MonkeyPatch.context() as patch:
            disturb_backward(patch, bad_loss([3, 5]))
            if name == "resumed":
                fail_at("train.step.6:raise")
                with pytest.raises(Exception, match=r"train\.step\.6"):
                    toy.train(tmp_path / name)
        fail_at("")
        with pytest.MonkeyPatch.context() as patch:
            disturb_backward(patch, bad_loss([1] if name == "resumed" else [3, 5]))  # it goes on after step 4
            assert toy.train(tmp_path / name) == 0
    assert outcome(tmp_path / "straight") == outcome(tmp_path / "resumed")
    bad = [(tmp_path / name / "bad_batches.jsonl").read_text() for name in ("straight", "resumed")]
    assert bad[0] == bad[1]


def test_F13_four_in_a_row_end_the_run(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disturb_backward(monkeypatch, bad_loss(range(5, 20)))
    with pytest.raises(UserError, match=r"diverged at step 8: 4 updates in a row .*Kept: step 6\. Next: ") as error:
        toy.train(tmp_path / "run")
    assert error.value.exit_code == DIVERGED
    assert newest(tmp_path / "run").step == 6


def test_F13_more_than_ten_in_a_thousand_end_the_run(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disturb_backward(monkeypatch, bad_loss(range(1, 40, 2)))
    with pytest.raises(UserError, match="11 of the last 1,000") as error:
        toy.train(tmp_path / "run", "training.steps=40")
    assert error.value.exit_code == DIVERGED


def test_F13_weights_that_are_not_finite_are_never_saved(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(call: int, model: Any) -> None:
        if call == 6:
            with torch.no_grad():
                next(model.parameters())[0, 0] = float("nan")

    disturb_backward(monkeypatch, spoil)
    with pytest.raises(UserError, match=r"diverged at step 6: .* infinite or NaN\. Kept: step 4\.") as error:
        toy.train(tmp_path / "run")
    assert error.value.exit_code == DIVERGED
    assert steps(tmp_path / "run")[-1] == 4


def test_F13_a_validation_loss_that_is_not_finite(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "validation_loss", lambda *_: float("nan"))
    with pytest.raises(UserError, match=r"the validation loss is nan\. Kept: step 2") as error:
        toy.train(tmp_path / "run")
    assert error.value.exit_code == DIVERGED


def test_F14_a_loss_that_jumps_is_said(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disturb_backward(monkeypatch, lambda call, _: torch.tensor(50.0) if call == 60 else None)
    assert toy.train(tmp_path / "run", "training.steps=62", "training.save_every=62", "training.validate_every=62") == 0
    (line,) = [line for line in log_of(tmp_path / "run").splitlines() if "LOSS_JUMPED" in line]
    assert re.fullmatch(r"clearhead: warning\[E_LOSS_JUMPED\]: the loss jumped from .* to 50\.00 at step 60", line)


# -- memory ---------------------------------------------------------------------------------------------------------

SHORT_OF_MEMORY = [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")]


def run_short_of_memory(monkeypatch: pytest.MonkeyPatch, at: Container[int], error: Exception) -> None:
    def disturb(call: int, _: Any) -> None:
        if call in at:
            raise error

    disturb_backward(monkeypatch, disturb)


@pytest.mark.parametrize("error", SHORT_OF_MEMORY)
def test_F15_short_of_memory_once(
    toy: Toy, tmp_path: Path, straight: Straight, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The same updates in smaller pieces: the same losses but for rounding, since there is no dropout."""
    out, sets = tmp_path / "run", ("model.dropout=0",)
    run_short_of_memory(monkeypatch, [3], error)
    assert toy.train(out, *sets) == 0
    assert log_of(out).count("clearhead: warning[E_MEMORY]: ") == 1
    assert newest(out).state["micro_tokens"] <= 32  # of 64 in a batch, though 8192 were allowed
    np.testing.assert_allclose(losses(out), losses(straight(*sets)), rtol=1e-4)


def test_F15_short_of_memory_twice(toy: Toy, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        run_short_of_memory(patch, [3, 4], MemoryError())
        with pytest.raises(UserError, match=r"after halving them once\. Kept: step 2\. Lower ") as error:
            toy.train(out)
    assert error.value.exit_code == TRY_AGAIN
    assert toy.train(out, "training.micro_tokens=16") == 0  # as it advises
    assert newest(out).state["micro_tokens"] == 16


def test_F15_other_errors_are_no_lack_of_memory(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_short_of_memory(monkeypatch, [3], RuntimeError("size mismatch"))
    with pytest.raises(RuntimeError, match="size mismatch"):
        toy.train(tmp_path / "run")
