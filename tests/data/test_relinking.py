"""Links between pieces that were broken up anew, against counting characters by hand."""

import numpy as np
import pytest

from clearhead.data.aligner import NONE
from clearhead.data.options import DataOptions
from clearhead.data.relinking import piece_widths, relinked
from clearhead.data.tokenizer import BYTE_PIECES, MARKS, Tokenizer, train

LINES = ["the cat sat on the mat", "die Katze saß auf der Matte", "ein ▁ und ein é"] * 11


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train(LINES, DataOptions(), seed=1, vocabulary=330)


def owners(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """For each byte of the text, a space before it, the piece that it belongs to."""
    pieces = tokenizer.pieces(ids)
    bytes_of = [1 if piece in BYTE_PIECES else len(piece.replace("▁", " ").encode()) for piece in pieces]
    return [number for number, count in enumerate(bytes_of) for _ in range(count)]


@pytest.mark.parametrize("text", [*LINES[:3], f"the {MARKS[2]}, 学 cat▁", "Ünknown ćharacters"])
def test_each_new_piece_goes_where_its_first_byte_went(tokenizer: Tokenizer, text: str) -> None:
    widths, rng = piece_widths(tokenizer), np.random.default_rng(1)
    old = tokenizer.encode(text)
    for seed in range(7):
        source, target = (tokenizer.encode_with_dropout(text, 0.5, s) for s in (seed, seed + 100))
        links = np.where(rng.random(len(old)) < 0.3, NONE, rng.permutation(len(old))).astype(np.uint16)
        found = relinked(links, (widths[old], widths[source]), (widths[old], widths[target]))
        of_old, of_source, of_target = (owners(tokenizer, ids) for ids in (old, source, target))
        assert len(of_old) == len(of_source) == len(of_target)
        for number, link in enumerate(found.tolist()):
            was = int(links[of_old[of_target.index(number)]])
            assert link == (NONE if was == NONE else of_source[of_old.index(was)])


def test_as_it_was_it_stays(tokenizer: Tokenizer) -> None:
    widths, ids = piece_widths(tokenizer)[tokenizer.encode(LINES[1])], tokenizer.encode(LINES[1])
    links = np.arange(len(ids))[::-1].astype(np.uint16)
    np.testing.assert_array_equal(relinked(links, (widths, widths), (widths, widths)), links)
