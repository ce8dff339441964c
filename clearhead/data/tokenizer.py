"""Text to ids and back: subwords (SentencePiece), characters or words. Ids 0 to 3 mean the same in every vocabulary.

Text is brought to Unicode's form NFC here and nowhere else. decode(encode(text)) is that text exactly, because what
a vocabulary lacks is written as its UTF-8 bytes, which have the 256 ids after the special ones. Words are the
exception: an unknown word is UNK, and any white space becomes one space. So is what came with an imported model.
"""

import base64
import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Protocol
from unicodedata import normalize

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from clearhead.errors import BAD_DATA, DAMAGED, USAGE, UserError

from .options import IMPORTED, DataOptions

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = 4  # ids from here on are words

SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")
BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))
LEARNED = SPECIALS + 256  # ids from here on are learned, where there are bytes
# Each stands for something that must come out unchanged. They are in Unicode's private use area: no text needs them.
MARKS = tuple(map(chr, range(0xE000, 0xE008)))
ROOM_FOR_MARKS = 3 * len(MARKS)  # ids that are learned; of fewer, marks would take too many
UNKNOWN = "⁇"  # how UNK reads, in SentencePiece too

VOCABULARIES = ((10_000, 2_000), (200_000, 4_000), (500_000, 8_000), (2_000_000, 16_000))  # up to so many pairs, words
LARGEST_VOCABULARY = 32_000
SMALLEST_VOCABULARY = 300  # with bytes; room for 20 characters and 20 merges
SAMPLE = 1_000_000  # a vocabulary is learned from at most this many lines
LONGEST = 1000  # and from this many characters of each; SentencePiece takes far longer for long ones
LARGE_ALPHABET = 1000  # an alphabet of more characters leaves its rarest to the bytes
COVERAGE = 0.9995  # and keeps those that make up this share of the text

SPACE = "▁"  # SentencePiece's sign for a space; in our text it is a character like any other
LANGUAGE = re.compile(">>.*?<<")  # with this a text for a model of several target languages begins
MANY = 100  # texts; starting SentencePiece's threads takes as long as a dozen of them
NO_MERGE = 2**31  # worse than any rank
BOUNDARY = "\t"  # no piece that SentencePiece learns contains it
UNLEARNABLE = {SPACE, BOUNDARY, "\n", "\0", "▅"}  # SentencePiece uses these itself, or skips lines that have them


class Tokenizer(Protocol):
    """What all kinds can do; ids never include BOS or EOS."""

    def __len__(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def encode_with_dropout(self, text: str, rate: float, seed: int) -> list[int]: ...
    def decode(self, ids: list[int]) -> str: ...
    def pieces(self, ids: list[int]) -> list[str]: ...
    def save(self, folder: Path, name: str) -> None: ...

    @property
    def marks(self) -> list[int]:
        """The ids of MARKS, in their order; none of a vocabulary that does not have them all."""
        return []

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]


class Subwords(Tokenizer):
    """A SentencePiece model, BPE or unigram; `model` is the content of its file."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        _require_ours(self._processor)
        # The first word gets its space from us, so that stretches after a ▁ in the text get none.
        self._processor.override_normalizer_spec(add_dummy_prefix=False)
        learned = range(LEARNED, len(self))
        self._learned = dict(zip(self._processor.id_to_piece(list(learned)), learned, strict=True))
        self._marks = _marks_in(self._learned)
        # In a BPE model scores count the merges, from 0 down; in a unigram model they are logarithms.
        self._has_merges = self._processor.get_score(LEARNED) == 0

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    @property
    def marks(self) -> list[int]:
        return self._marks

    def encode(self, text: str) -> list[int]:
        return _join([self._processor.encode(stretch) for stretch in _stretches(text)])

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The same, in SentencePiece's threads, if it is worth starting them."""
        if len(texts) < MANY:
            return super().encode_many(texts)
        stretches = [_stretches(text) for text in texts]
        rows = iter(self._processor.encode([stretch for row in stretches for stretch in row], num_threads=-1))
        return [_join(list(islice(rows, len(row)))) for row in stretches]

    def encode_with_dropout(self, text: str, rate: float, seed: int) -> list[int]:
        """BPE-dropout (Provilkov et al. 2020); which merges are left out follows from `rate` and `seed` alone."""
        if not self._has_merges:
            raise ValueError("subword dropout leaves out merges, and a unigram tokenizer has none; use bpe")
        rng = random.Random(seed)
        return _join([self._merge_stretch(stretch, rate, rng) for stretch in _stretches(text)])

    def _merge_stretch(self, stretch: str, rate: float, rng: random.Random) -> list[int]:
        ids = []
        for word in stretch.replace(" ", f" {SPACE}").split(" "):
            for piece in _merge(word, self._learned, rate, rng):
                ids.extend([self._learned[piece]] if piece in self._learned else _byte_ids(piece))
        return ids

    def decode(self, ids: list[int]) -> str:
        return self._processor.decode(ids).removeprefix(" ")

    def pieces(self, ids: list[int]) -> list[str]:
        return self._processor.id_to_piece(ids)

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.model").write_bytes(self.model)


