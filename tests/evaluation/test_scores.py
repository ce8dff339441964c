"""Scores: sacreBLEU's own numbers, with the tokenizer that suits the language, and exact match."""

import pytest
import sacrebleu

from clearhead.evaluation import score_translations
from clearhead.evaluation.scores import edits, metrics_for

ENGLISH = ["the cat sat on the mat today", "a dog runs in the park"]
CHINESE = ["2026年3月4日星期三", "今天天气很好。"]


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [("zh", "zh"), ("zh-CN", "zh"), ("zh_Hant", "zh"), ("yue", "zh"), ("ja", "char"), ("th", "char"), ("de", "13a"),
     ("en-GB", "13a"), ("und", "13a")],
)  # fmt: skip
def test_the_signature_names_the_tokenizer_of_the_language(language: str, tokenizer: str) -> None:
    signatures = score_translations(ENGLISH, ENGLISH, language).signatures
    assert f"tok:{tokenizer}|" in signatures["bleu"]
    assert signatures["chrf"].startswith("nrefs:1|")


def test_chinese_is_not_split_at_spaces() -> None:
    ours = ["2026年3月5日星期三", "今天天气不好。"]
    zh, wrong = (score_translations(ours, CHINESE, language) for language in ("zh", "en"))
    assert zh.bleu == sacrebleu.corpus_bleu(ours, [CHINESE], tokenize="zh").score
    assert 20 < zh.bleu < 100
    assert wrong.bleu < zh.bleu / 2


def test_the_numbers_are_those_of_sacrebleu() -> None:
    ours = ["the cat sat on a mat today", "a dog runs in parks"]
    scores = score_translations(ours, ENGLISH, "en")
    assert scores.bleu == sacrebleu.corpus_bleu(ours, [ENGLISH]).score
    assert scores.chrf == sacrebleu.corpus_chrf(ours, [ENGLISH]).score


def test_exact_match_is_a_share_and_spaces_around_do_not_count() -> None:
    scores = score_translations([ENGLISH[0] + " ", "no", *CHINESE], [*ENGLISH, *CHINESE], "en")
    assert scores.exact_match == 0.75
    assert str(scores).endswith("exact match 75.0%")


def test_the_best_is_100() -> None:
    scores = score_translations(ENGLISH, ENGLISH, "en")
    assert str(scores) == "BLEU 100.0, chrF 100.0, exact match 100.0%"


def test_each_translation_needs_its_reference() -> None:
    with pytest.raises(ValueError):
        score_translations(ENGLISH, ENGLISH[:1], "en")


@pytest.mark.parametrize(
    ("language", "asian"), [("zh", True), ("zh-TW", True), ("ja", True), ("de", False), ("ko", False)]
)
def test_ter_counts_characters_where_words_have_no_spaces(language: str, asian: bool) -> None:
    ter = metrics_for(language)["ter"]
    score = ter.corpus_score(["今天天气不好。", "一"], [CHINESE[1:] + ["一"]]).score
    assert f"asian:{'yes' if asian else 'no'}" in str(ter.get_signature())
    assert score == (100 / 8 if asian else 50)  # one of eight characters, or one of two sentences


def test_sacrebleu_gives_no_advice_on_text_that_looks_tokenized(caplog: pytest.LogCaptureFixture) -> None:
    score_translations(["a cat ."] * 101, ["a cat ."] * 101, "en")
    assert not caplog.records


@pytest.mark.parametrize(
    ("ours", "theirs", "fewest"),
    [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("abcd", "bcda", 2), ("ab", "ba", 2)],
)
def test_the_fewest_edits(ours: str, theirs: str, fewest: int) -> None:
    assert edits(ours, theirs) == edits(theirs, ours) == fewest
