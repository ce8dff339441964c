"""A model without a source: trained on plain text by options alone, continued, scored and evaluated."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.cli import run
from clearhead.config import Flags, make_request
from clearhead.data.corpus import Report
from clearhead.data.options import DataOptions
from clearhead.data.texts import read_texts
from clearhead.errors import BAD_DATA, OK, USAGE, exit_code_of
from clearhead.evaluation.perplexity import surprise
from clearhead.training.run import train
from clearhead.translator import load
from clearhead.translator.generating import generate, load_generator, sampling
from tests.tiny_model import write_model

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
    greedy = sampling(translator.decoding, 0, 1.0, 0, 1, 1)
    (best,) = generate(translator, "abc\nbcd\ncd", greedy, length=9)[0]
    assert best.text.startswith("abc\nbcd\ncde\ndef\nefg")


def test_what_is_generated_begins_with_the_prompt_and_is_reproducible(folder: Path, clearhead: Command) -> None:
    code, out, _ = clearhead("generate", str(folder), "abc\n", "--length", "7", "--samples", "3", "--json")
    assert code == OK
    texts = [json.loads(line) for line in out.rstrip("\n").split("\n")]
    assert len(texts) == 3
    assert all(one["text"].startswith("abc\n") and one["score"] <= 0 for one in texts)
    assert clearhead("generate", str(folder), "abc\n", "--length", "7", "--samples", "3", "--json")[1] == out


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


def test_a_file_without_text_is_refused(folder: Path, tmp_path: Path, clearhead: Command) -> None:
    (tmp_path / "blank.txt").write_text("\n \n", encoding="utf-8")
    code, _, err = clearhead("evaluate", str(folder), str(tmp_path / "blank.txt"))
    assert (code, "no text" in err) == (BAD_DATA, True)


def test_its_attention_can_be_looked_at(folder: Path, clearhead: Command) -> None:
    code, out, _ = clearhead("inspect", str(folder), "abc\nbcd\n")
    assert code == OK
    assert "abc" in out
