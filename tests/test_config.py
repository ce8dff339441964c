"""Recipe, flags and --set: which one wins, what is refused, and that run.toml gives back what was stored."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.config import Flags, data_options, make_request, read_recipe, recipe_text, shipped_recipes
from clearhead.data.options import DataOptions
from clearhead.decoding import DecodingOptions
from clearhead.errors import DISK, MISSING, USAGE, UserError
from clearhead.model import SIZES, RNNOptions, TransformerOptions
from clearhead.training.options import TrainingOptions
from clearhead.training.settings import Settings, differences, from_toml, to_toml


def refused(recipe: str | None = None, flags: Flags | None = None, sets: tuple[str, ...] = ()) -> UserError:
    with pytest.raises(UserError) as caught:
        make_request(recipe, flags or Flags(), sets)
    return caught.value


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(
        'preset = "small"\n[model]\nwidth = 64\nheads = 2\n[training]\nsteps = 11\nprocesses = 3\nminutes = 7\n'
        '[data]\ntokenizer = "words"\n[decoding]\nbeam = 2\n',
        encoding="utf-8",
    )
    return path


# -- which one wins -------------------------------------------------------------------------------------------------


def test_without_anything_all_is_open() -> None:
    request = make_request(None, Flags())
    assert (request.preset, dict(request.model)) == (None, {})
    assert (request.data, request.training, request.decoding) == (DataOptions(), TrainingOptions(), DecodingOptions())


def test_recipe_fills_every_section(recipe: Path) -> None:
    request = make_request(str(recipe), Flags())
    assert request.preset == "small"
    assert request.model == {"width": 64, "heads": 2}
    assert (request.training.steps, request.training.processes, request.training.minutes) == (11, 3, 7.0)
    assert type(request.training.minutes) is float
    assert request.data.tokenizer == "words"
    assert request.decoding.beam == 2


def test_flags_beat_the_recipe(recipe: Path) -> None:
    request = make_request(str(recipe), Flags(preset="tiny", processes=2, minutes=1.5))
    assert (request.preset, request.training.processes, request.training.minutes) == ("tiny", 2, 1.5)
    assert request.training.steps == 11


def test_steps_that_are_set_beat_the_minutes_of_recipe_and_flag(recipe: Path) -> None:
    request = make_request(str(recipe), Flags(minutes=1.5), ["training.steps=5"])
    assert (request.training.steps, request.training.minutes) == (5, None)
    request = make_request(str(recipe), Flags(), ["training.steps=5", "training.minutes=2"])
    assert (request.training.steps, request.training.minutes) == (5, 2.0)


def test_set_beats_flags_and_recipe(recipe: Path) -> None:
    sets = ["preset=base", "training.processes=5", "training.steps = 13", "model.heads=4", "decoding.beam=7"]
    request = make_request(str(recipe), Flags(preset="tiny", processes=2), sets)
    assert (request.preset, request.training.processes, request.training.steps) == ("base", 5, 13)
    assert request.model == {"width": 64, "heads": 4}
    assert request.decoding.beam == 7


def test_the_last_set_of_a_key_counts() -> None:
    assert make_request(None, Flags(), ["training.seed=3", "training.seed=5"]).training.seed == 5


def test_files_and_command_come_from_the_flags() -> None:
    flags = Flags([Path("a")], [Path("b")], init_from=Path("m"), command="clearhead train")
    request = make_request(None, flags)
    assert (request.train, request.valid, request.init_from, request.command) == (
        [Path("a")],
        [Path("b")],
        Path("m"),
        "clearhead train",
    )


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training.stpes=3", "training has no option 'stpes'; did you mean 'steps'?"),
        ("model.widht=3", "model has no option 'widht'; did you mean 'width'?"),
        ("data.vocabluary=300", "data has no option 'vocabluary'; did you mean 'vocabulary'?"),
        ("decoding.bean=3", "decoding has no option 'bean'; did you mean 'beam'?"),
        ("trainning.steps=3", "there is no section 'trainning'; did you mean 'training'?"),
        ("training.steps", "expected section.key=value, such as training.steps=2000"),
        ("steps=3", "expected section.key=value"),
        ("preset.x=3", "there is no section 'preset'"),
        ("training.steps=1e3", "training.steps is 1000.0, a number; expected a whole number"),
        ("training.steps=many", "training.steps is 'many', text; expected a whole number"),
        ("training.steps=0", "training: steps is 0; expected at least 1"),
        ("training.clip=nan", "training.clip is nan; expected a finite number"),
        ("model.dropout=1", "model: dropout is 1.0; expected a number from 0 up to, but not, 1"),
        ("model.source_vocabulary=99", "model.source_vocabulary follows from the tokenizer; set data.vocabulary"),
        ("model.target_vocabulary=99", "model.target_vocabulary follows from the tokenizer; set data.vocabulary"),
        ('model.kind="rnn"', 'model.kind follows from the preset; use preset = "rnn"'),
        ("model.heads=7", "model: width 128 cannot be split into 7 heads"),
        ("preset=tyni", "preset is 'tyni'; did you mean 'tiny'?"),
        ("preset=5", "preset is '5'; it has base, big, lecture, rnn, small, tiny"),
        ("data.tokenizer=bytes", "data: tokenizer is 'bytes'; expected one of bpe, unigram, characters, words"),
    ],
)
def test_a_wrong_set_names_what_is_right(text: str, message: str) -> None:
    error = refused(sets=(text,))
    assert message in str(error)
    assert (error.code, error.exit_code) == ("OPTIONS", USAGE)


def test_heads_that_do_not_divide_the_width_are_named_with_it() -> None:
    error = refused(flags=Flags(preset="base"), sets=("model.heads=6", "model.width=100"))
    assert "width 100 cannot be split into 6 heads" in str(error)
    assert error.exit_code == USAGE


def test_without_a_preset_what_fits_some_size_waits_for_the_corpus() -> None:
    assert make_request(None, Flags(), ["model.width=100"]).model == {"width": 100}  # 4 heads in tiny, 8 in base


def test_presets_have_their_own_options() -> None:
    assert make_request(None, Flags(preset="rnn"), ["model.layers=1"]).model == {"layers": 1}
    assert "model has no option 'heads'" in str(refused(flags=Flags(preset="rnn"), sets=("model.heads=4",)))
    assert "model has no option 'layers'" in str(refused(flags=Flags(preset="tiny"), sets=("model.layers=4",)))


def test_a_preset_of_another_kind_takes_what_it_knows_of_a_recipe() -> None:
    """The recipe's own model is a Transformer; --set still must name what there is."""
    request = make_request("stdlib", Flags(preset="rnn"), ["model.layers=1"])
    assert request.model == {"dropout": 0.1, "layers": 1}
    with pytest.raises(UserError, match="no option 'norm'"):
        make_request("stdlib", Flags(preset="rnn"), ["model.norm=post"])


