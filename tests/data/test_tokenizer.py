"""Text survives the way to ids and back, whatever it holds; the same input gives the same tokenizer, everywhere."""

import hashlib
import os
import random
import subprocess
import sys
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.data import tokenizer as module
from clearhead.data.options import TOKENIZERS, DataOptions
from clearhead.data.tokenizer import (
    BOS,
    BYTE_PIECES,
    EOS,
    LEARNED,
    PAD,
    SPECIAL_PIECES,
    SPECIALS,
    UNK,
    Characters,
    Subwords,
    Tokenizer,
    Words,
    load,
    train,
    vocabulary_for,
)
from clearhead.errors import BAD_DATA, DAMAGED, USAGE, UserError

SUBJECTS = [
    "the cat",
    "a small dog",
    "my old friend",
    "Grüße aus Köln",
    "我们",
    "她的朋友",
    "<s>",
    "</s> <unk>",
    "<0x41>",
]
VERBS = ["sees", "is reading", "verlässt", "runs to", "喜欢", "看见了", "▁ is not", "\tor"]
OBJECTS = ["the lighthouse.", "two  books!", "den Wald.", "这本书。", "苹果，香蕉！", "naïve cafés 😀."]
LINES = [f"{subject} {verb} {thing}" for subject in SUBJECTS for verb in VERBS for thing in OBJECTS]
VOCABULARY = 421

AWKWARD = [
    *SPECIAL_PIECES,
    *" ▁\t\0▅\ufffd\u3000\u200b\u0301\ue000\uffff\U0010ffff",
    *("<0x41>", "<0xE2>", "▁▁", "  ", "e\u0301", "각", "Å", "⁇", "，。！", "👩‍👩‍👧", "the lighthouse", "我们", "\r"),
]
TEXTS = st.lists(
    st.sampled_from(AWKWARD + OBJECTS) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))
).map("".join)
few = settings(max_examples=60, deadline=None)


def learn(kind: str) -> Tokenizer:
    return train(LINES, DataOptions(tokenizer=kind), seed=1, vocabulary=VOCABULARY)


LEARNT = {kind: learn(kind) for kind in TOKENIZERS}
BPE = LEARNT["bpe"]
lossless = pytest.mark.parametrize("kind", ["bpe", "unigram", "characters"])
every_kind = pytest.mark.parametrize("kind", TOKENIZERS)


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


@lossless
@few
@given(text=TEXTS)
def test_decode_undoes_encode(kind: str, text: str) -> None:
    ids = LEARNT[kind].encode(text)
    assert LEARNT[kind].decode(ids) == nfc(text)
    assert all(SPECIALS <= i < len(LEARNT[kind]) for i in ids)


@lossless
@pytest.mark.parametrize("text", [*AWKWARD, *(f"a{text} {text}b " for text in AWKWARD), "", "a\nb", *LINES[:7]])
def test_decode_undoes_encode_of_awkward_text(kind: str, text: str) -> None:
    assert LEARNT[kind].decode(LEARNT[kind].encode(text)) == nfc(text)


@few
@given(words=st.lists(st.sampled_from(" ".join(LINES).split())), space=st.sampled_from([" ", "  ", "\u3000", " \t"]))
def test_words_that_are_known_come_back_with_one_space_between(words: list[str], space: str) -> None:
    tokenizer = LEARNT["words"]
    assert tokenizer.decode(tokenizer.encode(space.join(words))) == nfc(" ".join(words))


def test_a_word_that_is_unknown_reads_so() -> None:
    tokenizer = LEARNT["words"]
    ids = tokenizer.encode("the zebra sees")
    assert ids[1] == UNK
    assert tokenizer.decode([BOS, *ids, EOS, PAD]) == "the ⁇ sees"


@every_kind
@few
@given(texts=st.lists(TEXTS, max_size=5) | st.lists(st.sampled_from([*AWKWARD, *LINES]), min_size=101, max_size=127))
def test_many_equal_each_alone(kind: str, texts: list[str]) -> None:
    assert LEARNT[kind].encode_many(texts) == [LEARNT[kind].encode(text) for text in texts]


@every_kind
def test_special_ids_and_pieces(kind: str) -> None:
    tokenizer = LEARNT[kind]
    assert tuple(tokenizer.pieces([PAD, BOS, EOS, UNK])) == SPECIAL_PIECES
    assert tokenizer.decode([BOS, *tokenizer.encode("the cat"), EOS, PAD]) == "the cat"
    assert len(tokenizer) <= VOCABULARY
    assert all(tokenizer.pieces([i]) for i in range(len(tokenizer)))


