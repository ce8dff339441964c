"""What is no text is said to be none; equal texts get samples of their own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clearhead.decoding import DecodingOptions
from clearhead.translator import Translator, load
from clearhead.translator.files import Task, translate_file
from clearhead.translator.shards import Shard, merge
from clearhead.translator.texts import occurrences
from tests.tiny_model import write_model

from .stub import StubEngine, stub_translator

SAMPLED = DecodingOptions(temperature=1.0, seed=7)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "found None; expected a text, or a list of texts. Leave it out"),
        (["a", None], "text 2 of 2 is None; expected a str. Leave it out, or give '' in its place"),
        (["a", 3.5], "text 2 of 2 is float 3.5; expected a str"),
        (b"abc", "found bytes b'abc'; expected a text, or a list of texts. Decode it first"),
        ({"a": "b"}, "found dict {'a': 'b'}; expected a text"),
        (iter(["a"]), "found list_iterator .*list\\(...\\) of several"),
        (7, "found int 7; expected a text"),
    ],
)
def test_what_is_no_text_is_said(given: Any, said: str) -> None:
    by = stub_translator()
    for call in (by.translate, by.alternatives, lambda texts: list(by.stream(texts))):
        with pytest.raises(TypeError, match=said):
            call(given)


def test_texts_may_be_any_sequence() -> None:
    np = pytest.importorskip("numpy")
    assert stub_translator().translate(("a", "b")) == ["a", "b"]
    assert stub_translator().translate(np.array(["a", "b"])) == ["a", "b"]
    assert occurrences(["a", "b", "a", "a"]) == [0, 0, 1, 2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return load(write_model(tmp_path_factory.mktemp("sampling") / "model"), engine="native", deterministic=True)


def sampled(model: Translator, texts: list[str]) -> list[str]:
    options = replace(SAMPLED, max_length=7)
    return [best.text for best, *_ in model.alternatives(texts, options)]


def test_equal_texts_get_other_samples_and_the_same_again(model: Translator) -> None:
    found = sampled(model, ["a bad cage"] * 9)
    assert len(set(found)) > 3
    assert sampled(model, ["a bad cage"] * 9) == found
    mixed = sampled(model, ["head", "a bad cage", "j", "a bad cage"])
    assert mixed[1::2] == found[:2]  # by how often it came before, not by its place
    assert sampled(model, ["a bad cage"]) == found[:1]


def test_the_model_is_asked_for_other_draws_only_of_samples() -> None:
    engine = StubEngine()
    list(stub_translator(engine).stream(["a", "b", "a"]))
    assert {demand.draw for _, demand in engine.seen} == {0}


def test_files_sample_by_line_whatever_the_chunks_and_shards(
    model: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text("a bad cage\n" * 23 + "head\n")
    task = Task(replace(SAMPLED, max_length=7))
    translate_file(model, tmp_path / "in", tmp_path / "whole", task)
    whole = (tmp_path / "whole").read_text()
    assert len(set(whole.splitlines())) > 5
    monkeypatch.setattr("clearhead.translator.reading.LINES", 5)
    translate_file(model, tmp_path / "in", tmp_path / "chunks", task)
    assert (tmp_path / "chunks").read_text() == whole
    parts = [tmp_path / f"part-{number}" for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        translate_file(model, tmp_path / "in", part, replace(task, shard=Shard(number, 3)))
    merge(tmp_path / "merged", parts)
    assert (tmp_path / "merged").read_text() == whole
