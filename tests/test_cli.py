"""The command line as a newcomer meets it: help at once, and one helpful line for every mistake."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from clearhead import __version__
from clearhead.cli import app, run
from clearhead.config import recipe_text, shipped_recipes
from clearhead.errors import (
    BAD_DATA,
    BUG,
    DAMAGED,
    DISK,
    INTERRUPTED,
    MISSING,
    USAGE,
    UserError,
    exit_code_of,
    warning_line,
)
from tests.tiny_model import write_model

ROOT = Path(__file__).parent.parent
MESSAGE = re.compile(r"^clearhead: error\[E_([A-Z0-9_]+)\]: (.+)$")
COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
ENGLISH = [
    f"the {animal} sees {number} {thing}"
    for animal in ("cat", "dog", "cow")
    for number in range(2, 9)
    for thing in ("houses", "trees", "birds")
]
CHINESE = [f"{animal}看见{number}{thing}" for animal in "猫狗牛" for number in range(2, 9) for thing in "房树鸟"]
TINY = [
    "model.width=8", "model.heads=2", "model.feed_forward=8", "model.encoder_blocks=1", "model.decoder_blocks=1",
    "training.steps=2", "training.validate_every=2", "training.save_every=2", "training.decode_pairs=2",
    "training.precision=float32", "training.processes=1", "training.threads=1", "decoding.beam=1",
    "decoding.max_length=3", "data.tokenizer=characters",
]  # fmt: skip
SETS = [argument for one in TINY for argument in ("--set", one)]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything in a folder of its own, the cache too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEARHEAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CLEARHEAD_DEBUG", raising=False)


def write(name: str, lines: list[str]) -> str:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


def write_corpus() -> list[str]:
    return [write("train.en", ENGLISH), write("train.zh", CHINESE)]


@dataclass(frozen=True)
class Said:
    """How a command ended; `error` is the E_… of its one line."""

    code: int
    out: str
    err: str
    error: str = ""
    message: str = ""


Command = Callable[..., Said]


@pytest.fixture
def clearhead(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process; says how it ended."""

    def call(*arguments: str) -> Said:
        capsys.readouterr()
        code = exit_code_of(lambda: run(list(arguments)))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        ours = [line for line in err.splitlines() if line.startswith("clearhead:")]
        if not code:
            return Said(code, out, err)
        assert len(ours) == 1, err
        match = MESSAGE.match(ours[0])
        assert match, ours[0]
        assert err.endswith(ours[0] + "\n")
        return Said(code, out, err, match[1], match[2])

    return call


# -- mistakes in the data -------------------------------------------------------------------------------------------


def test_files_swapped(clearhead: Command) -> None:
    write("train.zh", ENGLISH)
    write("train.en", CHINESE)
    said = clearhead("train", "--train", "train.en", "train.zh", "--out", "run")
    assert (said.code, said.error) == (BAD_DATA, "SWAPPED")
    assert "train.en should be en but is in Han script" in said.message
    assert "exchange the two files" in said.message


@pytest.mark.parametrize("missing", ["train.en", "train.zh"])
@pytest.mark.parametrize("command", ["train", "check"])
def test_one_file_missing(missing: str, command: str, clearhead: Command) -> None:
    files = write_corpus()
    Path(missing).unlink()
    said = clearhead("train", "--train", *files) if command == "train" else clearhead("check", *files)
    assert (said.code, said.error) == (MISSING, "MISSING")
    assert f"there is no file {missing}" in said.message


@pytest.mark.parametrize("more", [1, -1, 13])
@pytest.mark.parametrize("command", ["train", "check"])
def test_one_line_more_in_one_file(more: int, command: str, clearhead: Command) -> None:
    n = len(ENGLISH)
    files = [write("train.en", ENGLISH), write("train.zh", (CHINESE * 2)[: n + more])]
    said = clearhead("train", "--train", *files) if command == "train" else clearhead("check", *files)
    assert (said.code, said.error) == (BAD_DATA, "LINE_COUNTS")
    assert f"train.en has {n} lines but train.zh has {n + more}" in said.message


def test_gzip_without_its_ending(clearhead: Command) -> None:
    write_corpus()
    Path("train.zh").write_bytes(gzip.compress("\n".join(CHINESE).encode()))
    said = clearhead("train", "--train", "train.en", "train.zh")
    assert (said.code, said.error) == (BAD_DATA, "NOT_TEXT")
    assert "train.zh looks like gzip" in said.message
    assert "rename it to train.zh.gz" in said.message


