"""The report on a parallel corpus (`clearhead check`): what it holds, what looks wrong, and what to do about it.

One pass over the files; about 50 bytes are kept per pair (lengths and 64-bit hashes), and the text of a few pairs.
"""

import heapq
import math
import re
import textwrap
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from clearhead.errors import BAD_DATA, UserError

from .corpus import (
    DROPS,
    FIRST_LINES,
    NOTES,
    Pair,
    Report,
    Tally,
    line_numbers,
    read_pairs,
)
from .languages import how_to_name, languages, looks_swapped, script_of
from .options import DataOptions

SAMPLE = 1000  # pairs from which languages are guessed
SHOWN = 10  # suspicious pairs in the report
KEPT = 4  # suspicious pairs remembered per reason
USUAL = 0.2  # what more than this share of pairs shows is the task's nature, not a mistake
RARE = 0.01  # a script in fewer lines than this is rare for its side
REPORTED = 10_000  # pairs between two calls of `progress`
SMALL = 20  # pairs below which nothing can be said about what is usual

ODD = {  # joiners (U+200C, U+200D) are missing on purpose: Persian, Hindi and emoji need them
    "replacement": "\ufffd",
    "private_use": "\ue000-\uf8ff\U000f0000-\U0010fffd",
    "zero_width": "\u00ad\u180e\u200b\u2060\ufeff",
    "bidi": "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069",
}
ODD_CLASSES = {name: re.compile(f"[{characters}]") for name, characters in ODD.items()}
ANY_ODD = re.compile(f"[{''.join(ODD.values())}]")
BEYOND_LATIN = re.compile("[\u0250-\u1dff\u2c00-\U0010ffff]")
DIGIT = re.compile(r"\d")
CLOSERS = " \"'”’»)]』」）"
QUESTION, END = frozenset("?？؟"), frozenset("?？؟.!。！।")

SWAPPED = "training would learn the other direction"
LEFT_OUT = "training leaves them out; "
FINDINGS = {  # name -> what was found, what to do
    "nothing_left": ("read, but none is usable", "see the reasons below; nothing can be trained on this"),
    "empty": (DROPS["empty"], LEFT_OUT + "fill the gap or delete the line in both files"),
    "invalid_utf8": (DROPS["invalid_utf8"], LEFT_OUT + "convert with iconv -f GB18030 (or LATIN1) -t UTF-8"),
    "columns": (DROPS["columns"], LEFT_OUT + "write source, one tab, target on each line"),
    "json": (DROPS["json"], LEFT_OUT + 'write {"source": "…", "target": "…"} on each line'),
    "control": (NOTES["control"], "done for you; if there are many, the files were damaged on their way"),
    "carriage_return": (NOTES["carriage_return"], "done for you; dos2unix makes it permanent"),
    "bom": (NOTES["bom"], "done for you; save as UTF-8 without BOM to be rid of it"),
    "no_final_newline": (NOTES["no_final_newline"], "harmless, if the file was not cut off there"),
    "skipped_line": (NOTES["skipped_line"], "convert the file to UTF-8, or leave these lines out"),
    "leaked_pair": ("test pairs that are also in this corpus", "remove them here: scores would be too good"),
    "leaked_source": ("test sources that are also in this corpus", "remove them here: scores would be too good"),
    "leaked_folded": ("test sources that are here but for case and spaces", "remove them here, too"),
    "duplicate_pair": ("the same pair again", "keep one of each, unless the repetition is meant as a weight"),
    "duplicate_source": ("the same source with another target", "fine for paraphrases; else choose one target"),
    "duplicate_target": ("the same target with another source", "fine for paraphrases; else look for filler text"),
    "copied": ("source = target", "remove them unless copying is the task: models learn it fast"),
    "replacement": ("U+FFFD, left by a failed conversion", "convert the original again, from the right encoding"),
    "private_use": ("private-use characters", "replace them: they mean something in one font only"),
    "zero_width": ("invisible characters (zero width, soft hyphen)", "remove them: they split words unseen"),
    "bidi": ("marks that change the direction of writing", "remove them unless both sides need them"),
    "extreme_ratio": ("far longer on one side than is usual here", "look for wrong alignment and missing text"),
    "numbers_differ": ("different numbers on the two sides", "look for wrong alignment; wrong numbers are learned"),
    "end_punctuation": ("a question on one side, a statement on the other", "look for wrong alignment"),
    "untranslated": ("nearly the same text on both sides", "look for text that was never translated"),
}


