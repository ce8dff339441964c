"""What --json says: scores that follow from its own tokens, and an alignment that points at its own tokens."""

import json
from pathlib import Path

import pytest

from clearhead.cli import run
from clearhead.engines import native
from clearhead.engines.native import NativeEngine
from clearhead.errors import OK, USAGE, exit_code_of
from clearhead.translator import Translator, load
from clearhead.translator.details import alignments, json_lines
from tests.tiny_model import write_model

TEXTS = ["abc", "", "a bad cabbage\nj", "!", "dig a big cage", "é😀"]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return load(write_model(tmp_path_factory.mktemp("model") / "model"), engine="native")


def test_one_object_for_each_text(translator: Translator) -> None:
    results = translator.alternatives(TEXTS)
    shown = [json.loads(line) for line in json_lines(translator, TEXTS, results)]
    assert [one["source"] for one in shown] == TEXTS
    assert [one["translation"] for one in shown] == translator.translate(TEXTS)
    assert shown[1] == {
        "source": "",
        "translation": "",
        "score": 0.0,
        "confidence": None,
        "warnings": [],
        "details": {},
        "source_tokens": [],
        "tokens": [],
        "alignment": [],
    }
    assert shown[3]["warnings"] == ["copied"]


def test_the_score_is_the_mean_of_the_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "has_bfloat16", lambda: False)  # rounded products would make it the mean only nearly
    translator = load(write_model(tmp_path / "model"), engine="native")
    for line in json_lines(translator, TEXTS, translator.alternatives(TEXTS)):
        shown = json.loads(line)
        if shown["tokens"]:
            scores = [token["log_probability"] for token in shown["tokens"]]
            assert sum(scores) / len(scores) == pytest.approx(shown["score"], abs=1e-5)


def test_the_alignment_points_at_the_tokens(translator: Translator) -> None:
    engine = translator.engine
    assert isinstance(engine, NativeEngine)
    results = translator.alternatives(TEXTS)
    shown = json.loads(json_lines(translator, TEXTS, results)[2])
    first, second = results[2][0].decoded
    places = alignments(translator, [first, second])
    expected = [[place, t] for t, place in enumerate(places[0])]
    expected += [[3 + place, len(first.target) + 1 + t] for t, place in enumerate(places[1])]
    assert shown["alignment"] == expected
    assert shown["source_tokens"] == ["a", "bad", "cabbage", "j"]
    assert [token["piece"] for token in shown["tokens"]].count("</s>") == 2


def test_by_the_command(translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("abc\n\nhead bad")
    out = tmp_path / "out"
    command = ["translate", str(translator.folder), str(tmp_path / "in"), "--engine", "native", "-o", str(out)]
    assert exit_code_of(lambda: run([*command, "--json", "--n-best", "3"])) == OK
    shown = [json.loads(line) for line in out.read_text().splitlines()]
    assert out.read_text().count("\n") == 3
    assert ["alternatives" in one for one in shown] == [True, False, True]
    assert [len(shown[0]["alternatives"]), shown[0]["source"]] == [2, "abc"]
    scores = [shown[0]["score"], *(other["score"] for other in shown[0]["alternatives"])]
    assert scores == sorted(scores, reverse=True)
    assert exit_code_of(lambda: run([*command, "--n-best", "3"])) == USAGE
