"""The commands that people are told to type are those that a shell of theirs finds."""

import sys
from pathlib import Path

import pytest

from clearhead.program import program, to_type


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment inside the folder where we are, and nothing on PATH."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ".venv" / "bin" / "clearhead"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.setattr(sys, "executable", str(path.with_name("python")))
    return path


def test_it_is_named_as_a_shell_finds_it(script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert program() == ".venv/bin/clearhead"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "clearhead"
    other = tmp_path / "other" / "clearhead"
    other.parent.mkdir()
    other.write_bytes(script.read_bytes())
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}:{script.parent}")  # another one comes first
    assert program() == ".venv/bin/clearhead"
    monkeypatch.chdir(other.parent)
    assert to_type("inspect", "demo-run", "March 4, 2026") == f"{script} inspect demo-run 'March 4, 2026'"


def test_as_a_module_and_in_a_notebook(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/clearhead/__main__.py"])
    assert program() == ".venv/bin/python -m clearhead"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "clearhead"
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py"])
    monkeypatch.setenv("PATH", "")
    assert program() == "clearhead"
