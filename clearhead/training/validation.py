"""How good the model is now: loss on all validation pairs, scores and samples on translations of some of them."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from clearhead.data.batching import make_batch
from clearhead.data.lines import Lines
from clearhead.data.noise import kinds, noisy
from clearhead.data.prepare import Prepared
from clearhead.data.seen import Seen
from clearhead.data.tokenizer import LEARNED, SPACE
from clearhead.decoding import DecodingOptions, Demand
from clearhead.decoding.calibration import Calibration
from clearhead.engines.batches import batches_by_length
from clearhead.engines.native import TOKENS_PER_BATCH, NativeEngine
from clearhead.evaluation import ErrorRates, Scores, error_rates, score_translations
from clearhead.evaluation.calibration import Judged, fit_calibration, fit_confidence, length_limit
from clearhead.model import Seq2Seq
from clearhead.translator.casing import as_read

from .distributed import Team
from .loss import batch_loss
from .options import TrainingOptions

# Pairs translated at the end, for the scores and for their calibration: so many times those of each validation, which
# keeps the cost in proportion and does not depend on the machine, but no more than are of use.
CALIBRATED, MOST_CALIBRATED = 5, 1000
VOCABULARY_TEXTS = 5000  # training sources that noise takes its words from
NOISE_SEED = 29
NOISES = ("typos", "marks", "another_domain", "nonsense", "nonsense", "another_language")
JOINED = 2, 4  # sentences that are one source
LONG = 0.9  # the share of training sources that are no longer than a long one
NO_SPACES = ("zh", "ja", "th", "lo", "km", "my", "lzh", "wuu", "yue")  # languages that have none between sentences
SPARE = 10  # tokens that a transcript may have more than the longest one that is trained on
MOST_GIVEN = 24  # tokens of a text that is to be continued


@dataclass(frozen=True)
class Sample:
    source: str  # or the beginning of a text that was to be continued
    reference: str
    translation: str
    score: float  # the model's own


@dataclass(frozen=True)
class Verdict:
    """What one validation found."""

    loss: float  # per target token, without smoothing
    scores: Scores | ErrorRates
    samples: list[Sample]


@torch.inference_mode()
def validation_loss(model: Seq2Seq, prepared: Prepared, team: Team, device: str) -> float:
    """The mean over all target tokens; each process takes its share of the pairs."""
    source, target = prepared.valid_source, prepared.valid_target
    mine = range(team.rank, len(source.ids), team.size)
    total = torch.zeros(2, dtype=torch.float64)
    lengths = [max(len(source.ids[row]), len(target.ids[row])) for row in mine]
    for places in batches_by_length(lengths, TOKENS_PER_BATCH):
        rows = [mine[place] for place in places]
        batch = make_batch([(source.item(row), target.tokens(row)) for row in rows]).to(device)
        total += torch.tensor([float(batch_loss(model, batch, 0.0, 1)), batch.tokens], dtype=torch.float64)
    team.add_up(total)
    return float(total[0] / total[1])


def translated_at_the_end(options: TrainingOptions) -> int:
    """Validation pairs, if there are so many."""
    return min(CALIBRATED * max(options.decode_pairs, 1), MOST_CALIBRATED)


def translate_validation(
    model: Seq2Seq,
    prepared: Prepared,
    team: Team,
    device: str,
    options: DecodingOptions,
    pairs: int,
    said: Sequence[int] | None = None,
) -> tuple[Scores | ErrorRates, list[Sample]]:
    """Scores of the translations of `pairs` pairs from all over the set, and those translations in words `said`."""
    count = len(prepared.valid_source.ids)
    wanted = [i * count // min(pairs, count) for i in range(min(pairs, count))]
    mine = wanted[team.rank :: team.size]
    sources = [prepared.valid_source.item(i) for i in mine]
    beginnings = [_beginning(prepared, i) for i in mine]
    longest = int(prepared.target.ids.lengths.max()) + SPARE if prepared.source.scale else None
    demands = [Demand(prefix=ids, max_length=longest) for ids in beginnings]
    found = NativeEngine(model, device, said=said).translate(sources, options, demands)
    best = [
        (prepared.target_tokenizer.decode(hypotheses[0].tokens[len(ids) :]), hypotheses[0].score)
        for ids, hypotheses in zip(beginnings, found, strict=True)
    ]
    shares = team.gather(best)
    samples = [Sample(*_asked(prepared, row), *shares[i % team.size][i // team.size]) for i, row in enumerate(wanted)]
    translations, references = [s.translation for s in samples], [s.reference for s in samples]
    if prepared.source.scale:
        return error_rates(translations, references), samples
    return score_translations(translations, references, prepared.facts["languages"][1]), samples


def translator_of(
    model: Seq2Seq, prepared: Prepared, device: str, options: DecodingOptions, said: Sequence[int] | None
) -> Callable[[list[str]], list[tuple[str, float]]]:
    """Texts to their best translations and scores, of a length that the model knows: noise is endless."""

    def translate(texts: list[str]) -> list[tuple[str, float]]:
        factor, offset = length_limit(prepared.source.ids.lengths, prepared.target.ids.lengths)
        longest = JOINED[1] * _long(prepared)
        sources = [ids[:longest] for ids in prepared.source_tokenizer.encode_many(texts)]
        demands = [Demand(max_length=int(factor * len(source) + offset)) for source in sources]
        found = NativeEngine(model, device, said=said).translate(sources, options, demands)
        return [(prepared.target_tokenizer.decode(best.tokens), best.score) for best, *_ in found]

    return translate


def _beginning(prepared: Prepared, row: int) -> list[int]:
    """Of a text without a source its first third, at most so many tokens; a translation has to find its own."""
    ids = prepared.valid_target.tokens(row)
    return [] if prepared.has_source else ids[: min(MOST_GIVEN, len(ids) // 3)]


def _asked(prepared: Prepared, row: int) -> tuple[str, str]:
    """What the model is given, and what would be right."""
    if prepared.has_source:
        return prepared.valid_source.string(row), prepared.valid_target.string(row)
    given, decode = _beginning(prepared, row), prepared.target_tokenizer.decode
    return decode(given), decode(prepared.valid_target.tokens(row)[len(given) :])


def calibrate(
    samples: Sequence[Sample],
    prepared: Prepared,
    seen: Seen | None,
    translate: Callable[[list[str]], list[tuple[str, float]]],
) -> Calibration | None:
    """What the scores of these translations say about new ones; how long targets are is seen in the training pairs.

    As many sources again are translated, which are noisy: `translate` gives the text and the score of each.
    """
    if not prepared.has_source:
        return None  # a text can go on in many ways
    limit = length_limit(prepared.source.ids.lengths, prepared.target.ids.lengths)
    if seen is None:  # sources are no text
        scores, translations, references = zip(*((s.score, s.translation, s.reference) for s in samples), strict=True)
        return fit_calibration(scores, translations, references, limit)
    tokenizer, language = prepared.source_tokenizer, prepared.facts["languages"][0]
    lines = Lines(**prepared.facts["lines"]) if prepared.facts.get("lines") else None
    encode = tokenizer.encode
    asked = [
        (as_read(source, language, tokenizer, lines).text, reference)
        for source, reference in noisy_pairs(samples, prepared)
    ]
    found = translate([source for source, _ in asked])
    noise = [
        Judged(score, text, reference, seen.familiarity(encode(source)))
        for (source, reference), (text, score) in zip(asked, found, strict=True)
    ]
    clean = [Judged(s.score, s.translation, s.reference, seen.familiarity(encode(s.source))) for s in samples]
    return fit_confidence(clean, noise, limit)


def noisy_pairs(samples: Sequence[Sample], prepared: Prepared) -> list[tuple[str, str | None]]:
    """As many as there are samples: sources made of theirs, with the references that are still right.

    Targets are texts in another language too; and several sources in one are longer than what was trained on. Of
    nonsense there is twice as much as of each other kind, as it has most kinds itself; capitals are left out, as a
    translator lowers them; and so is a source that noise leaves as it was.
    """
    step = max(1, len(prepared) // VOCABULARY_TEXTS)
    texts = [prepared.source.string(row) for row in range(0, len(prepared), step)]
    tokenizer = prepared.source_tokenizer
    pieces = tokenizer.pieces(list(range(min(LEARNED, len(tokenizer) - 1), len(tokenizer))))
    marks = set(tokenizer.pieces(tokenizer.marks))
    pieces = [piece.replace(SPACE, " ") for piece in pieces if piece not in marks]
    noises = kinds(texts, prepared.facts["languages"][0], pieces)
    turns = [noises[name] for name in NOISES]
    space = "" if prepared.facts["languages"][1].split("-")[0] in NO_SPACES else " "
    pairs: list[tuple[str, str | None]] = []
    for place, sample in enumerate(samples):
        which = place % (len(turns) + 2)
        if which < len(turns):
            source = noisy(sample.source, turns[which], NOISE_SEED, 0, place)
            pairs.append((source, sample.reference if turns[which].keeps_target else None))
        elif which == len(turns):
            pairs.append((sample.reference, None))
        else:
            some = samples[place : place + random.Random(place).randint(*JOINED)]
            pairs.append((" ".join(one.source for one in some), space.join(one.reference for one in some)))
    long = _long(prepared)
    pairs = [(_shortened(a, prepared, long) if b is None else a, b) for a, b in pairs]
    return [
        (source, reference)
        for (source, reference), sample in zip(pairs, samples, strict=True)
        if source.strip() and source != sample.source
    ]


def _long(prepared: Prepared) -> int:
    """Tokens of a long training source."""
    return int(np.quantile(prepared.source.ids.lengths, LONG, method="higher"))


def _shortened(text: str, prepared: Prepared, longest: int) -> str:
    """About as many tokens: letters that were never seen take several each, and searches of such texts are long."""
    tokens = len(prepared.source_tokenizer.encode(text))
    return text if tokens <= longest else text[: max(1, len(text) * longest // tokens)]
