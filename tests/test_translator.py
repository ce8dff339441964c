"""Text in, text out: as many lines as there were, in their order, whatever the lines hold."""

import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import clearhead
from clearhead.decoding import DecodingOptions
from clearhead.engines import native
from clearhead.errors import DAMAGED, DISK, MISSING, USAGE, UserError
from clearhead.translator import Translation, Translator, load, translate_file
from tests.tiny_model import DECODING, make_translator, write_model

TEXTS = ["abc", "", "head", "  ", "a bad cabbage", "j", "\t", "dig a big cage", "é😀", "abc"]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return make_translator(tmp_path_factory.mktemp("model"))


def test_alone_equals_together_in_any_order(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [translator.translate([text])[0] for text in TEXTS]
    assert translator.translate(TEXTS) == alone
    assert translator.translate(TEXTS[::-1]) == alone[::-1]
    monkeypatch.setattr(native, "TOKENS_PER_BATCH", 23)
    assert translator.translate(TEXTS) == alone
    assert len(set(alone)) > 4


def test_blank_texts_stay_and_the_model_is_not_asked(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator, "engine", None, raising=True)
    blank = ["", " ", "\t", "\u3000"]
    with pytest.raises(AttributeError):
        translator.translate(["a"])
    monkeypatch.undo()
    asked: list[int] = []
    engine = translator.engine

    class Counting:
        def translate_batches(self, sources: list[list[int]], options: DecodingOptions) -> object:
            asked.append(len(sources))
            return engine.translate_batches(sources, options)

    monkeypatch.setattr(translator, "engine", Counting())
    assert translator.translate(blank) == blank
    assert translator.translate(["a", *blank])[1:] == blank
    assert asked == [0, 1]


def test_no_texts_at_all(translator: Translator) -> None:
    assert translator.translate([]) == []


def test_beam_is_an_option(translator: Translator) -> None:
    best = {beam: translator.alternatives(["a bad cabbage"], translator.options(beam))[0][0] for beam in (1, 2, 20)}
    assert best[20].score >= best[1].score - 1e-5
    assert translator.translate(["a bad cabbage"], beam=20) == [best[20].text]
    assert translator.options(None) == DECODING
    assert translator.translate(["a bad cabbage"]) == [best[2].text]


def test_a_narrow_beam_returns_fewer(tmp_path: Path) -> None:
    translator = make_translator(tmp_path, DecodingOptions(beam=5, n_best=3, max_length=3))
    assert len(translator.alternatives(["abc"], translator.options(None))[0]) == 3
    assert len(translator.alternatives(["abc"], translator.options(2))[0]) == 2
    assert len(translator.translate(["abc"], beam=1)) == 1


def test_alternatives_are_best_first(translator: Translator) -> None:
    found = translator.alternatives(["abc", ""], DecodingOptions(beam=5, n_best=5, max_length=5))
    scores = [translation.score for translation in found[0]]
    assert scores == sorted(scores, reverse=True)
    assert found[1] == [Translation("", 0.0)]


def test_it_says_what_it_is(translator: Translator) -> None:
    assert repr(translator) == "<Translator en → zh, transformer of width 14>"
    assert translator.languages == ("en", "zh")


def test_a_model_that_says_no_languages(translator: Translator) -> None:
    config = {"model": translator.config["model"]}
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    bare = Translator(translator.engine, *tokenizers, translator.decoding, config)
    assert bare.languages == ("und", "und")


def test_run_folder_and_model_folder_are_the_same(tmp_path: Path) -> None:
    write_model(tmp_path / "run" / "model")
    assert clearhead.load is load
    in_run, itself = load(tmp_path / "run"), load(str(tmp_path / "run" / "model"))
    assert in_run.translate(TEXTS) == itself.translate(TEXTS)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "no", MISSING), (tmp_path, DAMAGED)):
        with pytest.raises(UserError) as caught:
            load(path)
        assert caught.value.exit_code == code
    write_model(tmp_path / "model")
    (tmp_path / "model" / "source.json").unlink()
    with pytest.raises(UserError) as caught:
        load(tmp_path / "model")
    assert caught.value.exit_code == DAMAGED