def test_empty_file(clearhead: Command) -> None:
    write_corpus()
    Path("train.zh").write_bytes(b"")
    said = clearhead("train", "--train", "train.en", "train.zh")
    assert (said.code, said.error) == (BAD_DATA, "EMPTY_FILE")
    assert "train.zh is empty" in said.message


@pytest.mark.parametrize("lines", [["", " ", "\t"], [f"{n} {'x' * 300}" for n in range(7)]])
def test_everything_filtered(lines: list[str], clearhead: Command) -> None:
    files = [write("train.en", lines), write("train.de", lines)]
    said = clearhead("train", "--train", *files, "--set", "data.tokenizer=characters")
    assert (said.code, said.error) == (BAD_DATA, "NOTHING_LEFT")
    assert f"0 of {len(lines)} pairs kept" in said.message


def test_a_single_pair_cannot_be_split_in_two(clearhead: Command) -> None:
    files = [write("train.en", ["one"] * 3), write("train.de", ["eins"] * 3)]
    said = clearhead("train", "--train", *files)
    assert (said.code, said.error) == (BAD_DATA, "TOO_FEW")


def test_a_folder_as_file(clearhead: Command) -> None:
    write_corpus()
    said = clearhead("train", "--train", "train.en", ".")
    assert (said.code, said.error) == (USAGE, "DIRECTORY")


# -- mistakes in the command ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "error", "message"),
    [
        ("trian", USAGE, "USAGE", "No such command 'trian'"),
        ("train --steps 5", USAGE, "USAGE", "No such option: --steps"),
        ("--verbose", USAGE, "USAGE", "No such option: --verbose"),
        ("train --processes two", USAGE, "USAGE", "'--processes'"),
        ("train --train", USAGE, "USAGE", "'--train' requires 2 arguments"),
        ("translate", USAGE, "USAGE", "model"),
        ("translate run --beam 0", USAGE, "USAGE", "'--beam'"),
        ("check", USAGE, "USAGE", "SRC TGT"),
        ("check train.en", USAGE, "FILES", "found files: train.en; give two text files, or one .tsv or .jsonl file"),
        ("train --train train.en", USAGE, "FILES", "found files: train.en; give two text files"),
        ("train --train train.en --out run", USAGE, "FILES", "found files: train.en; give two text files"),
        ("train --out run", USAGE, "NO_DATA", "needs --train SOURCE TARGET"),
        ("train --train train.en train.zh --set model.heads=7", USAGE, "OPTIONS", "width 128 cannot be split into 7"),
        ("train --train train.en train.zh --set modle.heads=4", USAGE, "OPTIONS", "did you mean 'model'?"),
        ("train --train train.en train.zh --set model.haeds=4", USAGE, "OPTIONS", "did you mean 'heads'?"),
        ("train --train train.en train.zh --preset tyni", USAGE, "OPTIONS", "did you mean 'tiny'?"),
        ("train dtaes --train train.en train.zh", MISSING, "NO_RECIPE", "did you mean 'dates'?"),
        ("train mine.toml --train train.en train.zh", MISSING, "NO_RECIPE", "there is no recipe file mine.toml"),
        ("train --train train.en train.zh --init-from no", MISSING, "MISSING", "no does not exist"),
        ("train --train train.en train.zh --out train.en", DISK, "NOT_A_FOLDER", "train.en is a file"),
        ("train --train train.en train.zh --out train.en/run", DISK, "DISK", "cannot make the run folder"),
        ("train train.en", USAGE, "RECIPE", "Text to train on is given by --train SOURCE TARGET"),
        ("train train.en train.zh", USAGE, "USAGE", "unexpected extra argument"),
        ("recipe nosuch", MISSING, "NO_RECIPE", "there is no recipe 'nosuch'"),
        ("translate nosuch train.en", MISSING, "MISSING", "nosuch does not exist"),
        ("translate . train.en", DAMAGED, "NOT_A_MODEL", "is no model"),
        ("translate train.en train.en", DAMAGED, "NOT_A_MODEL", "train.en is a file"),
        ("check train.en train.zh --against test.en test.zh", MISSING, "MISSING", "there is no file test.en"),
        ("check train.en train.zh --set data.tokenizr=bpe", USAGE, "OPTIONS", "did you mean 'tokenizer'?"),
    ],
)  # fmt: skip
def test_a_mistake_ends_in_one_line(arguments: str, code: int, error: str, message: str, clearhead: Command) -> None:
    write_corpus()
    said = clearhead(*arguments.split())
    assert (said.code, said.error) == (code, error)
    assert message in said.message
    assert said.out == ""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which even root cannot write")
