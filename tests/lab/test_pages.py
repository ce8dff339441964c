"""What the lab writes and says: both languages, nothing from outside, everything escaped."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from clearhead.cli import run
from clearhead.errors import TRY_AGAIN, USAGE, UserError
from clearhead.figures import NAMESPACE
from clearhead.lab import report, running
from clearhead.lab.catalogue import EXPERIMENTS, find
from clearhead.lab.page import WORDS, page
from clearhead.lab.report import read_result, to_dict, write_index, write_result
from clearhead.lab.running import Result, Run, measure, run_experiments
from clearhead.lab.terminal import sparkline

DOCS = Path(__file__).parent.parent.parent / "docs" / "lab"


class Languages(HTMLParser):
    """Counts the elements of each language, and collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = {"en": 0, "zh-CN": 0}
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag != "html" and values.get("lang"):
            self.counts[str(values["lang"])] += 1
        self.loads += [str(values[name]) for name in ("src", "href") if values.get(name)]


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return list(run_experiments(find(["rotation", "permutation"]), processes=1))


def test_a_page_has_both_languages_everywhere(results: list[Result]) -> None:
    parser = Languages()
    parser.feed(page(results, "clearhead lab all"))
    assert parser.counts["en"] == parser.counts["zh-CN"] > 40
    assert all(text.en and text.zh for text in WORDS.values())


def test_a_page_loads_nothing(results: list[Result]) -> None:
    html = page(results, "clearhead lab all")
    parser = Languages()
    parser.feed(html)
    assert all(address.startswith("#") for address in parser.loads)
    assert re.findall(r"https?://[^\s\"'<]*", html.replace(NAMESPACE, "")) == []
    assert "innerHTML" not in html
    assert "default-src 'none'" in html
    assert " style=" not in html  # the policy would not let it in


def test_text_is_escaped(results: list[Result]) -> None:
    evil = "<script>alert(1)</script>&\"'"
    experiment = results[0].experiment
    bad = replace(experiment, claim=experiment.claim._replace(en=evil), title=experiment.title._replace(zh=evil))
    html = page([replace(results[0], experiment=bad)], evil)
    assert "alert(1)" in html
    assert evil not in html
    assert "<script>alert" not in html


def test_files_of_a_run(results: list[Result], tmp_path: Path) -> None:
    assert [write_result(result, tmp_path, "clearhead lab all") for result in results] == [[], []]
    write_index(results, tmp_path, "clearhead lab all")
    for name in ("rotation", "permutation"):
        assert {path.suffix for path in tmp_path.glob(f"{name}.*")} == {".json", ".svg", ".png", ".html"}
    assert (tmp_path / "index.html").exists()
    content = json.loads((tmp_path / "permutation.json").read_text(encoding="utf-8"))
    assert [one["seed"] for one in content["runs"]] == list(EXPERIMENTS["permutation"].seeds)
    assert content["command"] == "clearhead lab all"
    assert "torch" in content["versions"]
    assert all(one["seconds"] >= 0 for one in content["runs"])
    again = read_result(content, EXPERIMENTS["permutation"])
    assert again.finding() == results[1].finding()


def test_without_the_png_library_all_else_is_written(
    results: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_png(_: str) -> bytes:
        raise UserError("NO_PNG", "PNG needs resvg_py", USAGE)

    monkeypatch.setattr(report, "png", no_png)
    assert write_result(results[0], tmp_path, "clearhead lab all") == ["PNG needs resvg_py"]
    assert not list(tmp_path.glob("*.png"))
    assert (tmp_path / "rotation.html").exists()


@pytest.mark.slow
def test_two_processes_measure_what_one_does(results: list[Result]) -> None:
    apart = {result.experiment.name: result for result in run_experiments(find(["rotation", "permutation"]), 2)}
    assert len(apart) == 2
    assert all(apart[result.experiment.name].finding() == result.finding() for result in results)


@pytest.mark.slow
def test_an_experiment_that_fails_in_its_process_is_named() -> None:
    unknown = replace(EXPERIMENTS["rotation"], name="unheard-of", seeds=(1, 2))
    with pytest.raises(KeyError) as caught:
        list(run_experiments([unknown], processes=2))
    assert "in experiment unheard-of" in caught.value.__notes__


def test_a_process_that_dies_is_a_clear_message() -> None:
    error = running._lost("rotation")
    assert error.exit_code == TRY_AGAIN
    assert "the process that ran experiment rotation ended unexpectedly" in str(error)


def test_lab_lists_names_and_claims(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab"]) == 0
    said = capsys.readouterr().out
    assert all(re.search(rf"^{name} ", said, re.MULTILINE) for name in EXPERIMENTS)
    assert " ".join(EXPERIMENTS["rotation"].claim.en.split()[:4]) in said


def test_lab_runs_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "run", "rotation", "--out", str(tmp_path / "new" / "lab")]) == 0
    out, err = capsys.readouterr()
    assert "holds" in out
    assert "█" in out
    assert str(tmp_path / "new" / "lab") in err.replace("\n", "")
    assert not (tmp_path / "new" / "lab" / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("run rotatoin", "NO_EXPERIMENT", "there is no experiment 'rotatoin'; did you mean 'rotation'?"),
        ("run xyzzy", "NO_EXPERIMENT", "it has align, alone"),
        ("run", "USAGE", "lab run has no names"),
        ("list rotation", "USAGE", "lab list takes no names, but got 'rotation'; use lab run rotation"),
        ("rotation", "USAGE", "clearhead lab 'rotation'; expected list, run NAME ... or all"),
    ],
)
def test_mistakes(arguments: str, code: str, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        run(["lab", *arguments.split()])
    assert (caught.value.code, caught.value.exit_code) == (code, USAGE)


def test_a_sparkline_spans_its_range() -> None:
    assert sparkline([0.0, 0.5, 1.0], 0.0, 1.0) == "▁▅█"
    assert sparkline([0.0], 0.0, 0.0) == "▁"


def test_a_run_knows_its_seed_and_time() -> None:
    one = measure("rotation", 7)
    assert isinstance(one, Run)
    assert one.seed == 7
    assert one.measured["residual"][0] < 1e-4


@pytest.mark.parametrize("name", sorted(path.stem for path in DOCS.glob("*.json")))
def test_the_committed_run_says_what_its_numbers_say(name: str) -> None:
    content = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
    result = read_result(content, EXPERIMENTS[name])
    again = to_dict(result, content["command"])
    for key in ("verdict", "summary", "table", "claim", "did", "limits", "title", "source"):
        assert again[key] == content[key], key
    assert len(result.runs) >= min(2, len(EXPERIMENTS[name].seeds))
    assert {one.seed for one in result.runs} <= set(EXPERIMENTS[name].seeds)
    assert f'id="{name}"' in (DOCS / "index.html").read_text(encoding="utf-8")
