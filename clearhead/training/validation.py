"""How good the model is now: loss on all validation pairs, scores and samples on translations of some of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from clearhead.data.batching import make_batch
from clearhead.data.prepare import Prepared
from clearhead.decoding import DecodingOptions, Demand
from clearhead.decoding.calibration import Calibration
from clearhead.engines.batches import batches_by_length
from clearhead.engines.native import TOKENS_PER_BATCH, NativeEngine
from clearhead.evaluation import ErrorRates, Scores, error_rates, score_translations
from clearhead.evaluation.calibration import fit_calibration, length_limit
from clearhead.model import Seq2Seq

from .distributed import Team
from .loss import batch_loss
from .options import TrainingOptions

# Pairs translated at the end, for the scores and for their calibration: so many times those of each validation, which
# keeps the cost in proportion and does not depend on the machine, but no more than are of use.
CALIBRATED, MOST_CALIBRATED = 5, 1000
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


def calibrate(samples: Sequence[Sample], prepared: Prepared) -> Calibration | None:
    """What the scores of these translations say about new ones; how long targets are is seen in the training pairs."""
    if not prepared.has_source:
        return None  # a text can go on in many ways
    scores, translations, references = zip(*((s.score, s.translation, s.reference) for s in samples), strict=True)
    limit = length_limit(prepared.source.ids.lengths, prepared.target.ids.lengths)
    return fit_calibration(scores, translations, references, limit)
