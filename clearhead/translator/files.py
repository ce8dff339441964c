"""A file to a file, line by line and in order, in constant memory; a killed run can go on."""

import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import clearhead
from clearhead.checkpoint.manifest import MANIFEST
from clearhead.checkpoint.model_folder import find_model
from clearhead.decoding import DecodingOptions
from clearhead.errors import USAGE, Interrupted, UserError
from clearhead.progress import Bar, progress

from . import guards
from .details import json_lines
from .finished import finished_lines, note_finished
from .glossary import Glossary
from .interrupting import Signals, listening
from .pace import Pace
from .reading import Chunk, Survey, blocks_of, chunked, file_blocks, raw_lines, require_input, survey
from .shards import Shard, line_range, skip_finished, write_manifest
from .translation import Translation
from .translator import Translator
from .writing import Output, PartialFile, Stream, Work, drop_journal, open_output, require_output

QUIET = 2.0  # seconds; shorter work is only spoken of if there is something to say
EVERY = 1.0  # seconds at most until what is finished is written; the next to be finished may take as long again
LONG = 5.0  # seconds of work that are left, for which an engine may start processes


@dataclass(frozen=True)
class Task:
    """How a file is translated."""

    options: DecodingOptions
    glossary: Glossary | None = None
    prefix: str = ""
    as_json: bool = False
    resume: bool = False
    shard: Shard | None = None
    again: str = ""  # what to type to go on with it, once it was interrupted


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


def require_text_alone(others: Sequence[str]) -> None:
    """That nothing is given beside a text which is for files."""
    if others:
        message = f"--text and {others[0]} are both given; expected one text, which is printed, or a file"
        raise UserError("TEXT", f"{message}; leave out {others[0]}, or put the text into a file", USAGE)


def translate_text(translator: Translator, text: str, task: Task) -> None:
    """Print the translation of one text, which may have several lines; what is odd about it goes to stderr."""
    guards.require_unicode([text])
    found = translator.alternatives(text, task.options, task.glossary, task.prefix)
    for line in json_lines(translator, [text], found) if task.as_json else [found[0][0].text]:
        print(line, flush=True)
    for word in found[0][0].warnings:
        print(f"clearhead: {word}: {guards.WARNINGS[word]}", file=sys.stderr, flush=True)


def translate_file(translator: Translator, source: Path, output: Path, task: Task) -> Counter[str]:
    """`-` is standard input or output. As many lines come out as go in; how many of them have which warning.

    Whatever ends it, the lines that were finished by then, up to the first that was not, are in the output.
    """
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
    elif task.resume and work is not None and _is_finished(output, work):
        return Counter()
    with closing(open_output(output, work, task.resume)) as writer, listening() as signals:
        try:
            with progress("translating") as bar:
                _translate_lines(_Job(translator, task, writer, signals, lines, bar), source)
            with signals.held():
                if work is not None and task.shard is None and isinstance(writer, PartialFile):
                    note_finished(output, writer.partial, work, writer.reached)
                writer.finish()
        except KeyboardInterrupt as error:
            raise Interrupted(_kept(output, writer, lines, work, task.again), signals.exit_code) from error
    if task.shard is not None and work is not None and lines is not None:
        write_manifest(output, task.shard, work, lines)
    _summarise(writer, time.monotonic() - started)
    return writer.reached.warnings


def _is_finished(output: Path, work: Work) -> bool:
    """Says so, if it is; what a kill between the last two steps has left is removed."""
    lines = finished_lines(output, work)
    if lines is not None:
        drop_journal(output)
        same = f"{lines:,} line{'s' * (lines != 1)} of the same input, model and options"
        print(f"clearhead: {output} is finished: {same}. Without --resume it is made anew", file=sys.stderr, flush=True)
    return lines is not None


def _kept(output: Path, writer: Output, lines: range | None, work: Work | None, again: str) -> str:
    """What there is after a signal, and what to type."""
    done = writer.reached.lines
    of = f" of {len(lines):,}" if lines is not None else ""
    if not isinstance(writer, PartialFile):
        return f"{done:,}{of} lines were written"
    if not writer.partial.exists():
        return f"nothing is lost: all {done:,} lines are in {output}"
    kept = f"{done:,}{of} lines are in {writer.partial}"
    if work is None:
        return f"{kept}; what came through a pipe has to be given anew from there"
    return f"{kept}; go on with: {again or 'the same and --resume'}"


