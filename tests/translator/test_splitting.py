"""Split and joined again, nothing is lost; and Chinese has no spaces where English has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.translator.splitting import Part, around, join, lines, shorten

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
    parts = lines(text)
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
        ([Part("Hi.", " "), Part("Bye.", "")], ["你好。", "再见。"], "你好。再见。"),
        ([Part("你好。", ""), Part("再见。", "")], ["Hi.", "Bye."], "Hi. Bye."),
        ([Part("你好", ""), Part("😀", ""), Part("再见", "")], ["Hi", "😀", "bye"], "Hi 😀 bye"),
        ([Part("Hi", " "), Part("😀", " "), Part("bye", "")], ["你好", "😀", "再见"], "你好😀再见"),
        ([Part("great", ""), Part("😀", ""), Part("!", "")], ["toll", "😀", "!"], "toll😀!"),
        ([Part("Hi.", "\n"), Part("", "  "), Part("Bye.", " ")], ["你好。", "", "再见。"], "你好。\n  再见。 "),
        ([Part("你好 ", " "), Part("世界", "")], ["你好", "世界"], "你好 世界"),
        ([Part("long", ""), Part("word", "")], ["lang", "wort"], "langwort"),
    ],
)
def test_white_space_is_as_the_target_has_it(sources: list[Part], targets: list[str], joined: str) -> None:
    assert join(sources, targets) == joined


def test_a_very_long_text_is_no_trouble() -> None:
    for text in ("ab " * 50_000, "a" * 150_000, "你好。" * 50_000):
        parts = parts_of(text.strip(), 97)
        assert sum(len(part) for part in parts) >= len(text.replace(" ", ""))
