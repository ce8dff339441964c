"""What the READMEs say works: their commands run, their Python runs, and what they name exists."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.main import get_command

from clearhead.cli import app
from docs.generate import PAGE, page
from tests.recordings import write_melodies

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.zh-CN.md"]
# Training commands of the page do what they say, only less of it.
SMALLER = [
    "model.width=8", "model.heads=2", "model.feed_forward=8", "model.encoder_blocks=1", "model.decoder_blocks=1",
    "training.steps=2", "training.validate_every=2", "training.save_every=2", "training.decode_pairs=2",
    "training.precision=float32", "training.processes=1", "training.threads=1",
]  # fmt: skip
NOUNS = {"dog": "Hund", "man": "Mann", "bird": "Vogel", "king": "König", "fish": "Fisch"}
VERBS = {"runs": "läuft", "sleeps": "schläft", "sings": "singt", "eats": "isst", "waits": "wartet"}
PLACES = {"": "", " here": " hier", " there": " dort", " at home": " zu Hause", " in town": " in der Stadt"}


def blocks(readme: str, language: str) -> list[str]:
    text = (ROOT / readme).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shell_lines(readme: str) -> list[str]:
    """Commands without their comments."""
    lines = (line.split("  #")[0].strip() for block in blocks(readme, "sh") for line in block.splitlines())
    return [line for line in lines if line]


def clearhead_commands(readme: str) -> list[str]:
    return [line for line in shell_lines(readme) if re.search(r"(^|\| )clearhead ", line)]


def write_files(folder: Path) -> None:
    """The files that the page names."""
    pairs = [
        (f"A {noun} {verb}{place}.", f"Ein {NOUNS[noun]} {VERBS[verb]}{PLACES[place]}.")
        for noun in NOUNS
        for verb in VERBS
        for place in PLACES
    ]
    for name in ("train", "valid", "test"):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    for name in ("train", "valid", "test"):  # in place of what espeak-ng speaks
        manifest = write_melodies(folder / "spoken" / name, 23)
        lines = manifest.read_text(encoding="utf-8").splitlines(keepends=True)[1:]
        (folder / "spoken" / f"{name}.tsv").write_text("".join(f"{name}/{line}" for line in lines), encoding="utf-8")
        shutil.copy(manifest.with_name("0.wav"), manifest.with_name("00000.wav"))
    (folder / "text.txt").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")
    write_pictures(folder / "pictures")


def write_pictures(folder: Path) -> None:
    """As clearhead.data.pictures does, but without fonts: as many bars as the text says."""
    for name in ("train", "valid", "test"):
        (folder / name).mkdir(parents=True)
        for number in range(7):
            bars = np.tile(np.array([255, 0], np.uint8).repeat(5), number + 1)
            Image.fromarray(np.tile(bars, (24, 1))).save(folder / name / f"{number:05}.png")
        lines = [f"{name}/{number:05}.png\t{number + 1}\n" for number in range(7)]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "CLEARHEAD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own}


def smaller(command: str) -> str:
    if not command.startswith("clearhead train"):
        return command
    sets = [one for one in SMALLER if "encoder_blocks" not in one or "stdlib" not in command]  # it has no encoder
    return shlex.join([*shlex.split(command), *(part for one in sets for part in ("--set", one))])


@pytest.mark.slow
@pytest.mark.parametrize("commands", {tuple(clearhead_commands(readme)) for readme in READMES})
def test_the_commands_run(commands: tuple[str, ...], tmp_path: Path) -> None:
    write_files(tmp_path)
    assert any("train" in command for command in commands)
    for command in commands:
        ran = subprocess.run(
            smaller(command), shell=True, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
        )
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        assert "Traceback" not in ran.stderr
        if command.startswith("echo") and "translate" in command:
            assert ran.stdout.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("readme", READMES)
def test_the_python_runs(readme: str, tmp_path: Path) -> None:
    for block in blocks(readme, "python"):
        overrides = ", ".join(map(repr, SMALLER))
        code = re.sub(r'\["training\.steps=\d+"', f"[{overrides}", block)
        assert (code == block) == ("make_request" not in block)
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout


def test_there_is_python_to_run() -> None:
    assert len(blocks("README.md", "python")) >= 2


@pytest.mark.parametrize("readme", READMES)
def test_make_targets_and_constraints_exist(readme: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    text = (ROOT / readme).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE))
    assert {"demo", "test"} <= named
    assert named <= targets
    for line in shell_lines(readme):
        if line.startswith("pip install"):
            assert all((ROOT / file).exists() for file in re.findall(r"-c (\S+)", line))


@pytest.mark.parametrize("readme", READMES)
def test_every_command_and_option_named_exists(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    commands = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    code = re.findall(r"`([^`\n]+)`", text) + shell_lines(readme)
    named = {match for part in code for match in re.findall(r"(?:^|\| )clearhead ([a-z]+)", part)}
    assert {"check", "train", "translate"} <= named
    assert named <= commands
    flags = {flag for part in code if "pip" not in part for flag in re.findall(r"(?<!\S)--([a-z][a-z-]+)", part)}
    parsers = get_command(app).commands.values()  # type: ignore[attr-defined]
    known = {name.removeprefix("--") for parser in parsers for option in parser.params for name in option.opts}
    assert flags <= known


@pytest.mark.parametrize("readme", READMES)
def test_links_lead_somewhere(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)\)", text) if not link.startswith("http")]
    assert [link for link in links if not (ROOT / link).exists()] == []
    paths = re.findall(r"`((?:clearhead|benchmarks|tests|docs)/[\w./-]*)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_page_of_options_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make docs"