def test_folders_that_cannot_be_written(clearhead: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_corpus()
    said = clearhead("train", "--train", *files, "--out", "/proc/run")
    assert (said.code, said.error) == (DISK, "DISK")
    monkeypatch.setenv("CLEARHEAD_CACHE", "/proc/cache")
    said = clearhead("train", "--train", *files, "--out", "run")
    assert (said.code, said.error) == (DISK, "CACHE")
    assert "cannot write the prepared corpus to /proc/cache" in said.message


def test_translate_without_input_or_output_folder(clearhead: Command) -> None:
    write_model(Path("model"))
    said = clearhead("translate", "model", "no.en")
    assert (said.code, said.error) == (MISSING, "NO_INPUT")
    said = clearhead("translate", "model", ".")
    assert (said.code, said.error) == (USAGE, "DIRECTORY")
    write_corpus()
    said = clearhead("translate", "model", "train.en", "-o", "no/out.zh")
    assert (said.code, said.error) == (DISK, "OUTPUT")
    assert "there is no folder no" in said.message
    said = clearhead("translate", "model", "train.en", "-o", ".")
    assert (said.code, said.error) == (DISK, "OUTPUT")


@pytest.mark.slow
def test_training_on_single_files(clearhead: Command) -> None:
    rows = [f"{a}\t{b}" for a, b in zip(ENGLISH, CHINESE, strict=True)]
    files = ["--train", write("pairs.tsv", rows), "--valid", write("valid.tsv", rows[:3])]
    assert clearhead("train", *files, *SETS, "--out", "run").code == 0
    assert json.loads(Path("run/data_report.json").read_text())["report"]["read"] == len(rows)
    write("in.en", ENGLISH[:5])
    assert clearhead("translate", "run", "in.en", "-o", "out.zh").code == 0
    assert Path("out.zh").read_bytes().count(b"\n") == 5


@pytest.mark.slow
def test_run_folder_of_another_configuration(clearhead: Command) -> None:
    files = write_corpus()
    train = ["train", "--train", *files, "--out", "run", *SETS]
    assert clearhead(*train).code == 0
    assert clearhead(*train).code == 0  # again is fine
    said = clearhead(*train, "--set", "model.width=16")
    assert (said.code, said.error) == (USAGE, "OTHER_OPTIONS")
    assert "model.width: 8, now 16" in said.message
    write("train.en", ENGLISH[::-1])
    said = clearhead(*train)
    assert (said.code, said.error) == (BAD_DATA, "OTHER_DATA")


# -- the program itself ---------------------------------------------------------------------------------------------


def start(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    command = ["-m", "clearhead"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *command, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["trian"], USAGE), (["check", "no.en", "no.de"], MISSING), (["translate", "no"], MISSING)],
)
def test_the_program_exits_with_the_code(arguments: list[str], code: int) -> None:
    ended = start(*arguments)
    assert ended.returncode == code
    assert MESSAGE.match(ended.stderr)
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


