"""A file to a file, line by line and in order, in constant memory; a killed run can go on."""

import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import clearhead
from clearhead.checkpoint.manifest import MANIFEST
from clearhead.checkpoint.model_folder import find_model
from clearhead.decoding import DecodingOptions
from clearhead.errors import USAGE, UserError
from clearhead.progress import Bar, progress

from .details import json_lines
from .glossary import Glossary
from .guards import on_one_line
from .reading import Chunk, Survey, blocks_of, chunked, file_blocks, raw_lines, require_input, survey
from .shards import Shard, line_range, skip_finished, write_manifest
from .translation import Translation
from .translator import Translator
from .writing import Output, Work, open_output, require_output

QUIET = 2.0  # seconds; shorter work is only spoken of if there is something to say


@dataclass(frozen=True)
class Task:
    """How a file is translated."""

    options: DecodingOptions
    glossary: Glossary | None = None
    prefix: str = ""
    as_json: bool = False
    resume: bool = False
    shard: Shard | None = None


def search_options(own: DecodingOptions, changes: dict[str, Any], as_json: bool) -> DecodingOptions:
    """The model's own, changed by what was given; what is None was not. A beam is at least as wide as n-best."""
    given = {name: value for name, value in changes.items() if value is not None}
    if given.get("n_best", 1) > 1 and not as_json:
        message = f"--n-best {given['n_best']} needs --json: without it there is one line for each line of the input"
        raise UserError("N_BEST", message, USAGE)
    beam = given.get("beam", max(own.beam, given.get("n_best", 1)))
    n_best = given.get("n_best", 1)
    if {"top_k", "top_p", "seed"} & set(given) and "temperature" not in given and own.temperature is None:
        given["temperature"] = 1.0
    try:
        return replace(own, **{**given, "beam": beam, "n_best": n_best})
    except ValueError as error:
        raise UserError("OPTIONS", f"{error}; correct it and try again", USAGE) from error


def require_files(model: Path, source: Path, output: Path) -> None:
    """A mistyped name is answered at once, before anything is loaded."""
    find_model(model)
    require_input(source)
    require_output(output)


def translate_file(translator: Translator, source: Path, output: Path, task: Task) -> Counter[str]:
    """`-` is standard input or output. As many lines come out as go in; how many of them have which warning."""
    require_input(source)
    require_output(output)
    started = time.monotonic()
    known = survey(file_blocks(source)) if source.is_file() else None
    work = _work(translator, known, task) if known else None
    lines = range(known.lines) if known else None
    if task.shard is not None:
        lines = line_range(task.shard, source, output, known)
        if work is not None and skip_finished(output, task.shard, work, lines):
            return Counter()
    with closing(open_output(output, work, task.resume)) as writer, progress("translating") as bar:
        done = writer.reached.lines
        for chunk in _chunks(source, lines, done):
            _translate_chunk(translator, chunk, task, writer, _Counted(bar, done, len(lines) if lines else None))
            done = writer.reached.lines
        writer.finish()
    if task.shard is not None and work is not None and lines is not None:
        write_manifest(output, task.shard, work, lines)
    _summarise(writer, time.monotonic() - started)
    return writer.reached.warnings


@dataclass(frozen=True)
class _Counted:
    """A bar that goes on counting where the last chunk ended."""

    bar: Bar
    before: int
    total: int | None

    def update(self, done: int) -> None:
        self.bar.update(self.before + done, self.total, "lines")


def _chunks(source: Path, lines: range | None, done: int) -> Iterator[Chunk]:
    """Of these lines of the source, without those that are done; such an end is always the end of a chunk."""
    raw = raw_lines(blocks_of(source))
    if lines is None:
        return chunked(raw)
    return chunked(islice(raw, lines.start + done, lines.stop))


def _translate_chunk(translator: Translator, chunk: Chunk, task: Task, writer: Output, bar: _Counted) -> None:
    results: list[list[Translation]] = [[] for _ in chunk.lines]
    done = 0
    for places, found in translator.stream(chunk.lines, task.options, task.glossary, task.prefix):
        for place, translations in zip(places, found, strict=True):
            results[place] = [_for_a_line(one, place in chunk.replaced) for one in translations]
        done += len(places)
        bar.update(done)
    lines = json_lines(translator, chunk.lines, results) if task.as_json else [best.text for best, *_ in results]
    text = "".join(f"{line}\n" for line in lines)
    if not chunk.ends_with_newline and not task.as_json:
        text = text.removesuffix("\n")
    warnings = Counter(word for best, *_ in results for word in best.warnings)
    writer.write(text.encode(), len(lines), warnings)


def _for_a_line(translation: Translation, is_replaced: bool) -> Translation:
    warnings = (*translation.warnings, "replaced_bytes") if is_replaced else translation.warnings
    return replace(translation, text=on_one_line(translation.text), warnings=warnings)


def _work(translator: Translator, known: Survey, task: Task) -> Work:
    """All on which the output's bytes depend."""
    options = {
        **asdict(task.options),
        "engine": translator.engine.name,
        "prefix": task.prefix,
        "json": task.as_json,
        "glossary": _digest([asdict(entry) for entry in task.glossary.entries]) if task.glossary else None,
        "shard": str(task.shard) if task.shard else None,
        "deterministic": translator.deterministic,
        "version": clearhead.__version__,
    }
    folder = translator.folder
    model = (folder / MANIFEST).read_bytes() if folder else _digest(translator.config).encode()
    return Work(known.sha256, hashlib.sha256(model).hexdigest(), options)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _summarise(writer: Output, seconds: float) -> None:
    """One line on stderr."""
    lines, warnings = writer.reached.lines, writer.reached.warnings
    if seconds >= QUIET or warnings:
        counts = "".join(f", {count:,} {word}" for word, count in sorted(warnings.items()))
        print(
            f"clearhead: {lines:,} line{'s' * (lines != 1)} translated in {seconds:.1f} s{counts}",
            file=sys.stderr,
            flush=True,
        )
