"""A model folder {model.safetensors config.json <tokenizer files> MANIFEST.json}: where it is and what it says.

config.json is a closed schema. `format` and `model` (its `kind` and options) must be there; `data` and `decoding`
are options too; `calibration`, which a finished model has, is what its scores mean; `scale` is that of the features of
a model whose sources are numbers; `target` says which words it never learned to say, `lines` what the lines were that
it was trained on, and `alignment` which of its heads learned to align; `tokenizer` and `about` hold plain values, which
are shown or compared but never opened or run.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clearhead.data.features import FeatureScale
from clearhead.data.lines import Lines
from clearhead.data.options import DataOptions
from clearhead.decoding.calibration import Calibration
from clearhead.decoding.options import AligningHeads, AlignmentHead, DecodingOptions
from clearhead.decoding.words import TargetWords
from clearhead.errors import DAMAGED, MISSING, UserError
from clearhead.model.options import ModelOptions, RNNOptions, TransformerOptions
from clearhead.options import from_dict

from .files import present
from .manifest import FORMAT, MANIFEST, damaged, parse_json, read_file, require_format

CONFIG = "config.json"
MODEL = "model"  # in a run folder
KINDS: dict[str, type[ModelOptions]] = {"transformer": TransformerOptions, "rnn": RNNOptions}
OPTIONS: dict[str, type] = {
    "data": DataOptions,
    "decoding": DecodingOptions,
    "calibration": Calibration,
    "scale": FeatureScale,
    "target": TargetWords,
    "lines": Lines,
    "alignment": AlignmentHead,
}
PLAIN = ("tokenizer", "about")
LARGEST = 1 << 24  # of any size in the options; a matrix of two of them can still be counted in 64 bits


def find_model(path: Path) -> Path:
    """The model folder that MODEL on the command line means: itself, or the one in a run folder."""
    own, inner = present(path), present(path / MODEL)
    _require_own_form(own)
    if not own.exists():
        raise UserError("MISSING", f"{path} does not exist; expected a run folder or a model folder", MISSING)
    if (own / CONFIG).exists() or (own / MANIFEST).exists():
        return own
    if inner.is_dir():
        return inner
    if (path / "checkpoints").is_dir():
        found = f"{path} is a run folder without a {MODEL} folder: its training has not come so far"
    elif own.is_dir():
        found = f"{path} is no model: it has neither {CONFIG} nor a {MODEL} folder"
    else:
        found = f"{path} is a file"
    raise UserError("NOT_A_MODEL", f"{found}; expected a run folder or a model folder", DAMAGED)


def _require_own_form(folder: Path) -> None:
    """Models in the forms of others have a config.json too, and those that we exported a manifest of ours."""
    if (folder / "model.bin").exists():
        form, advice = (
            "CTranslate2 (as 'clearhead export --to ct2' writes it)",
            "--engine ct2 makes such a form by itself",
        )
    elif (folder / "source.spm").exists():
        form = "Hugging Face's Marian (as 'clearhead export --to hf' writes it)"
        advice = f"of a model from elsewhere, make one by: clearhead import {folder} OUT"
    else:
        return
    expected = "expected a run folder or a model folder of ours; give the one that it was exported from"
    raise UserError("EXPORTED", f"{folder} is a model in the form of {form}; {expected}; {advice}", DAMAGED)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json, checked in every key; its hash is checked too."""
    path = folder / CONFIG
    for name in (MANIFEST, CONFIG):
        if not (folder / name).exists():
            raise UserError("NOT_A_MODEL", f"{folder} is no complete model: it has no {name}; copy it anew", DAMAGED)
    config = parse_json(path, read_file(folder, CONFIG))
    require_format(path, config)
    try:
        check_config(config)
    except ValueError as error:
        raise damaged(path, f"{error} (or it is of a newer Clearhead)") from error
    return config


def model_options(config: Mapping[str, Any]) -> ModelOptions:
    """The options in the `model` section; ValueError if they cannot be a model's."""
    section = config.get("model")
    if not isinstance(section, dict) or section.get("kind") not in list(KINDS):
        raise ValueError(f"model is {section!r}; expected a section with kind = {' or '.join(KINDS)}")
    values = {key: value for key, value in section.items() if key != "kind"}
    _check_numbers(values)
    options = from_dict(KINDS[section["kind"]], values, "model")
    if isinstance(options, TransformerOptions) and options.heads * options.key_width > LARGEST:
        raise ValueError(f"model.heads × head_width is {options.heads * options.key_width}; expected at most {LARGEST}")
    return options


def said_words(config: Mapping[str, Any]) -> list[int] | None:
    """The target words that a search considers; none: all."""
    return _target_words(config).said(model_options(config).target_vocabulary)


def aligning_heads(config: Mapping[str, Any]) -> AligningHeads | None:
    """The head that learned to align; none: nothing is known of one. ValueError if the model has no such head."""
    if "alignment" not in config:
        return None
    head, options = from_dict(AlignmentHead, config["alignment"], "alignment"), model_options(config)
    blocks, heads = (options.decoder_blocks, options.heads) if isinstance(options, TransformerOptions) else (0, 0)
    if head.block >= blocks or head.head >= heads:
        found = f"alignment is head {head.head} of block {head.block}"
        raise ValueError(f"{found}, but the decoder has {blocks} blocks of {heads} heads")
    return AligningHeads(head.block, head.head)


def _target_words(config: Mapping[str, Any]) -> TargetWords:
    return from_dict(TargetWords, config.get("target", {}), "target")


def make_config(options: ModelOptions, sections: Mapping[str, Any]) -> dict[str, Any]:
    """What goes into config.json: the sections given and the model's own; checked as if it were read."""
    kind = next(kind for kind, known in KINDS.items() if isinstance(options, known))
    config = {"format": FORMAT, "model": {"kind": kind, **asdict(options)}}
    config = {**config, **{key: value for key, value in sections.items() if key not in config}}
    check_config(config)
    return config


def check_config(config: Mapping[str, Any]) -> None:
    """ValueError names the first key that does not belong there."""
    model_options(config)
    for key, section in config.items():
        if key in ("format", "model"):
            continue
        if key not in OPTIONS and key not in PLAIN:
            known = ", ".join(["format", "model", *OPTIONS, *PLAIN])
            raise ValueError(f"there is no section {key!r}; expected {known}")
        if not isinstance(section, dict):
            raise ValueError(f"{key} is {section!r}; expected a section")
        if key in OPTIONS:
            from_dict(OPTIONS[key], section, key)
        elif any(isinstance(value, dict | list) for value in section.values()):
            raise ValueError(f"{key} has more than plain values")
    aligning_heads(config)
    _target_words(config).require(model_options(config).target_vocabulary)


def _check_numbers(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, int) and value > LARGEST:
            raise ValueError(f"model.{name} is {value}; expected at most {LARGEST}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"model.{name} is {value}; expected a finite number")
