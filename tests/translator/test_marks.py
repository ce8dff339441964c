"""What must stay is found, marked, and put back exactly once."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.data.tokenizer import MARKS
from clearhead.translator import marks
from clearhead.translator.marks import Masked, Span


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Write to tom.smith@example.org today.", ["tom.smith@example.org"]),
        ("See https://a.b/c?d=e#f. Then www.foo.com/x, ok?", ["https://a.b/c?d=e#f", "www.foo.com/x"]),
        ("I am happy 😀👍🏽!", ["😀👍🏽"]),
        ("Run `ls -l` in /usr/bin/x with --help.", ["`ls -l`", "/usr/bin/x"]),
        ("use --help or -x now", ["--help", "-x"]),
        ("snake_case, foo.bar() and 1.2.3", ["snake_case", "foo.bar()", "1.2.3"]),
        ("@me #tag", ["@me", "#tag"]),
        ("C:\\Users\\x", ["C:\\Users\\x"]),
        ("and/or 5/6 Tom's (Mary) a-b -5, 3.5 - well - yes: 4_", []),
        (f"a {MARKS[3]} somebody wrote", [MARKS[3]]),
    ],
)
def test_what_stays(text: str, found: list[str]) -> None:
    assert [span.target for span in marks.spans(text)] == found


def test_a_mark_stands_for_each_and_is_put_back() -> None:
    text = "Mail a@b.de or c@d.de."
    masked = marks.masked(text, marks.spans(text))
    assert masked == Masked(f"Mail {MARKS[0]} or {MARKS[1]}.", ("a@b.de", "c@d.de"))
    assert masked.restored(f"{MARKS[1]} oder {MARKS[0]}") == "c@d.de oder a@b.de"
    assert masked.wrong(f"{MARKS[1]} oder {MARKS[0]}") == 0
    assert masked.wrong(f"{MARKS[1]} oder") == 1
    assert masked.wrong(f"{MARKS[1]} {MARKS[1]} {MARKS[0]}") == 1
    assert masked.wrong(f"{MARKS[1]} {MARKS[0]} {MARKS[5]}") == 1
    assert Masked("plain").restored(f"a{MARKS[5]}b") == "ab"


def test_spans_that_overlap_have_one_mark() -> None:
    masked = marks.masked("abcdef", [Span(0, 3, "x"), Span(2, 5, "y"), Span(5, 6, "z")])
    assert (masked.text, masked.targets) == (f"{MARKS[0]}de{MARKS[1]}", ("x", "z"))


@given(st.text(st.sampled_from("ab @./:_-`#😀\ue000\ue0051"), max_size=40))
def test_a_text_with_marks_restored_is_the_text(text: str) -> None:
    found = marks.spans(text)[: len(MARKS)]
    masked = marks.masked(text, found)
    if len(marks.spans(text)) <= len(MARKS):
        assert masked.restored(masked.text).replace(" ", "") == text.replace(" ", "")  # glued to a word it gets a space
        assert masked.wrong(masked.text) == 0


def test_a_text_with_too_many_is_cut_before_each_that_has_no_mark() -> None:
    text = " ".join(f"a{i}@b.de" for i in range(2 * len(MARKS) + 3))
    found = marks.spans(text)
    cuts = marks.places_to_cut(found)
    assert cuts == [found[len(MARKS)].start, found[2 * len(MARKS)].start]


@pytest.mark.parametrize(
    "text", ["a_" * 100_000, "`a" * 100_000, "/a" * 100_000, "a." * 100_000, "1." * 100_000, "-" * 99]
)
def test_long_texts_take_no_longer_than_they_are(text: str) -> None:
    started = time.process_time()
    marks.spans(text)
    assert time.process_time() - started < 5
