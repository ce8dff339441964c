"""Text to text: tokenizer, engine, tokenizer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clearhead.data.tokenizer import Tokenizer
from clearhead.decoding import DecodingOptions
from clearhead.engines import Engine


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
        data = self.config["data"]
        return data["source_language"], data["target_language"]

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
        return self.decoding if beam is None else replace(self.decoding, beam=beam)

    def __repr__(self) -> str:
        source, target = self.languages
        return (
            f"<Translator {source} → {target}, {self.config['model']['kind']} of width {self.config['model']['width']}>"
        )


def load(path: str | Path) -> Translator:
    """The translator in a run folder or a model folder."""
    from clearhead.checkpoint.model import load_model
    from clearhead.data.prepare import load_tokenizers
    from clearhead.engines.native import NativeEngine
    from clearhead.options import from_dict

    model, config, folder = load_model(Path(path))
    decoding = from_dict(DecodingOptions, config["decoding"], "decoding")
    return Translator(NativeEngine(model), *load_tokenizers(folder), decoding, config)


def translate_file(translator: Translator, source: Path, output: Path, beam: int | None) -> None:
    """Line by line; `-` is standard input or output. As many lines come out as go in, in the same order."""
    import sys

    from clearhead.errors import MISSING, UserError
    from clearhead.progress import progress

    if str(source) != "-" and not source.is_file():
        raise UserError("NO_INPUT", f"there is no file {source}; expected a text file to translate, or -", MISSING)
    data = sys.stdin.buffer.read() if str(source) == "-" else source.read_bytes()
    lines = data.decode("utf-8", errors="replace").split("\n")
    ends_with_newline = lines[-1] == ""
    lines = [line.removesuffix("\r") for line in (lines[:-1] if ends_with_newline else lines)]
    options = translator.options(beam)
    results = list(lines)
    with progress("translating") as bar:
        done = 0
        for places, found in translator.stream(lines, options):
            for place, translations in zip(places, found, strict=True):
                results[place] = translations[0].text
            done += len(places)
            bar.update(done, len(lines), "lines")
    text = "\n".join(results) + ("\n" if ends_with_newline else "")
    if str(output) == "-":
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return
    scratch = output.with_name(output.name + ".partial")
    scratch.write_bytes(text.encode())
    scratch.replace(output)
