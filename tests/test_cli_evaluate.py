"""`clearhead evaluate` and `clearhead score`: what they print is what the translator, sacreBLEU and the model say."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu

from clearhead.checkpoint.model import load_model
from clearhead.cli import run
from clearhead.data.batching import make_batch
from clearhead.decoding.scoring import score
from clearhead.errors import BAD_DATA, MISSING, USAGE, exit_code_of
from clearhead.translator import load

from .tiny_model import DECODING, SEARCHED, WORDS, write_model

pytestmark = pytest.mark.slow  # many small runs of the whole

SOURCES = [" ".join(WORDS[(row * k) % len(WORDS)] for k in range(1, 2 + row % 7)) for row in range(1, 24)]
SHORT = replace(DECODING, max_length=1)
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEARHEAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def clearhead(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process; its exit code, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = exit_code_of(lambda: run(list(arguments)))
        return (code, *capsys.readouterr())

    return call


def write(name: str, lines: list[str]) -> str:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


@pytest.fixture
def files() -> list[str]:
    """A model in `run`, its test set, and references that its translations partly are."""
    write_model(Path("run/model"))
    ours = load("run", "native").translate(SOURCES)
    references = [f"{text} j" if row % 3 else text for row, text in enumerate(ours)]
    return [write("test.en", SOURCES), write("test.zh", references)]


def evaluation(clearhead: Command, *arguments: str) -> dict[str, Any]:
    code, out, _ = clearhead("evaluate", "run", *arguments, "--engine", "native", "--json")
    assert code == 0
    assert out.count("\n") == 1
    return json.loads(out)


# -- evaluate -------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_translate_and_sacrebleu(clearhead: Command, files: list[str]) -> None:
    found = evaluation(clearhead, *files)
    ours = load("run", "native").translate(SOURCES)
    references = Path("test.zh").read_text(encoding="utf-8").splitlines()
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(ours, [references], tokenize="zh").score)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(ours, [references]).score)
    ter = sacrebleu.corpus_ter(ours, [references], normalized=True, asian_support=True)
    assert found["ter"] == pytest.approx(ter.score)
    assert found["exact_match"] == pytest.approx(8 / 23)
    assert list(found["signatures"]) == ["bleu", "chrf", "ter"]
    for name, (low, high) in found["intervals"].items():
        assert low <= found[name] <= high
    plain = evaluation(clearhead, *files, "--tokenize", "none")
    assert plain["bleu"] == pytest.approx(sacrebleu.corpus_bleu(ours, [references], tokenize="none").score)
    code, _, errors = clearhead("evaluate", "run", *files, "--tokenize", "14b")
    assert (code, "13a, intl, zh, char, none" in errors) == (2, True)


@pytest.mark.slow
def test_scores_and_signatures_are_those_of_the_command_sacrebleu(clearhead: Command, files: list[str]) -> None:
    found = evaluation(clearhead, *files)
    write("ours.zh", load("run", "native").translate(SOURCES))
    command = (
        "sacrebleu test.zh -i ours.zh -m bleu chrf ter --tokenize zh --ter-normalized --ter-asian-support -f json -w 4"
    )
    done = subprocess.run([sys.executable, "-m", *command.split()], capture_output=True, check=True)
    for theirs in json.loads(done.stdout):
        name = {"BLEU": "bleu", "chrF2": "chrf", "TER": "ter"}[theirs["name"]]
        assert found[name] == pytest.approx(theirs["score"], abs=1e-4)
        assert found["signatures"][name] == theirs["signature"]


def test_what_else_is_in_the_object(clearhead: Command, files: list[str]) -> None:
    found = evaluation(clearhead, *files, "--beam", "3")
    assert (found["model"], found["engine"], found["beam"]) == ("run", "native", 3)
    assert (found["sentences"], found["left_out"], found["language"]) == (23, 0, "zh")
    assert found["bootstrap"] == {"resamples": 1000, "seed": 12345}
    assert "baselines" not in found
    assert "p_values" not in found
    assert found["seconds"] > 0
    assert found["sentences_per_second"] == pytest.approx(23 / found["seconds"])
    tokenizer = load("run", "native").target_tokenizer
    tokens = sum(len(ids) + 1 for ids in tokenizer.encode_many(load("run", "native").translate(SOURCES, beam=3)))
    assert found["tokens_per_second"] == pytest.approx(tokens / found["seconds"])


def test_the_report_for_people(clearhead: Command, files: list[str]) -> None:
    code, out, _ = clearhead("evaluate", "run", *files, "--engine", "native")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "23 pairs, target language zh"
    assert lines[2].startswith(f"run (native, beam {DECODING.beam}): ")
    assert lines[2].endswith(" target tokens/s")
    assert [line.split("  ")[1] for line in lines[3:8]] == ["BLEU", "chrF", "TER", "error rate", "exact match"]
    assert "34.8 %  95 %:" in lines[7]
    assert any(line.startswith("BLEU: nrefs:1|") for line in lines)
    assert max(map(len, lines)) <= 120


def test_models_are_compared(clearhead: Command, files: list[str]) -> None:
    """With itself, with itself at another place, and with one that was given other weights of the same kind."""
    write_model(Path("same"))
    found = evaluation(clearhead, *files, "--baseline", "run", "--baseline", "same")
    assert [other["model"] for other in found["baselines"]] == ["run", "same"]
    for other in found["baselines"]:
        assert other["bleu"] == found["bleu"]
        assert other["intervals"] == found["intervals"]
        assert other["p_values"] == {"bleu": 1.0, "chrf": 1.0, "ter": 1.0, "error_rate": 1.0, "exact_match": 1.0}


def test_a_clear_difference_is_found(clearhead: Command, files: list[str]) -> None:
    """The references of a third of the sentences are exactly ours; another way to decode says others."""
    write_model(Path("other"), decoding=SHORT)
    (other,) = evaluation(clearhead, *files, "--baseline", "other")["baselines"]
    assert other["p_values"]["chrf"] < 0.01
    code, out, _ = clearhead("evaluate", "run", *files, "--engine", "native", "--baseline", "other")
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("  chrF") and "p = " in line]
    assert f"p = {other['p_values']['chrf']:.4f}" in line
    mine = evaluation(clearhead, *files)
    assert "run − other:" in out  # the sign is read off this line: what run has more
    assert f"{mine['chrf'] - other['chrf']:+.1f}" in line
    assert mine["chrf"] > other["chrf"]
    assert "p: of so large a difference by chance alone" in out


@pytest.mark.usefixtures("files")
def test_F21_line_counts_differ(clearhead: Command) -> None:
    write("long.zh", ["a"] * 24)
    for command in ("evaluate", "score"):
        code, out, err = clearhead(command, "run", "test.en", "long.zh")
        assert (code, out) == (BAD_DATA, "")
        assert err.startswith("clearhead: error[E_LINE_COUNTS]: test.en has 23 lines but long.zh has 24;")


def test_F23_only_newlines_end_lines(clearhead: Command) -> None:
    write_model(Path("run/model"))
    Path("odd.en").write_bytes("abc\u2028head\x0bbad\r\nabc\n".encode())
    Path("odd.zh").write_bytes("a\u0085b\u2029c\nabc".encode())
    assert evaluation(clearhead, "odd.en", "odd.zh")["sentences"] == 2


def test_pairs_with_an_empty_side_are_left_out(clearhead: Command) -> None:
    write_model(Path("run/model"))
    names = [write("gaps.en", ["abc", "", "head", "bad"]), write("gaps.zh", ["abc", "a", " ", "bad"])]
    found = evaluation(clearhead, *names)
    assert (found["sentences"], found["left_out"]) == (2, 2)
    _, out, _ = clearhead("evaluate", "run", *names, "--engine", "native")
    assert out.startswith("2 pairs, target language zh; 2 left out: a side is empty or no UTF-8\n")


def test_nothing_to_evaluate(clearhead: Command) -> None:
    write_model(Path("run/model"))
    code, _, err = clearhead("evaluate", "run", write("a.en", ["", "b"]), write("a.zh", ["a", ""]))
    assert code == BAD_DATA
    assert "error[E_NOTHING_LEFT]: a.en and a.zh have no pair with text on both sides" in err


def test_one_file_of_pairs(clearhead: Command, files: list[str]) -> None:
    both = zip(*(Path(file).read_text(encoding="utf-8").splitlines() for file in files), strict=True)
    write("test.tsv", ["\t".join(pair) for pair in both])
    assert evaluation(clearhead, "test.tsv")["bleu"] == evaluation(clearhead, *files)["bleu"]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", ["evaluate", "score"])
@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["nowhere", "test.en", "test.zh"], MISSING, "MISSING"),
        (["run", "nowhere.en", "test.zh"], MISSING, "MISSING"),
        (["run", "test.en"], USAGE, "FILES"),
        (["run", "test.en", "test.zh", "--engine", "steam"], USAGE, "ENGINE"),
        (["run"], USAGE, "USAGE"),
    ],
)
def test_mistakes(command: str, arguments: list[str], code: int, error: str, clearhead: Command) -> None:
    found, out, err = clearhead(command, *arguments)
    assert (found, out) == (code, "")
    assert err.startswith(f"clearhead: error[E_{error}]: ")


def test_a_baseline_that_is_not_there_is_said_before_the_work(clearhead: Command, files: list[str]) -> None:
    code, out, err = clearhead("evaluate", "run", *files, "--engine", "native", "--baseline", "nowhere")
    assert (code, out) == (MISSING, "")
    assert "nowhere does not exist" in err


def test_long_evaluations_show_progress(clearhead: Command, files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10000, 3))
    monkeypatch.setattr("clearhead.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    _, out, err = clearhead("evaluate", "run", *files, "--engine", "native", "--json")
    assert re.search(r"translating: 2\d of 23 sentences", err)  # the last few may be searched again
    json.loads(out)


@pytest.mark.slow
def test_evaluation_on_ct2_loads_no_torch(files: list[str]) -> None:
    pytest.importorskip("ctranslate2")
    code = (
        f"import sys; from clearhead.cli import run; run(['evaluate', 'run', *{files}, '--engine', 'ct2']); "
        "sys.exit('torch' in sys.modules)"
    )
    load("run", "ct2")  # makes the form that the engine reads
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    assert done.returncode == 0, done.stderr
    assert "(ct2, beam " in done.stdout


# -- score ----------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_each_pair_alone(
    clearhead: Command, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In chunks that do not divide the files; and the sum of the log-softmax of each word."""
    monkeypatch.setattr("clearhead.evaluation.log_probability.CHUNK", 5)
    code, out, _ = clearhead("score", "run", *files, "--json")
    assert code == 0
    found = [json.loads(line) for line in out.splitlines()]
    model, _, _ = load_model(Path("run"))
    tokenizer = load("run", "native").target_tokenizer
    targets = Path("test.zh").read_text(encoding="utf-8").splitlines()
    assert len(found) == len(SOURCES)
    for line, (pair, source, target) in enumerate(zip(found, SOURCES, targets, strict=True), 1):
        alone = score(model, make_batch([(tokenizer.encode(source), tokenizer.encode(target))]))[0]
        assert pair["log_probabilities"] == pytest.approx(alone, abs=1e-4)
        assert pair["log_probability"] == pytest.approx(sum(alone), abs=1e-3)
        assert pair["mean"] == pytest.approx(sum(alone) / len(alone), abs=1e-4)
        assert (pair["line"], pair["tokens"]) == (line, len(alone))
        assert pair["pieces"] == [*target.split(), "</s>"]


