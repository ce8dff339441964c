"""Alignments of both engines are the attention of the head that aligns, computed in another way, and cost no word."""

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from clearhead.checkpoint.model import Model, save_model
from clearhead.convert import alignment_head
from clearhead.convert.alignment_head import find_heads, usual_heads
from clearhead.convert.ctranslate2 import FOUND, MADE_OF, to_ctranslate2
from clearhead.data.batching import make_batch
from clearhead.data.tokenizer import SPECIALS, Words
from clearhead.decoding import DecodingOptions, Demand
from clearhead.decoding.options import AligningHeads
from clearhead.engines.ct2 import Ct2Engine
from clearhead.engines.ct2_form import ct2_form, found_heads
from clearhead.engines.native import NativeEngine, open_native
from clearhead.model.attention import attention_weights
from clearhead.model.transformer import Transformer
from tests.convert.test_ctranslate2 import EXPRESSIBLE
from tests.samples import LSTM, PAPER, SOURCE_WORDS, TARGET_WORDS, VARIANTS, cross_attention, make_model

SOURCES = [[5, 6, 7], [9], [8, 4, 11, 5, 16], [10, 12], [], [7, 7, 7]]
TARGETS = [[4, 5], [6, 7, 8, 9, 10], [11, 4, 4], [], [12], [7, 8]]
HEAD = AligningHeads(0, 1)


def some_sources(n: int, longest: int = 11) -> list[list[int]]:
    rng = random.Random(n)
    return [[rng.randrange(4, TARGET_WORDS) for _ in range(rng.randint(0, longest))] for _ in range(n)]


def save_aligned(folder: Path, options: object, heads: AligningHeads | None = HEAD, seed: int = 7) -> Model:
    """A model folder whose config.json names the head that aligns; its targets end now and then."""
    model = make_model(options, seed)  # type: ignore[arg-type]
    files = {}
    for side, size in (("source", SOURCE_WORDS), ("target", TARGET_WORDS)):
        Words([f"{side}{i}" for i in range(SPECIALS, size)]).save(folder.parent, side)
        files[f"{side}.json"] = (folder.parent / f"{side}.json").read_bytes()
    save_model(folder, model, {"alignment": heads._asdict()} if heads else {}, files)
    return model


@torch.inference_mode()
def attended(model: Transformer, heads: AligningHeads, source: list[int], target: list[int]) -> np.ndarray:
    """Step by step through the model's own parts, one sentence at a time."""
    batch = make_batch([(source, target)])
    state = model.encode(batch.src, batch.src_mask)
    product = cross_attention(model._decoder_blocks()[heads.block]).dot_product
    seen = []
    dot_product = product.forward

    def spy(*inputs: torch.Tensor) -> torch.Tensor:
        seen.append(inputs)
        return dot_product(*inputs)

    product.forward = spy  # type: ignore[assignment, method-assign]
    model.decode(batch.tgt_in, state)
    product.forward = dot_product  # type: ignore[method-assign]
    q, k, _, mask = seen[0]
    weights = attention_weights(q, k, mask, product.scale)[0]  # (H, T + 1, S + 1)
    return (weights.mean(dim=0) if heads.head is None else weights[heads.head]).numpy()


def assert_alike(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], within: float = 1e-5) -> None:
    assert [one.shape for one in ours] == [one.shape for one in theirs]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=within)
        assert a.dtype == np.float32


