"""Where the sentences of a text end, in any language."""

from sentencex import get_sentence_boundaries


def sentences(text: str, language: str) -> list[str]:
    """The sentences in order, each with the white space behind it: joined they are the text."""
    found = [boundary["text"] for boundary in get_sentence_boundaries(language, text)]
    return found if "".join(found) == text else [text]
