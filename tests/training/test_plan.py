"""Which row of the table of defaults a run gets."""

from pathlib import Path
from typing import Any

import pytest

from clearhead.data.prepare import Prepared, prepare
from clearhead.training import plan
from clearhead.training.options import TrainingOptions
from clearhead.training.plan import ENOUGH_STEPS, TABLE, Fitting, make_plan
from clearhead.training.settings import Request, Settings

from .toy import Toy

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

    monkeypatch.setattr(plan, "_time_steps", seconds)
    toy = Toy(tmp_path).write()
    request = Request(toy.files[:2])
    return prepare(toy.files[:2], toy.files[2:], request.data, 1, tmp_path / "cache", lambda *_: None)


def presets(prepared: Prepared, minutes: float | None, preset: str | None = None) -> tuple[str, str]:
    """Of the settings and of the row that was used."""
    training = TrainingOptions(minutes=minutes, processes=1, threads=1)
    settings, _, row = make_plan(Request([], preset=preset, training=training), prepared)
    return settings.preset, row.preset


def minutes_for(steps: int, width: int) -> float:
    return steps * SECONDS[width] / 0.78 / 60 + 0.01


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