@pytest.mark.parametrize("heads", [None, HEAD, AligningHeads(1, 6), AligningHeads(1, None)])
@pytest.mark.parametrize("tokens", [1, 4096])
def test_native_shows_where_the_head_looked(
    tokens: int, heads: AligningHeads | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearhead.engines.native.TOKENS_PER_BATCH", tokens)
    model = make_model(PAPER)
    assert isinstance(model, Transformer)
    engine = NativeEngine(model, heads=heads)
    assert engine.aligns
    meant = heads or AligningHeads(0, None)  # the last of two blocks but one
    expected = [attended(model, meant, source, target) for source, target in zip(SOURCES, TARGETS, strict=True)]
    found = engine.align(SOURCES, TARGETS)
    assert_alike(found, expected)
    assert [one.shape for one in found] == [(len(t) + 1, len(s) + 1) for s, t in zip(SOURCES, TARGETS, strict=True)]
    assert not any(module._forward_hooks for module in model.modules())


def test_an_rnn_has_one_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = NativeEngine(make_model(LSTM))
    together = engine.align(SOURCES, TARGETS)
    monkeypatch.setattr("clearhead.engines.native.TOKENS_PER_BATCH", 1)
    assert_alike(together, engine.align(SOURCES, TARGETS))
    assert [one.shape for one in together] == [(len(t) + 1, len(s) + 1) for s, t in zip(SOURCES, TARGETS, strict=True)]
    np.testing.assert_allclose(together[2].sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("name", ["no-encoder", "lstm-no-encoder", "lstm-context"])
def test_without_attention_to_a_source_nothing_aligns(name: str) -> None:
    engine = NativeEngine(make_model(VARIANTS[name]))
    assert not engine.aligns
    (found,) = engine.translate([[5, 6]], DecodingOptions(max_length=3), [Demand(aligned=True)])
    assert found[0].alignment is None
    with pytest.raises(ValueError, match="the model does not look at its source"):
        engine.align([[5]], [[6]])


def test_a_head_that_the_model_has_not_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="alignment is head 1 of block 2, but the decoder has 2 blocks of 7 heads"):
        save_aligned(tmp_path / "model", PAPER, AligningHeads(2, 1))
    with pytest.raises(ValueError, match="alignment is head 7 of block 0, but the decoder has 2 blocks of 7 heads"):
        save_aligned(tmp_path / "model", PAPER, AligningHeads(0, 7))


@pytest.mark.slow
@pytest.mark.parametrize("heads", [HEAD, AligningHeads(1, 2)])
@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_ctranslate2_has_the_same_model_and_shows_the_same(name: str, heads: AligningHeads, tmp_path: Path) -> None:
    """Its heads are in another order, which changes no log-probability."""
    model = save_aligned(
        tmp_path / "model", replace(EXPRESSIBLE[name], source_vocabulary=SOURCE_WORDS, tied="target"), heads
    )
    to_ctranslate2(tmp_path / "model", tmp_path / "out", "float32")
    assert FOUND not in json.loads((tmp_path / "out" / MADE_OF).read_text())
    ours, theirs = NativeEngine(model, heads=heads), Ct2Engine(tmp_path / "out", workers=1)
    assert theirs.aligns
    assert_alike(theirs.align(SOURCES, TARGETS), ours.align(SOURCES, TARGETS))
    scores = ours.score(SOURCES, TARGETS)
    for one, other in zip(theirs.score(SOURCES, TARGETS), scores, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


Both = tuple[NativeEngine, Ct2Engine]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Models like trained ones, whose targets end."""
    folder = tmp_path_factory.mktemp("aligned")
    from tests.convert.variants import save_talkative

    model = save_talkative(folder / "model")
    save_model(
        folder / "named",
        model,
        {"alignment": HEAD._asdict()},
        {name: (folder / "model" / name).read_bytes() for name in ("source.json", "target.json")},
    )
    to_ctranslate2(folder / "named", folder / "ct2", "float32")
    return NativeEngine(model, heads=HEAD), Ct2Engine(folder / "ct2", workers=2)


SEARCHES = {
    "greedy": DecodingOptions(beam=1),
    "beam": DecodingOptions(beam=5, n_best=3),
    "cut": DecodingOptions(beam=3, n_best=2, max_length=2),
    "greedy-cut": DecodingOptions(beam=1, max_length=2),
    "long": DecodingOptions(beam=3, min_length=7),
    "blocked": DecodingOptions(beam=1, block_ngrams=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("engine", [0, 1])
@pytest.mark.parametrize("has_prefix", [False, True])
def test_hypotheses_come_with_their_alignment_and_are_the_same(
    name: str, engine: int, has_prefix: bool, both: Both
) -> None:
    """In a batch, where some are not aligned, and alone; whatever the search had to be asked twice."""
    sources, options = some_sources(41), SEARCHES[name]
    demands = [Demand([5, 6, 7][: i % 4] if has_prefix else [], aligned=i % 5 > 0) for i in range(41)]
    plain = both[engine].translate(sources, options, [replace(demand, aligned=False) for demand in demands])
    aligned = both[engine].translate(sources, options, demands)
    assert aligned == plain
    assert [[h.is_cut for h in some] for some in aligned] == [[h.is_cut for h in some] for some in plain]
    assert all((h.alignment is not None) == d.aligned for some, d in zip(aligned, demands, strict=True) for h in some)
    pairs = [(s, h) for s, some, d in zip(sources, aligned, demands, strict=True) if d.aligned for h in some]
    expected = both[0].align([source for source, _ in pairs], [h.tokens for _, h in pairs])
    assert_alike([h.alignment for _, h in pairs if h.alignment is not None], expected)
    for i in range(1, 41, 7):
        (alone,) = both[engine].translate([sources[i]], options, [demands[i]])
        together = [h.alignment for h in aligned[i] if h.alignment is not None]
        if [h.tokens for h in alone] == [h.tokens for h in aligned[i]]:
            assert_alike([h.alignment for h in alone if h.alignment is not None], together)


@pytest.mark.slow
def test_both_say_which_hypotheses_were_cut(both: Both) -> None:
    """As the search without a limit says: it would have gone on."""
    sources = [source for source in some_sources(97) if source]
    whole, cut = DecodingOptions(beam=1), DecodingOptions(beam=1, max_length=3)
    for engine in both:
        free = [found[0].tokens for found in engine.translate(sources, whole)]
        limited = [found[0] for found in engine.translate(sources, cut)]
        assert [h.is_cut for h in limited] == [len(tokens) > 3 for tokens in free]
        assert len({h.is_cut for h in limited}) == 2
    by_beam = [engine.translate(sources, DecodingOptions(beam=3, max_length=3)) for engine in both]
    said = [[found[0].is_cut for found in some] for some in by_beam]
    assert sum(a == b for a, b in zip(*said, strict=True)) > 0.9 * len(sources)
    assert not any(h.is_cut and len(h.tokens) < 3 for some in by_beam for found in some for h in found)


def test_phrases_and_samples_say_that_they_were_cut() -> None:
    engine = NativeEngine(make_model(PAPER))  # it hardly ever ends
    phrases = Demand(phrases=[[[5, 6]]], max_length=4)
    ((found,),) = engine.translate([[7, 8]], DecodingOptions(beam=3), [phrases])
    assert found.is_cut
    assert len(found.tokens) == 4
    (samples,) = engine.translate([[7, 8]], DecodingOptions(temperature=1.0, n_best=3, max_length=3))
    assert any(one.is_cut for one in samples)
    assert all(len(one.tokens) == 3 for one in samples if one.is_cut)


# -- models that name no head ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_a_model_that_names_no_head_one_is_looked_for_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_aligned(tmp_path / "model", PAPER, None)
    assert found_heads(tmp_path / "model") is None
    monkeypatch.setattr("clearhead.convert.ctranslate2.find_heads", lambda *_: AligningHeads(1, 3))
    form = ct2_form(tmp_path / "model", "float32")
    assert capsys.readouterr().err == (
        "clearhead: the model names no head that aligns; read from head 4 of decoder block 2\n"
    )
    assert json.loads((form / MADE_OF).read_text())[FOUND] == {"block": 1, "head": 3}
    assert ct2_form(tmp_path / "model", "float32") == form
    assert capsys.readouterr().err == ""
    assert found_heads(tmp_path / "model") == AligningHeads(1, 3)
    native = open_native(tmp_path / "model")
    assert_alike(Ct2Engine(form, workers=1).align(SOURCES, TARGETS), native.align(SOURCES, TARGETS))


@pytest.mark.slow
@pytest.mark.parametrize("planted", [AligningHeads(1, 3), AligningHeads(1, None), None])
def test_the_heads_that_follow_the_words_are_found(
    planted: AligningHeads | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links that are what one head does; random heads do nothing of the kind."""
    model = save_aligned(tmp_path / "model", PAPER, AligningHeads(0, 0))
    assert isinstance(model, Transformer)
    to_ctranslate2(tmp_path / "model", tmp_path / "out", "float32")
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    meant = planted or usual_heads(PAPER)
    probes = []
    for source, target in zip(some_sources(41), some_sources(43), strict=False):
        if source and target:
            places = attended(model, meant, source, target)[:-1, :-1].argmax(axis=1).tolist()
            pieces = [f"source{i}" for i in source], [f"target{i}" for i in target]
            probes.append(alignment_head.Probe(*pieces, list(enumerate(places))))
    monkeypatch.setattr(alignment_head, "_probes", lambda _: probes)
    assert find_heads(files, PAPER) == meant


NO_TORCH = """
import sys
from pathlib import Path
from clearhead.cli import run
code = run(["translate", sys.argv[1], sys.argv[2], "--engine", "ct2", "--json", "-o", sys.argv[3]])
assert "torch" not in sys.modules
"""


@pytest.mark.slow
def test_json_has_an_alignment_without_torch(tmp_path: Path) -> None:
    """Neither when the form has to be made, and its heads found, nor when it is there."""
    from tests.tiny_model import write_model

    folder = write_model(tmp_path / "model")
    (tmp_path / "in").write_text("abc head\nbad\n")
    for _ in range(2):
        command = [sys.executable, "-c", NO_TORCH, *map(str, (folder, tmp_path / "in", tmp_path / "out"))]
        subprocess.run(command, check=True, capture_output=True)
        first, _second = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
        assert {place for place, _ in first["alignment"]} <= {0, 1}
        assert [t for _, t in first["alignment"]] == list(range(len(first["tokens"]) - 1))
        (tmp_path / "out").unlink()
