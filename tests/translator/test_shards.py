"""Any number of shards, made in any order, merge into what one run makes; and nothing else does."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearhead.cli import run
from clearhead.decoding import DecodingOptions
from clearhead.errors import BAD_DATA, MISSING, OK, USAGE, UserError, exit_code_of
from clearhead.translator.files import Task, translate_file
from clearhead.translator.shards import Shard, merge, parse_shard
from tests.tiny_model import write_model

from .stub import StubEngine, stub_translator


def make(folder: Path, source: Path, of: int, ending: str = "") -> list[Path]:
    shards = [folder / f"part-{number}{ending}" for number in range(1, of + 1)]
    for number, output in reversed(list(enumerate(shards, 1))):
        translate_file(stub_translator(), source, output, Task(DecodingOptions(), shard=Shard(number, of)))
    return shards


@given(
    data=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\xef\xbb\xbf", b"1", b"\xff"])).map(b"".join),
    of=st.integers(1, 7),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
def test_merged_is_what_one_run_makes(tmp_path: Path, data: bytes, of: int) -> None:
    (tmp_path / "in").write_bytes(data)
    translate_file(stub_translator(), tmp_path / "in", tmp_path / "whole", Task(DecodingOptions()))
    shards = make(tmp_path, tmp_path / "in", of)
    lines = merge(tmp_path / "merged", shards[::-1])
    assert (tmp_path / "merged").read_bytes() == (tmp_path / "whole").read_bytes()
    assert lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data.removeprefix(b"\xef\xbb\xbf")))


def test_packed_shards(tmp_path: Path) -> None:
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"one\ntwo\nthree\n"))
    shards = make(tmp_path, tmp_path / "in.gz", 2, ".gz")
    assert gzip.decompress(shards[1].read_bytes()) == b"two\nthree\n"
    merge(tmp_path / "out", shards)
    assert (tmp_path / "out").read_bytes() == b"one\ntwo\nthree\n"
    merge(tmp_path / "out.gz", shards)
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == b"one\ntwo\nthree\n"


def test_a_finished_shard_is_not_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text("one\ntwo\nthree\n")
    engine = StubEngine()

    def again(options: DecodingOptions) -> int:
        engine.asked.clear()
        translate_file(stub_translator(engine), tmp_path / "in", tmp_path / "out", Task(options, shard=Shard(2, 2)))
        return len(engine.asked)

    assert again(DecodingOptions()) == 2
    manifest = json.loads((tmp_path / "out.shard.json").read_text())
    assert (manifest["number"], manifest["of"], manifest["first_line"], manifest["lines"]) == (2, 2, 2, 2)
    assert again(DecodingOptions()) == 0
    assert f"shard 2/2 is already in {tmp_path / 'out'}" in capsys.readouterr().err
    assert again(DecodingOptions(beam=3)) == 2
    (tmp_path / "out").write_text("two\nTHREE\n")
    assert again(DecodingOptions(beam=3)) == 2
    (tmp_path / "out.shard.json").write_text("{")
    assert again(DecodingOptions(beam=3)) == 2
    (tmp_path / "in").write_text("one\ntwo\nfour\n")
    assert again(DecodingOptions(beam=3)) == 2
    (tmp_path / "out").unlink()
    assert again(DecodingOptions(beam=3)) == 2


def refused(output: Path, *shards: Path) -> tuple[str, int, str]:
    with pytest.raises(UserError) as caught:
        merge(output, shards)
    assert not output.exists()
    return caught.value.code, caught.value.exit_code, str(caught.value)


def test_what_does_not_belong_together_is_not_merged(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one\ntwo\nthree\nfour\n")
    one, two, three = make(tmp_path, tmp_path / "in", 3)
    out = tmp_path / "out"
    assert refused(out, one, three) == (
        "SHARD_MISSING",
        BAD_DATA,
        "shard 2/3 is missing; translate it with --shard 2/3, and name it",
    )
    code, exit_code, said = refused(out, one, two, three, two)
    assert (code, exit_code) == ("SHARD_TWICE", BAD_DATA)
    assert f"{two} and {two} are both shard 2" in said
    assert refused(out, one, two, tmp_path / "no")[:2] == ("NO_SHARD", MISSING)
    assert refused(out, one, two, tmp_path / "in")[:2] == ("NO_SHARD", MISSING)
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "in").write_text("one\ntwo\nthree\nfive\n")
    other = make(folder, folder / "in", 3)[2]
    assert "their input differ" in refused(out, one, two, other)[2]
    halves = make(folder, tmp_path / "in", 2)
    assert "their number of shards differ" in refused(out, one, halves[1])[2]
    text = three.read_text()
    for damaged in (text + "five\n", text.replace("f", "F")):
        three.write_text(damaged)
        code, exit_code, said = refused(out, one, two, three)
        assert (code, exit_code) == ("SHARD_DAMAGED", BAD_DATA)
        assert "translate shard 3/3 again" in said
    Path(f"{three}.shard.json").write_text("[]")
    assert refused(out, one, two, three)[:2] == ("SHARD_DAMAGED", BAD_DATA)


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2", "1.0/2"])
def test_shards_are_counted_from_one(text: str) -> None:
    with pytest.raises(UserError, match="expected i/n with i from 1 to n") as caught:
        parse_shard(text)
    assert caught.value.exit_code == USAGE
    assert parse_shard("2/5") == Shard(2, 5)


def test_shards_need_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one\n")
    task = Task(DecodingOptions(), shard=Shard(1, 2))
    for source, output in ((tmp_path / "in", Path("-")), (Path("-"), tmp_path / "out")):
        with pytest.raises(UserError, match="--shard needs an input file") as caught:
            translate_file(stub_translator(), source, output, task)
        assert caught.value.exit_code == USAGE


def test_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_model(tmp_path / "model")
    (tmp_path / "in").write_text("abc\nhead\nbad cage\nj\n")

    def command(*arguments: str) -> int:
        return exit_code_of(lambda: run([*arguments]))

    translate = ["translate", str(model), str(tmp_path / "in"), "--engine", "native", "--deterministic", "-o"]
    assert command(*translate, str(tmp_path / "whole")) == OK
    shards = [str(tmp_path / f"part-{number}") for number in (1, 2, 3)]
    for number, shard in enumerate(shards, 1):
        assert command(*translate, shard, "--shard", f"{number}/3") == OK
    assert command("merge", str(tmp_path / "out"), *shards[:2]) == BAD_DATA
    assert command("merge", str(tmp_path / "out"), *shards) == OK
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert f"4 lines in {tmp_path / 'out'}" in capsys.readouterr().err
