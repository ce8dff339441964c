"""It learns: both kinds of model reverse sequences that they have never seen, without a mistake."""

import random
from time import process_time

import pytest
import torch

from clearhead.data.batching import make_batch, pad_sources
from clearhead.data.tokenizer import SPECIALS
from clearhead.decoding import DecodingOptions, search
from clearhead.model import ModelOptions, RNNOptions, TransformerOptions, build
from clearhead.training.schedule import inverse_square_root
from clearhead.training.step import make_optimizer, update

WORDS, LONGEST = 11, 7
VOCABULARY = SPECIALS + WORDS

TRANSFORMER = TransformerOptions(
    source_vocabulary=VOCABULARY,
    target_vocabulary=VOCABULARY,
    width=64,
    heads=4,
    feed_forward=128,
    encoder_blocks=2,
    decoder_blocks=2,
    dropout=0.0,
)
RNN = RNNOptions(VOCABULARY, VOCABULARY, width=64, layers=1, cell="gru", attention=True, dropout=0.0)


def random_words(rng: random.Random, shortest: int) -> tuple[int, ...]:
    """Long ones more often than short ones, since they are harder."""
    length = max(rng.randint(shortest, LONGEST), rng.randint(shortest, LONGEST))
    return tuple(rng.randrange(SPECIALS, VOCABULARY) for _ in range(length))


def share_reversed(options: ModelOptions, steps: int, seed: int) -> float:
    """How many of 199 unseen sequences are reversed exactly, after so many updates on batches of 61 others."""
    rng = random.Random(seed)
    unseen: set[tuple[int, ...]] = set()
    while len(unseen) < 199:
        unseen.add(random_words(rng, shortest=3))  # of the shorter ones there are too few to keep some back

    torch.manual_seed(seed)
    model = build(options).train()
    optimizer = make_optimizer(model)
    for step in range(1, steps + 1):
        sequences: list[tuple[int, ...]] = []
        while len(sequences) < 61:
            words = random_words(rng, shortest=1)
            if words not in unseen:
                sequences.append(words)
        batch = make_batch([(list(words), list(reversed(words))) for words in sequences])
        cooling = 1 - step / (steps + 1)  # down to nothing, for the last mistakes
        update(model, [batch], optimizer, inverse_square_root(step, peak=0.004, warmup=53) * cooling, smoothing=0.1)

    sources = [list(words) for words in sorted(unseen)]
    found = search(model.eval(), *pad_sources(sources), DecodingOptions(beam=1, max_length=LONGEST + 4))
    exact = sum(best.tokens == source[::-1] for source, (best,) in zip(sources, found, strict=True))
    return exact / len(sources)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "steps"), [(TRANSFORMER, 400), (RNN, 250)], ids=["transformer", "rnn"])
def test_it_learns_to_reverse(options: ModelOptions, steps: int) -> None:
    started = process_time()
    assert share_reversed(options, steps, seed=1) == 1.0
    assert process_time() - started < 30  # of this process alone: other tests run beside it