@dataclass(frozen=True)
class Finding:
    name: str
    count: int
    lines: list[int]  # the first few; of the other corpus if it is a leak
    what: str
    advice: str


@dataclass(frozen=True)
class Suspect:
    line: int
    reason: str
    source: str  # both shortened, and safe for a terminal
    target: str


# ---------------------------------------------------------------------------------------------- the one pass


class _Side:
    def __init__(self) -> None:
        self.characters, self.words = array("I"), array("I")
        self.hashes = array("q")
        self.scripts: dict[str, Tally] = {}

    def add(self, text: str, words: list[str], line: int) -> None:
        self.characters.append(len(text))
        self.words.append(len(words))
        self.hashes.append(hash(text))
        if BEYOND_LATIN.search(text):
            for script in set(map(script_of, set(text))) - {None, "Latin"}:
                self.scripts.setdefault(str(script), Tally()).add(line)


class _Scan:
    """What is kept of a corpus while it streams by."""

    def __init__(self, paths: Sequence[Path], fold: bool, progress: Callable[[int], None]) -> None:
        self.source, self.target = _Side(), _Side()
        self.lines, self.hashes = array("Q"), array("q")
        self.folded = array("q")  # sources without regard to case and spaces, if asked for
        self.tallies: dict[str, Tally] = {}
        self.suspects: dict[str, list[Pair]] = {}
        self.sample: list[Pair] = []
        self.short: list[tuple[float, int, Pair]] = []  # targets that are short for their source
        self.long: list[tuple[float, int, Pair]] = []
        self.report = Report()
        for pair in read_pairs(paths, self.report):
            self._add(pair, fold)
            if self.pairs % REPORTED == 0:
                progress(self.pairs)

    def _add(self, pair: Pair, fold: bool) -> None:
        source_words, target_words = pair.source.split(), pair.target.split()
        self.lines.append(pair.line)
        self.hashes.append(hash((pair.source, pair.target)))
        self.source.add(pair.source, source_words, pair.line)
        self.target.add(pair.target, target_words, pair.line)
        if fold:
            self.folded.append(hash(" ".join(source_words).casefold()))
        if len(self.sample) < SAMPLE:
            self.sample.append(pair)
        for name in _odd(pair) + _suspicions(pair, source_words, target_words):
            self.tallies.setdefault(name, Tally()).add(pair.line)
            if len(kept := self.suspects.setdefault(name, [])) < KEPT:
                kept.append(pair)
        skew = _skew(len(pair.source), len(pair.target))
        if len(self.long) < KEPT or skew > self.long[0][0]:
            _keep_largest(self.long, skew, pair)
        if len(self.short) < KEPT or -skew > self.short[0][0]:
            _keep_largest(self.short, -skew, pair)

    @property
    def pairs(self) -> int:
        return len(self.lines)


def _keep_largest(heap: list[tuple[float, int, Pair]], rank: float, pair: Pair) -> None:
    heapq.heappush(heap, (rank, -pair.line, pair))
    if len(heap) > KEPT:
        heapq.heappop(heap)


def _skew(source: int, target: int) -> float:
    """Log ratio of the lengths; the 10 calms short pairs, where a word more or less is no sign of anything."""
    return math.log((target + 10) / (source + 10))


def _odd(pair: Pair) -> list[str]:
    text = pair.source + pair.target
    if text.isascii() or not ANY_ODD.search(text):
        return []
    return [name for name, characters in ODD_CLASSES.items() if characters.search(text)]


def _suspicions(pair: Pair, source_words: list[str], target_words: list[str]) -> list[str]:
    source, target = pair.source, pair.target
    if source == target:
        return ["copied"]
    found = []
    if min(len(source_words), len(target_words)) >= 5:
        one, other = set(source_words), set(target_words)
        if len(one & other) >= 0.8 * max(len(one), len(other)):
            found.append("untranslated")
    elif len(source) == len(target) and source.casefold() == target.casefold():
        found.append("untranslated")
    if _numbers_differ(source, target):
        found.append("numbers_differ")
    ends = source.rstrip(CLOSERS)[-1:], target.rstrip(CLOSERS)[-1:]
    if (ends[0] in QUESTION) != (ends[1] in QUESTION) and ends[0] in END and ends[1] in END:
        found.append("end_punctuation")
    return found


def _numbers_differ(source: str, target: str) -> bool:
    """Whether each side has digits that the other lacks; `March 4` may well be `3月4日`, and `2.00` be `2`."""
    if not (one := DIGIT.findall(source)) or not (other := DIGIT.findall(target)):
        return False
    digits, others = Counter(map(int, one)), Counter(map(int, other))
    return bool(digits - others) and bool(others - digits)


