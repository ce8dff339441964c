"""A dictionary, as TOML or JSON gives it, to a frozen dataclass: unknown keys and wrong types are errors."""

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def from_dict(options: type[T], values: Mapping[str, Any], section: str) -> T:
    """An `options` object of these values; ValueError names the section, the key and what was expected."""
    known = {field.name: field for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    expected = typing.get_type_hints(options)
    for key, value in values.items():
        if key not in known:
            raise ValueError(f"{section} has no option {key!r}{nearest(key, known)}")
        if not _fits(value, expected[key]):
            raise ValueError(
                f"{section}.{key} is {value!r}, {_a(type(value).__name__)}; expected {_name(expected[key])}"
            )
        if not _is_finite(value):
            raise ValueError(f"{section}.{key} is {value}; expected a finite number")
    missing = [name for name, field in known.items() if _is_required(field) and name not in values]
    if missing:
        raise ValueError(f"{section} has no {', '.join(missing)}; expected it to have {', '.join(known)}")
    try:
        return options(**{key: _cast(value, expected[key]) for key, value in values.items()})
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{section}: {error}") from error


def parse_value(text: str) -> Any:
    """What the right-hand side of `--set key=value` means: a TOML value, or else plain text."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def nearest(key: str, known: Mapping[str, Any]) -> str:
    """The end of a sentence on an unknown key: what was probably meant, or all there is."""
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(sorted(known))}"


def _cast(value: Any, expected: Any) -> Any:
    """A whole number where a fraction is expected is fine in TOML and on the command line; it becomes a float."""
    if typing.get_origin(expected) is list:
        return [_cast(one, typing.get_args(expected)[0]) for one in value]
    kinds = typing.get_args(expected) or (expected,)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_whole and float in kinds and int not in kinds else value


def _fits(value: Any, expected: Any) -> bool:
    if isinstance(expected, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(expected))
    if typing.get_origin(expected) is list:
        return isinstance(value, list) and all(_fits(one, typing.get_args(expected)[0]) for one in value)
    if expected is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if expected is type(None):
        return value is None
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, expected)


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _is_finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_finite(one) for one in value)
    return not isinstance(value, float) or math.isfinite(value)


def _name(expected: Any) -> str:
    if isinstance(expected, types.UnionType):
        return " or ".join(_name(one) for one in typing.get_args(expected) if one is not type(None))
    if typing.get_origin(expected) is list:
        return f"a list, each of it {_name(typing.get_args(expected)[0])}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return words.get(expected, str(expected))


def _a(name: str) -> str:
    return {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}.get(name, f"a {name}")