LOADED = """
import sys
from clearhead.cli import run
code = run(sys.argv[1:])
heavy = {"torch", "transformers"} & set(sys.modules)
sys.exit(f"loaded {heavy}" if heavy else code)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["--help"], ["train", "--help"], ["check", "train.en", "train.zh"], ["recipe"], ["recipe", "dates"]]
)
def test_torch_is_not_loaded_for_nothing(arguments: list[str]) -> None:
    write_corpus()
    ended = start(*arguments, code=LOADED)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
def test_help_is_there_at_once() -> None:
    def seconds() -> float:
        started = time.perf_counter()
        assert start("--help").returncode == 0
        return time.perf_counter() - started

    assert any(seconds() < 0.3 for _ in range(20))  # other work on the same cores makes some of them slow


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(command: str, clearhead: Command) -> None:
    said = clearhead(command, "--help")
    assert re.search(rf"Examples?: clearhead {command} ", said.out)


def test_help_names_every_command(clearhead: Command) -> None:
    said = clearhead("--help")
    assert {"demo", "train", "recipe", "translate", "check"} <= set(COMMANDS)
    assert all(re.search(rf"^  {command} +\S", said.out, re.MULTILINE) for command in COMMANDS)


def test_no_command_shows_the_help_and_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == USAGE
    assert capsys.readouterr().out.startswith("Usage: clearhead")


def test_version(clearhead: Command) -> None:
    lines = clearhead("--version").out.splitlines()
    assert lines[0] == f"clearhead {__version__}"
    assert [line.split()[0] for line in lines] == [
        "clearhead",
        "python",
        "torch",
        "system",
        "cpu",
        "bfloat16",
        "threads",
    ]


def test_recipes_are_listed_and_printed(clearhead: Command) -> None:
    listed = clearhead("recipe").out.splitlines()
    assert [line.split()[0] for line in listed] == shipped_recipes()
    assert clearhead("recipe", "dates").out == recipe_text("dates")


def test_a_bug_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> int:
        raise ZeroDivisionError("nothing\nto divide")

    assert exit_code_of(broken) == BUG
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith(
        "clearhead: error[E_BUG]: ZeroDivisionError: nothing to divide. This is a bug"
    )


def test_ctrl_c(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("clearhead.config.recipe_text", interrupted)
    assert exit_code_of(lambda: run(["recipe", "dates"])) == INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("errno", "code"), [(28, DISK), (13, DISK), (2, BUG)])
def test_errors_of_the_disk_are_no_bugs(errno: int, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> int:
        raise OSError(errno, os.strerror(errno), "some/file")

    assert exit_code_of(failing) == code
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"some/file: {os.strerror(errno)}" in last if code == DISK else "This is a bug" in last


def test_debugging_shows_where(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> int:
        raise UserError("X", "first\nsecond", 65)

    monkeypatch.setenv("CLEARHEAD_DEBUG", "1")
    assert exit_code_of(failing) == 65
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("clearhead: error[E_X]: first second\n")
    assert warning_line("X", "first\nsecond") == "clearhead: warning[E_X]: first second"


# -- check ----------------------------------------------------------------------------------------------------------


def test_check_shows_a_report(clearhead: Command) -> None:
    said = clearhead("check", *write_corpus())
    assert "train.en and train.zh: en to zh" in said.out
    assert f"{len(ENGLISH)} of {len(ENGLISH)} pairs kept" in said.out
    assert said.err == ""


def test_check_as_json_is_one_object(clearhead: Command) -> None:
    said = clearhead("check", *write_corpus(), "--json")
    assert said.out.count("\n") == 1
    report = json.loads(said.out)
    assert report["languages"] == ["en", "zh"]
    assert report["report"]["kept"] == len(ENGLISH)
    assert said.err == ""


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz", ".jsonl"])
def test_check_against_a_single_file(ending: str, clearhead: Command) -> None:
    pairs = list(zip(ENGLISH, CHINESE, strict=True))[:3] + [("nothing", "没有")]
    rows = [f"{a}\t{b}" if ".tsv" in ending else json.dumps({"source": a, "target": b}) for a, b in pairs]
    data = "".join(f"{row}\n" for row in rows).encode()
    Path(f"test{ending}").write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    for place in ("first", "last"):
        rest = ["--json", "--against", f"test{ending}"]
        files = write_corpus()
        said = clearhead("check", *(rest[1:] + ["--json", *files] if place == "first" else files + rest))
        found = {finding["name"]: finding["count"] for finding in json.loads(said.out)["findings"]}
        assert (found["leaked_pair"], found["leaked_source"]) == (3, 3)


def test_check_of_a_single_file(clearhead: Command) -> None:
    name = write("train.en-zh.tsv", [f"{a}\t{b}" for a, b in zip(ENGLISH, CHINESE, strict=True)])
    assert json.loads(clearhead("check", name, "--json").out)["languages"] == ["en", "zh"]


def test_check_takes_options_of_the_data(clearhead: Command) -> None:
    said = clearhead("check", *write_corpus(), "--json", "--set", "data.target_language=ja")
    assert json.loads(said.out)["languages"] == ["en", "ja"]


def test_long_checks_show_progress(clearhead: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr("clearhead.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr("clearhead.data.doctor.REPORTED", 10)
    said = clearhead("check", *write_corpus(), "--json")
    assert "checking: 10 pairs" in said.err
    json.loads(said.out)


# -- translate ------------------------------------------------------------------------------------------------------


def test_translate_from_file_to_file_and_through_pipes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_model(Path("run/model"))
    text = b"abc\n\nhead bad\n"
    Path("in.en").write_bytes(text)
    assert exit_code_of(lambda: run(["translate", "run", "in.en", "-o", "out.zh", "--beam", "3"])) == 0
    written = Path("out.zh").read_bytes()
    assert written.count(b"\n") == 3
    assert written.split(b"\n")[1] == b""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(buffer := io.BytesIO()))
    assert exit_code_of(lambda: run(["translate", "run", "--beam", "3"])) == 0
    assert buffer.getvalue() == written
