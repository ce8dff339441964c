"""Split and joined again, nothing is lost; and Chinese has no spaces where English has."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.data.lines import Lines
from clearhead.translator.segments import Cutter, Segment, around, join, paragraphs, shorten

TEXT = st.text(st.sampled_from("ab .,!?\n\t。，你好\u0301"), max_size=40)


def parts_of(text: str, most: int) -> list[str]:
    return [part.text for part in shorten(text, lambda some: len(some) <= most)]


@given(TEXT, st.integers(1, 11))
def test_parts_fit_and_make_the_text(text: str, most: int) -> None:
    parts = list(shorten(text, lambda some: len(some) <= most))
    assert "".join(part.text + part.gap for part in parts) == text
    assert all(len(part.text) <= most and not part.gap.strip() for part in parts)
    assert join(parts, [part.text for part in parts]) == text


@given(TEXT)
def test_lines_make_the_text(text: str) -> None:
    parts = paragraphs(text)
    assert "".join(part.text + part.gap for part in parts) == text
    assert all(part.text == part.text.strip() and not part.gap.strip() for part in parts)
    assert join(parts, [part.text for part in parts]) == text


@given(TEXT.map(str.strip), st.lists(st.sampled_from(["a", "ab", "。", "b."]), min_size=1))
def test_around_words_is_all_of_the_text(text: str, words: list[str]) -> None:
    parts = around(text, words)
    assert "".join(part.text + part.gap for part, _ in parts) == text
    assert all(part.text in words for part, is_word in parts if is_word)
    assert not any(word in part.text for part, is_word in parts if not is_word for word in words)


@pytest.mark.parametrize(
    ("text", "most", "parts"),
    [
        ("One is here. Two is there. Three!", 13, ["One is here.", "Two is there.", "Three!"]),
        ('He said "no!" Then he left.', 20, ['He said "no!"', "Then he left."]),
        ("About 3.5 percent, e.g. this one.", 18, ["About 3.5 percent,", "e.g. this one."]),
        ("你好世界。我们来了！好吗？", 7, ["你好世界。", "我们来了！", "好吗？"]),
        ("他说：“好。”我们走了。", 8, ["他说：“好。”", "我们走了。"]),
        ("no ends but clauses, two of them", 22, ["no ends but clauses,", "two of them"]),
        ("你好，世界你好世界", 6, ["你好，", "世界你好世界"]),
        ("words without any mark", 13, ["words without", "any mark"]),
        ("abcdefgh", 3, ["ab", "cd", "ef", "gh"]),
        ("e\u0301e\u0301e\u0301", 4, ["e\u0301", "e\u0301e\u0301"]),
    ],
)
def test_the_best_places_come_first(text: str, most: int, parts: list[str]) -> None:
    assert parts_of(text, most) == parts


@pytest.mark.parametrize(
    ("sources", "targets", "joined"),
    [
        ([Segment("Hi.", " "), Segment("Bye.", "")], ["你好。", "再见。"], "你好。再见。"),
        ([Segment("你好。", ""), Segment("再见。", "")], ["Hi.", "Bye."], "Hi. Bye."),
        ([Segment("你好", ""), Segment("😀", ""), Segment("再见", "")], ["Hi", "😀", "bye"], "Hi 😀 bye"),
        ([Segment("Hi", " "), Segment("😀", " "), Segment("bye", "")], ["你好", "😀", "再见"], "你好😀再见"),
        ([Segment("great", ""), Segment("😀", ""), Segment("!", "")], ["toll", "😀", "!"], "toll😀!"),
        (
            [Segment("Hi.", "\n"), Segment("", "  "), Segment("Bye.", " ")],
            ["你好。", "", "再见。"],
            "你好。\n  再见。 ",
        ),
        ([Segment("你好 ", " "), Segment("世界", "")], ["你好", "世界"], "你好 世界"),
        ([Segment("long", ""), Segment("word", "")], ["lang", "wort"], "langwort"),
    ],
)
def test_white_space_is_as_the_target_has_it(sources: list[Segment], targets: list[str], joined: str) -> None:
    assert join(sources, targets) == joined


def test_a_very_long_text_is_no_trouble() -> None:
    for text in ("ab " * 50_000, "a" * 150_000, "你好。" * 50_000):
        parts = parts_of(text.strip(), 97)
        assert sum(len(part) for part in parts) >= len(text.replace(" ", ""))


def cutter(lines: Lines | None = None, most: int = 1000, language: str = "en") -> Cutter:
    return Cutter(language, lambda text: len(text.split()), most, lines)


SINGLE = Lines(count=99, several=0.02, median=3, long=5, longest=7, least_ratio=0.3, capital=0.0, ended=0.0)


def texts_of(segments: list[Segment]) -> list[str]:
    return [segment.text for segment in segments]


def test_a_text_is_cut_into_sentences_if_the_training_lines_were_single_ones() -> None:
    text = "I was tired. I went home. Dr. Smith did not come."
    apart = ["I was tired.", "I went home.", "Dr. Smith did not come."]
    assert texts_of(cutter(SINGLE).cut(text)) == apart
    assert texts_of(cutter(None).cut(text)) == apart
    together = replace(SINGLE, several=0.5, long=6, longest=9)
    assert texts_of(cutter(together).cut(text)) == ["I was tired. I went home.", "Dr. Smith did not come."]


def test_a_sentence_longer_than_any_that_was_seen_is_cut_to_usual_lengths() -> None:
    found = cutter(SINGLE).cut("one two three, four five six seven eight nine ten")
    assert all(len(segment.text.split()) <= SINGLE.long and segment.is_part for segment in found)
    assert found[0].text == "one two three,"
    assert not any(segment.is_part for segment in cutter(SINGLE).cut("one two three four five six seven"))


@given(st.text(st.sampled_from("ab .,!?\n\t。，你好"), max_size=60))
def test_segments_make_the_text(text: str) -> None:
    for cut in (cutter(SINGLE), cutter(None, most=3)):
        found = cut.cut(text)
        if not any(segment.width for segment in found):
            assert "".join(segment.text + segment.gap for segment in found) == text


WRAPPED = (
    "It was the best of times, it was the worst of times, it was\nthe age of wisdom. It was the age of foolishness, it "
    "was the\nepoch of belief."
)


def test_lines_that_were_wrapped_are_sentences_again_and_wrapped_again() -> None:
    found = cutter(None).cut(f"{WRAPPED}\n\nThe end.\n")
    assert texts_of([one for one in found if one.text]) == [
        "It was the best of times, it was the worst of times, it was the age of wisdom.",
        "It was the age of foolishness, it was the epoch of belief.",
        "The end.",
    ]
    assert join(found, texts_of(found)) == f"{WRAPPED}\n\nThe end.\n"


@pytest.mark.parametrize(
    "text",
    [
        "Buy milk\nBuy eggs and something else that is long enough to be\nCall Tom",
        "- a list of things that has many words in it, so that it\n- is as wide as if it were wrapped, which it is not",
        "Roses are red.\nViolets are blue.\nSugar is sweet, and so are you, as everybody knows.",
        "    an indented line that is wide enough to count as wrapped\n    another of them",
    ],
)
def test_lines_that_stand_for_themselves_stay_lines(text: str) -> None:
    assert not any(segment.width for segment in paragraphs(text))


def test_what_was_left_out_is_looked_for_in_smaller_parts() -> None:
    parts = cutter(SINGLE).shorter("Tom is here, Mary is there, and Bob is in Paris")
    assert texts_of(parts) == ["Tom is here, Mary is there,", "and Bob is in Paris"]
    assert texts_of(cutter(SINGLE).shorter(parts[0].text)) == ["Tom is here,", "Mary is there,"]
    assert texts_of(cutter(SINGLE).shorter("no place to cut it")) == ["no place to cut it"]
    assert texts_of(cutter(SINGLE).shorter("One here. Two there.")) == ["One here.", "Two there."]