def test_plain_scores_are_three_columns(clearhead: Command, files: list[str]) -> None:
    _, plain, _ = clearhead("score", "run", *files)
    _, full, _ = clearhead("score", "run", *files, "--json")
    for line, pair in zip(plain.splitlines(), map(json.loads, full.splitlines()), strict=True):
        total, mean, tokens = line.split("\t")
        assert float(total) == pytest.approx(pair["log_probability"], abs=1e-4)
        assert float(mean) == pytest.approx(pair["mean"], abs=1e-4)
        assert int(tokens) == pair["tokens"]


def test_the_model_finds_its_own_translation_likelier_than_others(clearhead: Command) -> None:
    """And as likely as search says: its score is the mean, with alpha 1."""
    write_model(Path("run/model"), decoding=DECODING)
    translator = load("run", "native")
    best = [found[0] for found in translator.alternatives(["abc head bad"])]
    names = [write("a.en", ["abc head bad"] * 2), write("a.zh", [best[0].text, "j j j j j j j"])]
    _, out, _ = clearhead("score", "run", *names)
    ours, other = (float(line.split("\t")[1]) for line in out.splitlines())
    assert ours == pytest.approx(best[0].score, abs=max(1e-3, SEARCHED))
    assert math.exp(ours) > math.exp(other)


@pytest.mark.parametrize("chunk", [1, 2, 1024])
def test_lines_stay_where_they_are(clearhead: Command, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.evaluation.log_probability.CHUNK", chunk)
    write_model(Path("run/model"))
    names = [write("gaps.en", ["", "abc", "", "", "bad", ""]), write("gaps.zh", ["a", "abc", "a", " ", "bad", ""])]
    _, plain, _ = clearhead("score", "run", *names)
    assert [bool(line) for line in plain.split("\n")] == [False, True, False, False, True, False, False]
    _, full, _ = clearhead("score", "run", *names, "--json")
    found = [json.loads(line) for line in full.splitlines()]
    assert [pair["line"] for pair in found] == [1, 2, 3, 4, 5, 6]
    assert found[0] == {"line": 1, "log_probability": None}


def test_long_scoring_shows_progress(clearhead: Command, files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10000, 3))
    monkeypatch.setattr("clearhead.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    _, _, err = clearhead("score", "run", *files)
    assert "scoring: 23 of 23 pairs" in err
