"""Every experiment that needs no training comes out as it must, and every conclusion follows its numbers."""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

import clearhead.lab
from clearhead.lab.catalogue import EXPERIMENTS
from clearhead.lab.cost import LENGTHS
from clearhead.lab.drawing import draw_all
from clearhead.lab.experiment import FAILS, HOLDS, IN_PART, VERDICTS, Experiment, Finding, Measured, Spread, Text
from clearhead.lab.learn import Lesson

EXACT = ["scale", "permutation", "rotation", "alone", "rank", "batch-norm", "reach"]


@pytest.fixture
def short_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every experiment trains for ten steps only."""
    for info in pkgutil.iter_modules(clearhead.lab.__path__):
        module = importlib.import_module(f"clearhead.lab.{info.name}")
        for name, value in list(vars(module).items()):
            if isinstance(value, Lesson):
                monkeypatch.setattr(module, name, replace(value, steps=10, warmup=1))


def every_text(finding: Finding) -> Iterator[Text]:
    yield finding.summary
    yield from finding.table.columns
    yield from (cell for row in finding.table.rows for cell in row if isinstance(cell, Text))
    yield from (plot.title for plot in finding.plots)


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in text)


@pytest.mark.parametrize("name", EXACT)
def test_what_needs_no_training_holds(name: str) -> None:
    experiment = EXPERIMENTS[name]
    assert experiment.conclude([experiment.measure(experiment.seeds[0])]).verdict == HOLDS


def test_both_ways_to_attention_are_equal() -> None:
    measured = EXPERIMENTS["product"].measure(1)
    assert measured["difference"][0] < 1e-5
    assert 3 * measured["together"][0] < measured["apart"][0]


def test_gradients_survive_with_skip_and_norm_and_die_without() -> None:
    measured = EXPERIMENTS["gradients"].measure(1)
    shares = {kind: gradients[0] / gradients[-1] for kind, gradients in measured.items()}
    assert 0.05 < shares["skip norm"] < 20
    assert shares["bare"] < 0.05
    assert shares["skip"] > 20


@pytest.mark.slow
def test_attentions_time_grows_faster_than_the_length() -> None:
    """Compared with itself: an LSTM of four times the steps takes 4 times as long on some machines, 12 on others."""
    _, _, shorter, longer = EXPERIMENTS["cost"].measure(1)["attention"]
    assert longer / shorter > 1.2 * LENGTHS[3] / LENGTHS[2]


@pytest.mark.slow
@pytest.mark.usefixtures("short_lessons")
@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_experiment_runs_concludes_and_is_drawn(experiment: Experiment) -> None:
    finding = experiment.conclude([experiment.measure(1), experiment.measure(2)])
    assert finding.verdict in VERDICTS
    assert finding.table.rows
    assert all(len(row) == len(finding.table.columns) for row in finding.table.rows)
    assert finding.plots
    for text in every_text(finding):
        assert text.en
        assert not is_chinese(text.en)
        assert text.zh
    assert is_chinese(finding.summary.zh)
    assert draw_all(finding, "en") != draw_all(finding, "zh")


@pytest.mark.slow
@pytest.mark.usefixtures("short_lessons")
@pytest.mark.parametrize("name", ["scale", "mask", "places", "query-key", "recall", "needed"])
def test_a_seed_gives_the_same_numbers_again(name: str) -> None:
    first = EXPERIMENTS[name].measure(5)
    torch.randn(7)
    if name == "needed":
        clearhead_alignment = importlib.import_module("clearhead.lab.alignment")
        clearhead_alignment._model.cache_clear()
    assert EXPERIMENTS[name].measure(5) == first
    assert EXPERIMENTS[name].measure(6) != first


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_experiment_is_told_in_both_languages(experiment: Experiment) -> None:
    for name in ("title", "claim", "source", "did", "limits"):
        text = getattr(experiment, name)
        assert text.en
        assert not is_chinese(text.en), name
        assert is_chinese(text.zh), name
    assert experiment.seeds


@pytest.mark.parametrize(
    ("name", "measured", "verdict"),
    [
        ("query-key", {"apart": [1.0], "tied": [0.7], "tied 4": [0.8]}, HOLDS),
        ("query-key", {"apart": [1.0], "tied": [0.7], "tied 4": [1.0]}, IN_PART),
        ("query-key", {"apart": [1.0], "tied": [1.0], "tied 4": [1.0]}, FAILS),
        ("why-six", {"accuracy": [0.9, 0.8, 0.7], "parameters": [1.0, 2.0, 6.0]}, FAILS),
        ("why-six", {"accuracy": [0.7, 0.8, 0.9], "parameters": [1.0, 2.0, 6.0]}, HOLDS),
        ("cost", {"lstm": [1, 2, 4, 8], "attention": [1, 3, 9, 27]}, FAILS),
        ("cost", {"lstm": [1, 2, 4, 8], "attention": [0.5, 3, 9, 27]}, IN_PART),
        ("cost", {"lstm": [1, 2, 4, 8], "attention": [0.5, 1, 2, 4]}, HOLDS),
        ("own-position", {"new": [0.14] * 4, "trained": [0.14] * 4}, FAILS),
        ("own-position", {"new": [0.4] * 4, "trained": [0.5, 0.4, 0.3, 0.2]}, HOLDS),
    ],
)
def test_the_verdict_follows_from_the_numbers(name: str, measured: Measured, verdict: str) -> None:
    assert EXPERIMENTS[name].conclude([measured, measured]).verdict == verdict


def test_the_summary_follows_from_the_numbers() -> None:
    measured: Measured = {"apart": [1.0], "tied": [0.61], "tied 4": [0.83]}
    summary = EXPERIMENTS["query-key"].conclude([measured]).summary
    for text in summary:
        assert all(share in text for share in ("100%", "61%", "83%"))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.5,), "0.50"),
        ((0.5, 0.7), "0.60 (0.50–0.70)"),
        ((0.0, 0.0), "0"),
        ((1234.0,), "1,234"),
        ((4.8e-7,), "4.8×10⁻⁷"),
    ],
)
def test_numbers_with_their_spread(values: tuple[float, ...], text: str) -> None:
    assert str(Spread(values)) == text
