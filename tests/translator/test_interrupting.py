"""A job that is stopped keeps what is finished, says what goes on with it, and then does only the rest."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clearhead.cli import run
from clearhead.decoding import DecodingOptions
from clearhead.errors import INTERRUPTED, OK, TERMINATED, USAGE, Interrupted, UserError, exit_code_of
from clearhead.translator.files import EVERY, Task, translate_file
from clearhead.translator.interrupting import listening
from clearhead.translator.pace import LEAST, Pace
from clearhead.translator.reading import chunked
from tests.tiny_model import WORDS, write_model
from tests.training.toy import environment

from .stub import Ids, StubEngine, stub_translator

ROOT = Path(__file__).parents[2]
LINES = [f"line {i}" for i in range(53)]


@pytest.fixture(autouse=True)
def signals_are_heard() -> Iterator[None]:
    """Also where the tests run in the background of a shell, which has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def write_lines(folder: Path) -> Path:
    (folder / "in").write_text("".join(f"{line}\n" for line in LINES))
    return folder / "in"


def stops_at(word: str, number: signal.Signals) -> StubEngine:
    """An engine to whose process this signal comes while it works on a source."""

    def rule(source: Ids, _: DecodingOptions) -> Ids:
        if engine.asked[-1:] and word in engine.asked:
            engine.asked.clear()
            os.kill(os.getpid(), number)
        return source

    engine = StubEngine(rule)
    return engine


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_a_signal_keeps_what_is_finished_and_says_what_goes_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    code: int,
) -> None:
    monkeypatch.setattr("clearhead.translator.reading.LINES", 4)
    source, out = write_lines(tmp_path), tmp_path / "out"
    task = Task(DecodingOptions(), again="clearhead translate a b --resume")
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def stopped() -> int:
        translate_file(stub_translator(stops_at("line 29", number)), source, out, task)
        return OK

    assert exit_code_of(stopped) == code
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    kept = (tmp_path / "out.partial").read_text().splitlines()
    assert kept == LINES[:28]  # none of it was old enough to be written before the signal
    said = f"28 of 53 lines are in {out}.partial; go on with: clearhead translate a b --resume"
    assert said in capsys.readouterr().err
    engine = StubEngine()
    translate_file(stub_translator(engine), source, out, Task(DecodingOptions(), resume=True))
    assert sorted(engine.asked) == sorted(LINES[28:])
    assert out.read_bytes() == source.read_bytes()


def test_what_cannot_be_gone_on_with_is_not_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.translator.reading.LINES", 4)
    source = write_lines(tmp_path)
    with pytest.raises(Interrupted, match=r"^28 of 53 lines were written$"):
        translate_file(
            stub_translator(stops_at("line 29", signal.SIGINT)), source, Path(os.devnull), Task(DecodingOptions())
        )
    with source.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(Interrupted, match=r"28 lines are in .*partial; what came through a pipe"):
            translate_file(
                stub_translator(stops_at("line 29", signal.SIGINT)),
                Path("-"),
                tmp_path / "out",
                Task(DecodingOptions()),
            )


def test_a_signal_waits_until_a_line_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while the last chunk is written, and once more while the file gets its name."""
    source, out = write_lines(tmp_path), tmp_path / "out"
    monkeypatch.setattr("clearhead.translator.writing.failpoint", lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(Interrupted, match="53 of 53 lines are in"):
        translate_file(stub_translator(), source, out, Task(DecodingOptions()))
    with pytest.raises(Interrupted, match=f"all 53 lines are in {out}$"):
        translate_file(stub_translator(), source, out, Task(DecodingOptions(), resume=True))
    assert out.read_bytes() == source.read_bytes()


def test_signals_that_are_ignored_or_anothers_stay_so() -> None:
    def own(*_: object) -> None: ...

    before = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.signal(signal.SIGTERM, own)
    try:
        with listening():
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
    thread = threading.Thread(target=lambda: listening().__enter__())
    thread.start()
    thread.join()


def test_finished_lines_are_written_while_others_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most EVERY seconds after they were finished, whatever the chunk they are in."""
    clock = [0.0]
    monkeypatch.setattr("clearhead.translator.files.time.monotonic", lambda: clock[0])
    source, partial = write_lines(tmp_path), tmp_path / "out.partial"
    written: list[int] = []

    def slowly(ids: Ids, _: DecodingOptions) -> Ids:
        clock[0] += EVERY / 10
        written.append(partial.read_text().count("\n"))
        return ids

    translate_file(stub_translator(StubEngine(slowly)), source, tmp_path / "out", Task(DecodingOptions()))
    for done, lines in enumerate(written):
        assert lines >= done - 15 - Pace(DecodingOptions()).lines  # ten in EVERY, five in a batch, a chunk by length
    monkeypatch.undo()
    assert (tmp_path / "out").read_bytes() == source.read_bytes()


