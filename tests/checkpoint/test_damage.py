"""F10 damaged files, F11 a newer format, F12 files made to do harm."""

import hashlib
import json
import os
import pickle
import resource
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.checkpoint.disk import write_file
from clearhead.checkpoint.manifest import Entry, manifest_bytes, read_manifest
from clearhead.checkpoint.model import load_model, save_model
from clearhead.checkpoint.run import checkpoint_folder, newest_valid, save_checkpoint, steps
from clearhead.checkpoint.weights import once, to_safetensors
from clearhead.errors import DAMAGED, UserError

from .states import SMALL, make, newest, save, value_of

FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST.json")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("saved")
    for step in (20, 40):
        save(run, step)
    save_model(run / "model", make(40), {"about": {"step": 40}}, {"words.txt": b"a b c"})
    load_model(run)  # what torch imports late is imported before memory is measured
    return run


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    return shutil.copytree(saved, tmp_path / "run")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def swap(path: Path) -> None:
    shutil.copy(checkpoint_folder(path.parents[2], 20) / path.name, path)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [truncate, lengthen, empty, Path.unlink, swap, to_folder])
@pytest.mark.parametrize("name", FILES)
def test_F10_a_damaged_file_means_the_checkpoint_before(run: Path, name: str, damage: Callable[[Path], None]) -> None:
    if (name, damage) == ("MANIFEST.json", lengthen):
        pytest.skip("white space at the end of JSON is no damage")
    damage(checkpoint_folder(run, 40) / name)
    lines: list[str] = []
    checkpoint = newest_valid(run, lines.append)
    assert checkpoint is not None
    assert value_of(checkpoint) == 20
    assert len(lines) == 1
    assert lines[0].startswith("clearhead: warning[E_CKPT_CORRUPT]: ")
    assert "step-00000040" in lines[0]
    assert (run / "checkpoints" / "step-00000040.corrupt").is_dir()
    save(run, 40)
    assert value_of(newest(run)) == 40


