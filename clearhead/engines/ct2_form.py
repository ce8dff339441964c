"""A model in CTranslate2's format, beside its own weights: `MODEL/ct2-int8/`, made when missing, stale or damaged.

It says what it was made of (made_of.json: the SHA-256 of the weights, among others), so a model folder with other
weights is seen to need another one. Makers hold an flock on the folder around it: of two at once one waits and finds
the other's work. Where the model folder cannot be written, the form goes to the user's cache.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clearhead.checkpoint.disk import disk_errors, make_folder
from clearhead.checkpoint.manifest import json_bytes, parse_json, read_file, read_manifest, verify
from clearhead.convert.ctranslate2 import FOUND, MADE_OF, QUANTIZATIONS, made_of, to_ctranslate2
from clearhead.decoding.options import AligningHeads
from clearhead.errors import DISK, UserError

DEFAULT = "int8"  # on a CPU the fastest, and as good to a few tenths of a BLEU point


def ct2_form(folder: Path, quantization: str = DEFAULT) -> Path:
    """The CTranslate2 folder of the model in `folder`, up to date and undamaged.

    A training run may replace the model meanwhile: then it is done again with the new one.
    """
    while True:
        wanted = _wanted(folder, quantization)
        try:
            form = _find_or_make(folder, quantization, wanted)
        except UserError:
            if _wanted(folder, quantization) == wanted:
                raise
            continue
        if _wanted(folder, quantization) == wanted:
            return form


def found_heads(folder: Path) -> AligningHeads | None:
    """Those that were found to align when a form was made of this model; none: nobody has looked for any."""
    for quantization in QUANTIZATIONS:
        wanted = _wanted(folder, quantization)
        for form in (folder / f"ct2-{quantization}", _cached(wanted)):
            try:
                made = parse_json(form / MADE_OF, read_file(form, MADE_OF))
            except UserError:
                continue
            if isinstance(made, dict) and FOUND in made and _without_found(made) == wanted:
                return AligningHeads(**made[FOUND])
    return None


def _wanted(folder: Path, quantization: str) -> dict[str, Any]:
    return made_of(folder, read_manifest(folder), quantization)


def _find_or_make(folder: Path, quantization: str, wanted: dict[str, Any]) -> Path:
    inside = folder / f"ct2-{quantization}"
    if _is_sound(inside, wanted):
        return inside
    cached = _cached(wanted)
    if _is_sound(cached, wanted):
        return cached
    try:
        return _make(folder, inside, quantization, wanted)
    except UserError as error:
        if error.exit_code != DISK:
            raise
    return _make(folder, cached, quantization, wanted)


def _make(folder: Path, form: Path, quantization: str, wanted: dict[str, Any]) -> Path:
    with _locked(form.parent):
        if not _is_sound(form, wanted):
            to_ctranslate2(folder, form, quantization)
    return form


def _is_sound(form: Path, wanted: dict[str, Any]) -> bool:
    if not form.is_dir():
        return False
    try:
        verify(form, [MADE_OF, "model.bin"])
        return _without_found(parse_json(form / MADE_OF, read_file(form, MADE_OF))) == wanted
    except UserError:
        return False


def _without_found(made: Any) -> Any:
    """Only what follows from the model."""
    return {key: value for key, value in made.items() if key != FOUND} if isinstance(made, dict) else made


def _cached(wanted: dict[str, Any]) -> Path:
    from clearhead.data.folders import default_cache

    key = hashlib.sha256(json_bytes(wanted)).hexdigest()[:24]
    return default_cache() / "ct2" / key


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """On the folder itself: nothing is left behind, and a folder that cannot be written can be locked too."""
    with disk_errors(f"cannot lock {folder}", folder, None, "all that was there before"):
        make_folder(folder)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network disks cannot; then two makers do the same work twice
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
