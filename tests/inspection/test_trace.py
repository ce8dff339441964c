"""A trace is the computation of the translation that it shows, and its numbers are the model's."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from clearhead.data.batching import Batch, make_batch, pad_sources
from clearhead.data.tokenizer import EOS, UNK
from clearhead.decoding import search
from clearhead.decoding.scoring import score
from clearhead.engines.native import NativeEngine
from clearhead.errors import USAGE, UserError
from clearhead.inspection.arrays import unpacked
from clearhead.inspection.effects import occlusion, source_contributions, without_each_head
from clearhead.inspection.inspect import inspect
from clearhead.inspection.lattice import Lattice, Node
from clearhead.inspection.record import Place, attention_layers, hook_point, record
from clearhead.inspection.trace import Trace
from clearhead.model import ModelOptions
from clearhead.model.transformer import Transformer
from tests.samples import VARIANTS, make_model

from .subjects import DECODING, RNN, SIZE, TOKENIZER, TRANSFORMER, question, subject, trace_of

BOTH = pytest.mark.parametrize("options", [TRANSFORMER, RNN], ids=["transformer", "rnn"])
IDS = TOKENIZER.encode("bad cab")


def ids_of(trace: Trace) -> tuple[list[int], list[int]]:
    return [t.id for t in trace.source.tokens[:-1]], [t.id for t in trace.target.tokens[1:-1]]


@BOTH
def test_the_search_that_is_shown_is_the_engine_s(options: ModelOptions) -> None:
    """Also where some words are not said; every node of the lattice has a word of the model."""
    whole = subject(options)
    unsaid = ids_of(inspect(whole, question()))[1][0]
    said = [word for word in range(SIZE) if word != unsaid]
    shown = inspect(replace(whole, said=said), question())
    source = whole.source_tokenizer.encode(question().text)
    engine, search_options = NativeEngine(whole.model, said=said), replace(DECODING, n_best=DECODING.beam)
    (found,) = engine.translate([source], search_options, [question().demand])
    assert ids_of(shown)[1] == found[0].tokens
    assert unsaid not in found[0].tokens
    assert shown.beam is not None
    paths = {tuple(_path(shown.beam, node)) for node in shown.beam.nodes if node.state == "finished"}
    assert paths == {(*one.tokens, EOS) for one in found}


def _path(lattice: Lattice, node: Node) -> list[int]:
    return [] if node.parent is None else [*_path(lattice, lattice.nodes[node.parent]), node.id]


@BOTH
def test_the_translation_is_that_of_a_plain_search(options: ModelOptions) -> None:
    looked_into = subject(options)
    trace = inspect(looked_into, question())
    demand = question().demand
    (found,) = search(looked_into.model, *pad_sources([IDS]), DECODING, [demand])
    assert ids_of(trace) == (IDS, found[0].tokens)
    assert trace.target.text == TOKENIZER.decode(found[0].tokens)
    assert trace.beam is not None
    assert trace.beam.nodes[trace.beam.best].score == pytest.approx(found[0].score, abs=1e-5)


@BOTH
def test_the_steps_have_the_log_probabilities_of_scoring(options: ModelOptions) -> None:
    looked_into = subject(options)
    trace = inspect(looked_into, question())
    (expected,) = score(looked_into.model, make_batch([ids_of(trace)]))
    assert [step.logp for step in trace.steps] == pytest.approx(expected, abs=1e-5)
    assert [step.chosen for step in trace.steps] == [token.id for token in trace.target.tokens[1:]]
    assert sum(expected) / len(expected) == pytest.approx(trace.beam.nodes[trace.beam.best].score, abs=1e-5)  # type: ignore[union-attr]


def test_a_target_that_is_given_is_the_one_that_is_looked_at() -> None:
    trace = trace_of(target="cafe")
    assert (trace.forced, trace.target.text, trace.beam) == (True, "cafe", None)
    assert len(trace.steps) == 5


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_can_be_recorded(name: str) -> None:
    """`record` itself compares the weights it recomputes with what the fused kernel gave."""
    model = make_model(VARIANTS[name])
    seen = record(model, make_batch([([5, 6, 7, 8, 9], [10, 4, 11])]))
    for place, look in seen.looks.items():
        keys = 4 if place.kind == "decoder" else 6
        assert look.weights.shape[2:] == (6 if place.kind == "encoder" else 4, keys)
        torch.testing.assert_close(look.weights.sum(dim=-1), torch.ones_like(look.weights[..., 0]))
        if place.kind == "decoder":
            assert not look.weights.triu(diagonal=1).any()
    expected = {"no-encoder": 2, "lstm-no-encoder": 0}.get(name, 3 + 2 * 2)
    expected = {"context": 0, "attention": 1}.get(name.split("-")[-1], expected)
    assert len(seen.looks) == expected
    assert not any(module._forward_hooks for module in model.modules())


def test_weights_that_are_not_the_models_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(TRANSFORMER)
    assert isinstance(model, Transformer)
    product = model.encoder[0].attention.dot_product  # type: ignore[union-attr]
    monkeypatch.setattr(product, "forward", lambda q, k, v, mask: v * 2)  # noqa: ARG005
    with pytest.raises(ValueError, match="off the model's"):
        record(model, make_batch([([5, 6], [7])]))


def test_a_recording_of_a_batch_is_that_of_each_pair_alone() -> None:
    model = make_model(TRANSFORMER)
    pairs = [([5, 6, 7], [8, 9]), ([10], [11, 12, 13])]
    together = record(model, make_batch(pairs))
    for row, pair in enumerate(pairs):
        alone = record(model, make_batch([pair]))
        for place, look in alone.looks.items():
            Q, K = look.weights.shape[2:]
            torch.testing.assert_close(together.looks[place].weights[row, :, :Q, :K], look.weights[0])


@BOTH
def test_switching_heads_off_in_one_batch_is_switching_off_one_after_another(options: ModelOptions) -> None:
    model = make_model(options)
    batch = make_batch([([5, 6, 7, 8], [9, 10, 11])])
    heads = len(record(model, batch).looks[Place("cross", 0)].weights[0])
    whole = np.mean(score(model, batch)[0])
    for place, changes in without_each_head(model, batch, heads).items():
        point = hook_point(attention_layers(model)[place])
        assert len(changes) == heads
        for head, change in enumerate(changes):

            def silence(_: object, __: object, out: torch.Tensor, head: int = head) -> torch.Tensor:
                out = out.clone()
                out[:, head] = 0
                return out

            handle = point.register_forward_hook(silence)
            assert np.mean(score(model, batch)[0]) - whole == pytest.approx(change, abs=1e-5)
            handle.remove()


@BOTH
def test_occlusion_is_what_an_unknown_word_changes(options: ModelOptions) -> None:
    model = make_model(options)
    source, target = [5, 6, 7], [8, 9, 10, 11]
    found = occlusion(model, make_batch([(source, target)]))
    whole = np.array(score(model, make_batch([(source, target)]))[0])
    assert found.shape == (5, 4)
    for place in range(3):
        changed = [*source[:place], UNK, *source[place + 1 :]]
        other = np.array(score(model, make_batch([(changed, target)]))[0])
        np.testing.assert_allclose(found[:, place], other - whole, atol=1e-5)


def test_a_source_that_is_unknown_anyway_contributes_nothing() -> None:
    model = make_model(TRANSFORMER)

    def contributions(batch: Batch) -> list[float]:
        return source_contributions(model, batch, record(model, batch).log_p[0])

    assert contributions(make_batch([([UNK, UNK], [5, 6])])) == pytest.approx([0, 0, 0], abs=1e-6)
    assert all(0 < share <= 1 for share in contributions(make_batch([([7, 8], [5, 6])])))


@BOTH
def test_the_lattice_holds_the_beam(options: ModelOptions) -> None:
    trace = trace_of(options)
    assert trace.beam is not None
    nodes = trace.beam.nodes
    path, place = [], trace.beam.best
    while nodes[place].parent is not None:
        path.append(nodes[place].id)
        place = nodes[place].parent  # type: ignore[assignment]
    assert path[::-1] == [token.id for token in trace.target.tokens[1:]]
    for node in nodes[1:]:
        parent = nodes[node.parent]  # type: ignore[index]
        assert node.t == parent.t + 1
        assert node.sum == pytest.approx(parent.sum + node.logp)
        assert (node.state == "pruned") == (node.state != "finished" and node.n not in {n.parent for n in nodes})
    widths = [sum(node.t == t and node.state != "finished" for node in nodes) for t in range(1, 4)]
    assert widths == [3, 3, 3]


@BOTH
def test_the_json_has_the_numbers_of_the_trace(options: ModelOptions) -> None:
    trace = trace_of(options)
    data = json.loads(trace.to_json())
    assert data["format"] == "trace/1"
    for one in data["attention"]:
        weights = unpacked(one)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-12)
        exact = trace.attention[Place(one["kind"], one["layer"])]
        assert np.abs(weights - exact).max() <= data["limits"]["quantisation_max_error"]
        assert one["axes"] == ["head", "query", "key"]
        tokens = {side: len(data[side]["tokens"]) for side in ("source", "target")}
        queries, keys = tokens[one["query_tokens"]], tokens[one["key_tokens"]]
        assert weights.shape[1:] == (queries - one["query_shift"], keys - (one["kind"] == "decoder"))
    assert trace.occlusion is not None
    np.testing.assert_allclose(unpacked(data["occlusion"]), trace.occlusion, atol=1e-2)
    assert len(data["residual"]) == (3 * 2 + 2 * 3 if options is TRANSFORMER else 0)


@pytest.mark.parametrize("name", ["paper", "bias", "pre", "scale-width", "rotary", "head_width"])
def test_the_six_steps_can_be_recomputed(name: str) -> None:
    options = replace(VARIANTS[name], source_vocabulary=len(TOKENIZER), target_vocabulary=len(TOKENIZER))
    data = trace_of(options).to_dict()
    assert {detail["kind"] for detail in data["head_detail"]} == {"encoder", "decoder", "cross"}
    maps = {(one["kind"], one["layer"]): unpacked(one) for one in data["attention"]}
    for detail in data["head_detail"]:
        q, k, v, x = (unpacked(detail[letter]).astype(np.float64) for letter in ("q", "k", "v", "x"))
        memory = x if detail["memory"] is None else unpacked(detail["memory"])
        if detail["w_q"]:
            for letter, made_of, result in (("q", x, q), ("k", memory, k), ("v", memory, v)):
                bias = unpacked(detail[f"b_{letter}"]) if detail[f"b_{letter}"] else 0
                np.testing.assert_allclose(made_of @ unpacked(detail[f"w_{letter}"]).T + bias, result, atol=1e-5)
        else:
            assert name == "rotary"
        scores = q @ k.T * detail["scale"]
        if detail["mask"] == "causal":
            scores[np.triu_indices_from(scores, 1)] = -np.inf
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(weights @ v, unpacked(detail["out"]), atol=1e-5)
        np.testing.assert_allclose(weights, maps[detail["kind"], detail["layer"]][detail["head"]], atol=1 / 255)


def test_positions_are_what_is_added() -> None:
    trace = trace_of()
    assert trace.positions is not None
    assert trace.positions.table[0, 1] == 1  # cos 0
    assert trace.positions.position_norms == pytest.approx([np.sqrt(7)] * 8, rel=1e-5)
    assert trace_of(replace(TRANSFORMER, positions="rotary")).positions is None


def test_a_long_text_gives_the_reduced_form_in_time() -> None:
    looked_into = subject()
    started = time.perf_counter()
    trace = inspect(looked_into, question("ab" * 255, "ba" * 255))
    data = trace.to_dict()
    assert time.perf_counter() - started < 20  # asked: two seconds; test machines are busy
    assert data["limits"]["reduced"]
    assert "8 largest" in data["limits"]["note"]
    one = data["attention"][0]
    total = unpacked(one["weights"]).sum(axis=-1) + unpacked(one["rest"])
    np.testing.assert_allclose(total, 1, atol=1e-9)
    exact = np.take_along_axis(trace.attention[Place("encoder", 0)], unpacked(one["keys"]).astype(int), axis=-1)
    np.testing.assert_allclose(unpacked(one["weights"]), exact, atol=1 / 255)
    assert len(json.dumps(data)) < 2_000_000


@pytest.mark.parametrize(("text", "target", "found"), [("a" * 512, None, "source has 512"), ("a", "b" * 600, "600")])
def test_what_is_too_long_is_refused_with_its_length(text: str, target: str | None, found: str) -> None:
    with pytest.raises(UserError, match=found) as caught:
        inspect(subject(), question(text, target))
    assert caught.value.exit_code == USAGE


@pytest.mark.parametrize(("text", "target"), [(" ", None), ("a", "")])
def test_an_empty_side_is_refused(text: str, target: str | None) -> None:
    with pytest.raises(UserError, match="empty"):
        inspect(subject(), question(text, target))