def test_an_unknown_preset_is_refused() -> None:
    assert "preset is 'large'; it has" in str(refused(flags=Flags(preset="large")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[modle]\nwidth = 8\n", "the recipe has a key 'modle'; did you mean 'model'?"),
        ("model = 3\n", "model is 3; expected a section [model]"),
        ("preset = 5\n", "preset is 5; it has"),
        ("[training]\nstep = 8\n", "training has no option 'step'; did you mean 'steps'?"),
        ("[training]\nsteps = '8'\n", "training.steps is '8', text; expected a whole number"),
        ("steps 8\n", "is not valid TOML"),
        ("[model]\nwidth = 8\nwidth = 9\n", "is not valid TOML"),
    ],
)
def test_a_wrong_recipe_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text, encoding="utf-8")
    error = refused(str(path))
    assert message in str(error)
    assert error.exit_code == USAGE


def test_a_recipe_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'preset = "t\xefny"\n')
    error = refused(str(tmp_path / "latin.toml"))
    assert "is not UTF-8 text" in str(error)
    assert error.exit_code == USAGE


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "windows.toml").write_bytes(b'\xef\xbb\xbfpreset = "tiny"\r\n')
    assert make_request(str(tmp_path / "windows.toml"), Flags()).preset == "tiny"


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    error = refused(str(tmp_path / "no.toml"))
    assert str(tmp_path / "no.toml") in str(error)
    assert error.exit_code == MISSING
    assert "there is no recipe 'dtaes'; did you mean 'dates'?" in str(refused("dtaes"))


