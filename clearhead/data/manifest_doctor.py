"""The report on a manifest of recordings, pictures or series: every file is read as training would read it."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from clearhead.errors import BAD_DATA, MISSING, UserError

from .corpus import Report, Tally
from .doctor import Finding, finding_lines, harmless
from .manifest import file_of, only_one, read_what_is_right
from .options import DataOptions
from .readers import READERS, read_features

FINDINGS = {  # name -> what was found, what to do
    "wrong_line": ("lines that are not path, tab, text", "correct them: training stops at the first"),
    "missing": (
        "files that are not there",
        "correct the paths, which begin at the manifest's folder, or leave them out",
    ),
    "unreadable": ("files that cannot be read", "make them again, or leave them out"),
    "silent": ("files in which nothing can be told apart: silent, or blank", "leave them out: nothing can be learned"),
    "too_many_steps": (
        "files with more steps than data.max_steps",
        "training leaves them out; cut them, or allow more",
    ),
    "other_features": ("files whose steps have other numbers than the first one's", "make all alike"),
    "duplicate_file": ("the same file again, by its content", "keep one of each"),
    "leaked_file": ("test files that are also in this corpus", "remove them here: scores would be too good"),
}
SILENT = {"speech": 1.0}  # logarithms of energy that differ by less; 0 for other tasks


@dataclass
class ManifestDiagnosis:
    """What is in the files of a manifest."""

    paths: list[str]
    task: str
    read: int = 0
    usable: int = 0
    steps: dict[str, float] = field(default_factory=dict)
    characters: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)  # what is wrong with the first few

    def to_dict(self) -> dict[str, object]:
        return asdict(self)

    def require_some(self) -> None:
        """UserError if there is nothing to train on."""
        if not self.usable:
            message = (
                f"none of the {self.read:,} files of {self.paths[0]} is usable; expected {READERS[self.task].expected}"
            )
            raise UserError("NOTHING_USABLE", f"{message} on each line; the findings say what to mend", BAD_DATA)

    def lines(self, width: int) -> list[str]:
        """For a terminal of this width, but not below 60 columns."""
        width = max(width, 60)
        rows = [
            harmless(f"{self.paths[0]}: {self.task}", width),
            f"{self.usable:,} of {self.read:,} files can be trained on",
        ]
        if self.steps:
            rows += ["", " " * 17 + "".join(f"{column:>8}" for column in self.steps)]
            for name, spread in (("steps of a file", self.steps), ("characters", self.characters)):
                rows.append(f"{name:<17}" + "".join(f"{value:>8.4g}" for value in spread.values()))
        rows += ["", f"findings: {len(self.findings) or 'none'}"]
        for finding in self.findings:
            rows += finding_lines(finding, width)
        return rows + ([""] if self.examples else []) + [harmless(example, 4 * width) for example in self.examples]


def examine_manifest(
    files: Sequence[Path],
    options: DataOptions,
    against: Sequence[Path] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ManifestDiagnosis:
    """Read every file of a manifest, and those of another one that must not be in it (`against`)."""
    manifest = only_one(files)
    tallies: dict[str, Tally] = {}
    found = ManifestDiagnosis([str(manifest)], options.task)
    steps: list[int] = []
    characters: list[int] = []
    features: int | None = None
    seen: set[bytes] = set()

    def add(name: str, line: int, example: str = "") -> None:
        tally = tallies.setdefault(name, Tally())
        tally.add(line)
        if example and tally.count <= 2:
            found.examples.append(example)

    for line, pair in read_what_is_right(files, Report()):
        found.read += 1
        progress(found.read)
        if isinstance(pair, UserError):
            add("wrong_line", line, str(pair))
            continue
        path = file_of(manifest, pair.source)
        try:
            numbers = read_features(path, options, f"line {line} of {manifest}")
        except UserError as error:
            add("missing" if error.exit_code == MISSING else "unreadable", line, str(error))
            continue
        features = features or numbers.shape[1]
        digest = _digest(path)
        if digest in seen:
            add("duplicate_file", line)
        seen.add(digest)
        if numbers.shape[1] != features:
            add("other_features", line)
        elif len(numbers) > options.max_steps:
            add("too_many_steps", line)
        elif np.ptp(numbers) <= SILENT.get(options.task, 0.0):
            add("silent", line)
        else:
            found.usable += 1
        steps.append(len(numbers))
        characters.append(len(pair.target))
    for line, pair in read_what_is_right(against, Report()) if against else ():
        if not isinstance(pair, UserError):
            path = file_of(only_one(against or []), pair.source)
            if path.is_file() and _digest(path) in seen:
                add("leaked_file", line)
    found.steps, found.characters = _spread(steps), _spread(characters)
    found.findings = [
        Finding(name, tallies[name].count, tallies[name].lines, *words)
        for name, words in FINDINGS.items()
        if name in tallies
    ]
    return found


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _spread(values: Sequence[int]) -> dict[str, float]:
    if not values:
        return {}
    least, median, most = np.quantile(values, [0, 0.5, 1])
    return {
        "least": float(least),
        "median": float(median),
        "mean": round(float(np.mean(values)), 3),
        "most": float(most),
    }
