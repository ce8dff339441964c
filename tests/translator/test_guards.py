"""What a text is made of, and which translations cannot be right."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.data.tokenizer import Characters
from clearhead.translator import guards, marks, numbers


@pytest.mark.parametrize("text", ["", " ", "\t", "\u3000", "\u200b", "\ufeff", "\u200d \u2060", "\n", "\r\n"])
def test_nothing_to_see_is_blank(text: str) -> None:
    assert guards.is_blank(text)
    assert not guards.is_blank(f"{text}.")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://a.b/c?d=1&e, please", ["https://a.b/c?d=1&e"]),
        ("(http://a.b/c).", ["http://a.b/c"]),
        ("请看https://a.b/c，谢谢", ["https://a.b/c"]),
        ("www.example.org/x?y. Next", ["www.example.org/x?y"]),
        ("mail a.b+c@d-e.org!", ["a.b+c@d-e.org"]),
        ("a@b", []),
        ("ok 😀😀 and 👩‍👩‍👧‍👦 and 👍🏽", ["😀😀", "👩‍👩‍👧‍👦", "👍🏽"]),
        ("🇩🇪 1️⃣ ❤️", ["🇩🇪", "1️⃣", "❤️"]),
        ("3 < 4, 50 % & more", []),
        ("你好，世界。", []),
    ],
)
def test_what_is_protected(text: str, found: list[str]) -> None:
    assert guards.protected(text) == found


def test_a_word_counts_as_often_as_it_comes() -> None:
    assert guards.any_missing(["😀", "😀"], "a 😀 b")
    assert not guards.any_missing(["😀", "😀"], "a 😀 b 😀")
    assert not guards.any_missing(["❤️"], "❤")  # only the colour is gone
    assert not guards.any_missing([], "")


def test_foreign_words_have_no_letter_that_the_vocabulary_knows() -> None:
    tokenizer = Characters("abcdefghijklmnopqrstuvwxyzé你好 ")

    def found(text: str) -> list[str]:
        return guards.foreign_words(text, lambda word: tokenizer.pieces(tokenizer.encode(word)))

    assert found("hi Привет and עולם, é 你们好 ö ABC") == ["Привет", "עולם", "ö"]


NO_SOURCE = list(range(100, 111))


def test_F39_a_4_gram_may_come_four_times_more_often_than_in_the_source() -> None:
    gram = [1, 2, 3, 4]

    def often(times: int) -> list[int]:
        return [i for n in range(times) for i in [*gram, 50 + n]]  # never in a row

    assert not guards.is_repetitive(NO_SOURCE, often(5))  # the source has each of its own once
    assert guards.is_repetitive(NO_SOURCE, often(6))
    assert not guards.is_repetitive(often(2), often(6))
    assert guards.is_repetitive(often(2), often(7))
    assert not guards.is_repetitive([], often(4))
    assert guards.is_repetitive([], often(5))


@pytest.mark.parametrize("period", range(1, 12))
def test_F39_a_loop_of_up_to_eight_tokens_may_not_fill_sixteen(period: int) -> None:
    def loop(tokens: int) -> list[int]:
        return [70, 71, *[i % period for i in range(tokens)], 72]

    busy = [*loop(16), *loop(16)]  # has loops itself, and each 4-gram of them more often
    assert guards.is_repetitive(NO_SOURCE, loop(16)) == (period <= 8)
    assert not guards.is_repetitive(busy, loop(16))
    if period > 3:  # shorter ones have the same 4-gram too often
        assert not guards.is_repetitive(NO_SOURCE, loop(15))


@given(st.lists(st.integers(0, 2), max_size=40))
def test_F39_the_loop_is_what_its_definition_says(ids: list[int]) -> None:
    def is_loop(start: int, end: int, period: int) -> bool:
        return end - start >= 2 * period and all(ids[i] == ids[i + period] for i in range(start, end - period))

    loops = [
        end - start
        for start in range(len(ids))
        for end in range(start + 2, len(ids) + 1)
        for period in range(1, 9)
        if is_loop(start, end, period)
    ]
    assert guards._longest_loop(ids) == max(loops, default=0)


def test_all_warnings_are_words() -> None:
    assert all(word.replace("_", "").isalpha() and word.islower() for word in guards.WARNINGS)


@pytest.mark.parametrize(
    "text", ["a" * 300_000, "a." * 150_000, "1" * 300_000, "😀" * 100_000, "a@" * 150_000, ". " * 99_999]
)
def test_long_texts_take_no_longer_than_they_are(text: str) -> None:
    started = time.process_time()
    guards.has_letters(text), guards.has_digits(text), guards.protected(text), marks.spans(text)
    numbers.missing(numbers.figures(text, "en"), text, "de")
    assert time.process_time() - started < 5
