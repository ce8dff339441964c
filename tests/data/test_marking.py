"""Marks in pairs: a pure function, the pieces that the tokenizer would make, and links that follow their words."""

from typing import Any

import numpy as np
import pytest

from clearhead.data.aligner import NONE
from clearhead.data.marking import Marking, Vocabulary
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import MARKS, Characters, Subwords, Tokenizer, Words, train

LINES = [
    ("Tom saw 37 dogs in Boston, didn't he?", "Tom sah 37 Hunde in Boston, oder nicht?"),
    ('"Mary" likes (old) books.', "„Maria“ mag (alte) Bücher."),
    ("I have 3.14 apples and Tom's hat.", "Ich habe 3,14 Äpfel und Toms Hut."),
    ("我 likes 北京 and 上海", "我喜欢北京和上海。"),
    ("Jürgen e\u0301tait là", "हिन्दी में लिखा है"),
] * 5
KINDS = ["bpe", "unigram", "characters", "words"]


def tokenizer_of(kind: str, side: int) -> Tokenizer:
    return train((pair[side] for pair in LINES), DataOptions(tokenizer=kind), seed=1, vocabulary=400)


def make_marking(kind: str, **options: Any) -> tuple[Marking, Tokenizer, Tokenizer]:
    tokenizers = tokenizer_of(kind, 0), tokenizer_of(kind, 1)
    sides = []
    for side, tokenizer in enumerate(tokenizers):
        ids = np.concatenate([tokenizer.encode(pair[side]) for pair in LINES])
        sides.append(Vocabulary.of(tokenizer, ids))
    return Marking(sides[0], sides[1], **({"share": 0.3, "seed": 1, "longest": 200} | options)), *tokenizers


def random_links(rng: np.random.Generator, source: list[int], target: list[int]) -> np.ndarray:
    """In no order, each source token at most once, so that many words are aligned one to one."""
    links = np.full(len(target), NONE, np.uint16)
    some = min(len(source), len(target))
    links[rng.permutation(len(target))[:some]] = rng.permutation(len(source))[:some]
    return links


@pytest.mark.parametrize("kind", KINDS)
def test_marked_ids_are_what_the_tokenizer_makes_of_the_marked_text(kind: str) -> None:
    marking, source_tokenizer, target_tokenizer = make_marking(kind)
    rng = np.random.default_rng(1)
    marked = 0
    for row, (source_text, target_text) in enumerate(LINES * 7):
        source, target = source_tokenizer.encode(source_text), target_tokenizer.encode(target_text)
        links = random_links(rng, source, target)
        found = marking.mark(source, target, links, row, epoch=3)
        if found is None:
            continue
        marked += 1
        assert found.source == source_tokenizer.encode(source_tokenizer.decode(found.source))
        assert found.target == target_tokenizer.encode(target_tokenizer.decode(found.target))
        assert len(found.links) == len(found.target)
        used = [i for i in found.source if i in source_tokenizer.marks]
        wanted = max(1, int(marking.marks(np.array([row]), 3)[0]))
        assert 1 <= len(used) == len(set(used)) <= wanted
        assert len(found.source) <= len(source) + wanted
        assert len(found.target) <= len(target) + wanted
        numbers = [source_tokenizer.marks.index(i) for i in used]
        assert sorted(numbers) == sorted(
            target_tokenizer.marks.index(i) for i in found.target if i in target_tokenizer.marks
        )
        for number in numbers:
            place = found.target.index(target_tokenizer.marks[number])
            assert found.source[found.links[place]] == source_tokenizer.marks[number]
        outside = found.links[found.links != NONE]
        assert outside.max() < len(found.source)
    assert marked > 30


def words_of(kind: str, text: str, side: int) -> list[tuple[str, bool]]:
    """The words of a text, and whether marks may take their places."""
    tokenizer = tokenizer_of(kind, side)
    ids = tokenizer.encode(text)
    vocabulary = Vocabulary.of(tokenizer, np.array(ids))
    words = vocabulary.words(ids)
    assert [place for word in words for place in range(word.start, word.stop)] == list(range(len(ids)))
    return [(vocabulary.text(ids, word), vocabulary.is_replaceable(word)) for word in words]


@pytest.mark.parametrize("kind", ["bpe", "characters"])
def test_words_end_where_they_should(kind: str) -> None:
    assert words_of(kind, "Tom saw 37 dogs", 0) == [(word, True) for word in ("Tom", "saw", "37", "dogs")]
    found = dict(words_of(kind, LINES[1][0], 0))
    assert found["Mary"]  # nothing but a sign is before it
    assert found["old"]
    assert found["books"]
    assert not found["."]
    found = dict(words_of(kind, LINES[2][0], 0))
    assert not found.get("3")  # a mark would take the place of a part of a number
    assert not found.get("14")
    assert found["Tom"]  # but what an apostrophe hangs on may go
    assert not found["s"]


def test_each_piece_of_a_script_without_spaces_is_a_word() -> None:
    words = words_of("characters", "我喜欢北京。", 1)
    assert words == [*((character, True) for character in "我喜欢北京"), ("。", False)]
    assert [word for word, _ in words_of("characters", "लिखा है", 1)] == ["लिखा", "है"]


