"""The way through the network: every stop has the model's own numbers, in the order of the notes."""

import math
from dataclasses import replace

import pytest
import torch

from clearhead.data.batching import make_batch
from clearhead.inspection.inspect import inspect
from clearhead.inspection.record import Place, record
from clearhead.inspection.walk import walk
from clearhead.model.transformer import Transformer

from .subjects import RNN, TRANSFORMER, question, subject


def test_the_stops_are_the_models_own_numbers() -> None:
    looked_into = subject(TRANSFORMER)
    trace = inspect(looked_into, question())
    stops = walk(looked_into, trace)
    model = looked_into.model
    assert isinstance(model, Transformer)
    ids = [t.id for t in trace.source.tokens[:-1]], [t.id for t in trace.target.tokens[1:-1]]
    batch = make_batch([ids])
    S, T = len(trace.source.tokens), len(trace.target.tokens) - 1
    with torch.inference_mode():
        memory = model.read(batch.src, batch.src_mask)
        hidden = model(batch.src, batch.src_mask, batch.tgt_in)
    seen = record(model, batch)
    titles = [stop.title for stop in stops]
    assert titles[0] == "source embedded"
    assert stops[0].shape == (1, S, 14)
    softmaxes = [stop for stop in stops if stop.title == "  softmax"]
    places = [Place("encoder", i) for i in range(3)] + [
        Place(kind, i) for i in range(2) for kind in ("decoder", "cross")
    ]
    for place, stop in zip(places, softmaxes, strict=True):
        assert stop.shape == tuple(seen.looks[place].weights.shape)
        assert stop.numbers == pytest.approx(seen.looks[place].weights.flatten()[:4].tolist())
    (end,) = [stop for stop in stops if stop.title == "encoder's end"]
    assert end.numbers == pytest.approx(memory.flatten()[:4].tolist(), abs=1e-6)
    (end,) = [stop for stop in stops if stop.title == "decoder's end"]
    assert end.numbers == pytest.approx(hidden.flatten()[:4].tolist(), abs=1e-6)
    assert stops[-1].shape == (T,)
    assert stops[-1].numbers == pytest.approx([math.exp(step.logp) for step in trace.steps[:4]], abs=1e-5)
    assert titles.index("target embedded") == titles.index("encoder's end") + 1
    assert "+" in str(stops[0]) or "-" in str(stops[0])
    assert not any(module._forward_hooks for module in model.modules())


def test_rotary_positions_are_not_called_added() -> None:
    looked_into = subject(replace(TRANSFORMER, positions="rotary"))
    first = walk(looked_into, inspect(looked_into, question()))[0]
    assert "rotary positions turn queries and keys instead" in str(first)
    assert "positions" in str(walk(subject(TRANSFORMER), inspect(subject(TRANSFORMER), question()))[0])


def test_an_rnn_is_walked_through_its_first_step() -> None:
    looked_into = subject(RNN)
    stops = walk(looked_into, inspect(looked_into, question()))
    titles = [stop.title for stop in stops]
    assert titles == [
        "encoder states",
        "decoder, first step: context",
        "decoder, first step: cell 1",
        "decoder, first step: cell 2",
        "decoder, first step: output",
        "logits",
        "softmax",
        "p of the words written",
    ]
