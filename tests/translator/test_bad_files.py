"""A file that cannot be read is named, and the others are written down as they come."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.checkpoint.model import save_model
from clearhead.cli import run
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import Words
from clearhead.decoding import DecodingOptions
from clearhead.errors import BAD_DATA, MISSING, OK, exit_code_of
from clearhead.model import TransformerOptions
from clearhead.model.transformer import Transformer
from tests.recordings import tone, write_wav
from tests.tiny_model import WORDS


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It hears nonsense."""
    folder = tmp_path_factory.mktemp("ear")
    tokenizer = Words(WORDS)
    tokenizer.save(folder, "source")
    sizes: dict[str, Any] = {"feed_forward": 13, "encoder_blocks": 1, "decoder_blocks": 1}
    options = TransformerOptions(len(tokenizer), len(tokenizer), 14, 7, features=11, strides=1, tied="target", **sizes)
    torch.manual_seed(3)
    sections = {
        "data": asdict(DataOptions(tokenizer="words", task="speech", mel_bins=11)),
        "decoding": asdict(DecodingOptions(beam=2, max_length=5)),
        "scale": {"mean": [0.0] * 11, "deviation": [1.0] * 11},
    }
    save_model(folder / "model", Transformer(options), sections, {"source.json": (folder / "source.json").read_bytes()})
    return folder / "model"


def test_it_goes_on_after_a_bad_file(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = [write_wav(tmp_path / f"{number}.wav", tone(300 + 100 * number, 0.2)) for number in range(7)]
    cut, text, empty = tmp_path / "cut.wav", tmp_path / "list.tsv", tmp_path / "empty.flac"
    cut.write_bytes(good[0].read_bytes()[:500])
    text.write_text("0.wav\tzero\n")
    empty.touch()
    files = [good[0], cut, *good[1:6], text, empty, tmp_path / "gone.wav", good[6]]
    command = ["transcribe", str(model), *map(str, files)]
    assert exit_code_of(lambda: run(command)) == BAD_DATA
    out, err = capsys.readouterr()
    assert [line.split("\t")[0] for line in out.splitlines()] == [str(file) for file in good]
    assert err.count("clearhead: error[E_") == 4
    assert f"cannot read {cut}: it was cut off" in err
    assert f"cannot read {text}: it is no sound file, but text; expected a WAV or FLAC recording" in err
    assert f"cannot read {empty}: it is empty" in err
    assert f"there is no file {tmp_path / 'gone.wav'}" in err
    assert exit_code_of(lambda: run(["transcribe", str(model), *map(str, good), "--json"])) == OK
    assert capsys.readouterr().out.count('"file"') == len(good)
    assert exit_code_of(lambda: run(["transcribe", str(model), str(tmp_path / "gone.wav"), str(cut)])) == MISSING
