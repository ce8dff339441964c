"""`clearhead inspect`: what it prints and writes is the trace of the translation that it names."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.cli import run
from clearhead.errors import DISK, MISSING, OK, USAGE, exit_code_of
from clearhead.translator import Translator, load
from tests.tiny_model import write_model

TEXT = "a bad cabbage"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("run") / "model")


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return load(model, engine="native")


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str], model: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `clearhead inspect MODEL …` in this process; its exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = exit_code_of(lambda: run(["inspect", str(model), *arguments]))
        return (code, *capsys.readouterr())

    return call


def test_what_is_looked_at_is_what_is_translated(inspect: Command, translator: Translator) -> None:
    code, out, err = inspect(TEXT)
    assert code == OK
    assert out.split("\n")[:2] == [TEXT, f"→ {translator.translate(TEXT)[0]}"]
    assert "--html report.html" in err


def test_json_alone_on_standard_output(inspect: Command, translator: Translator) -> None:
    code, out, _ = inspect(TEXT, "--json", "-")
    assert code == OK
    data = json.loads(out)
    assert data["target"]["text"] == translator.translate(TEXT)[0]
    assert data["model"]["sha256"] == translator.inspect(TEXT).model["sha256"]
    assert len(data["model"]["sha256"]) == 64


def test_text_from_standard_input(inspect: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TEXT}\n"))
    assert inspect("-", "--top", "2")[1].startswith(TEXT)


def test_figures_are_written(inspect: Command, translator: Translator, tmp_path: Path) -> None:
    code, _, err = inspect(TEXT, "--svg", str(tmp_path / "a.svg"), "--head", "cross:1:4")
    assert code == OK
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == translator.inspect(TEXT).svg("cross", 0, 3)
    assert "wrote" in err
    inspect(TEXT, "--svg", str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_one_head_the_lattice_and_the_steps(inspect: Command, translator: Translator) -> None:
    assert "0:a  1:bad  2:cabbage  3:</s>" in inspect(TEXT, "--head", "encoder:1:7")[1]
    assert "> translation" in inspect(TEXT, "--lattice")[1]
    steps = inspect(TEXT, "--steps")[1].rstrip("\n").split("\n")
    assert steps == [str(stop) for stop in translator.walk(translator.inspect(TEXT))]
    assert steps[0].startswith("source embedded")


def test_the_runners_up_are_as_many_as_asked_for(inspect: Command) -> None:
    rows = inspect(TEXT, "--top", "3")[1].rstrip("\n").split("\n")[3:]
    assert all(len(row.split("|")[1].split()) == 6 for row in rows)


def test_a_target_that_is_given(inspect: Command, translator: Translator) -> None:
    data = json.loads(inspect(TEXT, "--target", "dig a j", "--json", "-")[1])
    assert data["target"]["text"] == "dig a j"
    assert data["target"]["forced"]
    assert translator.inspect(TEXT, "dig a j").steps[0].logp == pytest.approx(data["steps"][0]["logp"], rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "code", "found"),
    [
        (["a", "--head", "cross:5:2"], USAGE, "no head cross:5:2"),
        (["a", "--head", "x"], USAGE, "names no head"),
        (["a", "--svg", "a.gif"], USAGE, "a.gif ends in '.gif'"),
        (["a", "--compare", "other"], USAGE, "add --html"),
        ([""], USAGE, "empty"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_line(
    inspect: Command, arguments: list[str], code: int, found: str
) -> None:
    given, _, err = inspect(*arguments)
    assert given == code
    assert found in err
    assert err.count("\n") == 1


HEALTH_LINES = f"{TEXT}\n\ndig a <b>j</b>\nbig cage\n"


@pytest.mark.parametrize("ending", ["csv", "json", "html"])
def test_the_health_of_many_lines(
    inspect: Command, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(HEALTH_LINES))
    path = tmp_path / f"health.{ending}"
    code, _, err = inspect("-", "--health", str(path))
    assert (code, "3 sentences" in err) == (OK, True)
    text = path.read_text(encoding="utf-8")
    traces = {line: translator.inspect(source) for line, source in ((1, TEXT), (3, "dig a <b>j</b>"), (4, "big cage"))}
    scores = {line: sum(step.logp for step in trace.steps) / len(trace.steps) for line, trace in traces.items()}
    worst_first = sorted(scores, key=lambda line: scores[line])
    if ending == "json":
        rows = json.loads(text)
        assert [row["line"] for row in rows] == worst_first
        assert rows[0]["score"] == pytest.approx(scores[worst_first[0]], abs=1e-4)
        assert rows[0]["unread"] == len(traces[worst_first[0]].health()["unread"])
    elif ending == "csv":
        assert [int(row["line"]) for row in csv.DictReader(io.StringIO(text))] == worst_first
    else:
        assert [int(line) for line in re.findall(r"<tr><td>(\d+)</td>", text)] == worst_first
        assert "&lt;b&gt;j" in text
        assert "<b>" not in text
        assert "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("arguments", "expected", "found"),
    [
        (["a", "--health", "a.csv"], USAGE, "expected -"),
        (["-", "--health", "a.txt"], USAGE, "'.txt'"),
        (["-", "--health", "no/such/folder/a.csv"], DISK, "cannot write no/such/folder/a.csv"),
    ],
)
def test_health_that_cannot_be_written(inspect: Command, arguments: list[str], expected: int, found: str) -> None:
    code, _, err = inspect(*arguments)
    assert (code, found in err, err.count("\n")) == (expected, True, 1)


def test_a_sentence_that_cannot_be_looked_at_does_not_cost_the_others(
    inspect: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"big\n{'a ' * 513}\ncage\n"))
    code, _, err = inspect("-", "--health", str(tmp_path / "a.json"))
    assert (code, "line 2 is left out: the source has 513 tokens" in err) == (OK, True)
    assert sorted(row["line"] for row in json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))) == [1, 3]


def test_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(lambda: run(["inspect", "nowhere", "a"])) == MISSING
    assert "nowhere" in capsys.readouterr().err


def test_what_the_guards_change_is_noted(translator: Translator) -> None:
    trace = translator.inspect("!")
    assert trace.target.text != "!"
    assert any("clearhead translate gives '!'" in note for note in trace.notes)
