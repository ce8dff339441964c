"""The tokens of one side of a translation, as people read them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clearhead.data.tokenizer import BOS, EOS, SPACE, SPECIAL_PIECES, SPECIALS, Tokenizer

BYTE = re.compile(r"<0x([0-9A-F]{2})>")
# Scripts that are written without spaces: there each piece stands for itself.
UNSPACED = re.compile("[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1780-\u17ff]")


@dataclass(frozen=True)
class Token:
    i: int
    id: int
    text: str  # a space is ␣, a byte of a character that the vocabulary lacks ⟨E5⟩
    piece: str  # as the tokenizer has it
    word: int | None  # tokens of the same number are one word; special ones are none
    special: bool


@dataclass(frozen=True)
class Side:
    """Source or target: the text, and the tokens that the model saw, special ones included."""

    lang: str
    text: str
    tokens: list[Token]


def source_side(tokenizer: Tokenizer, lang: str, text: str, ids: list[int]) -> Side:
    return Side(lang, text, _tokens(tokenizer, [*ids, EOS]))


def step_side(text: str, labels: Sequence[str]) -> Side:
    """Of a source of numbers: what the encoder sees of it, step by step."""
    return Side("und", text, [Token(i, 0, label, label, i, special=False) for i, label in enumerate(labels)])


def target_side(tokenizer: Tokenizer, lang: str, text: str, ids: list[int]) -> Side:
    return Side(lang, text, _tokens(tokenizer, [BOS, *ids, EOS]))


def shown(piece: str) -> str:
    """A piece as it is read."""
    byte = BYTE.fullmatch(piece)
    if byte:
        return f"⟨{byte[1]}⟩"
    return piece.removeprefix(SPACE).replace(SPACE, "␣") or "␣"


def piece_of(tokenizer: Tokenizer, id: int) -> str:
    return SPECIAL_PIECES[id] if id < SPECIALS else tokenizer.pieces([id])[0]


def _tokens(tokenizer: Tokenizer, ids: list[int]) -> list[Token]:
    tokens: list[Token] = []
    word, is_open = -1, False
    for i, id in enumerate(ids):
        piece = piece_of(tokenizer, id)
        if id in (BOS, EOS):
            tokens.append(Token(i, id, piece, piece, None, special=True))
            is_open = False
            continue
        if not is_open or piece.startswith(SPACE) or UNSPACED.search(piece):
            word += 1
        is_open = not UNSPACED.search(piece)
        tokens.append(Token(i, id, shown(piece), piece, word, special=False))
    return tokens