class Characters(Tokenizer):
    """Each character is a piece."""

    def __init__(self, characters: Sequence[str]) -> None:
        self._pieces = [*SPECIAL_PIECES, *BYTE_PIECES, *characters]
        self._ids = {character: [LEARNED + i] for i, character in enumerate(characters)}
        self._marks = _marks_in({character: ids[0] for character, ids in self._ids.items()})
        special = [b"", b"", b"", UNKNOWN.encode()]
        self._read_as = [*special, *(bytes([byte]) for byte in range(256)), *(c.encode() for c in characters)]

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def marks(self) -> list[int]:
        return self._marks

    def encode(self, text: str) -> list[int]:
        return [i for character in normalize("NFC", text) for i in self._ids.get(character) or _byte_ids(character)]

    def encode_with_dropout(self, text: str, rate: float, seed: int) -> list[int]:
        raise NotImplementedError("subword dropout leaves out merges, and characters are not merged")

    def decode(self, ids: list[int]) -> str:
        return b"".join(self._read_as[i] for i in ids).decode(errors="replace")

    def pieces(self, ids: list[int]) -> list[str]:
        return [self._pieces[i].replace(" ", SPACE) for i in ids]

    def save(self, folder: Path, name: str) -> None:
        _save_pieces("characters", self._pieces[LEARNED:], folder / f"{name}.json")


class Words(Tokenizer):
    """Each stretch between white space is a piece; the only kind in which something can be unknown."""

    def __init__(self, words: Sequence[str]) -> None:
        self._pieces = [*SPECIAL_PIECES, *words]
        self._ids = {word: SPECIALS + i for i, word in enumerate(words)}
        self._marks = _marks_in(self._ids)

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def marks(self) -> list[int]:
        return self._marks

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(word, UNK) for word in normalize("NFC", text).split()]

    def encode_with_dropout(self, text: str, rate: float, seed: int) -> list[int]:
        raise NotImplementedError("subword dropout leaves out merges, and words are not merged")

    def decode(self, ids: list[int]) -> str:
        return " ".join(UNKNOWN if i == UNK else self._pieces[i] for i in ids if i >= UNK)

    def pieces(self, ids: list[int]) -> list[str]:
        return [self._pieces[i] for i in ids]

    def save(self, folder: Path, name: str) -> None:
        _save_pieces("words", self._pieces[SPECIALS:], folder / f"{name}.json")


class Imported(Tokenizer):
    """A SentencePiece model made elsewhere, which normalises as it likes, and the vocabulary that goes with it.

    What MarianTokenizer does with `source.spm` and `vocab.json`: pieces get their ids by name, those without one
    are UNK, and UNK is left out of the text. Unlike there, special tokens that are typed in a text are text.
    """

    def __init__(self, model: bytes, pieces: Sequence[str]) -> None:
        self.model = model
        self._processor = SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        self._pieces = [*SPECIAL_PIECES, *pieces]
        self._ids = {piece: SPECIALS + i for i, piece in enumerate(pieces)}

    def __len__(self) -> int:
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        language = LANGUAGE.match(text)
        if language is None or language[0] not in self._ids:
            return self._ids_of(self._processor.encode_as_pieces(text))
        return [self._ids[language[0]], *self._ids_of(self._processor.encode_as_pieces(text[language.end() :]))]

    def encode_with_dropout(self, text: str, rate: float, seed: int) -> list[int]:
        raise NotImplementedError("subword dropout needs a tokenizer that was trained here")

    def _ids_of(self, pieces: list[str]) -> list[int]:
        return [self._ids.get(piece, UNK) for piece in pieces]

    def decode(self, ids: list[int]) -> str:
        said = [self._pieces[i] for i in ids if i >= SPECIALS]
        return self._processor.decode_pieces(said).replace(SPACE, " ").strip()

    def pieces(self, ids: list[int]) -> list[str]:
        return [self._pieces[i] for i in ids]

    def save(self, folder: Path, name: str) -> None:
        model = base64.b64encode(self.model).decode()
        _save_pieces(IMPORTED, self._pieces[SPECIALS:], folder / f"{name}.json", model=model)


