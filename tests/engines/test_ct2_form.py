"""The CTranslate2 folder of a model is there, up to date and undamaged, whatever was there before."""

import subprocess
import sys
from pathlib import Path

import pytest

from clearhead.checkpoint.manifest import MANIFEST, verify
from clearhead.convert import ctranslate2 as converter
from clearhead.data.folders import default_cache
from clearhead.engines import ct2_form as module
from clearhead.engines.ct2 import Ct2Engine
from clearhead.engines.ct2_form import ct2_form
from clearhead.engines.native import NativeEngine
from clearhead.errors import DISK, UserError
from tests.convert.variants import save_talkative, save_variant
from tests.samples import PAPER, VARIANTS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEARHEAD_CACHE", str(tmp_path / "cache"))
    save_talkative(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every folder that was written."""
    written: list[Path] = []
    convert = converter.to_ctranslate2

    def record(folder: Path, out: Path, quantization: str) -> None:
        convert(folder, out, quantization)
        written.append(out)

    monkeypatch.setattr(module, "to_ctranslate2", record)
    return written


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_is_made_once_inside_the_model_folder(folder: Path, made: list[Path]) -> None:
    assert ct2_form(folder) == ct2_form(folder) == folder / "ct2-int8"
    assert ct2_form(folder, "float32") == folder / "ct2-float32"
    assert made == [folder / "ct2-int8", folder / "ct2-float32"]
    assert {path.name for path in folder.iterdir() if path.name.startswith(".")} == set()
    verify(folder)


@pytest.mark.parametrize("change", ["weights", "options", "converter"])
def test_a_stale_one_is_remade(change: str, folder: Path, made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    before = files_of(ct2_form(folder))
    if change == "weights":
        model = save_talkative(folder.parent / "other", seed=5)
        for name, content in files_of(folder.parent / "other").items():
            (folder / name).write_bytes(content)
    elif change == "options":
        model = save_variant(folder, VARIANTS["pre"])
    else:
        monkeypatch.setattr(converter, "CONVERTER", 1000)
    form = ct2_form(folder)
    assert made == [form, form]
    assert files_of(form) != before
    if change != "converter":
        ours = NativeEngine(model).score([[5, 6]], [[7, 8]])
        assert Ct2Engine(form, workers=1).score([[5, 6]], [[7, 8]])[0] == pytest.approx(ours[0], abs=0.3)


def test_saving_the_model_anew_takes_the_old_one_along(folder: Path) -> None:
    ct2_form(folder)
    save_variant(folder, PAPER)
    assert not (folder / "ct2-int8").exists()
    assert ct2_form(folder) == folder / "ct2-int8"


@pytest.mark.parametrize("damage", ["changed", "cut", "gone", "manifest"])
def test_a_damaged_one_is_remade(damage: str, folder: Path, made: list[Path]) -> None:
    form = ct2_form(folder)
    whole = files_of(form)
    binary = form / "model.bin"
    if damage == "changed":
        content = bytearray(binary.read_bytes())
        content[-7] ^= 1
        binary.write_bytes(content)
    elif damage == "cut":
        binary.write_bytes(binary.read_bytes()[:1000])
    elif damage == "gone":
        binary.unlink()
    else:
        (form / MANIFEST).write_text("{}")
    assert ct2_form(folder) == form
    assert files_of(form) == whole
    assert made == [form, form]


def test_where_the_model_cannot_be_written_it_goes_to_the_cache(folder: Path, made: list[Path]) -> None:
    (folder / "ct2-int8").write_text("in the way")  # root may write anywhere, but not make a folder of a file
    form = ct2_form(folder)
    assert form.parent == default_cache() / "ct2"
    assert ct2_form(folder) == form
    assert made == [form]
    Ct2Engine(form, workers=1).score([[5]], [[6]])
    save_talkative(folder.parent / "other", seed=5)
    (folder.parent / "other" / "ct2-int8").write_text("in the way")
    assert ct2_form(folder.parent / "other") != form


def test_where_the_cache_cannot_be_written_either_it_is_an_error(folder: Path) -> None:
    (folder / "ct2-int8").write_text("in the way")
    default_cache().write_text("in the way too")
    with pytest.raises(UserError) as caught:
        ct2_form(folder)
    assert caught.value.exit_code == DISK


def test_a_model_that_changes_meanwhile_is_converted_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert, calls = converter.to_ctranslate2, []

    def replaced_meanwhile(model: Path, out: Path, quantization: str) -> None:
        calls.append(out)
        convert(model, out, quantization)
        if len(calls) < 3:
            save_talkative(folder, seed=len(calls))

    monkeypatch.setattr(module, "to_ctranslate2", replaced_meanwhile)
    form = ct2_form(folder)
    assert len(calls) == 3
    assert module._is_sound(form, module._wanted(folder, "int8"))


def test_an_error_that_has_nothing_to_do_with_the_disk_is_shown(folder: Path) -> None:
    save_variant(folder, VARIANTS["no-norm"])
    with pytest.raises(UserError, match=r"model\.norm is 'none'"):
        ct2_form(folder)


TWO = (
    "import sys; from pathlib import Path; from clearhead.engines.ct2_form import ct2_form; ct2_form(Path(sys.argv[1]))"
)


@pytest.mark.slow
def test_two_at_once_both_end_well(folder: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", TWO, str(folder)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert module._is_sound(folder / "ct2-int8", module._wanted(folder, "int8"))
    assert {path.name for path in folder.iterdir() if path.name.startswith(".")} == set()