def test_a_recipe_that_cannot_be_read(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)
    error = refused(str(recipe))
    assert "Permission denied" in str(error)
    assert error.exit_code == DISK


# -- recipes that are shipped ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_is_valid_and_says_what_it_is(name: str) -> None:
    assert recipe_text(name).startswith("# ")
    assert make_request(name, Flags()).preset == read_recipe(name)["preset"]


def test_a_folder_of_the_same_name_hides_no_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dates").mkdir()
    monkeypatch.chdir(tmp_path)
    assert make_request("dates", Flags()).data.target_language == "zh"


# -- options of the data alone --------------------------------------------------------------------------------------


def test_options_for_commands_that_train_nothing() -> None:
    assert data_options([]) == DataOptions()
    assert data_options(["data.source_language=en"]) == DataOptions(source_language="en")
    for text, message in (
        ("training.steps=3", "--set training.steps: only options of data matter here"),
        ("data.tokenizr=bpe", "did you mean 'tokenizer'?"),
    ):
        with pytest.raises(UserError) as caught:
            data_options([text])
        assert message in str(caught.value)
        assert caught.value.exit_code == USAGE


# -- run.toml -------------------------------------------------------------------------------------------------------

SETTINGS = Settings(
    train=["a.en", "a.de"],
    valid=[],
    preset="tiny",
    init_from="",
    data=DataOptions(source_language="en", vocabulary=313),
    model=SIZES["tiny"],
    training=TrainingOptions(steps=7, minutes=1.0, peak_rate=1e-05, tensorboard=True),
    decoding=DecodingOptions(temperature=0.7),
)


@pytest.mark.parametrize("model", [*SIZES.values(), TransformerOptions(scale=0.3), RNNOptions(cell="lstm")])
def test_settings_are_stored_and_read_back(model: TransformerOptions | RNNOptions) -> None:
    settings = replace(SETTINGS, model=model)
    assert from_toml(to_toml(settings, "clearhead train")) == settings


# Surrogates are how Python passes on bytes in paths that are no UTF-8; TOML cannot hold them.
PATHS = st.text(st.characters(exclude_categories=["Cs"]))


@given(PATHS, PATHS, PATHS)
def test_odd_characters_in_paths_are_stored_and_read_back(source: str, target: str, command: str) -> None:
    settings = replace(SETTINGS, train=[source, target], valid=[target], init_from=source)
    assert from_toml(to_toml(settings, command)) == settings


@pytest.mark.parametrize("path", ['a "quoted" \\ file', "line\nend", "tab\tdelete\x7f", "中文 \U0001f600 \U000e0001"])
def test_these_paths_too(path: str) -> None:
    settings = replace(SETTINGS, train=[path])
    assert from_toml(to_toml(settings, path)) == settings


def test_a_mistyped_run_is_refused() -> None:
    text = to_toml(SETTINGS, "")
    with pytest.raises(ValueError, match="did you mean 'steps'"):
        from_toml(text.replace("steps = 7", "stepz = 7"))
    with pytest.raises(ValueError, match=r"model\.kind is 'rnm'; expected one of transformer, rnn"):
        from_toml(text.replace('kind = "transformer"', 'kind = "rnm"'))


def test_differences_are_named_with_both_values() -> None:
    other = replace(SETTINGS, training=replace(SETTINGS.training, seed=5, steps=9))
    assert differences(SETTINGS, other, {"training.steps"}) == ["training.seed: 1, now 5"]
    assert differences(SETTINGS, replace(SETTINGS, model=SIZES["rnn"]), set()) == ["model: transformer, now rnn"]