@pytest.mark.parametrize("name", FILES)
def test_F10_every_flipped_bit_is_found(run: Path, name: str) -> None:
    folder = checkpoint_folder(run, 40)
    content = (folder / name).read_bytes()
    places = range(0, 8 * len(content), max(1, 8 * len(content) // 61))
    for place in places:
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        (folder / name).write_bytes(flipped)
        lines: list[str] = []
        try:
            checkpoint = newest_valid(run, lines.append)
        except UserError as error:
            if error.code == "FORMAT":  # a flipped bit made "format": 1 a larger number
                continue
            raise
        assert checkpoint is not None
        assert checkpoint.step == 20, place
        assert len(lines) == 1
        if name != "MANIFEST.json":
            assert f"{name} is damaged: its SHA-256 is {hashlib.sha256(flipped).hexdigest()}, expected " in lines[0]
            assert hashlib.sha256(content).hexdigest() in lines[0]
        (run / "checkpoints" / "step-00000040.corrupt").rename(folder)
    (folder / name).write_bytes(content)
    assert value_of(newest(run)) == 40


def test_F10_none_valid(run: Path) -> None:
    for step in steps(run):
        empty(checkpoint_folder(run, step) / "state.json")
    lines: list[str] = []
    for _ in range(2):  # and it does not begin anew the second time
        with pytest.raises(UserError, match=r"no checkpoint to resume from: damaged step-00000020\.corrupt, ") as error:
            newest_valid(run, lines.append)
        assert error.value.exit_code == DAMAGED
    assert len(lines) == 2


def test_F10_a_second_damaged_one_gets_another_name(run: Path) -> None:
    for _ in range(2):
        save(run, 40)
        empty(checkpoint_folder(run, 40) / "model.safetensors")
        newest_valid(run, lambda _line: None)
    assert (run / "checkpoints" / "step-00000040.corrupt-2").is_dir()


def rewrite(folder: Path, name: str, content: bytes) -> None:
    """As one would who can compute a SHA-256."""
    entries = read_manifest(folder)
    (folder / name).unlink()
    entries[name] = Entry(write_file(folder / name, content), len(content))
    (folder / "MANIFEST.json").write_bytes(manifest_bytes(entries))


def edit_json(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    values = json.loads((folder / name).read_text())
    change(values)
    content = json.dumps(values).encode()
    if name == "MANIFEST.json":
        (folder / name).write_bytes(content)
    else:
        rewrite(folder, name, content)


@pytest.mark.parametrize("name", ["state.json", "MANIFEST.json"])
def test_F11_a_newer_checkpoint_is_left_alone(run: Path, name: str) -> None:
    edit_json(checkpoint_folder(run, 40), name, lambda values: values.update(format=2))
    with pytest.raises(UserError, match="has format 2, but this Clearhead knows formats up to 1") as error:
        newest_valid(run, pytest.fail)
    assert error.value.exit_code == DAMAGED
    assert steps(run) == [20, 40]


def test_F11_a_newer_model(run: Path) -> None:
    edit_json(run / "model", "config.json", lambda values: values.update(format=7))
    with pytest.raises(UserError, match="has format 7") as error:
        load_model(run)
    assert error.value.exit_code == DAMAGED


def refused(run: Path, said: str) -> None:
    """Exit code 76, and little memory asked for."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match=said) as error:
        load_model(run)
    assert error.value.exit_code == DAMAGED
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


def header(**tensors: Any) -> bytes:
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pickle.dumps(Bomb()), "no safetensors file|header is longer"),
        (b"", "no safetensors file"),
        (b"\x01", "no safetensors file"),
        (struct.pack("<Q", 1 << 62) + b"{}", "its header is longer than"),
        (struct.pack("<Q", (1 << 23) - 1) + b"{}", "no safetensors file"),
        (struct.pack("<Q", 2) + b"[]", "no safetensors file"),
        (header(a={"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}), "no safetensors file"),
        (header(a={"dtype": "F32", "shape": [1 << 40, 0], "data_offsets": [0, 0]}), "blocks|it has no tensor"),
        (header(a={"dtype": "F32", "shape": [1 << 63, 2], "data_offsets": [0, 0]}), "no safetensors file"),
        (header(a={"dtype": "OBJ", "shape": [1], "data_offsets": [0, 0]}), "no safetensors file"),
    ],
)
def test_F12_files_that_are_no_weights(run: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str) -> None:
    monkeypatch.chdir(run)
    rewrite(run / "model", "model.safetensors", content)
    refused(run, said)
    rewrite(checkpoint_folder(run, 40), "optimizer.safetensors", content)
    checkpoint = newest_valid(run, lambda _line: None)
    assert checkpoint is not None
    assert checkpoint.step == 20 or b"1099511627776, 0" in content  # an empty tensor is a tensor
    assert not (run / "exploded").exists()


def test_F12_other_tensors_than_the_options_say(run: Path) -> None:
    weights = make(1).state_dict()
    first, *_ = weights
    for tensors, said in (
        ({**weights, "more": torch.zeros(1)}, "it has a tensor more, which this model does not have"),
        ({name: tensor for name, tensor in weights.items() if "inner.bias" not in name}, "it has no tensor encoder.0"),
        ({**weights, first: torch.zeros(11, 7)}, rf"{first} is F32 \[11, 7\], expected F32 \[11, 6\]"),
        ({**weights, first: torch.zeros(11, 6).double()}, rf"{first} is F64 \[11, 6\], expected F32 \[11, 6\]"),
        ({name: tensor * float("nan") for name, tensor in once(weights).items()}, "infinite or NaN"),
    ):
        rewrite(run / "model", "model.safetensors", b"".join(to_safetensors(tensors)))
        refused(run, said)


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("model", {"width": 1 << 40}, "model.width is 1099511627776; expected at most"),
        ("model", {"width": 1 << 24, "heads": 1}, "expected F32"),
        ("model", {"heads": 1 << 20, "head_width": 1 << 20}, "heads × head_width is"),
        ("model", {"encoder_blocks": 1 << 20}, "it has 1048577 blocks, but model.safetensors only"),
        ("model", {"kind": "os.system"}, "expected a section with kind = transformer or rnn"),
        ("model", {"kind": ["rnn"]}, "expected a section with kind"),
        ("model", {"weights": "/etc/passwd"}, "model has no option 'weights'"),
        ("model", {"width": "${HOME}"}, "expected a whole number"),
        ("model", {"heads": 0}, "heads is 0; expected at least 1"),
        ("model", {"scale": 1e999}, "no JSON|is inf"),
        ("tokenizer", {"path": ["../../etc/passwd"]}, "tokenizer has more than plain values"),
        ("data", {"url": "http://example.org"}, "data has no option 'url'"),
        ("decoding", {"beam": -1}, "beam is -1"),
        ("code", {"class": "x"}, "there is no section 'code'"),
    ],
)
def test_F12_config_is_a_closed_schema(run: Path, section: str, values: dict[str, Any], said: str) -> None:
    edit_json(run / "model", "config.json", lambda config: config.setdefault(section, {}).update(values))
    refused(run, said)


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff", b"[" * 100_000, b'{"format": ' + b"9" * 9999 + b"}"])
def test_F12_config_that_is_no_json_object(run: Path, content: bytes) -> None:
    rewrite(run / "model", "config.json", content)
    refused(run, "it is no JSON")
    (run / "model" / "MANIFEST.json").write_bytes(content)
    refused(run, "it is no JSON")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "..", "a/b", ".hidden", "MANIFEST.json"])
def test_F12_names_that_lead_elsewhere(run: Path, name: str) -> None:
    entry = {"sha256": "0" * 64, "size": 1}
    edit_json(run / "model", "MANIFEST.json", lambda manifest: manifest["files"].update({name: entry}))
    refused(run, "which is no plain file name")


@pytest.mark.parametrize("entry", [None, {}, {"sha256": 1, "size": 1}, {"sha256": "0", "size": True}])
def test_F12_entries_that_are_none(run: Path, entry: Any) -> None:
    edit_json(run / "model", "MANIFEST.json", lambda manifest: manifest["files"].update({"x": entry}))
    refused(run, "its entry for x is no SHA-256 and size")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "words.txt", "MANIFEST.json"])
def test_F12_links_and_pipes_are_not_followed(run: Path, name: str) -> None:
    path = run / "model" / name
    path.rename(run / "elsewhere")
    path.symlink_to(run / "elsewhere")
    refused(run, f"{name} is damaged: it is a symbolic link")
    path.unlink()
    os.mkfifo(path)
    refused(run, f"{name} is damaged: it is no regular file")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "words.txt", "MANIFEST.json"])
def test_F12_an_incomplete_model_says_what_is_missing(run: Path, name: str) -> None:
    (run / "model" / name).unlink()
    refused(run, f"has no {name}|{name} is damaged: it is missing")


def test_F12_a_manifest_without_the_weights(run: Path) -> None:
    edit_json(run / "model", "MANIFEST.json", lambda manifest: manifest["files"].pop("model.safetensors"))
    refused(run, r"MANIFEST\.json does not list model\.safetensors")


def test_a_checkpoint_of_another_model_names_the_difference(tmp_path: Path) -> None:
    from clearhead.checkpoint.weights import load_weights

    folder = save_checkpoint(tmp_path, 1, {"other": torch.ones(2)}, {}, {})
    with pytest.raises(UserError, match=r"it has no tensor source_embedding\.weight"):
        load_weights(make(0), folder)
    assert make(0).options == SMALL
