"""The score of a given target against the model's logits, gathered by hand."""

from itertools import product
from math import exp

import pytest
import torch

from clearhead.data.batching import make_batch
from clearhead.data.tokenizer import BOS, EOS, PAD, UNK
from clearhead.decoding.scoring import score
from clearhead.model import ModelOptions
from tests.decoding.reference import SOURCES, Ids, eloquent_model, next_log_probabilities
from tests.samples import TARGET_WORDS, VARIANTS

TARGETS: list[Ids] = [[4], [], [16, 3, 5, 7, 9, 11, 13], [5, 5], [8, 6, 4], [12, 13, 14, 15], [7, 7, 7, 7, 7]]
PAIRS = list(zip(SOURCES, TARGETS, strict=True))

each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
some_variants = pytest.mark.parametrize(
    "variant", [VARIANTS["paper"], VARIANTS["lstm-attention"]], ids=["paper", "lstm-attention"]
)


@each_variant
def test_scores_are_log_probabilities_of_the_target(variant: ModelOptions) -> None:
    """Read off the logits of each pair alone, so that nothing is padded; batched or not makes no difference."""
    model = eloquent_model(variant)
    for (source, target), scores in zip(PAIRS, score(model, make_batch(PAIRS)), strict=True):
        src, tgt = torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]])
        with torch.inference_mode():
            log_p = model.logits(model(src, torch.ones_like(src, dtype=torch.bool), tgt)).log_softmax(dim=2)
        expected = [log_p[0, t, word] for t, word in enumerate([*target, EOS])]
        torch.testing.assert_close(torch.tensor(scores), torch.stack(expected), rtol=1e-4, atol=1e-5)


@some_variants
def test_the_first_word_s_probabilities_sum_to_one(variant: ModelOptions) -> None:
    """But for PAD and BOS, which the model can name and no target can hold."""
    model, source = eloquent_model(variant), SOURCES[0]
    targets: list[Ids] = [[], *[[word] for word in range(UNK, TARGET_WORDS)]]
    first = [exp(scores[0]) for scores in score(model, make_batch([(source, target) for target in targets]))]
    never = next_log_probabilities(model, source, [])
    assert sum(first) == pytest.approx(1 - exp(never[PAD]) - exp(never[BOS]), abs=1e-5)


@some_variants
def test_targets_of_all_lengths_share_one_probability(variant: ModelOptions) -> None:
    model, source = eloquent_model(variant), SOURCES[0]
    words = range(UNK, TARGET_WORDS)
    total = 0.0
    for length in range(3):
        pairs = [(source, list(target)) for target in product(words, repeat=length)]
        of_this_length = sum(exp(sum(scores)) for scores in score(model, make_batch(pairs)))
        assert 0 < of_this_length < 1
        total += of_this_length
    assert total < 1
