"""Which heads of a model follow the words, where nobody has said so: asked of CTranslate2, without torch or a corpus.

What a target word is the translation of can be seen without looking at any attention: put another word in its place,
and the target becomes unlikely there (prediction difference, Li et al. 2019). Sources are made of the model's own
words and translated by the model itself; the heads whose attention says the same most often are taken.

Words in no order are no text, so a difference must be large to mean something. On two models of Clearhead's (4 blocks
of 4 heads) the mean of the last block but one was taken; of one a word alignment of test sentences finds it best, too.

S source tokens, T target tokens.
"""

import json
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from clearhead.data.tokenizer import BYTE_PIECES, SPECIAL_PIECES
from clearhead.decoding.options import AligningHeads
from clearhead.model.options import TransformerOptions

if TYPE_CHECKING:
    import numpy as np

SENTENCES = 48
WORDS = 7  # of a sentence
FREQUENT = 1_000  # words come from the first so many; learned vocabularies begin with the frequent
OTHERS = 2  # words that are put in the place of each
CLEAR = 1.0  # less log-probability than with any other word replaced: a link
MARGIN = 0.1  # of the links; unless others follow so many more of them, the last block but one is taken
LAYER, HEADS = b"decoder/alignment_layer", b"decoder/alignment_heads"  # in model.bin


class Probe(NamedTuple):
    """A sentence, what the model makes of it, and places of target tokens with those that they stand for."""

    source: list[str]
    target: list[str]
    links: list[tuple[int, int]]


def usual_heads(options: TransformerOptions) -> AligningHeads:
    """The heads of the last decoder block but one follow the words best when averaged (Garg et al. 2019)."""
    return AligningHeads(max(0, options.decoder_blocks - 2), None)


def find_heads(files: dict[str, bytes], options: TransformerOptions) -> AligningHeads:
    """Of the model in these files: a block of the decoder, or one head of the better blocks."""
    usual = usual_heads(options)
    probes = _probes(files)
    blocks = {
        AligningHeads(block, None): _share(probes, _attention(files, block, options.heads, probes))
        for block in range(options.decoder_blocks)
    }
    best = max(blocks, key=lambda heads: blocks[heads])
    shares = dict(blocks)
    for block in {usual.block, best.block}:
        before: list[np.ndarray] = []  # CTranslate2 gives the mean of the first heads: one head is a difference
        for count in range(1, options.heads + 1):
            sums = [count * mean for mean in _attention(files, block, count, probes)]
            own = [b - a for a, b in zip(before, sums, strict=True)] if before else sums
            shares[AligningHeads(block, count - 1)] = _share(probes, own)
            before = sums
    best = max(shares, key=lambda heads: shares[heads])
    return best if shares[best] > shares[usual] + MARGIN else usual


def _open(files: dict[str, bytes]) -> Any:
    import ctranslate2  # type: ignore[import-untyped]

    return ctranslate2.Translator("model", device="cpu", inter_threads=1, intra_threads=1, files=files)


def _probes(files: dict[str, bytes]) -> list[Probe]:
    import numpy as np

    translator, words, rng = _open(files), _words(files), random.Random(1)
    sources = [[rng.choice(words) for _ in range(WORDS)] for _ in range(SENTENCES)]
    found = translator.translate_batch(sources, beam_size=1, max_decoding_length=3 * WORDS)
    targets = [result.hypotheses[0] for result in found]
    changed = [
        [*source[:place], rng.choice(words), *source[place + 1 :]]
        for source in sources
        for place in range(WORDS)
        for _ in range(OTHERS)
    ]
    wanted = [target for target in targets for _ in range(WORDS * OTHERS)]
    scores = [result.log_probs for result in translator.score_batch([*sources, *changed], [*targets, *wanted])]
    probes = []
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        start = SENTENCES + i * WORDS * OTHERS
        changes = np.array(scores[start : start + WORDS * OTHERS]).reshape(WORDS, OTHERS, -1)
        losses = np.array(scores[i]) - changes.mean(axis=1)  # (S, T + 1)
        first, second = np.sort(losses, axis=0)[[-1, -2]]
        is_clear = first - np.maximum(second, 0) > CLEAR
        probes.append(
            Probe(source, target, [(t, int(losses[:, t].argmax())) for t in np.flatnonzero(is_clear[:-1]).tolist()])
        )
    return probes


def _words(files: dict[str, bytes]) -> list[str]:
    """Frequent ones; whole words where pieces say which are (a blank in front is written ▁)."""
    shared = "shared_vocabulary.json"
    pieces = json.loads(files[shared if shared in files else "source_vocabulary.json"])
    special = {*SPECIAL_PIECES, *BYTE_PIECES}
    words = [piece for piece in pieces if piece not in special]
    whole = [word for word in words if word.startswith("\u2581") and len(word) > 2]
    return (whole or words or pieces)[:FREQUENT]


def _attention(files: dict[str, bytes], block: int, heads: int, probes: Sequence[Probe]) -> list["np.ndarray"]:
    """The mean attention of the first so many heads of a block, (T, S) for each probe."""
    import numpy as np

    model = bytearray(files["model.bin"])
    for name, value in ((LAYER, block), (HEADS, heads)):
        start = model.index(name + b"\0") + len(name) + 7  # one byte each for its end, rank and type, four for the size
        model[start : start + 2] = value.to_bytes(2, "little")
    results = _open({**files, "model.bin": bytes(model)}).translate_batch(
        [probe.source for probe in probes],
        [probe.target for probe in probes],
        beam_size=1,
        max_decoding_length=3 * WORDS,
        return_attention=True,
    )
    return [np.array(result.attention[0]) for result in results]


def _share(probes: Sequence[Probe], attention: Sequence["np.ndarray"]) -> float:
    """Of all links those that the attention follows."""
    follows = [int(one[t].argmax()) == s for probe, one in zip(probes, attention, strict=True) for t, s in probe.links]
    return sum(follows) / max(1, len(follows))
