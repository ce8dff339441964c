"""Search the slow way, as its definition reads, and models whose sentences end at different lengths.

V vocabulary, D width.
"""

import torch
from torch import Tensor

from clearhead.data.batching import make_batch, pad_sources
from clearhead.data.tokenizer import BOS, EOS, PAD
from clearhead.decoding import DecodingOptions, Hypothesis
from clearhead.decoding.scoring import score
from clearhead.model import ModelOptions
from clearhead.model.linear import Linear
from clearhead.model.rnn import RNN
from clearhead.model.transformer import Transformer
from tests.samples import make_model, random_ids, random_source

Model = Transformer | RNN
Ids = list[int]

# Of different lengths, one of them empty.
SOURCES: list[Ids] = [[7, 5, 13, 4, 11], [9], [16, 15, 14, 13, 12, 11, 10], [], [5, 5, 6], [8, 12], [4, 6, 8, 10]]


def eloquent_model(options: ModelOptions, seed: int = 7) -> Model:
    """A random model with peaked distributions, in which EOS is the likeliest word in a fifth of all places.

    Its output layer is its own: one that is the target embedding's makes random models stammer and never end.
    """
    model = make_model(options, seed)
    D, V = options.width, options.target_vocabulary
    with torch.no_grad():
        hidden = model(*random_source(11, 7), random_ids(11, 13) % V).flatten(0, 1)
        model.output = Linear(D, V)
        model.output.weight.normal_(std=3 / float(hidden.norm(dim=1).mean()))
        model.output.bias.zero_()
        logits = model.output(hidden)
        model.output.bias[EOS] = (logits.amax(dim=1) - logits[:, EOS]).quantile(0.2)
    return model


def next_log_probabilities(model: Model, source: Ids, tokens: Ids) -> list[float]:
    """Of every word after BOS and `tokens`: one sentence, nothing padded, nothing cached."""
    src, src_mask = pad_sources([source])
    with torch.inference_mode():
        hidden = model(src, src_mask, torch.tensor([[BOS, *tokens]]))
        return model.logits(hidden[0, -1]).log_softmax(dim=0).tolist()


def log_probability(model: Model, source: Ids, tokens: Ids) -> float:
    """Of `tokens` and EOS, by the other function that knows it."""
    (scores,) = score(model, make_batch([(source, tokens)]))
    return sum(scores)


def penalty(length: int, options: DecodingOptions) -> float:
    """`length` counts EOS."""
    if options.alpha == 0:
        return 1.0
    base = {"mean": float(length), "paper": (5.0 + length) / 6.0}[options.length_penalty]
    return pow(base, options.alpha)


def limit(source: Ids, options: DecodingOptions, prefix: Ids) -> int:
    """The most words that a target may have; a source's own end of sentence counts as a source token."""
    most = len(source) + 1 + 50 if options.max_length is None else options.max_length
    return max(most, options.min_length, len(prefix))


def repeats(tokens: Ids, n: int) -> bool:
    """Whether some n-gram occurs twice."""
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return len(set(grams)) < len(grams)


def allowed_words(source: Ids, tokens: Ids, V: int, options: DecodingOptions, prefix: Ids) -> Ids:
    """What may follow `tokens`."""
    n = options.block_ngrams
    if len(tokens) < len(prefix):
        return [prefix[len(tokens)]]
    if len(tokens) >= limit(source, options, prefix):
        return [EOS]
    words = [w for w in range(V) if w not in (PAD, BOS, EOS)]
    if n:
        # only the n-gram that the word completes is asked for: a prefix may repeat itself
        seen = {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}
        words = [w for w in words if tuple([*tokens, w][-n:]) not in seen]
    if len(tokens) >= options.min_length or not words:
        words.append(EOS)
    return words


def slow_search(model: Model, source: Ids, options: DecodingOptions, prefix: Ids | None = None) -> list[Hypothesis]:
    """Beam search for one sentence that does not ask what can still be reached."""
    prefix, W = prefix or [], options.beam
    live, finished = [(0.0, list[int]())], list[Hypothesis]()
    while live:
        continued = []
        for total, tokens in live:
            log_p = next_log_probabilities(model, source, tokens)
            words = allowed_words(source, tokens, len(log_p), options, prefix)
            continued += [(total + log_p[word], [*tokens, word]) for word in words]
        continued.sort(reverse=True)
        ended = [(total, tokens) for total, tokens in continued[:W] if tokens[-1] == EOS]
        live = [(total, tokens) for total, tokens in continued if tokens[-1] != EOS][:W]
        finished += [Hypothesis(tokens[:-1], total / penalty(len(tokens), options)) for total, tokens in ended]
        finished.sort(key=lambda hypothesis: hypothesis.score, reverse=True)
        if live and len(finished) >= W:
            total, tokens = live[0]
            if total / penalty(len(tokens), options) <= finished[W - 1].score:
                break
    return finished[: options.n_best]


def assert_same(ours: list[Hypothesis], others: list[Hypothesis]) -> None:
    """The same tokens in the same order, and the same scores but for rounding."""
    assert [h.tokens for h in ours] == [h.tokens for h in others]
    torch.testing.assert_close(scores(ours), scores(others), rtol=1e-5, atol=2e-5)


def scores(hypotheses: list[Hypothesis]) -> Tensor:
    return torch.tensor([h.score for h in hypotheses])