def test_neighbours_in_a_script_without_spaces_become_one_word() -> None:
    """Both characters of a city's name come from one word."""
    marking, source_tokenizer, target_tokenizer = make_marking("characters")
    source, target = source_tokenizer.encode("in Boston"), target_tokenizer.encode("和北京")
    links = np.array([0, 3, 5], np.uint16)
    pairs = [
        (marking.source.text(source, s), marking.target.text(target, t))
        for s, t in marking.one_to_one(source, target, links)
    ]
    assert ("Boston", "北京") in pairs


def test_words_with_links_elsewhere_stay() -> None:
    tokenizer = Words(["a", "b", "c", "d", *MARKS])
    side = Vocabulary.of(tokenizer, np.arange(4, 8))
    marking = Marking(side, side, share=1.0, seed=1, longest=9)
    ids = tokenizer.encode("a b c d")
    crossed = np.array([0, 0, 2, NONE], np.uint16)  # "a" has two, "c" has one, "d" none
    pairs = marking.one_to_one(ids, ids, crossed)
    assert [(s.start, t.start) for s, t in pairs] == [(2, 2)]
    assert marking.mark(ids, ids, np.full(4, NONE, np.uint16), 0, 0) is None


def test_which_pairs_and_words_is_a_function_of_seed_epoch_and_row() -> None:
    marking, source_tokenizer, target_tokenizer = make_marking("bpe")
    rows = np.arange(10_007)
    marks = marking.marks(rows, epoch=5)
    assert np.bincount(marks) / len(rows) == pytest.approx([0.7, 0.1, 0.1, 0.1], abs=0.01)
    shuffled = np.random.default_rng(1).permutation(rows)
    np.testing.assert_array_equal(marking.marks(shuffled, epoch=5), marks[shuffled])
    again = marking.marks(rows, epoch=6)
    assert abs(((marks > 0) & (again > 0)).mean() - 0.09) < 0.01
    source, target = source_tokenizer.encode(LINES[0][0]), target_tokenizer.encode(LINES[0][1])
    links = random_links(np.random.default_rng(2), source, target)
    found = [str(marking.mark(source, target, links, row, epoch)) for row, epoch in [(3, 1), (3, 1), (4, 1), (3, 2)]]
    assert found[0] == found[1]
    assert len(set(found)) > 1


def test_a_side_never_grows_beyond_what_it_may_have() -> None:
    marking, source_tokenizer, target_tokenizer = make_marking("bpe", longest=3)
    source, target = source_tokenizer.encode("Tom saw dogs"), target_tokenizer.encode("Tom sah Hunde")
    links = random_links(np.random.default_rng(2), source, target)
    assert all(marking.mark(source, target, links, row, 0) is None for row in range(5))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["{0}", "a {0} b", "a{1}b, {2}. {3}{4}", "({5}) {6}'s {7}!"])
def test_marks_are_pieces_of_their_own(kind: str, text: str) -> None:
    tokenizer = tokenizer_of(kind, 0)
    assert tokenizer.pieces(tokenizer.marks) == list(MARKS)
    filled = text.format(*MARKS)
    if kind == "words":
        filled = " ".join(c for c in filled if c in MARKS)
    ids = tokenizer.encode(filled)
    assert [i for i in ids if i in tokenizer.marks] == [tokenizer.marks[MARKS.index(c)] for c in filled if c in MARKS]
    assert tokenizer.decode(ids) == filled


@pytest.mark.parametrize("kind", KINDS)
def test_marks_in_the_corpus_are_no_words_of_it(kind: str) -> None:
    lines = [f"a{MARKS[0]}b {MARKS[1]}{MARKS[1]} c"] * 50 + ["some more of it"] * 50
    tokenizer = train(lines, DataOptions(tokenizer=kind), seed=1, vocabulary=400)
    pieces = tokenizer.pieces(list(range(len(tokenizer))))
    assert all(piece in MARKS for piece in pieces if set(MARKS) & set(piece) and kind != "words")
    assert tokenizer.pieces(tokenizer.marks) == list(MARKS)


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_none_where_none_are_wanted(kind: str) -> None:
    for options in (DataOptions(tokenizer=kind, marks=0.0), DataOptions(tokenizer=kind, task="generate")):
        tokenizer = train([pair[0] for pair in LINES], options, seed=1, vocabulary=400)
        assert tokenizer.marks == []
    assert train(["a b"], DataOptions(tokenizer="words"), seed=1, vocabulary=8).marks == []
    assert Words(["a"]).marks == Characters("ab").marks == []


def test_dropout_keeps_marks() -> None:
    tokenizer = tokenizer_of("bpe", 0)
    assert isinstance(tokenizer, Subwords)
    for seed in range(11):
        ids = tokenizer.encode_with_dropout(f"Tom saw {MARKS[2]}, {MARKS[3]}dogs", 0.5, seed)
        assert [i for i in ids if i in tokenizer.marks] == tokenizer.marks[2:4]
