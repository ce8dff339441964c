"""A folder appears complete or not at all; replacing one; failpoints."""

from pathlib import Path

import pytest

from clearhead.checkpoint.disk import TEMPORARY
from clearhead.checkpoint.files import OLD, clean, present, write_folder
from clearhead.checkpoint.manifest import read_file, verify
from clearhead.errors import DAMAGED, DISK, UserError
from clearhead.failpoint import FailpointError, failpoint


def at(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    monkeypatch.setenv("CLEARHEAD_TESTING", "1")
    monkeypatch.setenv("CLEARHEAD_FAILPOINT", point)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_verifies(tmp_path: Path) -> None:
    write_folder(tmp_path / "a", {"x": b"one", "y": [b"tw", memoryview(b"o")], "empty": b""})
    assert {name: entry.size for name, entry in verify(tmp_path / "a").items()} == {"x": 3, "y": 3, "empty": 0}
    assert read_file(tmp_path / "a", "y") == b"two"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("point", ["folder.after_x", "folder.before_rename"])
def test_a_failure_keeps_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    write_folder(tmp_path / "a", {"x": b"old"})
    at(monkeypatch, f"{point}:raise")
    with pytest.raises(FailpointError):
        write_folder(tmp_path / "a", {"x": b"new"})
    assert names(tmp_path) == ["a"]
    assert read_file(tmp_path / "a", "x") == b"old"


def test_between_the_renames_readers_find_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "a", {"x": b"old"})
    at(monkeypatch, "folder.between_renames:raise")
    with pytest.raises(FailpointError):
        write_folder(tmp_path / "a", {"x": b"new"})
    assert names(tmp_path) == [f"{OLD}a"]
    assert read_file(present(tmp_path / "a"), "x") == b"old"
    clean(tmp_path)
    assert names(tmp_path) == ["a"]
    assert read_file(tmp_path / "a", "x") == b"old"


def test_after_the_rename_the_new_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "a", {"x": b"old"})
    at(monkeypatch, "folder.after_rename:raise")
    with pytest.raises(FailpointError):
        write_folder(tmp_path / "a", {"x": b"new"})
    assert read_file(present(tmp_path / "a"), "x") == b"new"
    clean(tmp_path)
    assert names(tmp_path) == ["a"]


def test_a_living_writer_is_not_cleaned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, int] = {}

    def look(point: str) -> None:
        clean(tmp_path)
        seen[point] = len([name for name in names(tmp_path) if name.startswith(TEMPORARY)])

    monkeypatch.setattr("clearhead.checkpoint.files.failpoint", look)
    write_folder(tmp_path / "a", {"x": b"1"})
    assert seen == {"folder.after_x": 1, "folder.before_rename": 1, "folder.after_rename": 0}
    assert verify(tmp_path / "a")


def test_a_folder_of_other_things_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("text")
    for name, said in (("home", "holds other files"), ("file", "is no folder")):
        with pytest.raises(UserError, match=said) as error:
            write_folder(tmp_path / name, {"x": b""})
        assert error.value.exit_code == DISK
    assert names(tmp_path / "home") == ["letter.txt"]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", ".hidden", "MANIFEST.json", "a\\b", "a\0b"])
def test_only_plain_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a file"):
        write_folder(tmp_path / "a", {name: b""})


def test_what_is_not_listed_does_not_count(tmp_path: Path) -> None:
    write_folder(tmp_path / "a", {"x": b"1"})
    (tmp_path / "a" / "notes.txt").write_text("mine")
    assert list(verify(tmp_path / "a")) == ["x"]
    for read in (lambda: read_file(tmp_path / "a", "notes.txt"), lambda: verify(tmp_path / "a", ["notes.txt"])):
        with pytest.raises(UserError, match=r"does not list notes\.txt") as error:
            read()
        assert error.value.exit_code == DAMAGED


def test_failpoints_need_the_testing_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_FAILPOINT", "here:raise")
    failpoint("here")
    at(monkeypatch, "there:raise,here:sleep:0.0")
    failpoint("here")
    at(monkeypatch, "here:explode")
    with pytest.raises(ValueError, match="expected kill, raise or sleep"):
        failpoint("here")