# ---------------------------------------------------------------------------------------------- what it means


def _numpy(values: array) -> np.ndarray:
    return np.frombuffer(values, values.typecode) if values else np.empty(0, values.typecode)


def _repeats(hashes: np.ndarray) -> np.ndarray:
    """Positions, in order, of what stood somewhere before."""
    order = np.argsort(hashes, kind="stable")
    ranked = hashes[order]
    return np.sort(order[1:][ranked[1:] == ranked[:-1]])


def _finding(name: str, lines: np.ndarray | Sequence[int], count: int | None = None) -> Finding:
    first = [int(line) for line in lines[:FIRST_LINES]]
    return Finding(name, len(lines) if count is None else count, first, *FINDINGS[name])


def _tallied(scan: _Scan, names: Sequence[str]) -> list[Finding]:
    tallies = scan.tallies
    return [_finding(name, tallies[name].lines, tallies[name].count) for name in names if name in tallies]


def _usual(scan: _Scan, finding: Finding) -> bool:
    """Dates written in another way all differ in digits: then that is the task."""
    return finding.count > max(1, USUAL * scan.pairs)


def _duplicates(scan: _Scan) -> list[Finding]:
    lines, pairs = _numpy(scan.lines), _repeats(_numpy(scan.hashes))
    found = [_finding("duplicate_pair", lines[pairs])]
    for name, side in (("duplicate_source", scan.source), ("duplicate_target", scan.target)):
        found.append(_finding(name, lines[np.setdiff1d(_repeats(_numpy(side.hashes)), pairs, assume_unique=True)]))
    return [finding for finding in found if finding.count]


def _leaks(scan: _Scan, other: _Scan) -> list[Finding]:
    lines = _numpy(other.lines)
    pair = np.isin(_numpy(other.hashes), _numpy(scan.hashes))
    source = np.isin(_numpy(other.source.hashes), _numpy(scan.source.hashes))
    folded = np.isin(_numpy(other.folded), _numpy(scan.folded)) & ~source
    found = [_finding(f"leaked_{n}", lines[hit]) for n, hit in (("pair", pair), ("source", source), ("folded", folded))]
    return [finding for finding in found if finding.count]


def _rare_scripts(scan: _Scan) -> list[Finding]:
    found = []
    for name, side in (("source", scan.source), ("target", scan.target)):
        for script, tally in side.scripts.items():
            if scan.pairs >= SMALL and tally.count <= max(1, RARE * scan.pairs):
                what = f"{script} letters in the {name}, where they are rare"
                advice = "look for text in another language and for letters that only look alike"
                found.append(Finding("rare_script", tally.count, tally.lines, what, advice))
    return found


def _extremes(scan: _Scan) -> tuple[list[Finding], list[Pair]]:
    """Pairs whose ratio of lengths is far from the corpus's own middle, worst first."""
    if scan.pairs < SMALL:
        return [], []
    source, target = _numpy(scan.source.characters), _numpy(scan.target.characters)
    skews = np.log((target + 10.0) / (source + 10.0))
    middle = float(np.median(skews))
    limit = max(math.log(3), 7 * float(np.median(np.abs(skews - middle))))
    lines = _numpy(scan.lines)[np.abs(skews - middle) > limit]
    far = [(rank - middle, pair) for rank, _, pair in scan.long] + [
        (rank + middle, pair) for rank, _, pair in scan.short
    ]
    worst = [pair for distance, pair in sorted(far, key=lambda item: -item[0]) if distance > limit]
    return ([_finding("extreme_ratio", lines)] if len(lines) else []), worst


def _suspects(pairs: dict[str, list[Pair]]) -> list[Suspect]:
    """One of each reason, then the second of each, until there are enough; no pair twice."""
    chosen: dict[int, Suspect] = {}
    for name, pair in chain.from_iterable(
        zip_longest(*([(name, pair) for pair in kept] for name, kept in pairs.items()), fillvalue=("", None))
    ):
        if pair and pair.line not in chosen and len(chosen) < SHOWN:
            chosen[pair.line] = Suspect(pair.line, name, harmless(pair.source, 200), harmless(pair.target, 200))
    return [chosen[line] for line in sorted(chosen)]


def _distribution(values: np.ndarray) -> dict[str, float]:
    if not len(values):
        return {}
    shortest, median, most, longest = np.quantile(values, [0, 0.5, 0.95, 1])
    mean = float(values.mean())
    spread = {
        "least": float(shortest),
        "median": float(median),
        "mean": mean,
        "95%": float(most),
        "most": float(longest),
    }
    return {name: round(value, 3) for name, value in spread.items()}


