"""Files in, files out: packed or not, through pipes, gone on with or refused."""

import gzip
import io
import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zstandard

from clearhead.decoding import DecodingOptions
from clearhead.errors import BAD_DATA, DISK, MISSING, TRY_AGAIN, USAGE, Interrupted, UserError
from clearhead.translator import Translation, Translator, load
from clearhead.translator.files import Task, search_options, translate_file
from clearhead.translator.glossary import Entry, Glossary
from clearhead.translator.reading import chunked, input_blocks, raw_lines
from tests.tiny_model import write_model
from tests.training.toy import environment

from .stub import StubEngine, forgets_bytes, stub_translator

PLAIN = Task(DecodingOptions())
RESUMED = Task(DecodingOptions(), resume=True)
TEXT = "one\n\ntwo 😀\nthree"


def translated(data: bytes, folder: Path, name: str = "in", out: str = "out", by: Translator | None = None) -> bytes:
    (folder / name).write_bytes(data)
    translate_file(by or stub_translator(), folder / name, folder / out, PLAIN)
    assert not list(folder.glob("*.partial"))
    assert not list(folder.glob("*.journal"))
    return (folder / out).read_bytes()


def test_a_line_at_a_time_is_the_same_as_all_together(tmp_path: Path) -> None:
    by = load(write_model(tmp_path / "model"), engine="native")
    lines = ["abc", "", "head", "  ", "a bad cabbage", "j", "dig a big cage", "abc"]
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "in").write_text("".join(f"{line}\n" for line in lines))
    translate_file(by, folder / "in", folder / "out", Task(by.decoding))
    assert (folder / "out").read_text().split("\n") == [*(by.translate(line)[0] for line in lines), ""]


def test_packed_files(tmp_path: Path) -> None:
    assert translated(TEXT.encode(), tmp_path) == TEXT.encode()
    assert translated(gzip.compress(TEXT.encode()), tmp_path, "in.gz") == TEXT.encode()
    assert translated(zstandard.compress(TEXT.encode()), tmp_path, "in.zst") == TEXT.encode()
    assert gzip.decompress(translated(TEXT.encode(), tmp_path, out="out.gz")) == TEXT.encode()
    assert gzip.decompress(translated(b"", tmp_path, out="out.gz")) == b""
    with pytest.raises(UserError, match="would be packed with zstd") as caught:
        translated(b"a\n", tmp_path, out="out.zst")
    assert caught.value.exit_code == USAGE


def test_what_is_packed_but_not_called_so_is_refused(tmp_path: Path) -> None:
    for data in (gzip.compress(b"abc" * 99), zstandard.compress(b"abc\0" * 99), "abc\n".encode("utf-16")):
        with pytest.raises(UserError) as caught:
            translated(data, tmp_path)
        assert (caught.value.code, caught.value.exit_code) == ("NOT_TEXT", BAD_DATA)
    with pytest.raises(UserError, match="no complete gzip file"):
        translated(gzip.compress(b"abc" * 99)[:-9], tmp_path, "in.gz")


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    assert translated(b"abc\r\n\r\nd\re\r\n", tmp_path) == b"abc\n\nd e\n"
    assert translated(b"\xef\xbb\xbfabc\n\xef\xbb\xbfd\n", tmp_path) == "abc\n\ufeffd\n".encode()


def test_a_model_that_says_line_ends_breaks_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by = stub_translator()
    said = Translation("one\ntwo\r\x85three", 0.0)
    monkeypatch.setattr(by, "stream", lambda *_: iter([([0, 1], [[said], [said]])]))
    assert translated(b"a\nb\n", tmp_path, by=by) == b"one two  three\n" * 2


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out := io.BytesIO()))
    translate_file(stub_translator(), Path("-"), Path("-"), PLAIN)
    assert out.getvalue() == TEXT.encode()


def test_lines_that_come_slowly_are_not_kept_waiting() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as source, os.fdopen(write, "wb", buffering=0) as sink:
        chunks = chunked(raw_lines(input_blocks(source)))
        for said, heard in ((b"one\ntwo\nthr", ["one", "two"]), (b"ee\n", ["three"])):
            sink.write(said)
            assert next(chunks).lines == heard
        sink.write(b"four")
        sink.close()
        (last,) = chunks
        assert (last.lines, last.ends_with_newline) == (["four"], False)


