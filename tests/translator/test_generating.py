"""A model without a source: trained on plain text by options alone, continued, scored and evaluated."""

import io
import itertools
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.cli import run
from clearhead.config import Flags, make_request
from clearhead.data.corpus import Report
from clearhead.data.options import DataOptions
from clearhead.data.texts import read_texts
from clearhead.errors import BAD_DATA, OK, USAGE, UserError, exit_code_of
from clearhead.evaluation.perplexity import surprise
from clearhead.training.run import train
from clearhead.translator import load
from clearhead.translator.generating import Wishes, generate, load_generator, mean_log_probability, write
from tests.tiny_model import SEARCHED, write_generator, write_model

pytestmark = pytest.mark.slow

SETS = [
    "task=generate", "data.tokenizer=characters", "model.width=32", "model.dropout=0", "training.steps=110",
    "training.tokens_per_batch=512", "training.peak_rate=0.01", "training.warmup=11", "training.label_smoothing=0",
    "training.processes=1", "training.threads=1", "training.decode_pairs=3", "training.precision=float32",
]  # fmt: skip
TRANSFORMER = ["training.steps=331", "model.heads=2", "model.feed_forward=64", "model.decoder_blocks=2"]
RNN = ["preset=rnn", "model.layers=1"]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines that count: whoever has read a few knows how they go on."""
    path = tmp_path_factory.mktemp("text") / "counting.txt"
    lines = [f"{chr(97 + i % 7)}{chr(97 + (i + 1) % 7)}{chr(97 + (i + 2) % 7)}" for i in range(4000)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=[TRANSFORMER, RNN], ids=["transformer", "rnn"])
def folder(request: pytest.FixtureRequest, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    assert train(make_request(None, Flags([text]), [*SETS, *request.param]), out) == 0
    return out


@pytest.fixture
def clearhead(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = exit_code_of(lambda: run(list(arguments)))
        return (code, *capsys.readouterr())

    return call


def test_it_has_learned_how_the_text_goes_on(folder: Path) -> None:
    translator = load_generator(folder)
    (best,) = generate(translator, "abc\nbcd\ncd", Wishes(9, temperature=0))[0]
    assert best.text.startswith("abc\nbcd\ncde\ndef\nefg")


def test_what_is_generated_begins_with_the_prompt_and_is_reproducible(folder: Path, clearhead: Command) -> None:
    code, out, _ = clearhead("generate", str(folder), "abc\n", "--length", "7", "--samples", "3", "--json")
    assert code == OK
    texts = [json.loads(line) for line in out.rstrip("\n").split("\n")]
    assert len(texts) == 3
    assert all(one["text"].startswith("abc\n") and one["score"] <= 0 for one in texts)
    assert clearhead("generate", str(folder), "abc\n", "--length", "7", "--samples", "3", "--json")[1] == out


WAYS = [Wishes(13, temperature=0), Wishes(13, seed=3), Wishes(13, temperature=1.5, top_k=3), Wishes(7, beam=3)]


@pytest.mark.parametrize("wishes", WAYS)
def test_what_is_written_step_by_step_is_what_is_generated_at_once(folder: Path, wishes: Wishes) -> None:
    translator = load_generator(folder)
    steps = list(write(translator, "abc\nb", wishes))
    (whole,) = generate(translator, "abc\nb", wishes)[0]
    assert steps[-1].text == whole.text
    assert steps[-1].given == "abc\nb"
    assert all(after.text.startswith(before.text) for before, after in itertools.pairwise(steps))
    assert len(steps) == 1 if wishes.beam else len(steps) > 3
    assert mean_log_probability(translator, steps[-1]) == pytest.approx(whole.score, abs=SEARCHED)


@pytest.mark.parametrize("wishes", WAYS)
def test_writing_can_be_stopped_between_its_steps(folder: Path, wishes: Wishes) -> None:
    class StopError(Exception):
        pass

    calls = 0

    def between() -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise StopError

    with pytest.raises(StopError):
        list(write(load_generator(folder), "abc\nb", wishes, between))
    assert calls == 5


class Terminal(io.StringIO):
    """Knows what stood there whenever it was flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.seen.append(self.getvalue())