# -- files ----------------------------------------------------------------------------------------------------------


def translated(translator: Translator, data: bytes, folder: Path) -> bytes:
    (folder / "in").write_bytes(data)
    translate_file(translator, folder / "in", folder / "out", None)
    assert not (folder / "out.partial").exists()
    return (folder / "out").read_bytes()


def test_each_line_is_translated_as_if_it_were_alone(translator: Translator, tmp_path: Path) -> None:
    lines = [text for text in TEXTS if text.isascii()]
    expected = [text if not text.strip() else translator.translate([text])[0] for text in lines]
    written = translated(translator, "".join(f"{line}\n" for line in lines).encode(), tmp_path)
    assert written.decode().split("\n")[:-1] == expected


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a", b"a\n", b"a\n\nb", b"a\n\nb\n\n", b"\xff\n", "\u2028a\x85b\x0b\n".encode()]
)
def test_as_many_lines_and_the_same_end(data: bytes, translator: Translator, tmp_path: Path) -> None:
    written = translated(translator, data, tmp_path)
    assert written.count(b"\n") == data.count(b"\n")
    assert written.endswith(b"\n") == data.endswith(b"\n")


def test_windows_line_ends_and_byte_order_mark(translator: Translator, tmp_path: Path) -> None:
    plain = translated(translator, b"abc\n\nhead\n", tmp_path)
    assert translated(translator, b"abc\r\n\r\nhead\r\n", tmp_path) == plain
    assert translated(translator, b"\xef\xbb\xbfabc\n\nhead\n", tmp_path) == plain


@given(
    st.binary(max_size=40) | st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\x0b", b" ", b"\xc2\x85"])).map(b"".join)
)
@example(b"a\r")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_F26_output_lines_equal_input_lines(translator: Translator, tmp_path: Path, data: bytes) -> None:
    written = translated(translator, data, tmp_path)
    assert written.count(b"\n") == data.count(b"\n")
    assert (written[-1:] == b"\n") == (data[-1:] == b"\n")


def test_a_model_that_says_line_ends_breaks_no_line(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Translation("one\ntwo\r\x85three", 0.0)
    monkeypatch.setattr(translator, "stream", lambda *_: iter([([0], [[said]])]))
    assert translated(translator, b"a\nb\n", tmp_path) == b"one two  three\nb\n"


def test_standard_input_and_output(translator: Translator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"abc\nhead")))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out := io.BytesIO()))
    translate_file(translator, Path("-"), Path("-"), None)
    assert out.getvalue() == translated(translator, b"abc\nhead", tmp_path)


def refused(translator: Translator, source: Path, output: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        translate_file(translator, source, output, None)
    return caught.value


def test_mistakes_are_told_before_the_work(translator: Translator, tmp_path: Path) -> None:
    good = tmp_path / "in"
    good.write_text("abc\n")
    error = refused(translator, tmp_path / "no", tmp_path / "out")
    assert (error.code, error.exit_code) == ("NO_INPUT", MISSING)
    error = refused(translator, tmp_path, tmp_path / "out")
    assert (error.code, error.exit_code) == ("DIRECTORY", USAGE)
    for output in (tmp_path / "no" / "out", tmp_path):
        error = refused(translator, good, output)
        assert (error.code, error.exit_code) == ("OUTPUT", DISK)


def test_an_old_translation_stays_if_the_new_one_fails(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text("abc\n")
    (tmp_path / "out").write_text("old\n")

    def full(path: Path, _: bytes) -> None:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    error = refused(translator, tmp_path / "in", tmp_path / "out")
    assert (error.code, error.exit_code) == ("OUTPUT", DISK)
    assert "No space left on device" in str(error)
    assert (tmp_path / "out").read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
