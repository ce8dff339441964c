"""Text to text: tokenizer, engine, tokenizer."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clearhead.checkpoint.model_folder import find_model
from clearhead.data.corpus import CONTROL
from clearhead.data.tokenizer import Tokenizer
from clearhead.decoding import DecodingOptions
from clearhead.engines import Engine
from clearhead.errors import DISK, MISSING, USAGE, UserError
from clearhead.options import from_dict
from clearhead.progress import progress


@dataclass(frozen=True)
class Translation:
    """One way to say a source, and how sure the model is: the mean log-probability of its tokens."""

    text: str
    score: float


class Translator:
    """A trained model with its tokenizers; `clearhead.load(folder)` makes one."""

    def __init__(
        self,
        engine: Engine,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingOptions,
        config: dict[str, Any],
    ) -> None:
        self.engine = engine
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.decoding = decoding
        self.config = config

    @property
    def languages(self) -> tuple[str, str]:
        """Codes such as en and zh; `und` if the model does not say."""
        data = self.config.get("data", {})
        return data.get("source_language") or "und", data.get("target_language") or "und"

    def translate(self, texts: Sequence[str], beam: int | None = None) -> list[str]:
        """The best translation of each text. An empty text stays empty; the model is not asked."""
        options = self.options(beam)
        return [alternatives[0].text for alternatives in self.alternatives(texts, options)]

    def alternatives(self, texts: Sequence[str], options: DecodingOptions) -> list[list[Translation]]:
        """The n best translations of each text, best first."""
        results: list[list[Translation]] = [[Translation(text, 0.0)] for text in texts]
        for places, found in self.stream(texts, options):
            for place, translations in zip(places, found, strict=True):
                results[place] = translations
        return results

    def stream(
        self, texts: Sequence[str], options: DecodingOptions
    ) -> Iterator[tuple[list[int], list[list[Translation]]]]:
        """As they are done: which of the texts, and their translations. Blank texts are not among them."""
        asked = [place for place, text in enumerate(texts) if text.strip()]
        sources = self.source_tokenizer.encode_many([texts[place] for place in asked])
        for places, found in self.engine.translate_batches(sources, options):
            yield (
                [asked[place] for place in places],
                [
                    [Translation(self.target_tokenizer.decode(h.tokens), h.score) for h in hypotheses]
                    for hypotheses in found
                ],
            )

    def options(self, beam: int | None) -> DecodingOptions:
        """The model's own, with another beam if one is given."""
        if beam is None:
            return self.decoding
        return replace(self.decoding, beam=beam, n_best=min(self.decoding.n_best, beam))

    def __repr__(self) -> str:
        source, target = self.languages
        return (
            f"<Translator {source} → {target}, {self.config['model']['kind']} of width {self.config['model']['width']}>"
        )


def load(path: str | Path) -> Translator:
    """The translator in a run folder or a model folder."""
    find_model(Path(path))  # a mistyped path is answered before torch is loaded
    from clearhead.checkpoint.model import load_model
    from clearhead.data.prepare import load_tokenizers
    from clearhead.engines.native import NativeEngine

    model, config, folder = load_model(Path(path))
    decoding = from_dict(DecodingOptions, config.get("decoding", {}), "decoding")
    return Translator(NativeEngine(model), *load_tokenizers(folder), decoding, config)


def translate_file(translator: Translator, source: Path, output: Path, beam: int | None) -> None:
    """Line by line; `-` is standard input or output. As many lines come out as go in, in the same order."""
    _require_folder(output)
    lines, ends_with_newline = _read_lines(source)
    results = list(lines)
    done = 0
    with progress("translating") as bar:
        for places, found in translator.stream(lines, translator.options(beam)):
            for place, translations in zip(places, found, strict=True):
                results[place] = _one_line(translations[0].text)
            done += len(places)
            bar.update(done, len(lines), "lines")
    text = "".join(f"{line}\n" for line in results)
    _write(output, (text if ends_with_newline else text.removesuffix("\n")).encode())


def _read_lines(source: Path) -> tuple[list[str], bool]:
    """Cleaned like a corpus: only \\n ends a line, its CR goes, and what is no UTF-8 is U+FFFD. Also: ends with \\n?"""
    if str(source) == "-":
        data = sys.stdin.buffer.read()
    else:
        _require_file(source)
        try:
            data = source.read_bytes()
        except OSError as error:
            raise UserError("UNREADABLE", f"cannot read {source}: {error.strerror}", DISK) from error
    *lines, rest = data.decode("utf-8-sig", errors="replace").split("\n")
    return [CONTROL.sub(" ", line.removesuffix("\r")) for line in (lines + [rest] if rest else lines)], not rest


def _require_file(source: Path) -> None:
    if not source.exists():
        raise UserError("NO_INPUT", f"there is no file {source}; expected a text file to translate, or -", MISSING)
    if source.is_dir():
        raise UserError("DIRECTORY", f"{source} is a folder; expected a text file to translate, or -", USAGE)


def _require_folder(output: Path) -> None:
    """Before the work, not after it."""
    if str(output) != "-" and (output.is_dir() or not output.parent.is_dir()):
        found = f"{output} is a folder" if output.is_dir() else f"there is no folder {output.parent}"
        raise UserError("OUTPUT", f"{found}; expected a file to write in a folder that exists", DISK)


def _one_line(text: str) -> str:
    """A model that has bytes can say a line end, which must not become one."""
    return CONTROL.sub(" ", text)


def _write(output: Path, data: bytes) -> None:
    """To standard output, or to a file that appears complete or not at all."""
    scratch = output.with_name(f"{output.name}.partial")
    try:
        if str(output) == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            scratch.write_bytes(data)
            scratch.replace(output)
    except BrokenPipeError:  # the reader has enough; Typer ends quietly
        raise
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise UserError(
            "OUTPUT", f"cannot write {output}: {error.strerror}; free space or name another", DISK
        ) from error