@dataclass
class _Job:
    """A translation that is under way."""

    translator: Translator
    task: Task
    writer: Output
    signals: Signals
    lines: range | None  # of the source, counted from 0; none: what comes
    bar: Bar
    done: int = 0  # lines, written or not
    first: int = 0  # the number in the output, from 0, of the first that is waiting
    waiting: list[tuple[str, list[Translation]]] = field(default_factory=list)  # lines that come next in the output
    is_cut_off: bool = False  # the last line of these has no line end
    left: int = 0  # lines of this chunk that do not wait yet
    written: float = field(default_factory=time.monotonic)  # when

    def take(self, chunk: Chunk, results: dict[int, list[Translation]]) -> None:
        """Those of a chunk's results that come next; they are written if the last writing was long ago."""
        place = len(chunk.lines) - self.left
        while place in results:
            self.waiting.append((chunk.lines[place], results.pop(place)))
            place, self.left = place + 1, self.left - 1
        if not self.left:
            self.is_cut_off = not chunk.ends_with_newline
        is_awaited = isinstance(self.writer, Stream) and not self.left
        if is_awaited or time.monotonic() - self.written >= EVERY:
            self.write()

    def write(self) -> None:
        """All that is waiting; a signal waits meanwhile."""
        with self.signals.held():
            del self.waiting[: self.writer.reached.lines - self.first]
            self.first = self.writer.reached.lines
            if self.waiting:
                sources, results = [source for source, _ in self.waiting], [found for _, found in self.waiting]
                as_json = self.task.as_json
                shown = (
                    json_lines(self.translator, sources, results) if as_json else [best.text for best, *_ in results]
                )
                text = "".join(f"{line}\n" for line in shown)
                if self.is_cut_off and not as_json:
                    text = text.removesuffix("\n")
                warnings = Counter(word for best, *_ in results for word in best.warnings)
                self.writer.write(text.encode(), len(shown), warnings)
            self.written = time.monotonic()


def _translate_lines(job: _Job, source: Path) -> None:
    """All that the writer does not have yet."""
    raw = raw_lines(blocks_of(source))
    job.done = job.first = job.writer.reached.lines
    if job.lines is not None:
        raw = islice(raw, job.lines.start + job.done, job.lines.stop)
    pace, started, before = Pace(job.task.options), time.monotonic(), job.done
    allowed = pace.lines
    try:
        for chunk in chunked(raw, lambda: pace.lines):
            allowed, began = pace.lines, time.monotonic()
            _translate_chunk(job, chunk)
            now = time.monotonic()
            if len(chunk.lines) >= allowed:
                pace.took(now - began)
            left = len(job.lines) - job.done if job.lines is not None else 0
            job.translator.engine.expects_more = left * (now - started) / (job.done - before) > LONG
    except KeyboardInterrupt:
        job.write()
        raise
    finally:
        job.translator.engine.expects_more = False
    job.write()


def _translate_chunk(job: _Job, chunk: Chunk) -> None:
    task, first = job.task, job.done + (job.lines.start if job.lines is not None else 0)
    # Equal lines get other samples by their number: a counter of lines would not stay small, nor know other shards.
    draws = None if task.options.temperature is None else range(first, first + len(chunk.lines))
    results: dict[int, list[Translation]] = {}
    job.left = len(chunk.lines)
    for places, found in job.translator.stream(chunk.lines, task.options, task.glossary, task.prefix, True, draws):
        for place, translations in zip(places, found, strict=True):
            results[place] = [_for_a_line(one, place in chunk.replaced) for one in translations]
        job.done += len(places)
        job.bar.update(job.done, len(job.lines) if job.lines is not None else None, "lines")
        job.take(chunk, results)


def _for_a_line(translation: Translation, is_replaced: bool) -> Translation:
    warnings = (*translation.warnings, "replaced_bytes") if is_replaced else translation.warnings
    return replace(translation, text=guards.on_one_line(translation.text), warnings=warnings)


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
