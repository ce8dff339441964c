"""A finished run says what its scores mean; an unfinished one does not yet."""

from pathlib import Path

import numpy as np
import pytest

from clearhead.checkpoint.manifest import read_file
from clearhead.checkpoint.model import load_model
from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.data.options import DataOptions
from clearhead.data.prepare import open_prepared, prepare
from clearhead.data.seen import SEEN, Seen, seen_pairs
from clearhead.decoding.calibration import Calibration
from clearhead.engines.native import NativeEngine
from clearhead.evaluation.calibration import SPARE
from clearhead.failpoint import FailpointError
from clearhead.options import from_dict
from clearhead.training.run import _puts_figures_into_words, read_run, repeats_itself
from clearhead.training.validation import Sample, calibrate, noisy_pairs, translator_of

from .conftest import Straight
from .toy import STEPS, Toy

pytestmark = pytest.mark.slow


def test_a_finished_model_is_calibrated_on_its_validation_pairs(straight: Straight) -> None:
    """3 pairs are decoded at each validation, five times as many at the end, which here are all."""
    model, config, _ = load_model(straight())
    settings, plan = read_run(straight())
    prepared = open_prepared(Path(plan.prepared))
    sources = [prepared.valid_source.ids[row].tolist() for row in range(len(prepared.valid_source.ids))]
    best = [found[0] for found in NativeEngine(model).translate(sources, settings.decoding)]
    seen = seen_pairs(prepared.source.ids)
    samples = [
        Sample(*texts, prepared.target_tokenizer.decode(hypothesis.tokens), hypothesis.score)
        for row, hypothesis in enumerate(best)
        for texts in [(prepared.valid_source.string(row), prepared.valid_target.string(row))]
    ]
    wanted = calibrate(samples, prepared, seen, translator_of(model, prepared, "cpu", settings.decoding, None))
    assert wanted is not None
    found = from_dict(Calibration, config["calibration"], "calibration")
    assert found.scores == pytest.approx(wanted.scores)
    assert found.confidences == pytest.approx(wanted.confidences)
    assert found.low == pytest.approx(wanted.low)
    assert found.sense == pytest.approx(wanted.sense, rel=0.01, abs=0.01)
    assert found.low_confidence == pytest.approx(wanted.low_confidence, abs=0.01)
    np.testing.assert_array_equal(Seen.from_bytes(read_file(find_model(straight()), SEEN)).table, seen.table)
    assert found.longest(6) == wanted.longest(6) == 6 + SPARE  # the toy's targets are as long as their sources


def test_noise_is_made_again_alike_and_of_all_kinds(straight: Straight) -> None:
    _, plan = read_run(straight())
    prepared = open_prepared(Path(plan.prepared))
    rows = range(len(prepared.valid_source.ids))
    samples = [Sample(prepared.valid_source.string(i), prepared.valid_target.string(i), "", 0.0) for i in rows]
    pairs = noisy_pairs(samples, prepared)
    assert pairs == noisy_pairs(samples, prepared)
    assert len(samples) / 2 < len(pairs) <= len(samples)
    assert {reference is None for _, reference in pairs} == {True, False}


def test_an_unfinished_model_is_not(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_TESTING", "1")
    monkeypatch.setenv("CLEARHEAD_FAILPOINT", f"train.step.{STEPS}:raise")
    with pytest.raises(FailpointError):
        toy.train(tmp_path / "run")
    assert "calibration" not in read_config(find_model(tmp_path / "run"))


@pytest.mark.parametrize(
    ("source", "reference", "expected"),
    [("2026-03-04", "2026年3月4日", True), ("12", "12", False), ("ten", "zehn", False), ("7 + 5", "12", False)],
)
def test_a_model_may_put_figures_into_words(source: str, reference: str, expected: bool) -> None:
    assert _puts_figures_into_words(Sample(source, reference, "", 0.0)) == expected


@pytest.mark.parametrize(("order", "repeats"), [("JUMP " * 24, True), ("JUMP LOOK", False)])
def test_targets_that_repeat_themselves_are_noticed(order: str, repeats: bool, tmp_path: Path) -> None:
    """As those of SCAN do: `jump around right thrice` is the same few steps again and again."""
    for name, line in (("cmd", "jump right {}"), ("act", order.strip() + " {}")):
        text = "".join(line.format(number % 7) + "\n" for number in range(97))
        (tmp_path / f"train.{name}").write_text(text, encoding="utf-8")
    files = [tmp_path / "train.cmd", tmp_path / "train.act"]
    options = DataOptions(tokenizer="words", max_ratio=50.0)
    prepared = prepare(files, files, options, 1, tmp_path / "cache", lambda *_: None)
    assert repeats_itself(prepared) == repeats
