"""Peers take turns, and one that cannot be installed, started or used is named with its error."""

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import peers, rounds
from benchmarks.environments import PINS, pinned, python_of
from benchmarks.machine import PEERS
from benchmarks.peers import FEW, TINY, Pace, Peer, PeerError, Training, in_batches, updates_for
from benchmarks.race import first_reaching
from benchmarks.rounds import Start, started
from benchmarks.translation import percentile

pytestmark = pytest.mark.slow
COUNTING = """
from benchmarks.peers import serve_steps
import sys, time
steps = [0]
def step(low):
    steps[0] += 1
    if steps[0] > int(sys.argv[1]):
        sys.exit("too many steps")
serve_steps(step)
"""


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A peer that ends after so many steps."""
    folder = tmp_path / "benchmarks" / "peers"
    folder.mkdir(parents=True)
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (folder / "__init__.py").write_text(Path(peers.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "counting.py").write_text(COUNTING, encoding="utf-8")
    monkeypatch.setattr(peers, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "counting"


def test_peers_take_turns_and_the_first_round_does_not_count(counting: str) -> None:
    asked = []

    def ask(name: str, peer: Peer, turn: int) -> float:
        asked.append((turn, name))
        return peer.step()

    with started({"a": Start(counting, ["99"]), "b": Start(counting, ["99"])}) as field:
        found = field.each_round(2, ask)
    assert asked == [(turn, name) for turn in range(3) for name in "ab"]
    assert {name: len(each) for name, each in found.items()} == {"a": 2, "b": 2}


def test_one_that_ends_is_listed_and_the_others_go_on(counting: str) -> None:
    with started({"a": Start(counting, ["2"]), "b": Start(counting, ["99"])}) as field:
        found = field.each_round(3, lambda _, peer, __: peer.step())
    assert list(found) == ["b"]
    assert field.errors == {"a": "ended with 1: too many steps"}


def test_one_that_does_not_start_is_listed() -> None:
    with started({"a": Start("no_such_peer", [])}) as field:
        assert not field.peers
    assert "No module named benchmarks.peers.no_such_peer" in field.errors["a"]


def test_one_that_cannot_be_installed_is_listed_and_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "gone.txt").write_text("--no-index\nno-such-package==7\n", encoding="utf-8")
    with pytest.raises(PeerError, match=r"cannot be installed: ERROR: No matching distribution .*no-such-package==7"):
        python_of("gone", tmp_path / "bench", tmp_path)
    (tmp_path / "bench" / "gone" / "bin" / "python").unlink()  # so it would not find a thing if it tried again
    with pytest.raises(PeerError, match="no-such-package==7"):
        python_of("gone", tmp_path / "bench", tmp_path)


def test_one_that_was_installed_is_taken_until_its_versions_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []
    (tmp_path / "none.txt").write_text("", encoding="utf-8")

    def install(folder: Path, _: Path) -> None:
        tries.append(folder.name)
        folder.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr("benchmarks.environments._install", install)
    pythons = {python_of("none", tmp_path, tmp_path) for _ in range(2)}
    assert pythons == {tmp_path / "none" / "bin" / "python"}
    (tmp_path / "none.txt").write_text("# newer\n", encoding="utf-8")
    python_of("none", tmp_path, tmp_path)
    assert tries == ["none", "none"]


def test_a_start_without_an_environment_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    monkeypatch.setattr(rounds, "python_of", lambda name: Path(sys.executable).with_name(name))
    monkeypatch.setattr(rounds, "Peer", lambda *arguments: taken.append(arguments))
    Start("x", ["1"])()
    Start("x", ["1"], "theirs")()
    assert taken == [("x", ["1"], None), ("x", ["1"], Path(sys.executable).with_name("theirs"))]


def test_every_environment_is_pinned() -> None:
    files = {file.stem: file.read_text(encoding="utf-8").splitlines() for file in PINS.glob("*.txt")}
    assert {"joeynmt", "eole", "transformers", "fastapi"} <= files.keys()
    assert [line for lines in files.values() for line in lines if "==" not in line and not line.startswith("#")] == []
    assert all(pinned(package, package) for package in PEERS.values())


def test_batches_are_put_back_in_order() -> None:
    lines = ["aaa", "b", "cc", "dddd", ""]
    assert in_batches(lines, lambda some: [line.upper() for line in some], 2) == [line.upper() for line in lines]


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([5.0, 1.0, 3.0], percent) for percent in (1, 50, 99)] == [1.0, 3.0, 5.0]


def test_the_first_run_that_reached_the_score_counts() -> None:
    assert first_reaching({"BLEU in 2 minutes": [14.9], "BLEU in 5 minutes": [15.0]}, (2.0, 5.0)) == "5"
    assert first_reaching({"BLEU in 2 minutes": [3.0]}, (2.0, 5.0)) == "more than 5"


def test_updates_fill_the_minutes_that_the_start_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def train(updates: int) -> None:
        now[0] += 11 + 0.5 * updates

    assert updates_for(1, train) == 98  # 49 seconds
    assert updates_for(0.1, train) == 1


def test_an_interrupted_run_keeps_its_updates(tmp_path: Path) -> None:
    asked = Training(tmp_path, 0.001, 1, tmp_path)
    measured = asked.updates(lambda _: None)
    assert int((tmp_path / "updates.txt").read_text(encoding="utf-8")) == measured
    (tmp_path / "updates.txt").write_text("17\n", encoding="utf-8")

    def train(_: int) -> None:
        raise AssertionError("it is not timed again")

    assert asked.updates(train) == 17


def test_the_pace_is_that_of_the_updates_after_the_first_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0] * FEW + [11.0, 13.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    pace = Pace()
    for tokens in [999] * FEW + [7, 11]:
        pace.note(tokens)
    pace.write(tmp_path)
    assert json.loads((tmp_path / "pace.json").read_text(encoding="utf-8")) == {"tokens_per_second": 6.0}


def test_a_script_that_trains_is_told_what_and_of_which_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["script", "corpus", "1.5", "3", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", words)
    assert Training.asked() == Training(Path("corpus"), 1.5, 3, tmp_path / "out", TINY)
    assert (tmp_path / "out").is_dir()
    larger = replace(TINY, width=7)
    monkeypatch.setattr(sys, "argv", [*words, json.dumps(asdict(larger))])
    assert Training.asked().sizes == larger
