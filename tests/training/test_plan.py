"""Which row of the table of defaults a run gets."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from clearhead.data.prepare import Prepared, prepare
from clearhead.model import TransformerOptions
from clearhead.training import plan, rehearsal
from clearhead.training.options import TrainingOptions
from clearhead.training.plan import (
    DROPOUTS,
    ENOUGH_STEPS,
    STARTING,
    SURE,
    TABLE,
    Fitting,
    _beside_steps,
    dropout_for,
    make_plan,
)
from clearhead.training.settings import Request, Settings

from .toy import Toy

BESIDE = 7.0  # seconds of a run that are not steps
SECONDS = {128: 0.2, 256: 1.0, 512: 10.0}  # per step, by the model's width


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    """Of so few pairs that the last row of the table begins at fifty, and with a machine that needs SECONDS a step."""
    rows = [row for row in TABLE if row.preset == "tiny"][-1:] + [row for row in TABLE if row.preset != "tiny"]
    table = [
        Fitting(pairs, *list(vars(row).values())[1:]) for pairs, row in zip((7, 50, float("inf")), rows, strict=True)
    ]
    monkeypatch.setattr(plan, "TABLE", table)

    def seconds(settings: Settings, *_: Any) -> float:
        return SECONDS[settings.model.width]

    monkeypatch.setattr(rehearsal, "time_steps", seconds)
    monkeypatch.setattr(plan, "_beside_steps", lambda *_: BESIDE)
    toy = Toy(tmp_path).write()
    request = Request(toy.files[:2])
    return prepare(toy.files[:2], toy.files[2:], request.data, 1, tmp_path / "cache", lambda *_: None)


def test_what_comes_before_the_plan_is_part_of_the_minutes(prepared: Prepared) -> None:
    training = TrainingOptions(minutes=1, processes=1, threads=1)
    request = Request([], preset="tiny", training=training)
    steps = make_plan(request, prepared)[1].steps
    later = make_plan(request, prepared, started=time.perf_counter() - 20)[1].steps
    assert steps - later == pytest.approx(20 * SURE / SECONDS[128], abs=2)


def test_what_is_not_a_step_grows_with_what_is_validated(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    settings, _, _ = make_plan(Request([], training=TrainingOptions(steps=7, processes=1, threads=1)), prepared)
    training = settings.training

    def seconds(pairs: int) -> float:
        return _beside_steps(replace(settings, training=replace(training, decode_pairs=pairs)), prepared, 1.0)

    assert STARTING < seconds(0) < seconds(2) < seconds(200) == seconds(300)  # there are eleven


def test_steps_that_take_long_are_not_rehearsed_again(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, _, _ = make_plan(Request([], training=TrainingOptions(steps=7, processes=1, threads=1)), prepared)
    monkeypatch.setattr(rehearsal, "time_steps", timed := Mock(return_value=0.5))
    assert rehearsal.precisely(settings, prepared, 3.0) == 3.0
    assert timed.call_count == 0
    assert rehearsal.precisely(settings, prepared, 2.0) == 0.5
    assert timed.call_args.args[-1] == 4
    rehearsal.precisely(settings, prepared, 0.01)
    assert timed.call_args.args[-1] == rehearsal.MANY


FASTEST = [
    (False, {}, ("float32", 3, 1), 2),
    (True, {}, ("bfloat16", 1, 3), 3),
    (True, {("bfloat16", 1): 9.5, ("bfloat16", 3): 8.0}, ("float32", 3, 1), 3),
    (True, {("bfloat16", 3): 1.7}, ("bfloat16", 3, 1), 3),
]


@pytest.mark.parametrize(("has_it", "changed", "expected", "timed"), FASTEST)
def test_what_is_fastest_here_is_taken(
    prepared: Prepared,
    has_it: bool,
    changed: dict[tuple[str, int], float],
    expected: tuple[str, int, int],
    timed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seconds by precision and number of processes; bfloat16 only where the CPU has it."""
    seconds = {("float32", 1): 5.0, ("float32", 3): 4.0, ("bfloat16", 1): 2.0, ("bfloat16", 3): 2.0, **changed}
    asked: list[float] = []

    def time_steps(settings: Settings, *_: Any) -> float:
        ways = settings.training
        asked.append(seconds[ways.precision, ways.processes or 0])
        return asked[-1]

    monkeypatch.setattr(rehearsal, "time_steps", time_steps)
    monkeypatch.setattr(rehearsal, "has_bfloat16", lambda: has_it)
    monkeypatch.setattr(rehearsal, "pick_device", lambda: "cpu")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    found = make_plan(Request([], preset="tiny", training=TrainingOptions(steps=7)), prepared)[1]
    assert (found.precision, found.processes, found.threads) == expected
    assert len(asked) == timed


