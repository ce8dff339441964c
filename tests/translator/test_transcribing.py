"""Recordings and series: learned by options alone, by both models, and used, evaluated, looked at and refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clearhead.cli import run
from clearhead.config import Flags, make_request
from clearhead.data.batching import make_batch
from clearhead.engines.native import NativeEngine
from clearhead.errors import BAD_DATA, MISSING, OK, USAGE, UserError, exit_code_of
from clearhead.evaluation import error_rates
from clearhead.evaluation.transcripts import evaluate_transcripts
from clearhead.serve.engine import load_fast
from clearhead.training.run import train
from clearhead.translator import Translator, load
from clearhead.translator.sources import features_of
from clearhead.translator.transcribing import load_transcriber, transcribe
from tests.recordings import LENGTH, melody, tone, write_melodies, write_series, write_wav
from tests.tiny_model import write_model

pytestmark = pytest.mark.slow

SETS = [
    "data.tokenizer=words", "model.width=32", "model.dropout=0", "training.peak_rate=0.01", "training.warmup=11",
    "training.label_smoothing=0", "training.processes=1", "training.threads=1", "training.decode_pairs=31",
    "training.precision=float32", "training.tokens_per_batch=1000", "training.average=1",
]  # fmt: skip
SPEECH = [*SETS, "task=speech", "data.mel_bins=11", "training.steps=400", "training.validate_every=200"]
TRANSFORMER = ["model.heads=2", "model.feed_forward=64", "model.encoder_blocks=1", "model.decoder_blocks=1"]
RNN = ["preset=rnn", "model.layers=1"]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def melodies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Manifests to train on and to test on."""
    folder = tmp_path_factory.mktemp("melodies")
    return write_melodies(folder / "train", 307), write_melodies(folder / "test", 31, seed=4)


@pytest.fixture(scope="module", params=[TRANSFORMER, RNN], ids=["transformer", "rnn"])
def folder(
    request: pytest.FixtureRequest, melodies: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    assert train(make_request(None, Flags(melodies[:1], melodies[1:]), [*SPEECH, *request.param]), out) == 0
    return out


@pytest.fixture
def clearhead(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = exit_code_of(lambda: run([str(argument) for argument in arguments]))
        return (code, *capsys.readouterr())

    return call


def said(translator: Translator, *files: Path) -> list[str]:
    return [best.text for best, *_ in transcribe(translator, files, translator.decoding)]


def test_it_has_learned_to_hear_melodies(folder: Path, melodies: tuple[Path, Path]) -> None:
    found = evaluate_transcripts(folder, [melodies[1]])
    assert (found.wer, found.cer, found.exact_match) == (0.0, 0.0, 1.0)


def test_evaluate_counts_what_transcribe_says(folder: Path, melodies: tuple[Path, Path], clearhead: Command) -> None:
    lines = [line.split("\t") for line in melodies[1].read_text(encoding="utf-8").splitlines()[1:]]
    files = [melodies[1].parent / path for path, _ in lines]
    wrong = melodies[1].with_name("wrong.tsv")
    wrong.write_text("".join(f"{path}\ta {text}\n" for path, text in lines), encoding="utf-8")
    code, out, _ = clearhead("evaluate", folder, wrong, "--json", "--beam", "2")
    assert code == OK
    expected = error_rates(said(load_transcriber(folder), *files), [f"a {text}" for _, text in lines])
    found = json.loads(out)
    assert found["beam"] == 2
    assert [found["wer"], found["cer"]] == pytest.approx([expected.wer, expected.cer])
    assert found["wer"] > 20
    shown = clearhead("evaluate", folder, wrong)[1]
    assert f"WER          {expected.wer:5.1f} %" in shown
    assert "31 files" in shown


def test_a_line_for_each_file(folder: Path, tmp_path: Path, clearhead: Command) -> None:
    files = [write_wav(tmp_path / f"{words}.wav", melody(words), 8_000) for words in ("a b", "d c a", "c")]
    assert clearhead("transcribe", folder, files[1])[1] == "d c a\n"
    assert clearhead("transcribe", folder, *files)[1] == "".join(f"{file}\t{file.stem}\n" for file in files)
    code, out, _ = clearhead("transcribe", folder, *files, "--json", "--beam", "1")
    assert code == OK
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["file"], one["text"]) for one in found] == [(str(file), file.stem) for file in files]
    assert all(one["score"] <= 0 for one in found)


