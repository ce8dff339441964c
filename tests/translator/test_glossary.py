"""Which entries a text calls for, how they become ids, and what a bad file is told."""

from pathlib import Path

import pytest

from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import Words, train
from clearhead.decoding import DecodingOptions
from clearhead.errors import BAD_DATA, USAGE, UserError
from clearhead.translator import Glossary, load, read_glossary
from clearhead.translator.glossary import Entry, ways_to_write
from tests.tiny_model import write_model

from .stub import TOKENIZER, StubEngine, stub_translator


def glossary(**entries: str) -> Glossary:
    return Glossary(Entry(source.replace("_", " "), target) for source, target in entries.items())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the art of it", ["Kunst"]),
        ("party, start and artful", []),
        ("Art and ART", ["Kunst", "Kunst"]),
        ("a state of the art engine", ["modern"]),
        ("state of the party", []),
        ("art; state of the art. Art!", ["Kunst", "modern", "Kunst"]),
        ("(art)", ["Kunst"]),
        ("us, the people", ["uns"]),
        ("US people", ["USA"]),
        ("我们在北京大学学习", ["Peking University"]),
        ("北京很大", ["Peking"]),
        ("x", []),
        ("", []),
    ],
)
def test_which_entries_are_found(text: str, found: list[str]) -> None:
    entries = glossary(
        art="Kunst", state_of_the_art="modern", us="uns", US="USA", 北京="Peking", 北京大学="Peking University"
    )
    assert [term.target for term in entries.terms(text)] == found


def test_a_phrase_of_one_letter_and_one_with_an_accent() -> None:
    assert [term.target for term in glossary(x="y").terms("x xx x.")] == ["y", "y"]
    assert [term.target for term in glossary(**{"e\u0301": "y"}).terms("é")] == ["y"]


def test_phrases_are_written_after_a_space_and_without_one() -> None:
    lines = ["a new word here", "the new words are here", "newer words for a new world"] * 9
    subwords = train(lines, DataOptions(vocabulary=300), seed=1, vocabulary=300)
    ways = ways_to_write("new words", subwords)
    assert len(ways) == 2
    assert [subwords.decode(ids) for ids in ways] == ["new words", "new words"]
    assert subwords.decode([*subwords.encode("a"), *ways[0]]) == "a new words"
    assert subwords.decode([*subwords.encode("a"), *ways[1]]) == "anew words"
    assert ways_to_write("abc", TOKENIZER) == [TOKENIZER.encode("abc")]


def test_words_that_the_vocabulary_lacks_cannot_be_asked_for() -> None:
    words = Words(["known", "word"])
    assert ways_to_write("known word", words) == [words.encode("known word")]
    assert ways_to_write("known thing", words) == []


def test_the_engine_gets_the_phrases_and_what_it_does_not_say_is_told() -> None:
    engine = StubEngine()
    by = stub_translator(engine)
    entries = glossary(cat="Katze", dog="dog")
    found = by.alternatives(["a cat", "a dog", "a bird", "!"], None, entries)
    assert [best.warnings for (best,) in found] == [("glossary_missed",), (), (), ("copied",)]
    demands = {asked: demand.phrases for asked, (_, demand) in zip(engine.asked, engine.seen, strict=True)}
    assert demands == {"a cat": [[TOKENIZER.encode("Katze")]], "a dog": [[TOKENIZER.encode("dog")]], "a bird": []}


def test_samples_have_no_glossary() -> None:
    with pytest.raises(UserError, match="samples cannot be made to have the glossary's phrases") as caught:
        stub_translator().alternatives("a cat", DecodingOptions(temperature=1.0), glossary(cat="Katze"))
    assert caught.value.exit_code == USAGE


def test_a_real_model_says_what_it_has_to(tmp_path: Path) -> None:
    by = load(write_model(tmp_path / "model"), engine="native")
    entries = glossary(abc="cabbage", head="big cage", j="unknown")
    texts = ["abc", "a head", "abc head", "j", "bad"]
    found = [best for (best,) in by.alternatives(texts, None, entries)]
    assert "cabbage" in found[0].text
    assert "big cage" in found[1].text
    assert "cabbage" in found[2].text
    assert "big cage" in found[2].text
    assert ["glossary_missed" in best.warnings for best in found] == [False, False, False, True, False]
    assert found[4].text == by.translate("bad")[0]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("\ufeffcat\tKatze\r\n\n  big dog \t großer Hund \n".encode())
    assert read_glossary(path).entries == [Entry("cat", "Katze"), Entry("big dog", "großer Hund")]
    path.write_text("")
    assert read_glossary(path).entries == []


@pytest.mark.parametrize("line", ["cat", "cat\t", "\tKatze", "cat\tKatze\tx", "cat Katze"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"dog\tHund\n{line}\n")
    with pytest.raises(UserError, match=r"line 2 is .*expected a source phrase, a tab and a target phrase") as caught:
        read_glossary(path)
    assert (caught.value.code, caught.value.exit_code) == ("GLOSSARY", BAD_DATA)


def test_many_entries_take_no_time() -> None:
    entries = Glossary(Entry(f"word{i} of {i}", f"wort{i}") for i in range(20_000))
    assert [term.target for term in entries.terms("a text with word777 of 777 in it " * 30)] == ["wort777"] * 30