@lossless
def test_bytes_have_the_ids_after_the_special_ones(kind: str) -> None:
    assert tuple(LEARNT[kind].pieces(list(range(SPECIALS, LEARNED)))) == BYTE_PIECES
    zebra = LEARNT[kind].encode("a🦓")[-4:]
    assert zebra == [SPECIALS + byte for byte in "🦓".encode()]
    assert "\ufffd" in LEARNT[kind].decode(zebra[:2])  # what a model may write


def test_pieces_show_where_words_start() -> None:
    assert "".join(BPE.pieces(BPE.encode("the cat sees"))) == "▁the▁cat▁sees"
    assert LEARNT["characters"].pieces(LEARNT["characters"].encode("a b")) == ["a", "▁", "b"]


@few
@given(text=TEXTS, seed=st.integers())
def test_without_dropout_our_merges_are_those_of_sentencepiece(text: str, seed: int) -> None:
    assert BPE.encode_with_dropout(text, rate=0.0, seed=seed) == BPE.encode(text)


@few
@given(text=TEXTS, rate=st.floats(0, 1), seed=st.integers())
def test_text_survives_dropout(text: str, rate: float, seed: int) -> None:
    ids = BPE.encode_with_dropout(text, rate, seed)
    assert BPE.decode(ids) == nfc(text)
    assert ids == BPE.encode_with_dropout(text, rate, seed)


@few
@given(words=st.lists(st.sampled_from(" ".join(OBJECTS).split()), min_size=1), seed=st.integers())
def test_dropout_is_that_of_the_paper(words: list[str], seed: int) -> None:
    assert BPE.pieces(BPE.encode_with_dropout(" ".join(words), 0.3, seed)) == paper_dropout(words, 0.3, seed)


def paper_dropout(words: list[str], rate: float, seed: int) -> list[str]:
    """Algorithm 1 of Provilkov et al. word for word: list all merges, drop some, do the best, until none is left."""
    rng, done = random.Random(seed), []
    ranks = {piece: i for i, piece in enumerate(BPE.pieces(list(range(LEARNED, len(BPE)))))}
    for word in words:
        pieces = list(f"▁{word}")
        while True:
            merges = sorted((ranks[a + b], i) for i, (a, b) in enumerate(pairwise(pieces)) if a + b in ranks)
            best = next((i for _, i in merges if rng.random() >= rate), None)
            if best is None:
                break
            pieces[best : best + 2] = [pieces[best] + pieces[best + 1]]
        done += [part for piece in pieces for part in ([piece] if piece in ranks else byte_pieces(piece))]
    return done


def byte_pieces(text: str) -> list[str]:
    return [BYTE_PIECES[byte] for byte in text.encode()]


def test_dropout_leaves_out_more_at_higher_rates() -> None:
    lengths = [sum(len(BPE.encode_with_dropout(line, rate, 3)) for line in LINES) for rate in (0, 0.1, 0.5, 1)]
    assert lengths == sorted(set(lengths))
    assert len({tuple(BPE.encode_with_dropout(LINES[0], 0.5, seed)) for seed in range(20)}) > 5


def test_only_bpe_has_merges_to_leave_out() -> None:
    for kind in ("unigram", "characters", "words"):
        with pytest.raises((ValueError, NotImplementedError), match="subword dropout leaves out merges"):
            LEARNT[kind].encode_with_dropout("the cat", 0.1, 1)


@every_kind
def test_loaded_equals_saved(kind: str, tmp_path: Path) -> None:
    LEARNT[kind].save(tmp_path, "source")
    ending = "model" if kind in ("bpe", "unigram") else "json"
    assert [path.name for path in tmp_path.iterdir()] == [f"source.{ending}"]
    loaded = load(tmp_path, "source")
    assert len(loaded) == len(LEARNT[kind])
    assert loaded.encode_many(LINES + AWKWARD) == LEARNT[kind].encode_many(LINES + AWKWARD)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.9, 0.995])
def test_a_model_cut_short_is_damaged(kind: str, share: float, tmp_path: Path) -> None:
    LEARNT[kind].save(tmp_path, "joint")
    path = tmp_path / "joint.model"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert_damaged(tmp_path, "joint.model is not a tokenizer")


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"tokenizer": "words"}', '{"tokenizer": "morse", "pieces": []}']
    + ['{"tokenizer": "words", "pieces": "ab"}', '{"tokenizer": "characters", "pieces": [1]}']
    + ['{"tokenizer": "words", "pieces": ["a", "a"]}', '{"tokenizer": "characters", "pieces": ["ab"]}'],
)
def test_a_list_of_pieces_that_is_none_is_damaged(content: str, tmp_path: Path) -> None:
    (tmp_path / "joint.json").write_text(content)
    assert_damaged(tmp_path, "joint.json is not a tokenizer")


