"""Each finding is planted in a clean corpus and must be reported, alone and with its line; the clean one has none."""

import json
import random
import re
import unicodedata
from itertools import product
from pathlib import Path

import pytest

from clearhead.data import doctor
from clearhead.data.corpus import DROPS, NOTES
from clearhead.data.doctor import Diagnosis, examine, harmless
from clearhead.data.options import DataOptions
from clearhead.errors import UserError

NOUNS = {"cat": "Katze", "mouse": "Maus", "lamp": "Lampe", "bottle": "Flasche", "pear": "Birne", "cow": "Kuh"}
VERBS = {"stood": "stand", "lay": "lag", "stayed": "blieb", "was": "war"}
PLACES = {"behind the house": "hinter dem Haus", "on the table": "auf dem Tisch", "near the river": "am Fluss"}
CLEAN = [
    (f"The {noun} {verb} {place}.", f"Die {NOUNS[noun]} {VERBS[verb]} {PLACES[place]}.")
    for noun, verb, place in product(NOUNS, VERBS, PLACES)
]
N = len(CLEAN)


def store(folder: Path, pairs: list[tuple[str, str]], name: str = "train") -> list[Path]:
    paths = [folder / f"{name}.en", folder / f"{name}.de"]
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in side), encoding="utf-8", newline="\n")
    return paths


def diagnose(folder: Path, *planted: tuple[str, str], against: list[tuple[str, str]] | None = None) -> Diagnosis:
    other = store(folder, against, "test") if against else None
    return examine(store(folder, [*CLEAN, *planted]), DataOptions(), other)


def test_clean_corpus_has_no_findings(tmp_path: Path) -> None:
    diagnosis = diagnose(tmp_path, against=[("Nobody knows it.", "Niemand weiß es.")])
    assert diagnosis.findings == []
    assert diagnosis.suspects == []
    assert diagnosis.languages == ("en", "de")
    shown = diagnosis.lines(100)
    assert f"{N} of {N} pairs kept" in shown
    assert "checked against 1 of 1 test pairs" in shown
    assert "findings: none" in shown
    assert "pairs to look at:" not in shown


PLANTED = {
    "empty": ("", "Nichts."),
    "control": ("Odd \x07 bell.", "Ein Klingeln."),
    "carriage_return": ("Windows line.\r", "Zeile aus Windows."),
    "duplicate_pair": CLEAN[3],
    "duplicate_source": (CLEAN[3][0], "Etwas ganz anderes steht hier."),
    "duplicate_target": ("Something else is written here.", CLEAN[3][1]),
    "copied": ("Same words here.", "Same words here."),
    "replacement": ("A caf\ufffd in the town.", "Ein Lokal in der Stadt."),
    "private_use": ("A bullet \uf0b7 in the text.", "Ein Punkt steht im Text."),
    "zero_width": ("An in\u200bvisible split.", "Eine Trennung ohne Spur."),
    "bidi": ("Turned \u202earound\u202c here.", "Hier herumgedreht."),
    "rare_script": ("The c\u0430t looks right.", "Die Katze sieht gut aus."),
    "extreme_ratio": ("Yes.", "Ja, und zwar " + "weil es schon immer so gewesen ist, " * 6),
    "numbers_differ": ("He was born in 1987.", "Er wurde 2013 geboren."),
    "end_punctuation": ("Where is the exit?", "Der Ausgang ist dort."),
    "untranslated": ("This line was never translated at all.", "This line was never translated At all."),
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_fault_is_found_alone(tmp_path: Path, name: str) -> None:
    diagnosis = diagnose(tmp_path, PLANTED[name])
    (finding,) = diagnosis.findings
    assert (finding.name, finding.count, finding.lines) == (name, 1, [N + 1])
    shown = "\n".join(diagnosis.lines(300))
    assert f"- 1 pair: {finding.what} (line {N + 1})\n  -> {finding.advice}" in shown
    is_shown = name in ("copied", "extreme_ratio", "numbers_differ", "end_punctuation", "untranslated")
    assert [(suspect.line, suspect.reason) for suspect in diagnosis.suspects] == ([(N + 1, name)] if is_shown else [])
    assert (f"line {N + 1}: {name.replace('_', ' ')}" in shown) == is_shown


def test_findings_of_the_reader_are_reported(tmp_path: Path) -> None:
    paths = [tmp_path / "a.tsv", tmp_path / "a.jsonl"]
    paths[0].write_bytes(b"\xef\xbb\xbfone\teins\nno tab\nbad\xff\tb\n")
    paths[1].write_bytes(b'{"source": "one", "target": "eins"}\n{')
    names = [[finding.name for finding in examine([path], DataOptions(), None).findings] for path in paths]
    assert names == [["columns", "invalid_utf8", "bom"], ["json", "no_final_newline"]]


def test_every_reason_has_advice() -> None:
    assert {*DROPS, *NOTES} - {"too_long", "length_ratio", "too_many_steps"} <= {*doctor.FINDINGS}
    assert {*PLANTED} - {"rare_script"} <= {*doctor.FINDINGS}


def test_rare_script_says_where(tmp_path: Path) -> None:
    (finding,) = diagnose(tmp_path, ("All is well.", "Alles ist gut, 好.")).findings
    assert finding.what == "Han letters in the target, where they are rare"


def test_numbers_may_be_written_in_other_ways(tmp_path: Path) -> None:
    same = [
        ("On March 4, 2026.", "2026年3月4日。"),
        ("It costs 1,000.50.", "Es kostet 1.000,50."),
        ("At 3:30.", "Um 3."),
    ]
    names = {finding.name for finding in diagnose(tmp_path, *same, ("Only ４２.", "Nur 42.")).findings}
    assert "numbers_differ" not in names


def test_what_most_pairs_do_is_the_task(tmp_path: Path) -> None:
    dates = [(f"Day {1000 + i}.", f"Tag {9 * (1000 + i) + 7} heute.") for i in range(50)]
    diagnosis = examine(store(tmp_path, dates), DataOptions(), None)
    assert diagnosis.findings == []
    assert diagnosis.suspects == []


def test_leakage(tmp_path: Path) -> None:
    folded = ("the  CAT stood  behind the house.", "Anders.")
    test = [CLEAN[5], ("New here.", "Neu hier."), (CLEAN[7][0], "Anders übersetzt."), folded]
    diagnosis = diagnose(tmp_path, against=test)
    found = {finding.name: (finding.count, finding.lines) for finding in diagnosis.findings}
    assert found == {"leaked_pair": (1, [1]), "leaked_source": (2, [1, 3]), "leaked_folded": (1, [4])}
    assert diagnosis.against is not None
    assert diagnosis.against.kept == 4


def test_swapped_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.zh", tmp_path / "a.en"]
    paths[0].write_text("The cat sleeps.\n")
    paths[1].write_text("猫在睡觉。\n")
    (finding,) = examine(paths, DataOptions(), None).findings
    assert finding.name == "swapped"
    assert f"{paths[0]} should be zh but is in Latin script" in finding.what
    assert any("they look swapped" in line for line in examine(paths, DataOptions(), None).lines(1000))


def test_nothing_left(tmp_path: Path) -> None:
    diagnosis = examine(store(tmp_path, [("", "x"), ("y", "")]), DataOptions(), None)
    assert [(finding.name, finding.count) for finding in diagnosis.findings] == [("nothing_left", 2), ("empty", 2)]
    assert "- 2 pairs: read, but none is usable" in diagnosis.lines(80)
    json.dumps(diagnosis.to_dict())


def test_errors_of_the_reader_pass_through(tmp_path: Path) -> None:
    paths = store(tmp_path, CLEAN)
    with pytest.raises(UserError, match="there is no file"):
        examine(paths, DataOptions(), [tmp_path / "gone.en", paths[1]])


def test_lengths_and_ratio(tmp_path: Path) -> None:
    diagnosis = examine(
        store(tmp_path, [("a b c d", "x" * 14), ("a b", "y" * 3), ("abcd", "z z")]), DataOptions(), None
    )
    assert diagnosis.characters["source"] == {"least": 3, "median": 4, "mean": 4.667, "95%": 6.7, "most": 7}
    assert diagnosis.words["target"]["most"] == 2
    assert diagnosis.ratio["median"] == 1
    assert sum(diagnosis.ratio_bins) == sum(diagnosis.word_bins["source"]) == 3
    assert diagnosis.character_bins["target"][2:5] == [2, 0, 1]


@pytest.mark.parametrize("width", [0, 60, 80, 120])
def test_terminal_output_is_aligned_and_fits(tmp_path: Path, width: int) -> None:
    wide = ("这是一个很长的句子，" * 30 + "1987。", "Eine \u202eumgedrehte\u202c Zeile, " * 30 + "2013.")
    lines = diagnose(tmp_path, *PLANTED.values(), wide).lines(width)
    columns = [sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) for line in lines]
    assert max(columns) <= max(width, 60)
    assert all(line.isprintable() for line in lines)
    shares = [line for line in lines if re.search(r"\d%", line) and "95%" not in line]
    assert len({line.index("%") for line in shares}) <= 2  # the plots by side, and that of the ratio
    assert any("█" in line for line in shares)


