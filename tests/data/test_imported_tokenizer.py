"""A tokenizer that came with a model: pieces by a foreign SentencePiece model, ids by a list of names."""

import base64
import io
import json
from pathlib import Path

import pytest
from sentencepiece import SentencePieceTrainer

from clearhead.data.folders import load_tokenizers, tokenizer_files
from clearhead.data.options import DataOptions
from clearhead.data.prepare import prepare
from clearhead.data.tokenizer import SPECIALS, UNK, Imported, load, train
from clearhead.errors import DAMAGED, USAGE, UserError

LINES = [f"the {animal} sees {number} lighthouses" for animal in ("cat", "dog", "owl") for number in ("two", "no")]
PIECES = [">>deu<<", "▁the", "▁", "c", "a", "t", "s", "e", "▁two", "d"]


@pytest.fixture(scope="module")
def model() -> bytes:
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 2), model_writer=written, vocab_size=41, hard_vocab_limit=False, minloglevel=2
    )
    return written.getvalue()


@pytest.fixture
def tokenizer(model: bytes) -> Imported:
    return Imported(model, PIECES)


def test_pieces_get_their_ids_by_name(tokenizer: Imported) -> None:
    ids = tokenizer.encode("the cat")
    assert tokenizer.pieces(ids)[0] == "▁the"
    assert len(tokenizer) == SPECIALS + len(PIECES)
    assert tokenizer.encode_many(["the cat", ""]) == [ids, []]


def test_a_piece_without_a_name_is_unknown_and_left_out_of_the_text(tokenizer: Imported) -> None:
    ids = tokenizer.encode("the xd")
    assert UNK in ids
    assert "⁇" not in tokenizer.decode([*tokenizer.encode("the"), UNK])
    assert tokenizer.decode([*tokenizer.encode("the"), UNK]) == "the"


def test_a_language_code_is_one_piece_if_the_vocabulary_has_it(tokenizer: Imported) -> None:
    assert tokenizer.encode(">>deu<< the two") == [SPECIALS, *tokenizer.encode("the two")]
    assert tokenizer.encode(">>deu<<the two") == [SPECIALS, *tokenizer.encode("the two")]
    assert SPECIALS not in tokenizer.encode("the >>deu<< two")
    assert tokenizer.encode(">>fra<< the two") != tokenizer.encode("the two")


def test_white_space_is_as_its_model_likes_it(tokenizer: Imported) -> None:
    assert tokenizer.encode("  the   two ") == tokenizer.encode("the two")
    assert tokenizer.decode(tokenizer.encode("the two")) == "the two"


def test_saved_and_loaded_it_is_the_same(tokenizer: Imported, tmp_path: Path) -> None:
    tokenizer.save(tmp_path, "source")
    again = load(tmp_path, "source")
    assert isinstance(again, Imported)
    assert again.model == tokenizer.model
    assert [file.name for file in tokenizer_files(tmp_path)] == ["source.json"]
    for line in LINES:
        assert again.encode(line) == tokenizer.encode(line)
        assert again.pieces(again.encode(line)) == tokenizer.pieces(tokenizer.encode(line))


@pytest.mark.parametrize(
    "changes",
    [{"model": "not base64!"}, {"model": base64.b64encode(b"no model").decode()}, {"pieces": ["a", "a"]}, {"model": 3}],
)
def test_a_damaged_file_is_named(changes: dict[str, object], tokenizer: Imported, tmp_path: Path) -> None:
    tokenizer.save(tmp_path, "source")
    path = tmp_path / "source.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(UserError, match=r"source.json is not a tokenizer that clearhead wrote") as caught:
        load(tmp_path, "source")
    assert caught.value.exit_code == DAMAGED


def test_it_cannot_be_learned() -> None:
    with pytest.raises(UserError, match=r'data.tokenizer is "imported".*--init-from') as caught:
        train(LINES, DataOptions(tokenizer="imported"), 1, 400)
    assert caught.value.exit_code == USAGE


def test_subword_dropout_needs_a_tokenizer_of_ours(tokenizer: Imported) -> None:
    with pytest.raises(NotImplementedError, match="trained here"):
        tokenizer.encode_with_dropout("the cat", 0.1, 1)
    with pytest.raises(ValueError, match="subword_dropout works with"):
        DataOptions(tokenizer="imported", subword_dropout=0.1)


def test_a_corpus_is_prepared_with_the_tokenizers_of_an_imported_model(
    tokenizer: Imported, model: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    tokenizer.save(folder, "source")
    Imported(model, PIECES[::-1]).save(folder, "target")
    files = [tmp_path / "train.en", tmp_path / "train.de"]
    for file in files:
        file.write_text("".join(f"{line}\n" for line in LINES * 3))
    options = DataOptions(tokenizer="imported", max_ratio=99)
    prepared = prepare(files, [], options, 1, tmp_path / "cache", lambda *_: None, folder)
    source, target = load_tokenizers(folder)
    for row in range(len(prepared)):
        assert prepared.source.ids[row].tolist() == source.encode(prepared.source.string(row))
        assert prepared.target.ids[row].tolist() == target.encode(prepared.target.string(row))
    with pytest.raises(UserError, match="cannot be learned"):
        prepare(files, [], options, 1, tmp_path / "cache", lambda *_: None)
