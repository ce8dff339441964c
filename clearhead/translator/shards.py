"""A file in n shares of lines, translated anywhere and put together again: each line once, in order.

A finished share has a manifest beside it, `OUTPUT.shard.json`, that says of which input, model and options it is.
"""

import json
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clearhead.errors import BAD_DATA, MISSING, USAGE, UserError

from .reading import Survey, survey, unpacked
from .writing import PartialFile, Work, replace_file, require_output, write_errors

MANIFEST = ".shard.json"


@dataclass(frozen=True)
class Shard:
    """The number-th of so many shares, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True)
class Manifest:
    """What a finished share is; all shares of one translation have the same `input`, `model`, `options` and `of`."""

    number: int
    of: int
    input: str  # the SHA-256 of the whole input, unpacked
    model: str
    options: dict[str, Any]
    first_line: int  # counted from 1
    lines: int
    sha256: str  # of the output, unpacked


def parse_shard(text: str) -> Shard:
    """`2/5` is the second of five."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError("SHARD", f"--shard is {text!r}; expected i/n with i from 1 to n, as 2/5", USAGE)
    return Shard(int(found[1]), int(found[2]))


def line_range(shard: Shard, source: Path, output: Path, known: Survey | None) -> range:
    """Of all lines, counted from 0, the share's own."""
    if known is None or str(output) == "-":
        found = f"the input is {source} and the output {output}"
        raise UserError("SHARD", f"{found}; --shard needs an input file, and -o with a file", USAGE)
    first, last = ((shard.number - 1) * known.lines // shard.of, shard.number * known.lines // shard.of)
    return range(first, last)


def skip_finished(output: Path, shard: Shard, work: Work, lines: range) -> bool:
    """Whether this share is there already, complete and of the same work; says so."""
    try:
        manifest = _read(output)
    except UserError:
        return False
    if not output.is_file() or manifest != _manifest(shard, work, lines, survey(unpacked(output))):
        return False
    print(f"clearhead: shard {shard} is already in {output}", file=sys.stderr, flush=True)
    return True


def write_manifest(output: Path, shard: Shard, work: Work, lines: range) -> None:
    """Beside an output that is complete."""
    manifest = _manifest(shard, work, lines, survey(unpacked(output)))
    with write_errors(str(output) + MANIFEST, 0, ""):
        replace_file(_beside(output), (json.dumps(asdict(manifest), indent=2) + "\n").encode())


def merge(output: Path, shards: Sequence[Path]) -> int:
    """All shares of one translation, in any order, become one file; how many lines it has."""
    require_output(output)
    manifests = sorted(((_read(path), path) for path in shards), key=lambda pair: pair[0].number)
    _require_all([manifest for manifest, _ in manifests], [path for _, path in manifests])
    for manifest, path in manifests:
        if survey(unpacked(path)).sha256 != manifest.sha256:
            message = (
                f"{path} does not have the text that it had when it was made; translate shard {_name(manifest)} again"
            )
            raise UserError("SHARD_DAMAGED", message, BAD_DATA)
    with closing(PartialFile(output, None, resume=False)) as writer:
        for manifest, path in manifests:
            lines = manifest.lines
            for block in unpacked(path):
                writer.write(block, lines, {})
                lines = 0
        writer.finish()
        return writer.reached.lines


def _require_all(manifests: Sequence[Manifest], paths: Sequence[Path]) -> None:
    first, path = manifests[0], paths[0]
    for manifest, other in zip(manifests[1:], paths[1:], strict=True):
        for what in ("of", "input", "model", "options"):
            if getattr(manifest, what) != getattr(first, what):
                word = {"of": "number of shards"}.get(what, what)
                message = f"{path} and {other} are not of one translation: their {word} differ"
                raise UserError("SHARDS_DIFFER", f"{message}; give the shards of one", BAD_DATA)
    numbers = [manifest.number for manifest in manifests]
    for number in range(1, first.of + 1):
        if number not in numbers:
            message = (
                f"shard {number}/{first.of} is missing; translate it with --shard {number}/{first.of}, and name it"
            )
            raise UserError("SHARD_MISSING", message, BAD_DATA)
        if numbers.count(number) > 1:
            twice = [str(p) for m, p in zip(manifests, paths, strict=True) if m.number == number]
            raise UserError("SHARD_TWICE", f"{' and '.join(twice)} are both shard {number}; name one", BAD_DATA)


def _manifest(shard: Shard, work: Work, lines: range, found: Survey) -> Manifest:
    options = {key: value for key, value in work.options.items() if key != "shard"}
    return Manifest(shard.number, shard.of, work.input, work.model, options, lines.start + 1, len(lines), found.sha256)


def _read(output: Path) -> Manifest:
    path = _beside(output)
    if not output.is_file() or not path.is_file():
        missing = path if output.is_file() else output
        message = f"there is no file {missing}; expected a shard made with --shard, and its manifest beside it"
        raise UserError("NO_SHARD", message, MISSING)
    try:
        return Manifest(**json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        message = f"{path} is no manifest of a shard ({error}); translate the shard again"
        raise UserError("SHARD_DAMAGED", message, BAD_DATA) from error


def _beside(output: Path) -> Path:
    return output.with_name(output.name + MANIFEST)


def _name(manifest: Manifest) -> str:
    return f"{manifest.number}/{manifest.of}"
