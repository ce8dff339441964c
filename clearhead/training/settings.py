"""All options of a run, as asked for and as resolved, and how they are stored in run.toml."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from clearhead.checkpoint.model_folder import KINDS
from clearhead.data.options import DataOptions
from clearhead.decoding import DecodingOptions
from clearhead.model import ModelOptions, RNNOptions
from clearhead.options import from_dict

from .options import TrainingOptions


@dataclass(frozen=True)
class Request:
    """What the user asked for; the model is not known before the corpus has been counted."""

    train: Sequence[Path]
    valid: Sequence[Path] = ()
    preset: str | None = None
    data: DataOptions = field(default_factory=DataOptions)
    model: Mapping[str, Any] = field(default_factory=dict)  # options that differ from the preset's
    training: TrainingOptions = field(default_factory=TrainingOptions)
    decoding: DecodingOptions = field(default_factory=DecodingOptions)
    init_from: Path | None = None
    command: str = ""  # for the model card
    said: frozenset[str] | None = None  # section.key of what was said; none: whatever differs from its default


@dataclass(frozen=True)
class Settings:
    """Everything that determines a run, resolved: the same settings on the same data give the same model."""

    train: list[str]
    valid: list[str]
    preset: str
    init_from: str
    data: DataOptions
    model: ModelOptions
    training: TrainingOptions
    decoding: DecodingOptions


def kind_of(options: ModelOptions) -> str:
    return "rnn" if isinstance(options, RNNOptions) else "transformer"


def to_toml(settings: Settings, command: str) -> str:
    """Readable, and read back by `from_toml`. What is none is left out."""
    shown = "".join(c if c.isprintable() else " " for c in command)
    lines = [f"# made by: {shown}", f"preset = {_value(settings.preset)}"]
    for name in ("train", "valid", "init_from"):
        lines.append(f"{name} = {_value(getattr(settings, name))}")
    sections = {
        "data": asdict(settings.data),
        "model": {"kind": kind_of(settings.model), **asdict(settings.model)},
        "training": asdict(settings.training),
        "decoding": asdict(settings.decoding),
    }
    for section, values in sections.items():
        lines += ["", f"[{section}]", *(f"{k} = {_value(v)}" for k, v in values.items() if v is not None)]
    return "\n".join(lines) + "\n"


def from_toml(text: str) -> Settings:
    """ValueError if a key or a type is not known."""
    stored = tomllib.loads(text)
    model = dict(stored.pop("model"))
    # A run that began before there was either goes on without them.
    stored["data"].setdefault("marks", 0.0)
    stored["training"].setdefault("guided_alignment", 0.0)
    kind = model.pop("kind")
    if kind not in KINDS:
        raise ValueError(f"model.kind is {kind!r}; expected one of {', '.join(KINDS)}")
    return Settings(
        train=stored["train"],
        valid=stored["valid"],
        preset=stored["preset"],
        init_from=stored["init_from"],
        data=from_dict(DataOptions, stored["data"], "data"),
        model=from_dict(KINDS[kind], model, "model"),
        training=from_dict(TrainingOptions, stored["training"], "training"),
        decoding=from_dict(DecodingOptions, stored["decoding"], "decoding"),
    )


def differences(old: Settings, new: Settings, may_differ: set[str]) -> list[str]:
    """`section.key: old, now new` for each option that is not the same."""
    found = []
    for name in ("preset", "init_from"):
        if getattr(old, name) != getattr(new, name):
            found.append(f"{name}: {getattr(old, name)!r}, now {getattr(new, name)!r}")
    for section in ("data", "model", "training", "decoding"):
        before, after = getattr(old, section), getattr(new, section)
        if type(before) is not type(after):
            found.append(f"model: {kind_of(old.model)}, now {kind_of(new.model)}")
            continue
        for option in fields(before):
            was, is_ = getattr(before, option.name), getattr(after, option.name)
            if was != is_ and f"{section}.{option.name}" not in may_differ:
                found.append(f"{section}.{option.name}: {was!r}, now {is_!r}")
    return found


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
