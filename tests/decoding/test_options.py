"""Every option that cannot be used says what it is and what was expected."""

from typing import Any

import pytest

from clearhead.decoding import DecodingOptions

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"beam": 0}, "beam is 0; expected at least 1"),
    ({"beam": -3}, "beam is -3; expected at least 1"),
    ({"n_best": 0}, "n_best is 0; expected at least 1"),
    ({"min_length": -1}, "min_length is -1; expected at least 0"),
    ({"block_ngrams": -2}, "block_ngrams is -2; expected at least 0"),
    ({"top_k": -5}, "top_k is -5; expected at least 0"),
    ({"beam": 3, "n_best": 7}, "n_best is 7, but a beam of 3 finds no more than 3"),
    ({"length_penalty": "median"}, "length_penalty is 'median'; expected one of mean, paper"),
    ({"alpha": -0.5}, "alpha is -0.5; expected at least 0"),
    ({"max_length": 0}, "max_length is 0; expected at least 1 and min_length 0"),
    ({"max_length": 5, "min_length": 7}, "max_length is 5; expected at least 1 and min_length 7"),
    ({"temperature": 0.0}, "temperature is 0.0; expected more than 0"),
    ({"temperature": -0.7}, "temperature is -0.7; expected more than 0"),
    ({"top_p": 0.0}, "top_p is 0.0; expected more than 0 and at most 1"),
    ({"top_p": 1.1}, "top_p is 1.1; expected more than 0 and at most 1"),
]

RIGHT: list[dict[str, Any]] = [
    {"beam": 1},
    {"beam": 7, "n_best": 7},
    {"beam": 1, "n_best": 7, "temperature": 1.0},  # samples need no beam
    {"min_length": 5, "max_length": 5},
    {"min_length": 500},
    {"alpha": 0.0},
    {"top_p": 1.0, "top_k": 0},
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[message.split(";")[0] for _, message in WRONG])
def test_options_that_cannot_be_used(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        DecodingOptions(**options)
    assert str(error.value) == message


@pytest.mark.parametrize("options", RIGHT, ids=str)
def test_options_at_their_limits(options: dict[str, Any]) -> None:
    made = DecodingOptions(**options)
    assert {name: getattr(made, name) for name in options} == options
