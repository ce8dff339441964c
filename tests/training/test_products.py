"""What a run keeps, when it stops, and what it leaves behind: model folder, card, curve and logs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

import clearhead
from clearhead.checkpoint.model_folder import said_words
from clearhead.checkpoint.run import checkpoint_folder, steps
from clearhead.checkpoint.weights import average, read_tensors
from clearhead.data.prepare import open_prepared
from clearhead.data.tokenizer import LEARNED, SPECIALS
from clearhead.errors import MISSING, USAGE, UserError
from clearhead.failpoint import FailpointError
from clearhead.training import gradients, loop, run
from clearhead.training.report import Log, loss_curve
from clearhead.training.run import read_run
from clearhead.training.settings import from_toml, to_toml
from clearhead.training.step import backward
from clearhead.training.validation import translate_validation

from .conftest import Straight
from .toy import COMMAND, DROPOUT, STEPS, WORDS, Toy, events, losses

pytestmark = pytest.mark.slow  # many small runs of the whole

FREQUENT = ("training.validate_every=1", "training.save_every=1")


def validate_as(monkeypatch: pytest.MonkeyPatch, values: Iterator[float]) -> None:
    monkeypatch.setattr(loop, "validation_loss", lambda *_: next(values))


def state(out: Path) -> dict[str, Any]:
    return json.loads((checkpoint_folder(out, steps(out)[-1]) / "state.json").read_text())


def about(out: Path) -> dict[str, Any]:
    return json.loads((out / "model" / "config.json").read_text())["about"]


# -- which words it learns to say -------------------------------------------------------------------------------------


def test_words_of_the_source_alone_are_left_out(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one vocabulary for both sides: by smoothing in each update, by each search, and in the model folder."""
    spreads: list[torch.Tensor | None] = []
    searched: list[Any] = []

    def backward_spy(*arguments: Any) -> torch.Tensor:
        spreads.append(arguments[-2])
        return backward(*arguments)

    def search_spy(*arguments: Any) -> Any:
        searched.append(arguments[-1])
        return translate_validation(*arguments)

    monkeypatch.setattr(gradients, "backward", backward_spy)
    for module in (loop, run):
        monkeypatch.setattr(module, "translate_validation", search_spy)
    assert toy.train(tmp_path, "data.joint=true") == 0
    prepared = open_prepared(Path(read_run(tmp_path)[1].prepared))
    source, target = ({int(i) for i in side.ids.flat} for side in (prepared.source, prepared.target))
    said = said_words(json.loads((tmp_path / "model" / "config.json").read_text()))
    assert said is not None
    assert {i for i in said if i >= SPECIALS} == target | {*prepared.target_tokenizer.marks}
    assert source - target
    assert len(spreads) == STEPS
    for spread in spreads:
        assert spread is not None
        assert spread.sum() == pytest.approx(1)
        assert spread.nonzero().flatten().tolist() == said
    assert searched == [said] * len(searched)
    assert len(searched) > 2


def test_bytes_may_always_be_said(toy: Toy, tmp_path: Path) -> None:
    """Of which a character is made that no training text has."""
    assert toy.train(tmp_path, "data.joint=true", "data.tokenizer=bpe", "data.vocabulary=300") == 0
    said = said_words(json.loads((tmp_path / "model" / "config.json").read_text()))
    assert said is not None
    assert said[:LEARNED] == list(range(LEARNED))


def test_a_model_that_is_trained_on_keeps_its_words(toy: Toy, tmp_path: Path) -> None:
    """However few of them the new corpus has."""
    assert toy.train(tmp_path / "first", "data.joint=true") == 0
    assert "target" in json.loads((tmp_path / "first" / "model" / "config.json").read_text())
    other = Toy(tmp_path / "other").write(pairs=5)
    assert other.train(tmp_path / "second", init_from=tmp_path / "first", without="model data") == 0
    assert "target" not in json.loads((tmp_path / "second" / "model" / "config.json").read_text())


