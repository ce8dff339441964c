"""Small faults that a trial as a new user has found, each by what was typed or seen."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from clearhead.checkpoint.files import write_folder
from clearhead.checkpoint.model_folder import find_model
from clearhead.cli import run
from clearhead.config import Flags, data_options, make_request
from clearhead.engines.native import NativeEngine
from clearhead.errors import BAD_DATA, DAMAGED, USAGE, UserError
from clearhead.exchange import CHECKED, _written
from clearhead.serve.bodies import MOST_FIELDS, form_values
from clearhead.serve.refusal import RefusedError
from clearhead.training import rehearsal
from clearhead.training.plan import TABLE, as_used, table_lines
from clearhead.training.run import train
from clearhead.translator import load
from tests.tiny_model import DECODING, write_generator, write_model


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEARHEAD_CACHE", str(tmp_path / "cache"))


# -- training --------------------------------------------------------------------------------------------------------


def test_a_start_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    Path("a.en").write_text("x\ny\n")
    Path("a.de").write_text("x\n")
    files = [Path("a.en"), Path("a.de")]
    for options, code, exit_code in (
        ([], "LINE_COUNTS", BAD_DATA),
        (["data.target_language=klingon"], "LANGUAGE", USAGE),
    ):
        with pytest.raises(UserError) as caught:
            train(make_request(None, Flags(files), options), tmp_path / "run")
        assert (caught.value.code, caught.value.exit_code) == (code, exit_code)
        assert not (tmp_path / "run").exists()
    own = tmp_path / "run" / "notes.txt"
    own.parent.mkdir()
    own.write_text("mine")
    with pytest.raises(UserError):
        train(make_request(None, Flags(files)), tmp_path / "run")
    assert own.read_text() == "mine"


def test_language_codes_are_checked_where_text_is_read_and_not_in_old_models(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data.target_language is 'chinese'; .* did you mean zh\?"):
        data_options(["data.target_language=chinese"])
    folder = write_model(tmp_path / "model", languages=("klingon", "chinese"))
    assert load(folder, engine="native").languages == ("klingon", "chinese")


def test_the_table_shows_what_the_run_has() -> None:
    row = TABLE[2]
    training = SimpleNamespace(peak_rate=1e-3, warmup=77, optimizer="adam")
    settings: Any = SimpleNamespace(preset="tiny", model=SimpleNamespace(dropout=0.0), training=training)
    plan: Any = SimpleNamespace(steps=700, batches_per_epoch=200, tokens_per_batch=1024)
    (marked,) = [line for line in table_lines(row, as_used(settings, plan, row)) if line.startswith("→")]
    assert marked.split()[1:] == ["100,000", "tiny", "0.0", "0.001", "77", "3.5", "1024", "adam"]
    assert len(table_lines(row, row)) == len(TABLE) + 1


class Interrupting:
    """A model that is interrupted while it is asked."""

    def __getattr__(self, name: str) -> Any:
        raise KeyboardInterrupt(name)


def test_an_interrupted_call_leaves_the_threads_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        engine = load(write_model(tmp_path / "model"), engine="native").engine
        assert isinstance(engine, NativeEngine)
        monkeypatch.setattr(engine, "_speeds", {2: 1.0})  # so that it is one thread's turn
        monkeypatch.setattr(engine, "search", lambda *_: Interrupting().anything)
        with pytest.raises(KeyboardInterrupt):
            engine.translate([[5, 6]], DECODING)
        assert torch.get_num_threads() == 2
        settings: Any = SimpleNamespace(training=SimpleNamespace(tokens_per_batch=7, threads=1))
        monkeypatch.setattr(rehearsal, "pick_device", lambda: Interrupting().anything)
        with pytest.raises(KeyboardInterrupt):
            rehearsal.time_steps(settings, Interrupting(), Interrupting())  # type: ignore[arg-type]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# -- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mark", "said"), [("model.bin", "CTranslate2"), ("source.spm", "Hugging Face's Marian")])
def test_an_exported_folder_says_what_it_is(tmp_path: Path, mark: str, said: str) -> None:
    write_folder(tmp_path / "out", {mark: b"x", "config.json": b"{}"})
    with pytest.raises(UserError, match=f"{tmp_path / 'out'} is a model in the form of {said}") as caught:
        find_model(tmp_path / "out")
    assert (caught.value.code, caught.value.exit_code) == ("EXPORTED", DAMAGED)
    assert "give the one that it was exported from" in str(caught.value)


def test_an_export_says_what_it_wrote(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", {"model.bin": bytes(2_340_000), "config.json": b"{}"})
    wrote, checked = _written(tmp_path / "out", "CTranslate2 in int8", CHECKED["ct2"])
    files = "config.json (0.0 kB), model.bin (2.3 MB)"
    assert wrote == f"wrote {tmp_path / 'out'} for CTranslate2 in int8: 2 files, 2.3 MB: {files}"
    assert checked.startswith("checked: in float32 it cuts, translates and scores a sample as this model does")


def test_models_of_two_kinds_are_not_compared(tmp_path: Path) -> None:
    one, other = write_model(tmp_path / "one"), write_generator(tmp_path / "other")
    found = f"{one} was trained to translate text, {other} to continue text; expected two models that read the same"
    with pytest.raises(UserError) as caught:
        run(["inspect", str(one), "a bad cage", "--compare", str(other), "--html", "x.html"])
    assert found in str(caught.value)
    assert caught.value.exit_code == USAGE


# -- the server ------------------------------------------------------------------------------------------------------


def test_forms_may_be_raw_utf_8() -> None:
    assert form_values("q=2026年3月4日&source=zh&target=en".encode()) == {
        "q": "2026年3月4日",
        "source": "zh",
        "target": "en",
    }
    assert form_values(b"q=%E5%B9%B4+a")["q"] == "年 a"
    with pytest.raises(RefusedError, match="no form of UTF-8 text, raw or in percent encoding"):
        form_values(b"q=\xff")
    with pytest.raises(RefusedError, match=f"the form has {MOST_FIELDS + 1} fields; expected at most {MOST_FIELDS}"):
        form_values(b"&".join([b"a=b"] * (MOST_FIELDS + 1)))
