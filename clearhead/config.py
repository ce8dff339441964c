"""A run's options from recipe, flags and --set: --set beats flags beat the recipe beats the preset."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from clearhead.checkpoint.model_folder import KINDS
from clearhead.data.languages import require_codes
from clearhead.data.options import DataOptions
from clearhead.decoding import DecodingOptions
from clearhead.errors import DISK, MISSING, USAGE, UserError
from clearhead.model import SIZES, TransformerOptions
from clearhead.options import from_dict, nearest, parse_value
from clearhead.training.options import TrainingOptions
from clearhead.training.settings import Request, kind_of

SECTIONS = ("data", "model", "training", "decoding")
TOP_LEVEL = ("preset", "task")  # the latter is short for data.task


@dataclass(frozen=True)
class Flags:
    """What the command line says about a run, besides the recipe and --set."""

    train: Sequence[Path] = ()
    valid: Sequence[Path] = ()
    preset: str | None = None
    processes: int | None = None
    minutes: float | None = None
    init_from: Path | None = None
    command: str = ""


def make_request(recipe: str | None, flags: Flags, sets: Sequence[str] = ()) -> Request:
    """All options checked for names and types; UserError says which one is wrong and what was expected."""
    options = read_recipe(recipe) if recipe else {}
    try:
        preset, merged = _merge(options, flags, sets)
        _check_model(merged["model"], preset)
        return Request(
            train=flags.train,
            valid=flags.valid,
            preset=preset,
            data=from_dict(DataOptions, merged["data"], "data"),
            model=merged["model"],
            training=from_dict(TrainingOptions, merged["training"], "training"),
            decoding=from_dict(DecodingOptions, merged["decoding"], "decoding"),
            init_from=flags.init_from,
            command=flags.command,
            said=frozenset(f"{section}.{key}" for section, values in merged.items() for key in values),
        )
    except ValueError as error:
        raise UserError("OPTIONS", str(error), USAGE) from error


def data_options(sets: Sequence[str]) -> DataOptions:
    """What --set says about the data, for commands that read text but train nothing."""
    try:
        _, merged = _merge({}, Flags(), sets)
        others = [section for section, values in merged.items() if values and section != "data"]
        if others:
            raise ValueError(f"--set {others[0]}.{next(iter(merged[others[0]]))}: only options of data matter here")
        options = from_dict(DataOptions, merged["data"], "data")
    except ValueError as error:
        raise UserError("OPTIONS", str(error), USAGE) from error
    require_codes(options)
    return options


def shipped_recipes() -> list[str]:
    return sorted(file.name.removesuffix(".toml") for file in _recipes().iterdir() if file.name.endswith(".toml"))


def recipe_text(name: str) -> str:
    """The TOML of a file, or of a shipped recipe of that name."""
    path = Path(name)
    if path.is_file():  # a folder may well have the name of a shipped recipe
        return _recipe_file(path)
    if path.suffix == ".toml":
        raise UserError("NO_RECIPE", f"there is no recipe file {name}; 'clearhead recipe' lists what there is", MISSING)
    if name not in shipped_recipes():
        known = dict.fromkeys(shipped_recipes())
        raise UserError("NO_RECIPE", f"there is no recipe {name!r}{nearest(name, known)}", MISSING)
    return (_recipes() / f"{name}.toml").read_text(encoding="utf-8")


def read_recipe(name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(recipe_text(name))
    except tomllib.TOMLDecodeError as error:
        hint = "" if name.endswith(".toml") else ". Text to train on is given by --train SOURCE TARGET"
        raise UserError("RECIPE", f"the recipe {name} is not valid TOML: {error}{hint}", USAGE) from error


def _recipe_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError("RECIPE", f"{path} is not UTF-8 text; expected a recipe in TOML", USAGE) from error
    except OSError as error:
        raise UserError("UNREADABLE", f"cannot read {path}: {error.strerror}; check its permissions", DISK) from error


def _recipes() -> Any:
    return resources.files("clearhead") / "recipes"


def _merge(
    options: Mapping[str, Any], flags: Flags, sets: Sequence[str]
) -> tuple[str | None, dict[str, dict[str, Any]]]:
    """The preset's name, and the values that were given of each section."""
    _check_keys(options)
    merged: dict[str, dict[str, Any]] = {section: dict(options.get(section, {})) for section in SECTIONS}
    for name in ("processes", "minutes"):
        if getattr(flags, name) is not None:
            merged["training"][name] = getattr(flags, name)
    if "task" in options:
        merged["data"]["task"] = options["task"]
    preset = options.get("preset") if flags.preset is None else flags.preset
    for text in sets:
        preset = _apply_set(text, merged, preset)
    if preset is not None and preset not in SIZES:
        raise ValueError(f"preset is {preset!r}{nearest(str(preset), SIZES)}")
    return preset, {**merged, "model": _of_its_kind(merged["model"], options, preset)}


def _of_its_kind(values: dict[str, Any], recipe: Mapping[str, Any], preset: str | None) -> dict[str, Any]:
    """Without the recipe's options for a model of another kind than the one that is asked for in its place."""
    theirs = recipe.get("preset")
    if preset is None or theirs not in SIZES or kind_of(SIZES[theirs]) == kind_of(SIZES[preset]):
        return values
    known = {field.name for field in fields(SIZES[preset])}
    left_out = {name for name, value in recipe.get("model", {}).items() if name not in known and values[name] == value}
    return {name: value for name, value in values.items() if name not in left_out}


def _check_keys(options: Mapping[str, Any]) -> None:
    known = dict.fromkeys((*TOP_LEVEL, *SECTIONS))
    for key, value in options.items():
        if key not in known:
            raise ValueError(f"the recipe has a key {key!r}{nearest(key, known)}")
        if key in SECTIONS and not isinstance(value, dict):
            raise ValueError(f"{key} is {value!r}; expected a section [{key}]")


def _apply_set(text: str, merged: dict[str, dict[str, Any]], preset: str | None) -> str | None:
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not equals or (not dot and section not in TOP_LEVEL):
        raise ValueError(f"--set {text!r}; expected section.key=value, such as training.steps=2000")
    if section == "task" and not dot:
        merged["data"]["task"] = str(parse_value(value.strip()))
        return preset
    if section in TOP_LEVEL and not dot:
        return str(parse_value(value.strip()))
    if section not in SECTIONS:
        raise ValueError(f"--set {text!r}: there is no section {section!r}{nearest(section, dict.fromkeys(SECTIONS))}")
    merged[section][key] = parse_value(value.strip())
    if name.strip() == "training.steps":
        merged["training"].pop("minutes", None)  # a time that the recipe or a flag gives would decide them otherwise
    return preset


def _check_model(values: Mapping[str, Any], preset: str | None) -> None:
    """Names and types; and values, as far as they are known before the corpus has chosen preset and vocabulary."""
    vocabularies = {"source_vocabulary", "target_vocabulary"} & set(values)
    if vocabularies:
        raise ValueError(f"model.{sorted(vocabularies)[0]} follows from the tokenizer; set data.vocabulary")
    if "features" in values:
        raise ValueError("model.features follows from the files; expected no such option")
    if "kind" in values:
        raise ValueError('model.kind follows from the preset; use preset = "rnn"')
    bases = [SIZES[preset]] if preset else [size for size in SIZES.values() if isinstance(size, TransformerOptions)]
    wrong = []
    for base in bases:
        try:
            from_dict(KINDS[kind_of(base)], {**asdict(base), **values}, "model")
        except ValueError as error:
            wrong.append(error)
    if len(wrong) == len(bases):
        raise wrong[0]
