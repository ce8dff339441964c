"""More processes for the native engine find what one finds, and one that dies takes nothing with it."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from clearhead.checkpoint.model import load_model
from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.engines import native
from clearhead.engines.native import NativeEngine
from clearhead.engines.workers import Batches, Workers
from tests.tiny_model import write_model

pytestmark = pytest.mark.slow  # each process loads torch
OPTIONS = DecodingOptions(beam=3, n_best=2, max_length=7)
SOURCES = [[4 + (7 * i + j) % 9 for j in range(1 + i % 5)] for i in range(53)]
DEMANDS = [Demand(prefix=[5 + i % 3], aligned=i % 2 == 0) for i in range(len(SOURCES))]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NativeEngine]:
    monkeypatch.setattr(native, "TOKENS_PER_BATCH", 31)
    folder = write_model(tmp_path / "model")
    engine = NativeEngine(load_model(folder)[0], folder=folder)
    yield engine
    engine.close()


def hire(engine: NativeEngine, weights: str | None = None) -> Workers:
    assert engine._folder is not None
    engine._workers = workers = Workers(engine._folder, weights or engine.weights_sha256, 2, "float32")
    deadline = time.monotonic() + 120
    while len(workers._ready) + len(workers._lost) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return workers


def targets(found: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[hypothesis.tokens for hypothesis in some] for some in found]


def test_they_find_what_one_process_finds(engine: NativeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = engine.translate(SOURCES, OPTIONS, DEMANDS)
    hire(engine)
    monkeypatch.setattr(engine, "search", lambda *_: pytest.fail("nothing is left to do here"))
    found = engine.translate(SOURCES, OPTIONS, DEMANDS)
    assert targets(found) == targets(expected)
    scores = [[[h.score for h in some] for some in both] for both in (found, expected)]
    assert scores[0] == [pytest.approx(some) for some in scores[1]]
    for demand, some, others in zip(DEMANDS, found, expected, strict=True):
        for one, other in zip(some, others, strict=True):
            assert one.is_cut == other.is_cut
            assert (one.alignment is not None) == demand.aligned
            if one.alignment is not None and other.alignment is not None:
                assert one.alignment.dtype == np.float32
                np.testing.assert_allclose(one.alignment, other.alignment, atol=1e-6)


def test_what_a_dead_worker_had_begun_is_done_by_others(engine: NativeEngine) -> None:
    expected = engine.translate(SOURCES, OPTIONS)
    workers = hire(engine)
    workers._processes[0].kill()
    assert targets(engine.translate(SOURCES, OPTIONS)) == targets(expected)
    workers._processes[1].kill()
    assert targets(engine.translate(SOURCES, OPTIONS)) == targets(expected)
    assert not workers.are_ready


def test_workers_with_other_weights_are_not_asked(engine: NativeEngine) -> None:
    """A training run may have replaced the model since this process loaded it."""
    workers = hire(engine, weights="0" * 64)
    assert not workers.are_ready
    assert engine.translate(SOURCES[:3], OPTIONS)


@pytest.mark.parametrize(("apart", "hired"), [(1.0, True), (0.1, False)])
def test_they_are_hired_where_that_is_faster(
    engine: NativeEngine, monkeypatch: pytest.MonkeyPatch, apart: float, hired: bool
) -> None:
    monkeypatch.setattr(native, "WORTH_STARTING", 0.0)
    monkeypatch.setattr(native, "Workers", lambda *_: Never())
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    engine._speeds = {2: 1.0, 1: apart}
    engine.translate(SOURCES, OPTIONS)
    assert (engine._workers is not None) == hired


def test_short_work_hires_nobody(engine: NativeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "Workers", lambda *_: pytest.fail("not worth it"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    engine.translate(SOURCES, OPTIONS)
    assert set(engine._speeds) == {1, 2}


def test_the_first_batch_does_not_tell_the_speed(engine: NativeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is slower than all others, and more processes would be started where they gain nothing."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    engine.translate(SOURCES[:1], OPTIONS)
    assert not engine._speeds
    engine.translate(SOURCES[:1], OPTIONS)
    assert set(engine._speeds) == {2}


def test_batches_are_taken_once() -> None:
    batches = Batches([[2, 0], [1]], [[5], [6, 7], [8, 9, 10]], OPTIONS, None)
    assert batches.tokens_left() == 9
    assert batches.take() == [2, 0]
    batches.put_back([2, 0])
    assert [batches.take(), batches.take(), batches.take()] == [[2, 0], [1], None]


class Never:
    are_ready = False

    def close(self) -> None:
        pass