def test_typed_at_a_terminal_each_line_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "rb", buffering=0) as raw, io.BufferedReader(raw) as source:
        chunks = chunked(raw_lines(input_blocks(source)))
        for line in ("one", "two"):
            os.write(ours, f"{line}\n".encode())
            assert next(chunks).lines == [line]
        os.write(ours, b"\x04")  # Ctrl-D
        assert list(chunks) == []
    os.close(ours)
    assert capsys.readouterr().err == "> > > \n"


def test_chunks_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(b"x" * (i % 5) + b"\n" for i in range(40)) + b"end"
    monkeypatch.setattr("clearhead.translator.reading.LINES", 7)
    monkeypatch.setattr("clearhead.translator.reading.SIZE", 20)
    whole = list(chunked(raw_lines([data])))
    for size in (1, 3, 11):
        assert list(chunked(raw_lines(data[i : i + size] for i in range(0, len(data), size)))) == whole
    assert max(len(chunk.lines) for chunk in whole) <= 7


def test_progress_and_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 3))
    monkeypatch.setattr("clearhead.progress.time.monotonic", lambda: next(clock))
    by = stub_translator(StubEngine(forgets_bytes))
    translated("abc\n😀\nhi 😀 you\n".encode(), tmp_path, by=by)
    said = capsys.readouterr().err
    assert "translating: 1 of 3 lines" in said
    assert said.splitlines()[-1].startswith("clearhead: 3 lines translated in ")
    assert said.splitlines()[-1].endswith(" s, 1 copied, 1 protected")


def test_short_work_without_trouble_is_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    translated(b"abc\n", tmp_path)
    assert capsys.readouterr().err == ""


# -- mistakes --------------------------------------------------------------------------------------------------------


def refused(source: Path, output: Path, task: Task = PLAIN, by: Translator | None = None) -> UserError:
    with pytest.raises(UserError) as caught:
        translate_file(by or stub_translator(), source, output, task)
    return caught.value


def test_mistakes_are_told_before_the_work(tmp_path: Path) -> None:
    good = tmp_path / "in"
    good.write_text("abc\n")
    error = refused(tmp_path / "no", tmp_path / "out")
    assert (error.code, error.exit_code) == ("NO_INPUT", MISSING)
    error = refused(tmp_path, tmp_path / "out")
    assert (error.code, error.exit_code) == ("DIRECTORY", USAGE)
    for output in (tmp_path / "no" / "out", tmp_path):
        error = refused(good, output)
        assert (error.code, error.exit_code) == ("OUTPUT", DISK)


def test_search_options() -> None:
    own = DecodingOptions(beam=3)
    assert search_options(own, {"beam": None, "n_best": None}, as_json=False) == own
    assert search_options(own, {"n_best": 5}, as_json=True) == DecodingOptions(beam=5, n_best=5)
    assert search_options(own, {"n_best": 2, "beam": 2}, as_json=True) == DecodingOptions(beam=2, n_best=2)
    assert search_options(own, {"top_k": 7}, as_json=False).temperature == 1.0
    for changes, said in (({"n_best": 2}, "--n-best 2 needs --json"), ({"temperature": -1.0}, "temperature is -1.0")):
        with pytest.raises(UserError, match=said) as caught:
            search_options(own, changes, as_json=False)
        assert caught.value.exit_code == USAGE
    with pytest.raises(UserError, match="n_best is 5, but a beam of 2"):
        search_options(own, {"n_best": 5, "beam": 2}, as_json=True)