def vocabulary_for(pairs: int) -> int:
    """The size of a vocabulary that suits a corpus of so many pairs."""
    return next((words for most, words in VOCABULARIES if pairs <= most), LARGEST_VOCABULARY)


def train(lines: Iterable[str], options: DataOptions, seed: int, vocabulary: int) -> Tokenizer:
    """Learn at most `vocabulary` pieces from the lines; `seed` picks the sample if there are more than SAMPLE."""
    kind = options.tokenizer
    if kind == IMPORTED:
        raise UserError(
            "IMPORTED_TOKENIZER",
            f'data.tokenizer is "{IMPORTED}", which comes with a model and cannot be learned; '
            'expected --init-from with an imported model, or a tokenizer that can be learned, such as "bpe"',
            USAGE,
        )
    if kind != "words" and vocabulary < SMALLEST_VOCABULARY:
        raise UserError(
            "VOCABULARY_TOO_SMALL",
            f"data.vocabulary is {vocabulary}, but a vocabulary of {kind} needs at least {SMALLEST_VOCABULARY}: "
            f"{LEARNED} special ids and bytes, and room for characters; leave it out and it is picked from the data",
            USAGE,
        )
    sample = _sample((normalize("NFC", line[:LONGEST]) for line in lines if not line.isspace() and line), seed)
    if not sample:
        raise UserError(
            "NOTHING_TO_LEARN", "found no text to learn a tokenizer from; expected lines that are not blank", BAD_DATA
        )
    room = vocabulary - (SPECIALS if kind == "words" else LEARNED)
    marks = MARKS if options.learns_marks and room >= ROOM_FOR_MARKS else ()
    if kind == "words":
        words = Counter(word for line in sample for word in line.split() if word not in marks)
        return Words([*_by_frequency(words)[: room - len(marks)], *marks])
    counts = Counter[str]()
    for line in sample:
        counts.update(line)
    for mark in marks:
        del counts[mark]
    if kind == "characters":
        return Characters([*_alphabet(counts, room - len(marks)), *marks])
    return _train_subwords(sample, counts, kind, vocabulary, marks)


def load(folder: Path, name: str) -> Tokenizer:
    """The tokenizer that `save` wrote under this name."""
    path = folder / f"{name}.model"
    try:
        if path.exists():
            return Subwords(path.read_bytes())
        path = folder / f"{name}.json"
        return _load_pieces(path)
    except FileNotFoundError as error:
        raise _damaged(f"{folder} has neither {name}.model nor {name}.json") from error
    except (ValueError, KeyError, TypeError, RuntimeError) as error:  # SentencePiece raises RuntimeError
        raise _damaged(f"{path} is not a tokenizer that clearhead wrote ({error})") from error


def _damaged(found: str) -> UserError:
    return UserError("TOKENIZER_DAMAGED", f"{found}; copy the model folder again, or train it again", DAMAGED)


def _stretches(text: str) -> list[str]:
    """What SentencePiece sees: a space before the first word as before all others, and the text cut at each ▁."""
    return f" {normalize('NFC', text)}".split(SPACE) if text else [""]


def _byte_ids(text: str) -> list[int]:
    return [SPECIALS + byte for byte in text.encode()]


def _join(stretches: list[list[int]]) -> list[int]:
    """Ids of the text around each ▁, and those of the ▁ between them."""
    ids = stretches[0]
    for stretch in stretches[1:]:
        ids += _byte_ids(SPACE) + stretch
    return ids


