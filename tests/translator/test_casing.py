"""A text in capitals is read as a sentence, and its translation is in capitals."""

import pytest

from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import Characters, Tokenizer, train
from clearhead.translator.casing import LOWER, TITLE, UPPER, in_case, recased


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = ["Tom and I live in Boston .", "I saw Tom in a house", "the old man and the sea", "Where is the USA ?"] * 7
    return train(lines, DataOptions(vocabulary=400), seed=1, vocabulary=400)


@pytest.mark.parametrize(
    ("text", "sentence", "case"),
    [
        ("TOM SAW THE OLD MAN.", "Tom saw the old man.", UPPER),
        ("I SAW TOM. WHERE IS THE HOUSE?", "I saw Tom. Where is the house?", UPPER),
        ("The Old Man and the House", "The old man and the house", TITLE),
        ("Tom saw the USA", "Tom saw the USA", None),
        ("USA", "USA", None),
        ("I", "I", None),
        ("", "", None),
        ("A1 B2 C3 D4 E5", "A1 B2 C3 D4 E5", None),
        ("I saw Tom in Boston.", "I saw Tom in Boston.", None),
    ],
)
def test_what_is_read(tokenizer: Tokenizer, text: str, sentence: str, case: str | None) -> None:
    assert recased(text, "en", tokenizer) == (sentence, case)


def test_german_capitals_are_no_title(tokenizer: Tokenizer) -> None:
    assert recased("Der Alte Mann Am Meer", "de-AT", tokenizer)[1] is None


def test_a_script_without_capitals_is_left_alone() -> None:
    assert recased("你好世界你好", "zh", Characters("你好世界")) == ("你好世界你好", None)


def test_the_translation_has_the_case_of_its_source() -> None:
    assert in_case("Straße im Wald", UPPER) == "STRASSE IM WALD"
    assert in_case("der alte Mann, o'Brien", TITLE) == "Der Alte Mann, O'Brien"
    assert in_case("Wie es ist", None) == "Wie es ist"


def test_a_text_without_capitals_is_read_as_a_sentence_if_the_model_knows_such(tokenizer: Tokenizer) -> None:
    assert recased("i saw tom in the house", "en", tokenizer)[0] in ("I saw Tom in the house", "i saw Tom in the house")
    assert recased("where is tom", "en", tokenizer) == ("Where is Tom", LOWER)
    assert recased("where is tom", "en", tokenizer, has_capitals=False) == ("where is tom", None)
    assert recased("where", "en", tokenizer) == ("where", None)
    assert recased("zebra quiz", "en", train(["zebra quiz"] * 9, DataOptions(vocabulary=300), 1, 300))[1] is None
    assert in_case("Wo ist Tom", LOWER) == "Wo ist Tom"