@pytest.mark.slow
def test_processes_are_timed_together_where_minutes_count(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two real ones, which exchange their gradients; with steps alone nobody waits for that."""
    monkeypatch.setattr(plan, "precisely", timed := Mock(wraps=rehearsal.precisely))
    training = TrainingOptions(minutes=1, processes=2, threads=1)
    found = make_plan(Request([], preset="tiny", training=training), prepared)[1]
    assert timed.call_count == 1
    assert found.seconds_per_step != SECONDS[128] * rehearsal.EARNED
    make_plan(Request([], preset="tiny", training=replace(training, minutes=None, steps=7)), prepared)
    assert timed.call_count == 1


@pytest.mark.parametrize(
    ("said", "norm", "positions"),
    [
        ({}, "pre", "rotary"),
        ({"positions": "learned"}, "pre", "learned"),
        ({"norm": "post"}, "post", "sinusoidal"),
        ({"norm": "pre"}, "pre", "sinusoidal"),
    ],
)
def test_whoever_says_the_norm_gets_the_papers_positions(
    prepared: Prepared, said: dict[str, str], norm: str, positions: str
) -> None:
    training = TrainingOptions(steps=7, processes=1, threads=1)
    model = make_plan(Request([], preset="tiny", model=said, training=training), prepared)[0].model
    assert isinstance(model, TransformerOptions)
    assert (model.norm, model.positions) == (norm, positions)


def presets(prepared: Prepared, minutes: float | None, preset: str | None = None) -> tuple[str, str]:
    """Of the settings and of the row that was used."""
    training = TrainingOptions(minutes=minutes, processes=1, threads=1)
    settings, _, row = make_plan(Request([], preset=preset, training=training), prepared)
    return settings.preset, row.preset


def minutes_for(steps: int, width: int) -> float:
    """That are enough for so many steps, but not for one more."""
    return ((steps + 0.9) * SECONDS[width] / SURE + BESIDE) / 60


def test_without_a_time_the_corpus_alone_decides(prepared: Prepared) -> None:
    assert presets(prepared, None) == ("base", "base")


@pytest.mark.parametrize(
    ("minutes", "preset"),
    [
        (minutes_for(ENOUGH_STEPS, 512), "base"),
        (minutes_for(ENOUGH_STEPS - 1, 512), "small"),
        (minutes_for(ENOUGH_STEPS, 256), "small"),
        (minutes_for(ENOUGH_STEPS - 1, 256), "tiny"),
        (0.1, "tiny"),
    ],
)
def test_a_short_time_gets_a_smaller_model(prepared: Prepared, minutes: float, preset: str) -> None:
    assert presets(prepared, minutes) == (preset, preset)


def test_a_preset_that_was_said_stays(prepared: Prepared) -> None:
    assert presets(prepared, 0.1, "small") == ("small", "base")


def test_what_is_seldom_read_gets_less_dropout(prepared: Prepared) -> None:
    def planned(minutes: float, **said: float) -> tuple[float, float]:
        """Epochs and dropout of a run of the smallest model, for which other times are too short."""
        training = TrainingOptions(minutes=minutes, tokens_per_batch=17, processes=1, threads=1)
        request = Request([], model=said, training=training)
        settings, found, row = make_plan(request, prepared)
        assert (row.preset, row.dropout) == ("tiny", usual)
        return found.steps / found.batches_per_epoch, settings.model.dropout

    usual = plan.TABLE[0].dropout
    seen = set()
    for steps in (50, 51, 100, 200, 400):
        epochs, dropout = planned(minutes_for(steps, 128))
        assert dropout == dropout_for(epochs, usual)
        seen.add(dropout)
    assert len(seen) > 1
    for enough, most in DROPOUTS:
        assert dropout_for(enough - 0.1, usual) == most < dropout_for(enough, usual)
    assert planned(0.1, dropout=0.7)[1] == 0.7
