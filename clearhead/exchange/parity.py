"""Whether two sides translate alike: how they cut a sample into pieces, what greedy search says, and how sure it is.

Pieces are compared by name, since the same piece has another id on the other side.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Protocol
from unicodedata import normalize

from clearhead.data.tokenizer import LEARNED, SPACE, SPECIAL_PIECES, SPECIALS, UNK, Subwords, Tokenizer
from clearhead.decoding import DecodingOptions
from clearhead.engines import Engine
from clearhead.errors import DAMAGED, UserError

SENTENCES = (
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog, but the dog doesn't mind.",
    "Wie spät ist es? Es ist halb zwölf; naïve Gäste gehen schon.",
    "我们明天去北京看朋友。",
    "On 24 December 2024 it cost 3,141.59 € (about 50 %).",
    "a",
)
PIECE_TEXTS = 10  # texts of the model's own pieces
PIECES = 12  # at most, in each of them
AT_ONCE = 8  # texts
LONGEST = 24  # tokens of a translation, EOS not counted
GREEDY = DecodingOptions(beam=1, max_length=LONGEST)
EXACT = 1e-3  # of a log-probability, between two computations in float32
QUANTIZED = 0.5  # of the mean of all log-probabilities, between float32 and fewer bits


class Side(Protocol):
    """One of two that are to translate alike."""

    name: str

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """The pieces of each source."""
        ...

    def translate(self, texts: Sequence[str]) -> list[tuple[list[str], str]]:
        """What greedy search says, as pieces and as text."""
        ...

    def score(self, texts: Sequence[str], targets: Sequence[list[str]]) -> list[list[float]]:
        """The log-probability of each piece of each target, EOS last."""
        ...


class Ours:
    """An engine of ours with the tokenizers of its model."""

    def __init__(self, name: str, engine: Engine, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        self.name, self.engine = name, engine
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer
        ids = range(SPECIALS, len(target_tokenizer))
        self._ids = dict(zip(target_tokenizer.pieces(list(ids)), ids, strict=True))

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        return [self.source_tokenizer.pieces(ids) for ids in self.source_tokenizer.encode_many(texts)]

    def translate(self, texts: Sequence[str]) -> list[tuple[list[str], str]]:
        found = self.engine.translate(self.source_tokenizer.encode_many(texts), GREEDY)
        best = [hypotheses[0].tokens for hypotheses in found]
        return [(self.target_tokenizer.pieces(ids), self.target_tokenizer.decode(ids)) for ids in best]

    def score(self, texts: Sequence[str], targets: Sequence[list[str]]) -> list[list[float]]:
        ids = [[self._ids.get(piece, UNK) for piece in target] for target in targets]
        return self.engine.score(self.source_tokenizer.encode_many(texts), ids)


def sample(side: Ours) -> list[tuple[str, list[str]]]:
    """A few sentences and texts of the model's own pieces, each with some pieces as a target; always the same ones."""
    rng = random.Random(1)
    texts = list(SENTENCES)
    while len(texts) < len(SENTENCES) + PIECE_TEXTS:
        ids = _some_ids(side.source_tokenizer, rng)
        text = _plain(normalize("NFC", side.source_tokenizer.decode(ids)))
        texts.append(text.lstrip(">") or "b")  # >> begins a language code
    return [(text, side.target_tokenizer.pieces(_some_ids(side.target_tokenizer, rng))) for text in texts]


def _some_ids(tokenizer: Tokenizer, rng: random.Random) -> list[int]:
    first = LEARNED if isinstance(tokenizer, Subwords) else SPECIALS
    return [rng.randrange(first, len(tokenizer)) for _ in range(rng.randint(1, PIECES))]


def check(one: Side, other: Side, pairs: Sequence[tuple[str, list[str]]], seen: Callable[[int], None]) -> None:
    """A UserError names the first text of which the two think differently, and what each said."""
    for start in range(0, len(pairs), AT_ONCE):
        texts, given = map(list, zip(*pairs[start : start + AT_ONCE], strict=True))
        _check_pieces(one, other, texts)
        _check_scores(one, other, texts, _check_translations(one, other, texts))
        _check_scores(one, other, texts, given)
        seen(start + len(texts))


def check_loosely(one: Side, other: Side, texts: Sequence[str]) -> None:
    """A UserError if `other`, which computes with fewer bits, is much more or less sure of what `one` says."""
    targets = [target for target, _ in one.translate(texts)]
    both = zip(one.score(texts, targets), other.score(texts, targets), strict=True)
    differences = [abs(a - b) for scores, others in both for a, b in zip(scores, others, strict=True)]
    mean = sum(differences) / len(differences)
    if not mean <= QUANTIZED:
        raise UserError(
            "PARITY",
            f"{other.name} gives the sample's tokens log-probabilities that differ from those of {one.name} by "
            f"{mean:.2g} on average; expected at most {QUANTIZED}. Next: --quantization float32",
            DAMAGED,
        )


def _check_pieces(one: Side, other: Side, texts: list[str]) -> None:
    for text, mine, others in zip(texts, one.cut(texts), other.cut(texts), strict=True):
        if mine != others:
            raise _difference(text, "is cut into", {one.name: " ".join(mine), other.name: " ".join(others)})


def _check_translations(one: Side, other: Side, texts: list[str]) -> list[list[str]]:
    """The pieces of what `one` said."""
    mine, others = one.translate(texts), other.translate(texts)
    for text, (target, said), (other_target, other_said) in zip(texts, mine, others, strict=True):
        if target != other_target:
            if not _is_tie(one, text, target, other_target):
                raise _difference(text, "becomes", {one.name: said, other.name: other_said})
        elif SPECIAL_PIECES[UNK] not in target and _plain(said) != _plain(other_said):  # UNK is shown in several ways
            raise _difference(text, "reads", {one.name: said, other.name: other_said})
    return [target for target, _ in mine]


def _check_scores(one: Side, other: Side, texts: list[str], targets: list[list[str]]) -> None:
    both = one.score(texts, targets), other.score(texts, targets)
    for text, target, mine, others in zip(texts, targets, *both, strict=True):
        if not all(abs(a - b) <= EXACT for a, b in zip(mine, others, strict=True)):  # NaN is never close
            shown = {one.name: _rounded(mine), other.name: _rounded(others)}
            raise _difference(text, f"has for {' '.join(target)!r} the log-probabilities", shown)


def _is_tie(side: Side, text: str, target: list[str], other: list[str]) -> bool:
    """Whether the first piece in which two targets differ is as likely in both: then rounding has decided."""
    place = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(target, other, strict=False)))
    mine, others = side.score([text, text], [target, other])
    return abs(mine[place] - others[place]) <= EXACT


def _plain(text: str) -> str:
    """Hugging Face has neither white space at the ends nor ▁."""
    return text.replace(SPACE, " ").strip()


def _rounded(scores: list[float]) -> str:
    return " ".join(f"{score:.4f}" for score in scores)


def _difference(text: str, what: str, said: Mapping[str, str]) -> UserError:
    """`said` has for each side what it made of the text."""
    each = " and ".join(f"{answer!r} in {name}" for name, answer in said.items())
    message = (
        f"the two sides disagree, so nothing was written: {text!r} {what} {each}; expected the same in both. "
        "Please report it with the output of 'clearhead --version'"
    )
    return UserError("PARITY", message, DAMAGED)