def test_use_is_training(folder: Path, melodies: tuple[Path, Path]) -> None:
    """A file on its own is what it was among others: rate, loudness and neighbours do not matter."""
    translator = load_transcriber(folder)
    files = [melodies[1].parent / f"{number}.wav" for number in range(7)]
    together = [best.score for best, *_ in transcribe(translator, files, translator.decoding)]
    alone = [next(transcribe(translator, [file], translator.decoding))[0].score for file in files]
    assert together == pytest.approx(alone, abs=1e-4)


def test_attention_over_time(folder: Path, tmp_path: Path, clearhead: Command) -> None:
    file = write_wav(tmp_path / "a.wav", melody("d c"), 8_000)
    code, out, _ = clearhead("inspect", folder, file, "--json", "-")
    assert code == OK
    trace = json.loads(out)
    steps = len(features_of(load(folder).config, file))
    labels = [token["text"] for token in trace["source"]["tokens"]]
    assert labels == [f"{0.04 * step:.2f}s" for step in range(-(-steps // 4))]
    assert (trace["source"]["text"], trace["target"]["text"]) == (str(file), "d c")
    assert trace["occlusion"]["shape"] == [len(trace["target"]["tokens"]) - 1, len(labels)]
    shown = clearhead("inspect", folder, file, "--html", tmp_path / "a.html", "--steps")
    assert (shown[0], "softmax" in shown[1]) == (OK, True)
    assert "0.04s" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert ":0.00s  " in clearhead("inspect", folder, file)[1]


def test_the_first_word_was_heard_at_the_beginning(folder: Path, tmp_path: Path) -> None:
    """It becomes unlikely without the stretch in which its tone sounds, not without another."""
    file = write_wav(tmp_path / "a.wav", melody("a d b"), 8_000)
    trace = load(folder).inspect(str(file))
    assert trace.occlusion is not None
    steps = round(LENGTH / 0.04) + 1
    assert trace.occlusion[0, :steps].min() < trace.occlusion[0, -steps:].min()


def test_a_recording_that_is_too_long_is_not_looked_at(folder: Path, tmp_path: Path, clearhead: Command) -> None:
    file = write_wav(tmp_path / "long.wav", tone(400, 21.0))
    code, _, err = clearhead("inspect", folder, file)
    assert (code, "at most 511 can be looked at" in err) == (USAGE, True)


def test_files_that_are_none_are_said_in_a_line(folder: Path, tmp_path: Path, clearhead: Command) -> None:
    code, out, err = clearhead("transcribe", folder, tmp_path / "gone.wav")
    assert (code, out, err.count("\n")) == (MISSING, "", 1)
    assert f"there is no file {tmp_path / 'gone.wav'}; expected a WAV or FLAC recording" in err
    (tmp_path / "bad.wav").write_bytes(b"what")
    code, _, err = clearhead("transcribe", folder, tmp_path / "bad.wav")
    assert (code, "it is no sound file, but text" in err, err.count("\n")) == (BAD_DATA, True, 1)
    (tmp_path / "empty.tsv").write_text("path\ttext\n", encoding="utf-8")
    code, _, err = clearhead("evaluate", folder, tmp_path / "empty.tsv")
    assert (code, "names no file" in err) == (BAD_DATA, True)


def test_tasks_are_not_mistaken_for_each_other(folder: Path, tmp_path: Path, clearhead: Command) -> None:
    text = tmp_path / "a.txt"
    text.write_text("a b\n", encoding="utf-8")
    hint = "this model was trained to write down recordings, not to {}; use clearhead transcribe"
    for arguments, asked in {
        ("translate", folder, text): "translate text",
        ("generate", folder, "a"): "continue text",
        ("score", folder, text, text): "translate text",
    }.items():
        code, _, err = clearhead(*arguments)
        assert (code, err.count("\n"), hint.format(asked) in err) == (USAGE, 1, True), err
    with pytest.raises(UserError, match="use clearhead transcribe"):
        load(folder).translate("a b")
    with pytest.raises(UserError, match="not to translate text or continue text; use clearhead transcribe"):
        load_fast(folder)  # as `clearhead serve` does
    other = write_model(tmp_path / "model")
    code, _, err = clearhead("transcribe", other, text)
    assert (code, "use clearhead translate" in err, err.count("\n")) == (USAGE, True, 1)
    for form in ("hf", "ct2"):
        code, _, err = clearhead("export", folder, tmp_path / form, "--to", form)
        assert (code, err.count("\n")) == (USAGE, 1)
    code, _, err = clearhead("evaluate", folder, text, "--baseline", folder)
    assert (code, "--baseline is for models that translate, not for task=speech" in err) == (USAGE, True)
    code, _, err = clearhead("evaluate", folder, text, "--tokenize", "13a")
    assert (code, "--tokenize is for models that translate" in err) == (USAGE, True)


def test_the_card_and_the_log_speak_of_errors(folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "WER 0.0 %, CER 0.0 %" in card
    assert "the source has 11 features, a 1/4 of its steps" in card
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {"wer", "cer", "exact_match"} <= {name for event in events for name in event}


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_series_are_labelled_by_options_alone(ending: str, tmp_path: Path, clearhead: Command) -> None:
    manifest = write_series(tmp_path / "train", 101, ending)
    test = write_series(tmp_path / "test", 31, ending, seed=11)
    sets = [*SETS, *TRANSFORMER, "task=series", "training.steps=60", "model.strides=1"]
    assert train(make_request(None, Flags([manifest], [test]), sets), tmp_path / "run") == 0
    found = evaluate_transcripts(tmp_path / "run", [test])
    assert found.exact_match == 1.0
    label = test.read_text(encoding="utf-8").splitlines()[0].split("\t")[1]
    assert clearhead("transcribe", tmp_path / "run", test.parent / f"0.{ending}")[1] == f"{label}\n"
    trace = load(tmp_path / "run").inspect(str(test.parent / f"0.{ending}"))
    assert [token.text for token in trace.source.tokens[:3]] == ["1", "3", "5"]
    np.save(tmp_path / "other.npy", np.zeros((7, 3)))
    code, _, err = clearhead("transcribe", tmp_path / "run", tmp_path / "other.npy")
    assert (code, "has steps of 3 numbers; the model was trained on 2" in err) == (BAD_DATA, True)


def test_scores_are_those_of_the_whole_model(folder: Path, melodies: tuple[Path, Path]) -> None:
    """The engine's log-probabilities against the model's own, on features."""
    translator = load(folder)
    subject = translator.subject()
    features = features_of(translator.config, melodies[1].parent / "3.wav")
    (best,) = next(transcribe(translator, [melodies[1].parent / "3.wav"], replace(translator.decoding, n_best=1)))
    target = best.decoded[0].target
    batch = make_batch([(features, target)])
    logits = subject.model.logits(subject.model(batch.src, batch.src_mask, batch.tgt_in)).log_softmax(dim=-1)
    own = logits.gather(2, batch.tgt_out[:, :, None]).sum().item()
    engine = translator.native()
    assert isinstance(engine, NativeEngine)
    assert sum(engine.score([features], [target])[0]) == pytest.approx(own, abs=1e-3)
