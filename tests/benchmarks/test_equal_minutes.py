"""What a run of equal minutes is judged by, and how it stands beside ours."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.equal_minutes import HYPOTHESES, RACES, apart, cells, judged, page

RIGHT = [f"the dog number {i} runs over the green hill" for i in range(31)]
WRONG = [line.replace("runs over", "sits on") for line in RIGHT]
RACE, MINUTES = RACES[0], 0.5


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write(tmp_path / "test.tgt", RIGHT)
    return tmp_path


def write(file: Path, lines: list[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def run(corpus: Path, system: str, lines: list[str], updates: dict[str, str]) -> dict[str, Any]:
    out = corpus / f"{RACE.task}-{system}-1-{MINUTES:g}"
    out.mkdir()
    write(out / HYPOTHESES, lines)
    for name, text in updates.items():
        (out / name).write_text(text, encoding="utf-8")
    return judged(RACE, system, 1, MINUTES, corpus, out)


def test_whichever_was_judged_later_tells_how_far_they_are_apart(corpus: Path) -> None:
    far = run(corpus, "JoeyNMT", WRONG, {"updates.txt": "13\n"})
    ours = run(corpus, "Clearhead", RIGHT, {"plan.json": '{"steps": 7000}'})
    alike = run(corpus, "transformers", RIGHT, {"updates.txt": "17\n"})
    runs = [far, ours, alike]
    assert far["p"] == {}
    assert ours["p"].keys() == {"JoeyNMT"}
    assert ours["p"]["JoeyNMT"] < 0.001
    assert [apart(run, runs) for run in runs] == [f"{ours['p']['JoeyNMT']:.4f}", "–", "1.0000"]
    assert [cells(run)[4] for run in runs] == ["13", "7,000", "17"]
    assert page(runs).count(RACE.task) == len(runs)


def test_runs_of_other_seeds_are_not_compared(corpus: Path) -> None:
    ours = run(corpus, "Clearhead", RIGHT, {"plan.json": '{"steps": 7}'})
    other = {**run(corpus, "JoeyNMT", WRONG, {"updates.txt": "13\n"}), "seed": 2, "p": {}}
    assert apart(other, [ours, other]) == "–"