LENGTH_EDGES = [1, 2, 3, 5, 10, 20, 40, 80, 160, 320, 640, 1280]
RATIO_EDGES = [0, 1 / 8, 1 / 4, 1 / 2, 2 / 3, 5 / 6, 6 / 5, 3 / 2, 2, 4, 8]
RATIO_LABELS = ["< 1/8", "1/8–1/4", "1/4–1/2", "1/2–2/3", "2/3–5/6", "5/6–6/5", "6/5–3/2", "3/2–2", "2–4", "4–8", "≥ 8"]


def _histogram(values: np.ndarray, edges: Sequence[float]) -> list[int]:
    """How many values lie from each edge up to the next; the last bin is open."""
    return [int(count) for count in np.histogram(values, [*edges, np.inf])[0]]


def _silent(done: int) -> None:
    """For those who do not want to hear how many pairs are read."""


def examine(
    paths: Sequence[Path],
    options: DataOptions,
    against: Sequence[Path] | None,
    progress: Callable[[int], None] = _silent,
) -> "Diagnosis":
    """Read the corpus once, and the one that must not leak into it (`against`) once."""
    other = _Scan(against, True, progress) if against is not None else None
    scan = _Scan(paths, other is not None, progress)
    report, swapped = scan.report, looks_swapped(paths, options, scan.sample)
    findings = [] if scan.pairs else [_finding("nothing_left", [], report.read)]
    findings += [_finding(name, tally.lines, tally.count) for name, tally in (report.dropped | report.notes).items()]
    findings += [Finding("swapped", scan.pairs, [], swapped, SWAPPED)] if swapped else []
    findings += _leaks(scan, other) if other else []
    findings += _duplicates(scan) + _tallied(scan, ["copied", *ODD]) + _rare_scripts(scan)
    doubtful = _tallied(scan, ["numbers_differ", "end_punctuation", "untranslated"])
    extreme, worst = _extremes(scan)
    doubtful = extreme + [finding for finding in doubtful if not _usual(scan, finding)]
    shown = scan.suspects | {"extreme_ratio": worst}
    names = [finding.name for finding in doubtful] + ["copied"] * ("copied" in shown)
    sides = {"source": scan.source, "target": scan.target}
    lengths = {name: (_numpy(side.characters), _numpy(side.words)) for name, side in sides.items()}
    ratio = lengths["target"][0] / lengths["source"][0]
    return Diagnosis(
        paths=[str(path) for path in paths],
        languages=languages(paths, options, scan.sample),
        report=report,
        characters={name: _distribution(characters) for name, (characters, _) in lengths.items()},
        words={name: _distribution(words) for name, (_, words) in lengths.items()},
        ratio=_distribution(ratio),
        character_bins={name: _histogram(characters, LENGTH_EDGES) for name, (characters, _) in lengths.items()},
        word_bins={name: _histogram(words, LENGTH_EDGES) for name, (_, words) in lengths.items()},
        ratio_bins=_histogram(ratio, RATIO_EDGES),
        against=other.report if other else None,
        findings=findings + doubtful,
        suspects=_suspects({name: shown[name] for name in names}),
    )


# ---------------------------------------------------------------------------------------------- how it looks


def harmless(text: str, columns: int) -> str:
    """At most so many columns of a terminal, with `<U+202E>` for what would not print or would move the rest."""
    shown, used = "", 0
    for character in text:
        safe = character if character.isprintable() else f"<U+{ord(character):04X}>"
        used += 2 if unicodedata.east_asian_width(character) in "WF" else len(safe)
        if used >= columns:
            return shown + "…"
        shown += safe
    return shown


