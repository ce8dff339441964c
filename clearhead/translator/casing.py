"""Capitals: a text of nothing else is translated as the model knows its words, and given back in capitals.

A text without any, as people type it, is read as the sentence that it would be; its translation has the usual ones.
"""

import re
from dataclasses import dataclass

from clearhead.data.lines import Lines
from clearhead.data.tokenizer import UNK, Tokenizer

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
UPPER, TITLE, LOWER = "upper", "title", "lower"
USUAL = 0.9  # share of the training lines that do so, from which on all are expected to
# Scripts that are written without spaces between words, and their punctuation.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]"
)
LEAST_LETTERS = 4  # in capitals: shorter ones are names of something, such as USA
LEAST_WORDS = 4  # of a title
SHORT_WORD = 4  # letters up to which a word in a title may be small: of, and, with
CAPITAL_WORSE = 2  # times as early a word with a capital must have been learned
CAPITALISES_NOUNS = ("de", "lb")  # whose sentences look like titles to this eye


@dataclass(frozen=True)
class Reading:
    """A text as the model is to read it: its case before, and the mark that was added to its end."""

    text: str
    case: str | None = None
    mark: str = ""


def as_read(text: str, language: str, tokenizer: Tokenizer, lines: Lines | None, is_sentence: bool = True) -> Reading:
    """A sentence with a capital and a mark if nearly all training lines had them; capitals alone are lowered anyway."""
    if lines is None or not is_sentence:
        return Reading(*recased(text, language, tokenizer, has_capitals=False))
    text, case = recased(text, language, tokenizer, lines.capital >= USUAL)
    if lines.ended < USUAL or not text[-1:].isalnum():
        return Reading(text, case)
    mark = "。" if UNSPACED.match(text[-1]) else "."
    ids = tokenizer.encode(text + mark)
    is_known = UNK not in ids and len(ids) <= len(tokenizer.encode(text)) + 1
    return Reading(text + mark, case, mark) if is_known else Reading(text, case)


def recased(text: str, language: str, tokenizer: Tokenizer, has_capitals: bool = True) -> tuple[str, str | None]:
    """The text as a sentence, if it is in capitals, a title or has no capitals, and which it was; else as it is.

    `has_capitals`: the sentences that the model was trained on begin with one.
    """
    if text.islower():
        sentence = as_sentence(text, tokenizer) if has_capitals and len(WORD.findall(text)) > 1 else text
        is_known = _pieces(sentence, tokenizer) <= _pieces(text, tokenizer)
        return (sentence, LOWER) if is_known and sentence != text else (text, None)
    letters = [c for c in text if c.isalpha() and c.upper() != c.lower()]
    if len(letters) < LEAST_LETTERS or not letters[0].isupper():  # as mostly
        return text, None
    words = WORD.findall(text)
    if max(map(len, words)) < LEAST_LETTERS - 1:
        return text, None
    case = UPPER if all(c.isupper() for c in letters) else TITLE if _is_title(words, language) else None
    if case is None:
        return text, None
    sentence = as_sentence(text, tokenizer)
    # What the model knows better as it stands, such as an abbreviation, is left.
    pieces, as_it_is = _pieces(sentence, tokenizer), _pieces(text, tokenizer)
    if pieces > as_it_is or sentence == text or (pieces == as_it_is and len(words) == 1):
        return text, None
    return sentence, case


def in_case(text: str, case: str | None) -> str:
    """A translation in the case that its source had."""
    if case == UPPER:
        return text.upper()
    if case == TITLE:
        return WORD.sub(lambda word: word[0][:1].upper() + word[0][1:], text)
    return text


def _pieces(text: str, tokenizer: Tokenizer) -> tuple[int, int]:
    """How little the vocabulary knows a text: unknown words, and pieces."""
    ids = tokenizer.encode(text)
    return ids.count(UNK), len(ids)


def _is_title(words: list[str], language: str) -> bool:
    if len(words) < LEAST_WORDS or language.partition("-")[0] in CAPITALISES_NOUNS:
        return False
    small = [word for word in words if word[0].islower()]
    return all(len(word) <= SHORT_WORD for word in small) and len(small) <= len(words) // 2


def as_sentence(text: str, tokenizer: Tokenizer) -> str:
    """Each word as the vocabulary knows it best; the first of a sentence with a capital."""

    def best(match: re.Match[str]) -> str:
        word = match[0]
        small = word.lower()
        capital = small[:1].upper() + small[1:]
        if re.search(r"(?:^|[.!?…]\s)\W*$", text[: match.start()]):
            first = min((capital, word), key=lambda form: _pieces(form, tokenizer))
            return small if UNK in tokenizer.encode(first) and UNK not in tokenizer.encode(small) else first
        ids = {form: tokenizer.encode(form) for form in dict.fromkeys((small, word, capital))}
        best_known = min(_pieces(form, tokenizer) for form in ids)
        known = [form for form in ids if _pieces(form, tokenizer) == best_known]
        if best_known[1] > 1 and len(word) > 1:
            return known[0]
        # Of whole words the one that was learned first is more frequent: Tom and I. But a word that is met at the
        # beginning of sentences, such as Please, must be far ahead.
        return min(known, key=lambda form: max(ids[form]) * (1 if form == small or len(form) == 1 else CAPITAL_WORSE))

    return WORD.sub(best, text)
