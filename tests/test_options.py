"""Dictionaries to options: what is misspelt or of another type is refused, in words that help."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from clearhead.data.options import DataOptions
from clearhead.decoding import DecodingOptions
from clearhead.model import RNNOptions, TransformerOptions
from clearhead.options import from_dict, nearest, parse_value
from clearhead.training.options import TrainingOptions


@dataclass(frozen=True)
class Lamp:
    watts: int = 60
    brightness: float = 0.5
    fade: float | None = None
    lit: bool = False
    colour: str = "white"
    level: str | float = "high"
    steps: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.watts < 1:
            raise ValueError(f"watts is {self.watts}; expected at least 1")


def lamp(**values: Any) -> Lamp:
    return from_dict(Lamp, values, "lamp")


def test_nothing_given_is_all_defaults() -> None:
    assert lamp() == Lamp()


def test_given_values_are_taken() -> None:
    wanted = Lamp(7, 0.25, 1.5, True, "red", 0.3, [0.1, 0.7])
    assert lamp(watts=7, brightness=0.25, fade=1.5, lit=True, colour="red", level=0.3, steps=[0.1, 0.7]) == wanted


@pytest.mark.parametrize("name", ["brightness", "fade", "level"])
def test_a_whole_number_becomes_a_float(name: str) -> None:
    value = getattr(lamp(**{name: 3}), name)
    assert value == 3
    assert type(value) is float


def test_whole_numbers_in_a_list_become_floats() -> None:
    steps = lamp(steps=[1, 0.5, 3]).steps
    assert steps == [1.0, 0.5, 3.0]
    assert {type(step) for step in steps} == {float}


def test_a_whole_number_stays_one_where_it_belongs() -> None:
    assert type(lamp(watts=3).watts) is int


def test_none_is_fine_where_nothing_may_be_given() -> None:
    assert lamp(fade=None).fade is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"wats": 3}, "lamp has no option 'wats'; did you mean 'watts'?"),
        ({"q": 3}, "lamp has no option 'q'; it has brightness, colour, fade, level, lit, steps, watts"),
        ({"watts": True}, "lamp.watts is True, true or false; expected a whole number"),
        ({"watts": 3.0}, "lamp.watts is 3.0, a number; expected a whole number"),
        ({"watts": "3"}, "lamp.watts is '3', text; expected a whole number"),
        ({"watts": None}, "lamp.watts is None, a NoneType; expected a whole number"),
        ({"brightness": True}, "lamp.brightness is True, true or false; expected a number"),
        ({"brightness": "1"}, "lamp.brightness is '1', text; expected a number"),
        ({"brightness": float("nan")}, "lamp.brightness is nan; expected a finite number"),
        ({"fade": float("inf")}, "lamp.fade is inf; expected a finite number"),
        ({"fade": [1.0]}, "lamp.fade is [1.0], a list; expected a number"),
        ({"lit": 1}, "lamp.lit is 1, a whole number; expected true or false"),
        ({"lit": "true"}, "lamp.lit is 'true', text; expected true or false"),
        ({"colour": 3}, "lamp.colour is 3, a whole number; expected text"),
        ({"level": False}, "lamp.level is False, true or false; expected text or a number"),
        ({"steps": 0.5}, "lamp.steps is 0.5, a number; expected a list, each of it a number"),
        ({"steps": [1.0, "2"]}, "lamp.steps is [1.0, '2'], a list; expected a list, each of it a number"),
        ({"steps": [True]}, "lamp.steps is [True], a list; expected a list, each of it a number"),
        ({"steps": [[1.0]]}, "lamp.steps is [[1.0]], a list; expected a list, each of it a number"),
        ({"steps": [1.0, float("nan")]}, "lamp.steps is [1.0, nan]; expected a finite number"),
        ({"watts": 0}, "lamp: watts is 0; expected at least 1"),
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        from_dict(Lamp, values, "lamp")
    assert str(caught.value) == message


@dataclass(frozen=True)
class Bulb:
    watts: int
    volts: int
    colour: str = "white"


def test_what_has_no_default_must_be_there() -> None:
    with pytest.raises(ValueError) as caught:
        from_dict(Bulb, {"volts": 12}, "bulb")
    assert str(caught.value) == "bulb has no watts; expected it to have watts, volts, colour"
    assert from_dict(Bulb, {"volts": 12, "watts": 7}, "bulb") == Bulb(7, 12)


def test_a_number_beyond_all_floats_is_refused() -> None:
    with pytest.raises(ValueError, match="lamp: "):
        lamp(brightness=10**400)


@pytest.mark.parametrize(
    ("options", "typo", "meant"),
    [
        (DataOptions, "tokeniser", "tokenizer"),
        (TransformerOptions, "head", "heads"),
        (RNNOptions, "layer", "layers"),
        (TrainingOptions, "step", "steps"),
        (DecodingOptions, "bean", "beam"),
    ],
)
def test_every_section_names_what_was_meant(options: type, typo: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"section has no option '{typo}'; did you mean '{meant}'"):
        from_dict(options, {typo: 1}, "section")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1_000", 1000),
        ("0.5", 0.5),
        ("4e-3", 0.004),
        ("true", True),
        ("False", "False"),
        ('"3"', "3"),
        ("en", "en"),
        ("zh-CN", "zh-CN"),
        ("", ""),
        ("a b", "a b"),
        ("中文", "中文"),
        ("[1, 2]", [1, 2]),
    ],
)
def test_values_on_the_command_line_are_toml_or_text(text: str, value: object) -> None:
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_the_nearest_is_named_only_if_it_is_near() -> None:
    known = dict.fromkeys(["steps", "seed"])
    assert nearest("stepps", known) == "; did you mean 'steps'?"
    assert nearest("banana", known) == "; it has seed, steps"