# -- resume ----------------------------------------------------------------------------------------------------------


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a run leaves that stops after two chunks of three lines; its input."""
    monkeypatch.setattr("clearhead.translator.reading.LINES", 3)
    monkeypatch.setattr("clearhead.translator.files.EVERY", 0.0)
    (folder / "in").write_text("".join(f"line {i}\n" for i in range(10)))
    passed = iter(range(100))

    def stop(name: str) -> None:
        if next(passed) == 3:
            raise KeyboardInterrupt(name)

    with monkeypatch.context() as patch:
        patch.setattr("clearhead.translator.writing.failpoint", stop)
        with pytest.raises(Interrupted):
            translate_file(stub_translator(), folder / "in", folder / "out", PLAIN)
    assert json.loads((folder / "out.journal").read_text())["reached"]["lines"] == 6
    return folder / "in"


def test_resume_asks_only_for_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = interrupted(tmp_path, monkeypatch)
    with (tmp_path / "out.partial").open("ab") as file:
        file.write(b"half a li")
    engine = StubEngine()
    translate_file(stub_translator(engine), source, tmp_path / "out", RESUMED)
    assert (tmp_path / "out").read_bytes() == source.read_bytes()
    assert sorted(engine.asked) == [f"line {i}" for i in range(6, 10)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_without_resume_all_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = interrupted(tmp_path, monkeypatch)
    engine = StubEngine()
    translate_file(stub_translator(engine), source, tmp_path / "out", PLAIN)
    assert len(engine.asked) == 10
    assert (tmp_path / "out").read_bytes() == source.read_bytes()
    translate_file(stub_translator(engine), source, tmp_path / "out", PLAIN)
    assert len(engine.asked) == 20


def test_a_partial_output_that_is_shorter_than_it_should_be_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = interrupted(tmp_path, monkeypatch)
    (tmp_path / "out.partial").write_bytes(b"x")
    translate_file(stub_translator(), source, tmp_path / "out", RESUMED)
    assert (tmp_path / "out").read_bytes() == source.read_bytes()


def test_resume_of_other_work_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = interrupted(tmp_path, monkeypatch), tmp_path / "out"
    before = (tmp_path / "out.partial").read_bytes()
    other = tmp_path / "other"
    other.write_text("line\n" * 10)
    error = refused(other, output, RESUMED)
    assert (error.code, error.exit_code) == ("OTHER_INPUT", BAD_DATA)
    error = refused(source, output, RESUMED, stub_translator(max_tokens=53))
    assert (error.code, error.exit_code) == ("OTHER_MODEL", USAGE)
    glossary = Glossary([Entry("a", "b")])
    for task, said in (
        (Task(DecodingOptions(beam=2), resume=True), "beam was 5, now 2"),
        (Task(DecodingOptions(), as_json=True, resume=True), "json was False, now True"),
        (Task(DecodingOptions(), prefix="x", resume=True), "prefix was , now x"),
        (Task(DecodingOptions(), glossary, resume=True), "glossary was None, now "),
    ):
        error = refused(source, output, task)
        assert (error.code, error.exit_code) == ("OTHER_OPTIONS", USAGE)
        assert said in str(error)
    assert (tmp_path / "out.partial").read_bytes() == before
    (tmp_path / "out.journal").write_text("{")
    error = refused(source, output, RESUMED)
    assert (error.code, error.exit_code) == ("JOURNAL", BAD_DATA)


def test_resume_needs_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("abc\n")
    for source, output in (
        (tmp_path / "in", Path("-")),
        (Path("-"), tmp_path / "out"),
        (tmp_path / "in", Path("/dev/null")),
    ):
        error = refused(source, output, RESUMED)
        assert (error.code, error.exit_code) == ("RESUME", USAGE)


def test_two_at_once_do_not_write_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").write_text("abc\n")
    seen: list[UserError] = []

    def second(_: str) -> None:
        monkeypatch.undo()
        seen.append(refused(tmp_path / "in", tmp_path / "out"))

    monkeypatch.setattr("clearhead.translator.writing.failpoint", second)
    translate_file(stub_translator(), tmp_path / "in", tmp_path / "out", PLAIN)
    assert [(error.code, error.exit_code) for error in seen] == [("LOCKED", TRY_AGAIN)]
    assert (tmp_path / "out").read_text() == "abc\n"


@pytest.mark.slow
def test_the_fast_engine_does_without_torch(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    model = write_model(tmp_path / "model")
    load(model, engine="ct2")  # which makes its form of the model
    (tmp_path / "in").write_text("abc\n\nhead\n")
    arguments = ["translate", str(model), str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--engine", "ct2"]
    code = (
        f"import sys; from clearhead.cli import run; code = run({arguments}); sys.exit(code or 'torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], env=environment())
    assert (tmp_path / "out").read_text().count("\n") == 3


def test_many_lines_take_little_time_each(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a line of text that is not short\n" * 2_000)
    started = time.process_time()
    translate_file(stub_translator(), tmp_path / "in", tmp_path / "out", PLAIN)
    assert time.process_time() - started < 4


@pytest.mark.skipif(sys.platform != "linux", reason="needs a device that is always full")
def test_a_full_device_is_named_however_little_is_written(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    error = refused(tmp_path / "in", Path("/dev/full"))
    assert "cannot write /dev/full: No space left on device; free space or name another output" in str(error)
