"""Which engine: the one that was asked for, or the fastest that is installed and can have this model."""

import sys
from importlib.util import find_spec
from pathlib import Path

from clearhead.checkpoint.model_folder import find_model, model_options, read_config
from clearhead.errors import DISK, USAGE, UserError, warning_line

from . import Engine

ENGINES = ("auto", "native", "ct2")


def open_engine(folder: Path, name: str = "auto", *, deterministic: bool = False) -> Engine:
    """The engine of the model in a run folder or a model folder.

    `deterministic`: a sentence gets the same result alone and among any others, always; it costs the speed of batches.
    """
    if name not in ENGINES:
        raise UserError("ENGINE", f"there is no engine {name!r}; expected one of {', '.join(ENGINES)}", USAGE)
    folder = find_model(folder)
    if name == "ct2" and not is_installed():
        message = "CTranslate2 is not installed, which --engine ct2 needs. Next: pip install 'clearhead[ct2]'"
        raise UserError("NO_CT2", message, USAGE)
    if name == "native" or (name == "auto" and why_not_ct2(folder)):
        return _open_native(folder, deterministic)
    try:
        return _open_ct2(folder, deterministic)
    except UserError as error:
        if name == "ct2" or error.exit_code != DISK:
            raise
        print(warning_line("CT2", f"{error}. Going on with the native engine"), file=sys.stderr, flush=True)
        return _open_native(folder, deterministic)


def is_installed() -> bool:
    return find_spec("ctranslate2") is not None


def why_not_ct2(folder: Path) -> str | None:
    """Why the model in a model folder cannot be had with CTranslate2; none: it can."""
    from clearhead.convert.ctranslate2 import inexpressible

    return inexpressible(model_options(read_config(folder))) if is_installed() else "CTranslate2 is not installed"


def _open_ct2(folder: Path, deterministic: bool) -> Engine:
    from .ct2 import Ct2Engine
    from .ct2_form import ct2_form

    return Ct2Engine(ct2_form(folder), deterministic=deterministic)


def _open_native(folder: Path, deterministic: bool) -> Engine:
    from .native import open_native

    return open_native(folder, deterministic=deterministic)