def test_the_pace_is_that_of_a_second_or_so() -> None:
    pace = Pace(DecodingOptions(beam=5))
    most, first = pace.most, pace.lines
    for _ in range(9):
        pace.took(0.1)
    assert pace.lines == most > first
    for _ in range(20):
        pace.took(9.0)
    assert pace.lines == LEAST
    pace.took(1.0)
    assert pace.lines == LEAST
    assert Pace(DecodingOptions(beam=80)).most < most / 15
    sizes = iter([2, 2, 3, 3, 3, 4, 4, 4, 4])
    assert [len(chunk.lines) for chunk in chunked([b"x\n"] * 9, lambda: next(sizes))] == [2, 3, 4]


def test_a_finished_job_is_recognised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = write_lines(tmp_path), tmp_path / "out"
    engine = StubEngine()

    def again(task: Task) -> int:
        engine.asked.clear()
        translate_file(stub_translator(engine), source, out, task)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
        return len(engine.asked)

    resumed = Task(DecodingOptions(), resume=True)
    assert again(Task(DecodingOptions())) == 53
    assert again(resumed) == 0
    same = "53 lines of the same input, model and options. Without --resume it is made anew"
    assert f"{out} is finished: {same}" in capsys.readouterr().err
    (tmp_path / "out.journal").write_text("left by a kill after the last step but one")
    assert again(resumed) == 0
    assert again(Task(DecodingOptions(beam=2), resume=True)) == 53
    assert again(resumed) == 53
    out.write_text("changed\n")
    assert again(resumed) == 53
    source.write_text("other\n")
    assert again(resumed) == 1


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_lines(tmp_path)
    monkeypatch.setenv("CLEARHEAD_CACHE", str(source / "no folder"))
    translate_file(stub_translator(), source, tmp_path / "out", Task(DecodingOptions(), resume=True))
    assert (tmp_path / "out").read_bytes() == source.read_bytes()


@pytest.mark.slow
def test_stopped_and_killed_anywhere_a_real_model_writes_the_same_bytes(tmp_path: Path) -> None:
    """Native and --deterministic, so that no line depends on its neighbours."""
    model = write_model(tmp_path / "model")
    rng = random.Random(3)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(1, 7))) for _ in range(900)]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    options = ["--engine", "native", "--deterministic"]
    translate = [sys.executable, "-m", "clearhead", "translate", str(model), str(tmp_path / "in"), *options]
    env = environment(CLEARHEAD_CACHE=str(tmp_path / "cache"))
    command = [*translate, "-o", str(tmp_path / "out"), "--resume"]
    subprocess.run([*translate, "-o", str(tmp_path / "straight")], check=True, cwd=ROOT, env=env, capture_output=True)
    before = 0
    for number in (signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
        partial = tmp_path / "out.partial"
        while process.poll() is None and (not partial.exists() or partial.read_bytes().count(b"\n") <= before):
            time.sleep(0.01)
        time.sleep(rng.random() / 2)
        process.send_signal(number)
        errors = process.communicate()[1]
        assert process.returncode in {-9, INTERRUPTED, TERMINATED}, errors
        now = partial.read_bytes()
        if number != signal.SIGKILL:
            assert process.returncode == (INTERRUPTED if number == signal.SIGINT else TERMINATED)
            said = re.search(
                r"([\d,]+) of 900 lines are in .*partial; go on with: .*clearhead translate .*--resume\n", errors
            )
            assert said, errors
            assert int(said[1].replace(",", "")) == now.count(b"\n")
            assert now.endswith(b"\n")
            assert (tmp_path / "straight").read_bytes().startswith(now)
        assert now.count(b"\n") >= before
        before = now.count(b"\n")
    subprocess.run(command, check=True, cwd=ROOT, env=env, capture_output=True)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "straight").read_bytes()
    done = subprocess.run(command, check=True, cwd=ROOT, env=env, capture_output=True, text=True)
    assert "is finished: 900 lines" in done.stderr


# -- one text --------------------------------------------------------------------------------------------------------


def test_one_text_is_translated_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_model(tmp_path / "model")
    (tmp_path / "in").write_text("a bad cage\n")
    command = ["translate", str(model), "--engine", "native"]
    assert exit_code_of(lambda: run([*command, str(tmp_path / "in")])) == OK
    expected = capsys.readouterr().out
    assert exit_code_of(lambda: run([*command, "--text", "a bad cage"])) == OK
    assert capsys.readouterr().out == expected
    assert exit_code_of(lambda: run([*command, "--text", "😀"])) == OK
    assert capsys.readouterr() == ("😀\n", "clearhead: copied: nothing in it to translate: it stands as it was\n")
    assert exit_code_of(lambda: run([*command, "--text", "head", "--json"])) == OK
    assert capsys.readouterr().out.startswith('{"source": "head"')
    for other in ([str(tmp_path / "in")], ["-o", str(tmp_path / "out")], ["--resume"], ["--shard", "1/2"]):
        with pytest.raises(UserError, match=r"--text and .* are both given") as caught:
            run([*command, "--text", "head", *other])
        assert caught.value.exit_code == USAGE
