"""The engine that is asked for, or the best there is."""

from pathlib import Path

import pytest

from clearhead.decoding import DecodingOptions
from clearhead.engines import choice as module
from clearhead.engines import native
from clearhead.engines.choice import open_engine
from clearhead.errors import MISSING, USAGE, UserError
from tests.convert.variants import save_talkative, save_variant
from tests.samples import VARIANTS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEARHEAD_CACHE", str(tmp_path / "cache"))
    save_talkative(tmp_path / "run" / "model")
    return tmp_path / "run"


@pytest.mark.parametrize(("asked", "given"), [("auto", "ct2"), ("ct2", "ct2"), ("native", "native")])
def test_the_one_that_is_asked_for(asked: str, given: str, folder: Path) -> None:
    for path in (folder, folder / "model"):
        engine = open_engine(path, asked)
        assert engine.name == given
        assert len(engine.translate([[5, 6]], DecodingOptions(beam=2))[0]) == 1


@pytest.mark.parametrize("variant", ["no-norm", "lstm-attention"])
def test_auto_is_native_where_the_other_cannot_have_the_model(variant: str, folder: Path) -> None:
    save_variant(folder / "model", VARIANTS[variant])
    assert open_engine(folder).name == "native"
    with pytest.raises(UserError, match=r"cannot express the model in .*would work, or use --engine native"):
        open_engine(folder, "ct2")


def test_without_the_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert open_engine(folder).name == "native"
    with pytest.raises(UserError, match=r"pip install 'clearhead\[ct2\]'") as caught:
        open_engine(folder, "ct2")
    assert caught.value.exit_code == USAGE
    assert module.why_not_ct2(folder / "model") == "CTranslate2 is not installed"


def test_auto_goes_on_where_nothing_can_be_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "model" / "ct2-int8").write_text("in the way")
    monkeypatch.setenv("CLEARHEAD_CACHE", str(folder / "model" / "config.json"))
    assert open_engine(folder).name == "native"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("clearhead: warning[E_CT2]: cannot")
    assert line.endswith("Going on with the native engine")
    with pytest.raises(UserError, match="cannot"):
        open_engine(folder, "ct2")


def test_an_unknown_name_and_a_missing_folder(folder: Path) -> None:
    with pytest.raises(UserError, match="there is no engine 'fast'; expected one of auto, native, ct2") as caught:
        open_engine(folder, "fast")
    assert caught.value.exit_code == USAGE
    with pytest.raises(UserError, match="does not exist") as caught:
        open_engine(folder / "nowhere")
    assert caught.value.exit_code == MISSING


@pytest.mark.parametrize("name", ["native", "ct2"])
def test_deterministic_is_the_same_alone_and_among_others(name: str, folder: Path) -> None:
    engine = open_engine(folder, name, deterministic=True)
    sources = [[5, 6, 7], [8], [9, 10, 11, 12, 13, 5], [8, 9]]
    for options in (DecodingOptions(beam=1), DecodingOptions(beam=3, n_best=2)):
        alone = [engine.translate([source], options)[0] for source in sources]
        assert engine.translate(sources, options) == alone  # to the last digit
    assert engine.score(sources, sources) == [engine.score([source], [source])[0] for source in sources]


def test_native_searches_in_bfloat16_and_scores_exactly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, options = [[5, 6, 7]], DecodingOptions(beam=1, max_length=3)
    monkeypatch.setattr(native, "has_bfloat16", lambda: False)
    exact = open_engine(folder, "native")
    monkeypatch.setattr(native, "has_bfloat16", lambda: True)
    rounded = open_engine(folder, "native")
    ours, theirs = (engine.translate(sources, options)[0][0].score for engine in (exact, rounded))
    assert ours != theirs
    assert ours == pytest.approx(theirs, rel=0.05, abs=0.1)
    assert rounded.score(sources, [[6, 5]]) == exact.score(sources, [[6, 5]])
    assert open_engine(folder, "native", deterministic=True).translate(sources, options)[0][0].score == ours
