"""Models out to CTranslate2 and Hugging Face, and in from there; nothing is written that translates otherwise.

A conversion is made in a scratch folder beside its place, compared with what it was made of (`parity`), and only then
put there, complete or not at all.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from clearhead.checkpoint.disk import TEMPORARY, disk_errors, make_folder
from clearhead.checkpoint.files import write_folder
from clearhead.checkpoint.manifest import MANIFEST, read_manifest
from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.errors import DISK, USAGE, UserError
from clearhead.program import to_type
from clearhead.progress import progress

if TYPE_CHECKING:
    from clearhead.engines import Engine

    from .parity import Ours, Side

FORMS = {"ct2": "model.bin", "hf": "source.spm"}  # and the file by which a folder of that form is known
LIBRARIES = {"ct2": "ctranslate2", "hf": "transformers"}
CHECKED = {  # what each has gone through; a model that fails is not written
    "ct2": "in float32 it cuts, translates and scores a sample as this model does, and fewer bits score it alike",
    "hf": "both sides cut, translate and score a sample alike",
}
OURS = "source.json"  # the same of an imported model


def export_model(model: Path, out: Path, to: str, quantization: str = "int8") -> list[str]:
    """Write the model of a run or model folder as CTranslate2 (`ct2`) or Hugging Face's Marian (`hf`) has it.

    Returns what was written and how it was checked, in lines for people.
    """
    if to not in FORMS:
        raise UserError("FORM", f"--to is {to!r}; expected {' or '.join(FORMS)}", USAGE)
    folder = find_model(model)
    _require_library(to)
    _require_free(out, FORMS[to])
    with _scratch(out) as scratch:
        if to == "hf":
            _to_hugging_face(folder, scratch / "new")
            _settle(scratch / "new", out)
        else:
            _to_ctranslate2(folder, scratch, quantization)
            _settle(scratch / "new", out, _for_others(folder))
    return _written(out, {"ct2": f"CTranslate2 in {quantization}", "hf": "Hugging Face's Marian"}[to], CHECKED[to])


def import_model(folder: Path, out: Path) -> list[str]:
    """Write a Hugging Face Marian folder, in the layout of OPUS-MT, as a model folder of ours; what was written."""
    _require_library("hf")
    _require_free(out, OURS)
    from clearhead.convert.marian import from_marian

    from .hugging_face import HuggingFace

    with _scratch(out) as scratch:
        from_marian(folder, scratch / "new")
        _compare(_native(scratch / "new"), HuggingFace(folder))
        _settle(scratch / "new", out)
    return [*_written(out, "Clearhead", CHECKED["hf"]), f"try: {to_type('translate', str(out))}"]


def _written(out: Path, form: str, checked: str) -> list[str]:
    """Each file with its size."""
    sizes = {name: entry.size for name, entry in sorted(read_manifest(out).items())}
    files = ", ".join(f"{name} ({_size(size)})" for name, size in sizes.items())
    return [f"wrote {out} for {form}: {len(sizes)} files, {_size(sum(sizes.values()))}: {files}", f"checked: {checked}"]


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _to_hugging_face(folder: Path, new: Path) -> None:
    from clearhead.convert.marian import to_marian

    from .hugging_face import HuggingFace

    to_marian(folder, new)
    _compare(_native(folder), HuggingFace(new))


def _to_ctranslate2(folder: Path, scratch: Path, quantization: str) -> None:
    """In float32 everything must agree; what has fewer bits is held against that."""
    from clearhead.convert.ctranslate2 import to_ctranslate2
    from clearhead.engines.ct2 import Ct2Engine

    from .parity import check_loosely, sample

    to_ctranslate2(folder, scratch / "new", quantization)
    to_ctranslate2(folder, scratch / "float32", "float32")
    exact = _side("ctranslate2 in float32", Ct2Engine(scratch / "float32", among_all=True), folder)
    _compare(_native(folder), exact)
    quantized = _side(f"ctranslate2 in {quantization}", Ct2Engine(scratch / "new", among_all=True), folder)
    check_loosely(exact, quantized, [text for text, _ in sample(exact)])


def _for_others(folder: Path) -> dict[str, bytes]:
    """What one needs besides the weights to use them without Clearhead."""
    from clearhead.data.folders import tokenizer_files

    from .readme import readme

    data = read_config(folder).get("data", {})
    languages = data.get("source_language") or "und", data.get("target_language") or "und"
    files = {file.name: file.read_bytes() for file in tokenizer_files(folder)}
    return {**files, "README.md": readme(languages, list(files)).encode()}


def _compare(one: "Ours", other: "Side") -> None:
    from .parity import check, sample

    pairs = sample(one)
    with progress("comparing") as bar:
        check(one, other, pairs, lambda done: bar.update(done, len(pairs), "texts"))


def _native(folder: Path) -> "Ours":
    """In float32, among all words: it is the weights that are compared."""
    from clearhead.checkpoint.model import load_model
    from clearhead.engines.native import NativeEngine

    return _side("clearhead", NativeEngine(load_model(folder)[0]), folder)


def _side(name: str, engine: "Engine", folder: Path) -> "Ours":
    from clearhead.data.folders import load_tokenizers

    from .parity import Ours

    return Ours(name, engine, *load_tokenizers(folder))


def _require_library(form: str) -> None:
    if find_spec(LIBRARIES[form]) is None:
        raise UserError(
            "NOT_INSTALLED",
            f"{LIBRARIES[form]} is not installed, and without it nobody can check that both sides translate alike. "
            f"Next: pip install 'clearhead[{form}]'",
            USAGE,
        )


def _require_free(out: Path, mark: str) -> None:
    """Before the work: `out` is new, or an older folder of the same kind that we wrote."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UserError("EXISTS", f"{out} exists and is no folder; remove it or give another name", DISK)
    if not out.exists() or not any(out.iterdir()):
        return
    if not (out / MANIFEST).exists() or mark not in read_manifest(out):
        message = f"{out} holds something else than an older {mark} of ours; it is not replaced: give another name"
        raise UserError("EXISTS", message, DISK)


@contextlib.contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A folder beside `out` for as long as the work lasts; what a killed process leaves is cleaned by the next one."""
    with disk_errors(f"cannot write beside {out}", out.parent, None, "all that was there before"):
        make_folder(out.parent)
        folder = tempfile.TemporaryDirectory(prefix=f"{TEMPORARY}{out.name}-", dir=out.parent)
    with folder as name:
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with contextlib.suppress(OSError):  # as in checkpoint.files, which leaves alone what is locked
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(handle)


def _settle(new: Path, out: Path, more: Mapping[str, bytes] = MappingProxyType({})) -> None:
    """The files that were checked, and `more`, where they belong."""
    write_folder(out, {**{name: (new / name).read_bytes() for name in read_manifest(new)}, **more})