def test_user_text_is_made_harmless(tmp_path: Path) -> None:
    assert harmless("a\x1b[31m\u202eb\u2028", 80) == "a<U+001B>[31m<U+202E>b<U+2028>"
    assert harmless("abcdef", 6) == "abcde…"
    assert harmless("abcde", 6) == "abcde"
    assert harmless("猫猫猫", 6) == "猫猫…"
    diagnosis = diagnose(tmp_path, ("In 1987 \u202e\u2028x.", "Im Jahr 2013."))
    assert diagnosis.suspects[0].source == "In 1987 <U+202E><U+2028>x."


def test_json_holds_everything(tmp_path: Path) -> None:
    report = json.loads(json.dumps(diagnose(tmp_path, *PLANTED.values(), against=CLEAN[:2]).to_dict()))
    assert report["report"]["read"] == N + len(PLANTED)
    assert report["against"] == {"read": 2, "kept": 2, "dropped": {}, "notes": {}}
    assert {finding["name"] for finding in report["findings"]} >= {*PLANTED}
    assert {"line", "reason", "source", "target"} == {*report["suspects"][0]}
    assert len(report["suspects"]) <= doctor.SHOWN
    assert len(report["length_edges"]) == len(report["word_bins"]["source"])
    assert len(report["ratio_edges"]) == len(report["ratio_bins"])


def test_duplicates_equal_those_of_sets(tmp_path: Path) -> None:
    pick = random.Random(7)
    pairs = [(f"s{pick.randrange(40)}", f"t{pick.randrange(40)}") for _ in range(300)]
    found = {finding.name: finding.count for finding in examine(store(tmp_path, pairs), DataOptions(), None).findings}
    repeats = {"duplicate_pair": 0, "duplicate_source": 0, "duplicate_target": 0}
    for i, (source, target) in enumerate(pairs):
        if (source, target) in pairs[:i]:
            repeats["duplicate_pair"] += 1
            continue
        repeats["duplicate_source"] += source in [earlier for earlier, _ in pairs[:i]]
        repeats["duplicate_target"] += target in [earlier for _, earlier in pairs[:i]]
    assert {name: found.get(name) for name in repeats} == repeats