def _bar(share: float, columns: int) -> str:
    """Filled to the eighth of a column; anything above nothing shows."""
    eighths = max(round(share * columns * 8), int(share > 0))
    return ("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8]).strip().ljust(columns)


def _plot(title: str, labels: Sequence[str], bins: dict[str, list[int]], width: int) -> list[str]:
    """A row per bin, a column per side, without the empty rows at both ends."""
    total = {name: sum(counts) for name, counts in bins.items()}
    filled = [row for row in range(len(labels)) if any(counts[row] for counts in bins.values())]
    if not filled:
        return []
    most = max(counts[row] / total[name] for name, counts in bins.items() for row in filled)
    columns = max(6, min(30, (width - 14) // len(bins) - 9))
    rows = [f"{title:<14}" + "".join(f"{name:<{columns + 9}}" for name in bins)]
    for row in range(filled[0], filled[-1] + 1):
        shares = [counts[row] / total[name] for name, counts in bins.items()]
        rows.append(f"{labels[row]:>12}  " + "".join(f"{_bar(s / most, columns)} {s:>6.1%}  " for s in shares))
    return ["", *(row.rstrip() for row in rows)]


def finding_lines(finding: Finding, width: int) -> list[str]:
    """What was found, where, and what to do."""
    where = f" ({line_numbers(finding.lines, finding.count)})" if finding.lines else ""
    what = harmless(f"{finding.count:,} pair{'s' * (finding.count != 1)}: {finding.what}{where}", 500)
    rows = textwrap.wrap(what, width, initial_indent="- ", subsequent_indent="  ")
    return rows + textwrap.wrap(finding.advice, width, initial_indent="  -> ", subsequent_indent="     ")


@dataclass(frozen=True)
class Diagnosis:
    """The whole report; by side where it says so, lengths over `LENGTH_EDGES`, ratios target : source in characters."""

    paths: list[str]
    languages: tuple[str, str]
    report: Report
    characters: dict[str, dict[str, float]]
    words: dict[str, dict[str, float]]
    ratio: dict[str, float]
    character_bins: dict[str, list[int]]
    word_bins: dict[str, list[int]]
    ratio_bins: list[int]
    against: Report | None
    findings: list[Finding]
    suspects: list[Suspect]

    def to_dict(self) -> dict[str, object]:
        reports = {"report": self.report.to_dict(), "against": self.against.to_dict() if self.against else None}
        return asdict(self) | reports | {"length_edges": LENGTH_EDGES, "ratio_edges": RATIO_EDGES}

    def require_some(self) -> None:
        """UserError if there is nothing to train on."""
        if not self.report.kept:
            read = f"none of the {self.report.read:,} pairs of {' and '.join(self.paths)} is usable"
            message = f"{read}; expected one sentence per line on both sides; the findings say what to mend"
            raise UserError("NOTHING_USABLE", message, BAD_DATA)

    def lines(self, width: int) -> list[str]:
        """For a terminal of this width, but not below 60 columns; without colour."""
        width = max(width, 60)
        return [*self._summary(width), *self._plots(width), *self._advice(width), *self._pairs(width)]

    def _summary(self, width: int) -> list[str]:
        rows = [harmless(f"{' and '.join(self.paths)}: {' to '.join(self.languages)}", width)]
        for row in self.report.lines():
            rows += textwrap.wrap(row, width, subsequent_indent="    ")
        if self.against:
            rows.append(f"checked against {self.against.kept:,} of {self.against.read:,} test pairs")
        if not self.ratio:
            return rows
        rows += ["", " " * 17 + "".join(f"{column:>8}" for column in self.ratio)]
        units = {"characters": self.characters, "words": self.words}
        table = {f"{side} {unit}": spread[side] for side in self.characters for unit, spread in units.items()}
        for name, values in (table | {"target : source": self.ratio}).items():
            numbers = (f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in values.values())
            rows.append(f"{name:<17}" + "".join(f"{number:>8}" for number in numbers))
        return rows

    def _plots(self, width: int) -> list[str]:
        ends = [*(edge - 1 for edge in LENGTH_EDGES[1:]), 0]
        spans = [f"{a}" if a == b else f"{a}–{b}" for a, b in zip(LENGTH_EDGES, ends, strict=True)]
        spans[-1] = f"≥ {LENGTH_EDGES[-1]}"
        return (
            _plot("characters", spans, self.character_bins, width)
            + _plot("words", spans, self.word_bins, width)
            + _plot("ratio", RATIO_LABELS, {"target : source, in characters": self.ratio_bins}, width)
        )

    def _advice(self, width: int) -> list[str]:
        rows = ["", f"findings: {len(self.findings) or 'none'}"]
        for finding in self.findings:
            rows += finding_lines(finding, width)
        unnamed = how_to_name(self.languages)
        return rows + (["", *textwrap.wrap(unnamed, width)] if unnamed else [])

    def _pairs(self, width: int) -> list[str]:
        rows = ["", "pairs to look at:"] if self.suspects else []
        for suspect in self.suspects:
            rows.append(f"line {suspect.line}: {suspect.reason.replace('_', ' ')}")
            rows += ["  " + harmless(text, width - 2) for text in (suspect.source, suspect.target)]
        return rows