def test_on_a_terminal_words_appear_as_they_are_chosen_and_in_a_pipe_all_at_once(
    folder: Path, clearhead: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["generate", str(folder), "abc\n", "--length", "11"]
    code, piped, _ = clearhead(*command)
    assert (code, piped.startswith("abc\n")) == (OK, True)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert run(command) == OK
    assert terminal.getvalue() == piped
    seen = list(dict.fromkeys(terminal.seen))
    assert len(seen) > 3
    assert all(piped.startswith(one) for one in seen)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert run([*command, "--beam", "3"]) == OK
    assert len(set(terminal.seen) - {terminal.getvalue()}) == 1  # all of it, then the end of the line


def test_perplexity_is_that_of_the_scores(folder: Path, text: Path, clearhead: Command) -> None:
    found = surprise(folder, [text])
    translator = load(folder, engine="native")
    texts = read_texts([text], Report(), DataOptions(tokenizer="characters"))
    targets = [translator.target_tokenizer.encode(pair.target) for pair in texts]
    scores = [p for row in translator.engine.score([[]] * len(targets), targets) for p in row]
    assert found.perplexity == pytest.approx(math.exp(-sum(scores) / len(scores)), rel=1e-6)
    assert 1 < found.perplexity < 3
    code, out, _ = clearhead("evaluate", str(folder), str(text), "--json")
    assert code == OK
    assert json.loads(out)["bits_per_character"] == pytest.approx(found.bits_per_character)
    assert "perplexity" in clearhead("evaluate", str(folder), str(text))[1]


def test_tasks_are_not_mistaken_for_each_other(folder: Path, tmp_path: Path, clearhead: Command) -> None:
    source = tmp_path / "a.txt"
    source.write_text("abc\n", encoding="utf-8")
    code, _, err = clearhead("translate", str(folder), str(source))
    assert (code, "clearhead generate" in err) == (USAGE, True)
    code, _, err = clearhead("generate", str(write_model(tmp_path / "model")), "a")
    assert (code, "clearhead translate" in err) == (USAGE, True)
    code, _, err = clearhead("export", str(folder), str(tmp_path / "hf"), "--to", "hf")
    assert (code, err.count("\n")) == (USAGE, 1)
    code, _, err = clearhead("generate", str(folder), "a", "--top-p", "2")
    assert (code, "top_p is 2" in err) == (USAGE, True)
    code, _, err = clearhead("generate", str(folder), "a", "--beam", "3", "--temperature", "0.5")
    assert (code, "a beam of 3 searches, and a temperature of 0.5 samples" in err) == (USAGE, True)


def test_a_file_without_text_is_refused(folder: Path, tmp_path: Path, clearhead: Command) -> None:
    (tmp_path / "blank.txt").write_text("\n \n", encoding="utf-8")
    code, _, err = clearhead("evaluate", str(folder), str(tmp_path / "blank.txt"))
    assert (code, "no text" in err) == (BAD_DATA, True)


def test_its_attention_can_be_looked_at(folder: Path, clearhead: Command) -> None:
    """What is looked at goes on from the text."""
    code, out, _ = clearhead("inspect", str(folder), "abc\nbcd\ncd", "--json", "-")
    assert code == OK
    target = json.loads(out)["target"]
    assert target["text"].startswith("abc\nbcd\ncde")
    assert (target["begun"], json.loads(out)["notes"]) == (10, [])


def test_more_than_the_model_has_positions_for_is_refused(tmp_path: Path) -> None:
    translator = load_generator(write_generator(tmp_path / "model", positions="learned", max_positions=7))
    (short,) = generate(translator, "a bad", Wishes(99))[0]
    assert len(short.decoded[0].target) <= 6
    with pytest.raises(UserError, match="the prompt has 8 tokens; the model knows 6 positions"):
        generate(translator, "a bad cage a bad cage a bad", Wishes(99))
    with pytest.raises(UserError, match="it begins with 8 tokens; the model has positions for 6"):
        translator.inspect("a bad cage a bad cage a bad")