def test_where_words_are_broken_up_at_random_all_may_be_said(toy: Toy, tmp_path: Path) -> None:
    assert toy.train(tmp_path, *DROPOUT) == 0
    assert "target" not in json.loads((tmp_path / "model" / "config.json").read_text())


# -- when it stops, what it keeps -----------------------------------------------------------------------------------


def test_patience(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    validate_as(monkeypatch, iter([5.0, 4.0, 4.5, 4.1, 4.2, 4.3]))
    assert toy.train(tmp_path, *FREQUENT, "training.patience=3") == 0
    assert len(losses(tmp_path)) == 5
    assert state(tmp_path)["stopped_early"]
    assert "no better validation loss in 3 validations: stopping early" in (tmp_path / "run.log").read_text()
    assert toy.train(tmp_path, *FREQUENT, "training.patience=3") == 0
    assert f"already finished: 5 of {STEPS} steps" in capsys.readouterr().err
    assert len(losses(tmp_path)) == 5


def test_more_steps_after_an_early_stop_go_on(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        validate_as(patch, iter([1e-6, 2.0]))
        assert toy.train(tmp_path, *FREQUENT, "training.patience=1") == 0
        assert len(losses(tmp_path)) == 2
    assert toy.train(tmp_path, *FREQUENT, "training.patience=2", f"training.steps={STEPS + 1}") == 0
    assert len(losses(tmp_path)) == 4  # patience counts anew


def test_without_patience_it_never_stops(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validate_as(monkeypatch, iter(range(1, 100)))
    assert toy.train(tmp_path, *FREQUENT, "training.patience=0") == 0
    assert len(losses(tmp_path)) == STEPS


def test_the_best_and_the_last_checkpoints_are_kept(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {2: 1.0, 5: 1.1, 7: 1.2, 9: 1.3}
    validate_as(monkeypatch, (values.get(step, 2.0 + step) for step in range(1, 100)))
    assert toy.train(tmp_path, *FREQUENT, "training.keep_best=3", "training.average=4", "training.patience=0") == 0
    assert steps(tmp_path) == [2, 5, 7, *range(STEPS - 3, STEPS + 1)]
    whole = [step for step in steps(tmp_path) if (checkpoint_folder(tmp_path, step) / "optimizer.safetensors").exists()]
    assert whole == [STEPS - 1, STEPS]


@pytest.mark.parametrize("best_is_better", [True, False])
def test_best_or_average_whichever_validates_better(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, best_is_better: bool
) -> None:
    validate_as(monkeypatch, (1.0 if step == 3 else 2.0 for step in range(1, 100)))
    at_the_end = iter([1.0, 1.5] if best_is_better else [1.5, 1.0])
    monkeypatch.setattr(run, "validation_loss", lambda *_: next(at_the_end))
    assert toy.train(tmp_path, *FREQUENT, "training.average=3", "training.patience=0") == 0
    expected = "of step 3" if best_is_better else "the average of the last 3 checkpoints"
    assert about(tmp_path)["weights"] == expected
    assert f"The weights are {expected}." in (tmp_path / "README.md").read_text()
    used = [3] if best_is_better else [STEPS - 2, STEPS - 1, STEPS]
    wanted = average([checkpoint_folder(tmp_path, step) for step in used])
    found = read_tensors(tmp_path / "model" / "model.safetensors")
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_a_best_checkpoint_that_is_damaged_or_gone_is_done_without(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail_at: Callable[[str], None]
) -> None:
    validate_as(monkeypatch, (float(step) for step in range(1, 100)))
    fail_at("train.step.7:raise")
    with pytest.raises(FailpointError):
        toy.train(tmp_path, *FREQUENT)
    (checkpoint_folder(tmp_path, 1) / "model.safetensors").write_bytes(b"")
    fail_at("")
    assert toy.train(tmp_path, *FREQUENT) == 0
    assert "warning[E_CKPT_CORRUPT]" in (tmp_path / "run.log").read_text()
    assert about(tmp_path)["weights"] in ("of step 2", "the average of the last 2 checkpoints")


def test_agreement_begins_where_it_is_told_to(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def spy(model: Any, batches: Any, smoothing: float, tokens: int, agreement: float, *more: Any) -> torch.Tensor:
        asked.append(agreement)
        return backward(model, batches, smoothing, tokens, agreement, *more)

    monkeypatch.setattr(gradients, "backward", spy)
    assert toy.train(tmp_path, "training.agreement=3", "training.agreement_from=0.5") == 0
    assert asked == [0.0] * (STEPS // 2) + [3.0] * (STEPS // 2)
    assert "pairs read twice (R-Drop, α 3)" in (tmp_path / "run.log").read_text()


def test_the_loss_is_per_token_that_was_really_there(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subword dropout makes more tokens than the batches were counted by."""
    expected: list[float] = []

    def spy(model: Any, batches: Any, smoothing: float, tokens: int, *more: Any) -> torch.Tensor:
        loss = backward(model, batches, smoothing, tokens, *more)
        real_tokens = sum(batch.tokens for batch in batches)
        assert real_tokens > tokens
        expected.append(float(loss) * tokens / real_tokens)
        return loss

    monkeypatch.setattr(gradients, "backward", spy)
    assert toy.train(tmp_path, *DROPOUT) == 0
    assert losses(tmp_path) == pytest.approx(expected)


# -- what it leaves behind ------------------------------------------------------------------------------------------


def test_the_model_folder_translates(straight: Straight) -> None:
    translator = clearhead.load(straight())
    assert translator.languages == ("en", "de")
    assert len(translator.translate(["apfel birne", "", "zitrone"])) == 3


def test_the_curve_is_well_formed(straight: Straight) -> None:
    curve = ElementTree.parse(straight() / "loss.svg").getroot()
    assert curve.tag.endswith("svg")
    lines = [line.get("points", "").split() for line in curve.iter() if line.tag.endswith("polyline")]
    assert [len(line) for line in lines] == [STEPS, len([e for e in events(straight()) if "valid_loss" in e])]


def test_a_curve_of_nothing_and_of_gaps() -> None:
    gap: dict[str, Any] = {"step": 1, "loss": None}
    for logged in ([], [gap], [gap, {"step": 2, "loss": 2.0}]):
        text = loss_curve(logged)
        ElementTree.fromstring(text)
        assert "nan" not in text


def test_the_card_says_how_it_was_made_and_scored(straight: Straight) -> None:
    card = (straight() / "README.md").read_text(encoding="utf-8")
    assert COMMAND in card
    assert "case:mixed" in card  # sacreBLEU's signatures
    assert "tok:13a" in card
    assert "chrF" in card
    assert "en → de" in card
    assert f"{STEPS} steps" in card


def test_the_logs_hold_no_text_of_the_corpus(straight: Straight) -> None:
    for name in ("log.jsonl", "run.log", "plan.json", "run.toml", "data_report.json"):
        text = (straight() / name).read_text(encoding="utf-8").lower()
        assert text
        assert not [word for word in WORDS if word in text], name


def test_the_log_is_strict_json(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    log.write({"step": 1, "loss": float("nan"), "norm": float("inf"), "tokens": 3})
    assert log.events() == [{"step": 1, "loss": None, "norm": None, "tokens": 3}]


def test_a_log_line_that_a_kill_cut_short_is_forgotten(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    for step in (1, 2, 3):
        log.write({"step": step})
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    log.forget_after(2)
    log.write({"step": 3})
    assert [event["step"] for event in log.events()] == [1, 2, 3]


def test_run_toml_reads_back_whatever_the_names_are(straight: Straight) -> None:
    settings, _ = read_run(straight())
    odd = replace(settings, train=['a "b"\\c.en', "tab\tnewline\n.de", "\U000e0001é中.x"])
    assert from_toml(to_toml(odd, "clearhead train 'a\x1b[0m\nb'")) == odd


# -- other ways to begin --------------------------------------------------------------------------------------------


def test_minutes_fit_the_steps(toy: Toy, tmp_path: Path) -> None:
    seldom = ("training.validate_every=100", "training.save_every=100")
    assert toy.train(tmp_path, *seldom, without="training.steps", minutes=0.02) == 0
    settings, plan = read_run(tmp_path)
    assert plan.steps == settings.training.steps
    assert plan.steps >= 50
    assert len(losses(tmp_path)) == plan.steps
    assert toy.train(tmp_path, *seldom, without="training.steps", minutes=0.02) == 0
    assert len(losses(tmp_path)) == plan.steps  # finished: they are not measured again
    assert (settings.training.warmup, settings.training.validate_every) == (5, 100)  # as was said


def test_minutes_fit_the_warm_up_too_unless_it_was_said(toy: Toy, tmp_path: Path) -> None:
    assert toy.train(tmp_path, without="training.steps training.warmup training.validate", minutes=0.02) == 0
    settings, plan = read_run(tmp_path)
    assert settings.training.warmup is not None
    assert 10 <= settings.training.warmup <= plan.steps // 3


def test_init_from_keeps_the_tokenizer_and_the_weights(
    tmp_path: Path, straight: Straight, monkeypatch: pytest.MonkeyPatch, fail_at: Callable[[str], None]
) -> None:
    """And the sizes, which nobody has to say again; also when it goes on and is not told again where it began."""
    other = Toy(tmp_path / "other").write(pairs=40)
    seen: list[dict[str, torch.Tensor]] = []
    real = loop.Trainer._epoch

    def spy(trainer: loop.Trainer, last: int, bar: Any) -> None:
        seen.append({name: tensor.clone() for name, tensor in trainer.model.state_dict().items()})
        real(trainer, last, bar)

    monkeypatch.setattr(loop.Trainer, "_epoch", spy)
    out = tmp_path / "run"
    fail_at("train.step.3:raise")
    with pytest.raises(Exception, match=r"train\.step\.3"):
        other.train(out, init_from=straight(), without="model data")
    fail_at("")
    start = read_tensors(straight() / "model" / "model.safetensors")
    assert all(torch.equal(seen[0][name], tensor) for name, tensor in start.items())
    assert other.train(out, without="model data") == 0
    settings, _ = read_run(out)
    assert (settings.model.width, settings.data.tokenizer) == (16, "words")
    tokenizers = [folder / "model" / "source.json" for folder in (out, straight())]
    assert tokenizers[0].read_bytes() == tokenizers[1].read_bytes()
    whole = tmp_path / "whole"
    assert other.train(whole, init_from=straight(), without="model data") == 0
    assert losses(whole) == losses(out)


def test_init_from_a_model_of_other_sizes(toy: Toy, tmp_path: Path, straight: Straight) -> None:
    with pytest.raises(UserError, match="has other sizes than the options say") as error:
        toy.train(tmp_path, "model.width=32", init_from=straight())
    assert error.value.exit_code == USAGE


def test_init_from_nowhere(toy: Toy, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist") as error:
        toy.train(tmp_path, init_from=tmp_path / "nothing")
    assert error.value.exit_code == MISSING


def test_a_new_run_needs_data(toy: Toy, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a new run and needs --train SOURCE TARGET") as error:
        toy.train(tmp_path, train=[], valid=[])
    assert error.value.exit_code == USAGE


def test_an_unfinished_run_can_be_used(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first validation on there is a model, and it is the best so far."""
    monkeypatch.setenv("CLEARHEAD_TESTING", "1")
    monkeypatch.setenv("CLEARHEAD_FAILPOINT", f"train.step.{STEPS}:raise")
    with pytest.raises(FailpointError):
        toy.train(tmp_path / "run")
    assert about(tmp_path / "run")["of_steps"] == 0
    assert clearhead.load(tmp_path / "run").translate([""]) == [""]


def test_tensorboard_gets_the_numbers(toy: Toy, tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    toy.train(tmp_path / "run", "training.tensorboard=true")
    found = reader.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    seen = [event.value for event in found.Scalars("loss")]
    torch.testing.assert_close(torch.tensor(seen), torch.tensor(losses(tmp_path / "run")))