def _merge(word: str, ranks: dict[str, int], rate: float, rng: random.Random) -> list[str]:
    """In each round every possible merge is left out at this rate, and the best of the others is done."""
    pieces = list(word)
    merges = [ranks.get(a + b, NO_MERGE) for a, b in pairwise(pieces)]
    left_out = {}
    while merges and (best := min(merges)) != NO_MERGE:
        i = merges.index(best)
        if rng.random() < rate:
            left_out[i], merges[i] = best, NO_MERGE
            continue
        for j, rank in left_out.items():
            merges[j] = rank
        left_out.clear()
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        del merges[i]
        for j in range(max(i - 1, 0), min(i + 1, len(merges))):
            merges[j] = ranks.get(pieces[j] + pieces[j + 1], NO_MERGE)
    return pieces


def _sample(lines: Iterable[str], seed: int) -> list[str]:
    """SAMPLE lines, each as likely as any other, or all if there are fewer."""
    rng = random.Random(seed)
    sample: list[str] = []
    for seen, line in enumerate(lines, start=1):
        if seen <= SAMPLE:
            sample.append(line)
        elif (place := int(rng.random() * seen)) < SAMPLE:
            sample[place] = line
    return sample


def _marks_in(ids: Mapping[str, int]) -> list[int]:
    return [ids[mark] for mark in MARKS] if all(mark in ids for mark in MARKS) else []


def _by_frequency(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda piece: (-counts[piece], piece))


def _alphabet(counts: Counter[str], room: int) -> list[str]:
    """The characters that are pieces themselves, frequent ones first; the others are written as bytes."""
    characters = _by_frequency(counts)
    if len(characters) > LARGE_ALPHABET:
        wanted, kept = COVERAGE * counts.total(), 0
        while wanted > 0:
            wanted -= counts[characters[kept]]
            kept += 1
        characters = characters[:kept]
    return characters[:room]


def _train_subwords(
    sample: list[str], counts: Counter[str], kind: str, vocabulary: int, marks: Sequence[str]
) -> Subwords:
    for character in UNLEARNABLE:
        del counts[character]
    alphabet = _alphabet(counts, (vocabulary - LEARNED - len(marks)) // 2)
    # SentencePiece's own character_coverage stops at 98 %, too much for a small vocabulary of Chinese.
    bytes_only = dict.fromkeys(map(ord, (counts.keys() | UNLEARNABLE | {*marks}) - {*alphabet, " "}), BOUNDARY)
    # Seen once, and never beside anything that they could merge with.
    with_marks = [BOUNDARY.join(["", *marks, ""])] if marks else []
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=chain((line.translate(bytes_only) for line in sample), with_marks),
        model_writer=model,
        model_type=kind,
        vocab_size=vocabulary,
        hard_vocab_limit=False,  # fewer pieces if the text has no more
        character_coverage=1.0,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=4 * LONGEST,  # in bytes
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNK,
        num_threads=1,  # sums of floats depend on their order
        minloglevel=2,
    )
    return Subwords(model.getvalue())


def _require_ours(processor: SentencePieceProcessor) -> None:
    """Without the end of its file SentencePiece loads a model all the same, and then drops spaces."""
    pieces = [processor.id_to_piece(i) for i in range(min(LEARNED, len(processor)))]
    if pieces != [*SPECIAL_PIECES, *BYTE_PIECES] or processor.normalize("a  b ") != "▁a▁▁b▁":
        raise ValueError("special ids, bytes or the end of the file are missing")


def _save_pieces(kind: str, pieces: list[str], path: Path, **more: str) -> None:
    saved = {"tokenizer": kind, "pieces": pieces, **more}
    path.write_text(json.dumps(saved, ensure_ascii=False), encoding="utf-8")


def _load_pieces(path: Path) -> Characters | Words | Imported:
    saved = json.loads(path.read_text(encoding="utf-8"))
    kind, pieces = saved["tokenizer"], saved["pieces"]
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise ValueError("its pieces are not a list of strings")
    if len(set(pieces)) != len(pieces) or (kind == "characters" and max(map(len, pieces), default=1) > 1):
        raise ValueError("it has the same piece twice, or more than a character in one")
    if kind == IMPORTED:
        return Imported(base64.b64decode(saved["model"], validate=True), pieces)
    kinds: dict[str, type[Characters] | type[Words]] = {"characters": Characters, "words": Words}
    return kinds[kind](pieces)