def test_files_of_something_else_are_damaged(tmp_path: Path) -> None:
    assert_damaged(tmp_path, "has neither joint.model nor joint.json")
    (tmp_path / "joint.json").write_bytes(b"\xff\xfe")
    assert_damaged(tmp_path, "joint.json is not a tokenizer")
    (tmp_path / "joint.model").write_bytes(random.Random(1).randbytes(1000))
    assert_damaged(tmp_path, "joint.model is not a tokenizer")


def assert_damaged(folder: Path, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load(folder, "joint")
    assert (caught.value.code, caught.value.exit_code) == ("TOKENIZER_DAMAGED", DAMAGED)


FINGERPRINT = """
import sys
from pathlib import Path
from clearhead.data.options import TOKENIZERS
from tests.data.test_tokenizer import fingerprint, learn
for kind in TOKENIZERS:
    print(fingerprint(learn(kind), Path(sys.argv[1])))
"""


def fingerprint(tokenizer: Tokenizer, folder: Path) -> str:
    tokenizer.save(folder, "t")
    (path,) = folder.iterdir()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.unlink()
    return digest


def test_another_process_learns_the_same_and_says_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FINGERPRINT, str(tmp_path)]
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.split() == [fingerprint(LEARNT[kind], tmp_path) for kind in TOKENIZERS]
    assert ran.stderr == ""


@every_kind
@pytest.mark.parametrize("lines", [[], [""], ["", "  ", "\t"]])
def test_no_text_is_nothing_to_learn_from(kind: str, lines: list[str]) -> None:
    with pytest.raises(UserError, match="no text to learn a tokenizer from") as caught:
        train(iter(lines), DataOptions(tokenizer=kind), seed=1, vocabulary=VOCABULARY)
    assert (caught.value.code, caught.value.exit_code) == ("NOTHING_TO_LEARN", BAD_DATA)


@every_kind
@pytest.mark.parametrize("lines", [["a"], ["▁"], ["<s>"], ["\0"], ["e\u0301"], ["字" * 9999], ["a b " * 5000, "c"]])
def test_little_text_makes_a_small_vocabulary(kind: str, lines: list[str]) -> None:
    tokenizer = train(iter(lines), DataOptions(tokenizer=kind), seed=1, vocabulary=32_000)
    assert len(tokenizer) < LEARNED + 40
    if kind != "words" or len(lines[0]) < 3:
        assert tokenizer.decode(tokenizer.encode(lines[0])) == nfc(lines[0])


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters"])
def test_a_vocabulary_without_room_for_characters_is_refused(kind: str) -> None:
    with pytest.raises(UserError, match=f"data.vocabulary is 299, but a vocabulary of {kind} needs") as caught:
        train(LINES, DataOptions(tokenizer=kind), seed=1, vocabulary=299)
    assert (caught.value.code, caught.value.exit_code) == ("VOCABULARY_TOO_SMALL", USAGE)
    assert len(train(LINES, DataOptions(tokenizer=kind), seed=1, vocabulary=300)) <= 300


@lossless
def test_rare_characters_of_a_large_alphabet_are_bytes(kind: str) -> None:
    signs = [chr(0x4E00 + i) for i in range(2000)]
    rng = random.Random(1)
    lines = ["".join(rng.choices(signs[:1100], k=20)) for _ in range(1000)] + ["".join(signs[-5:])]
    tokenizer = train(lines, DataOptions(tokenizer=kind), seed=1, vocabulary=8000)
    assert len(tokenizer.encode(signs[500])) <= 2  # bpe and unigram: with the space before the first word
    assert len(tokenizer.encode(signs[-1])) >= 3
    assert tokenizer.decode(tokenizer.encode(lines[-1])) == lines[-1]


def test_a_small_vocabulary_of_chinese_keeps_room_for_merges() -> None:
    lines = ["".join(chr(0x4E00 + (i * j) % 3001) for j in range(1, 60)) + "我们喜欢" for i in range(1, 300)]
    tokenizer = train(lines, DataOptions(), seed=1, vocabulary=400)
    assert len(tokenizer) == 400
    assert len(tokenizer.encode("我们喜欢")) < 4


def test_a_sample_follows_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 7)
    words = [f"word{i}" for i in range(1000)]
    options = DataOptions(tokenizer="words")
    samples = [train(iter(words), options, seed, 100).pieces(list(range(SPECIALS, 11))) for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    assert len(set(samples[0])) == 7


def test_vocabulary_grows_with_the_corpus() -> None:
    sizes = [vocabulary_for(pairs) for pairs in (1, 10_000, 10_001, 200_000, 200_001, 500_000, 2_000_000, 2_000_001)]
    assert sizes == [2_000, 2_000, 4_000, 4_000, 8_000, 8_000, 16_000, 32_000]


def test_kinds() -> None:
    assert [type(LEARNT[kind]) for kind in TOKENIZERS] == [Subwords, Subwords, Characters, Words]
