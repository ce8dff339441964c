"""Text to text: tokenizer, engine, tokenizer; and around them the guards, so that no text is lost or made up."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.checkpoint.manifest import damaged, read_file
from clearhead.checkpoint.model_folder import find_model, model_options, read_config, said_words
from clearhead.data.lines import Lines
from clearhead.data.options import DataOptions
from clearhead.data.seen import SEEN, Seen
from clearhead.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.decoding.calibration import Calibration
from clearhead.engines import Engine
from clearhead.errors import USAGE, UserError
from clearhead.inspection.change import NOTHING, Change
from clearhead.model.options import TransformerOptions
from clearhead.options import from_dict

from . import guards
from .boundaries import Boundaries
from .casing import USUAL
from .confidence import Confidence
from .draft import BLOCKED, WIDE, Request, Rules, SegmentDraft, TextDraft
from .glossary import Glossary
from .segments import SEVERAL, Cutter
from .sources import features_of, has_features, step_labels
from .tasks import require_task
from .texts import occurrences, require_texts
from .translation import Decoded, Translation

if TYPE_CHECKING:
    import numpy as np

    from clearhead.inspection.inspect import Subject
    from clearhead.inspection.trace import Trace
    from clearhead.inspection.walk import Stop

LATE = 5  # when one in so many parts of a search is still to come, second searches are begun beside it
FIRST_WAVE = 128  # texts that an engine gets at once, so that it works while the others are cut
BLOCKED_NGRAMS = 4  # n-grams of this length are not repeated when a sentence that ran in circles is decoded again
WIDER, LEAST_WIDE = 2, 8  # times the beam, and at least so many hypotheses, where one without faults is looked for
PAST_SOURCE = 50  # tokens that a target may have more than its source, where nothing else is known (paper 6.1)
SHORTEST = 16  # tokens; shorter sources may have targets as long as one of this length


@dataclass(frozen=True)
class Ask:
    """What an engine is asked for a segment of one of the texts."""

    text: int  # which one
    segment: SegmentDraft
    request: Request

    @property
    def is_first(self) -> bool:
        return self.segment.is_first_request(self.request)


Found = list[tuple[Ask, list[int], list[Hypothesis]]]  # what was asked, the source in ids, and what was found for it


class Translator:
    """A trained model with its tokenizers; `clearhead.load(folder)` makes one."""

    def __init__(
        self,
        engine: Engine,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingOptions,
        config: dict[str, Any],
        folder: Path | None = None,  # where another engine finds the model; none: there is only this one
    ) -> None:
        self.engine = engine
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.decoding = decoding
        self.config = config
        self.folder = folder
        self.has_named_engine = False
        self.deterministic = False
        self.calibration = (
            from_dict(Calibration, config["calibration"], "calibration") if "calibration" in config else None
        )
        self.seen: Seen | None = None  # what a calibration with `sense` needs
        self._native = engine if engine.name == "native" else None
        self._most_positions = _most_positions(config)
        data = from_dict(DataOptions, config.get("data", {}), "data")
        self._longest = min(data.max_tokens, self._most_positions)
        self._lines = from_dict(Lines, config["lines"], "lines") if "lines" in config else None
        about = config.get("about", {})
        self._translates_digits, self._repeats = bool(about.get("translates_digits")), bool(about.get("repeats"))

    @property
    def languages(self) -> tuple[str, str]:
        """Codes such as en and zh; `und` if the model does not say."""
        data = self.config.get("data", {})
        return data.get("source_language") or "und", data.get("target_language") or "und"

    @property
    def task(self) -> str:
        """What the model was trained for: translate, generate, speech, image, series."""
        return self.config.get("data", {}).get("task", "translate")

    @property
    def most_positions(self) -> int:
        """Tokens that the model has positions for, EOS or BOS not counted."""
        return self._most_positions

    def translate(
        self,
        texts: str | Sequence[str],
        beam: int | None = None,
        glossary: Glossary | None = None,
        prefix: str = "",
        format: str = "text",
    ) -> list[str]:
        """The best translation of each text, or of a single one. A blank text stays; the model is not asked."""
        if format != "text":
            raise UserError("FORMAT", f"format {format!r} is not supported; expected text, without mark-up", USAGE)
        require_texts(texts)
        texts = [texts] if isinstance(texts, str) else texts
        results = [""] * len(texts)
        for places, found in self.stream(texts, self.options(beam), glossary, prefix, scored=False):
            for place, (best, *_) in zip(places, found, strict=True):
                results[place] = best.text
        return results

    def alternatives(
        self,
        texts: str | Sequence[str],
        options: DecodingOptions | None = None,
        glossary: Glossary | None = None,
        prefix: str = "",
    ) -> list[list[Translation]]:
        """The n best translations of each text, best first."""
        require_texts(texts)
        texts = [texts] if isinstance(texts, str) else texts
        results: list[list[Translation]] = [[] for _ in texts]
        for places, found in self.stream(texts, options, glossary, prefix):
            for place, translations in zip(places, found, strict=True):
                results[place] = translations
        return results

    def stream(
        self,
        texts: Sequence[str],
        options: DecodingOptions | None = None,
        glossary: Glossary | None = None,
        prefix: str = "",
        scored: bool = True,
        draws: Sequence[int] | None = None,
    ) -> Iterator[tuple[list[int], list[list[Translation]]]]:
        """As they are done: which of the texts, and their translations.

        Not `scored`: the texts are the same, found a little sooner; scores mean nothing and confidence is not known.
        Equal texts get other samples where their `draws` differ; none given: how often each text stood before.
        """
        require_task(self.task, "translate", "generate")
        require_texts(texts)
        guards.require_unicode(texts)
        options = options or self.decoding
        if glossary is not None and options.temperature is not None:
            message = "samples cannot be made to have the glossary's phrases; leave out the glossary or the temperature"
            raise UserError("GLOSSARY", message, USAGE)
        if options.temperature is not None and draws is None:
            draws = occurrences(texts)
        rules = self._rules(options, glossary, prefix)
        drafts: list[TextDraft] = []
        searches: deque[tuple[int, Iterator[Found]]] = deque()  # how many segments each is for

        def begin(asks: list[Ask]) -> None:
            if asks:
                searches.append((len(asks), self._search(asks, options, scored, draws)))

        # The first few texts are searched while the others are cut.
        for wave in _waves(texts) if self.engine.works_ahead else [texts]:
            new = range(len(drafts), len(drafts) + len(wave))
            drafts += [TextDraft(text, rules) for text in wave]
            if ready := [place for place in new if not drafts[place].asks]:
                yield ready, [drafts[place].result(scored) for place in ready]
            begin([Ask(place, *one) for place in new for one in drafts[place].requests()])
        while searches:
            left, search = searches.popleft()
            late = left // LATE if self.engine.works_ahead else -1
            again: list[Ask] = []
            for found in search:
                for ask, source, hypotheses in found:
                    following = drafts[ask.text].settle(ask.segment, ask.request, source, hypotheses)
                    again += [Ask(ask.text, *one) for one in following]
                if done := [i for i in dict.fromkeys(ask.text for ask, *_ in found) if not drafts[i].is_open]:
                    yield done, [drafts[place].result(scored) for place in done]
                before, left = left, left - len(found)
                if before > late >= left:  # once, so that the engine has them beside its last batches
                    begin(again)
                    again = []
            begin(again)

    def options(self, beam: int | None) -> DecodingOptions:
        """The model's own, with another beam if one is given."""
        if beam is None:
            return self.decoding
        return replace(self.decoding, beam=beam, n_best=min(self.decoding.n_best, beam))

    def score(self, decoded: Sequence[Decoded]) -> list[list[float]]:
        """The log-probability of each target token, EOS last."""
        return self.engine.score([one.source for one in decoded], [one.target for one in decoded])

    def inspect(
        self,
        text: str,
        target: str | None = None,
        beam: int | None = None,
        heads: Sequence[tuple[str, int, int]] = (),
        runners_up: int = 5,
        change: Change = NOTHING,
    ) -> "Trace":
        """Every layer, head and step of a translation, or of a target that is given, by the native model in float32.

        Of a model whose sources are files of numbers, `text` is the path of one; one that continues text takes it for
        the beginning. `heads`, such as ("cross", 2, 0), are those whose exact numbers are wanted, beside the usual.
        With a `change` another beginning is forced, or heads are switched off, and the rest is searched again.
        """
        from clearhead.inspection.inspect import Question, inspect

        options, features = self.options(beam), self._features(text)
        given = self.source_tokenizer.encode(text) if features is None else []
        length = len(given) if features is None else len(features)
        start = given if self.task == "generate" and target is None and not change.prefix else list(change.prefix)
        self._require_ids(start)
        limit = max(self.limit(options, length), min(len(start), self._most_positions))
        demand = Demand(prefix=start, max_length=limit)
        question = Question(text, target, options, demand, runners_up, tuple(heads), off=change.off)
        if features is not None:
            question = replace(question, features=features, labels=step_labels(self.config, length))
        trace = inspect(self.subject(), question)
        if target is None and self.task == "translate" and change == NOTHING:
            guarded = self.alternatives(text, options)[0][0].text
            if guarded != trace.target.text:
                trace.notes.append(f"clearhead translate gives {guarded!r}: its guards or another engine changed it")
        return trace

    def _require_ids(self, prefix: Sequence[int]) -> None:
        """That a target can begin so: no PAD, no BOS, and EOS at its end alone."""
        size = len(self.target_tokenizer)
        if len(prefix) > self._most_positions:
            message = f"it begins with {len(prefix)} tokens; the model has positions for {self._most_positions}"
            raise UserError("TOO_LONG", f"{message}; give fewer", USAGE)
        for place, id in enumerate(prefix):
            if not 0 <= id < size or id in (PAD, BOS) or (id == EOS and place + 1 < len(prefix)):
                message = f"the prefix has the id {id} at {place}; expected ids of target tokens, below {size}"
                raise UserError("PREFIX", f"{message}, as a trace has them", USAGE)

    def walk(self, trace: "Trace") -> list["Stop"]:
        """The way of a trace's sentence through the network, stop by stop."""
        from clearhead.inspection.walk import walk

        return walk(self.subject(), trace, self._features(trace.source.text))

    def _features(self, text: str) -> "np.ndarray | None":
        """What is in the file of this name; none if the model reads text."""
        return features_of(self.config, Path(text)) if has_features(self.task) else None

    def subject(self) -> "Subject":
        """The native model with its tokenizers, for a look inside."""
        from clearhead.engines.native import NativeEngine
        from clearhead.inspection.inspect import Subject

        native = self.native()
        if not isinstance(native, NativeEngine):
            raise ValueError(f"a translator made of the engine {native.name} alone has no model to look into")
        tokenizers = self.source_tokenizer, self.target_tokenizer
        name = str(self.folder.parent if self.folder and self.folder.name == "model" else self.folder or "")
        options, said = model_options(self.config), said_words(self.config)
        return Subject(native.model, options, *tokenizers, self.languages, name, native.weights_sha256, said)

    def steps(self, text: str) -> Iterator[str]:
        """The whole text so far after each word of a greedy search; without the guards, which need a finished one."""
        draft = TextDraft(text, self._rules(self.decoding, None, ""))
        for segment, request in draft.requests():
            source, target = self.source_tokenizer.encode(request.masked.text), list[int]()
            for token in self.engine.steps(source, self.limit(self.decoding, len(source))):
                target.append(token)
                yield draft.so_far(segment, segment.provisional(request, Hypothesis(target, 0.0)))

    def native(self) -> Engine:
        """The engine on torch, loaded when first needed."""
        if self._native is None:
            if self.folder is None:
                raise ValueError(f"a translator made of the engine {self.engine.name} alone cannot load another")
            self._native = _open_engine(self.folder, "native", self.deterministic)
        return self._native

    def _rules(self, options: DecodingOptions, glossary: Glossary | None, prefix: str) -> Rules:
        """What decides how texts are cut, asked for and judged."""
        return Rules(
            languages=self.languages,
            source=self.source_tokenizer,
            target=self.target_tokenizer,
            cutter=self._cutter(),
            confidence=Confidence(self.calibration if self._calibrated(options) else None, self.seen),
            lines=self._lines,
            aligns=self.engine.aligns,
            has_phrases=self.engine.lacks(options, [Demand(phrases=[[[UNK]]])]) is None,
            glossary=glossary,
            prefix=self.target_tokenizer.encode(prefix) if prefix else (),
            searches_again=options.temperature is None,
            has_own_limit=options.max_length is not None,
            translates_digits=self._translates_digits,
            repeats=self._repeats,
        )

    def _cutter(self) -> Cutter:
        """Sentences without marks are found if the training lines were single sentences that ended with one."""
        tokenizer, lines, boundaries = self.source_tokenizer, self._lines, None
        if self.seen is not None and lines is not None and lines.several < SEVERAL and lines.ended >= USUAL:
            boundaries = Boundaries(self.seen, tokenizer, lines)
        return Cutter(self.languages[0], lambda text: len(tokenizer.encode(text)), self._longest, lines, boundaries)

    def _search(
        self, asks: Sequence[Ask], options: DecodingOptions, scored: bool, draws: Sequence[int] | None
    ) -> Iterator[Found]:
        """As they are done: what was asked, in ids too, and what was found. An engine that works ahead has begun.

        Where scores decide, there are some: figures alone, and among several searches for the same segment.
        """
        sources = self.source_tokenizer.encode_many([ask.request.masked.text for ask in asks])
        demands = [
            Demand(
                prefix=list(ask.request.prefix),
                phrases=[[list(way) for way in ways] for ways in ask.request.phrases],
                max_length=max(self.limit(options, len(source)), len(ask.request.prefix) + 1),
                scored=scored
                or bool(ask.request.prefix)
                or not ask.is_first
                or not guards.has_letters(ask.request.masked.text),
                aligned=self.engine.aligns,
                draw=0 if draws is None else draws[ask.text],
            )
            for ask, source in zip(asks, sources, strict=True)
        ]
        groups: dict[str, list[int]] = {}
        for place, ask in enumerate(asks):
            groups.setdefault(ask.request.way, []).append(place)
        begun = []
        for way, group in groups.items():
            as_asked = _options_of(way, options)
            some = [demands[place] for place in group]
            engine = self._engine_for(as_asked, some)
            begun.append((group, engine.translate_batches([sources[place] for place in group], as_asked, some)))
        return (
            [(asks[group[i]], sources[group[i]], h) for i, h in zip(places, found, strict=True)]
            for group, batches in begun
            for places, found in batches
        )

    def limit(self, options: DecodingOptions, length: int) -> int:
        """F39: no more tokens than targets of sources of this length have."""
        limit = length + PAST_SOURCE if options.max_length is None else options.max_length
        if self.calibration is not None:
            limit = min(limit, self.calibration.longest(max(length, SHORTEST)))
        return max(min(limit, self._most_positions), options.min_length, 1)

    def _engine_for(self, options: DecodingOptions, demands: Sequence[Demand] | None) -> Engine:
        """The fast one if it can do this, else native."""
        lacking = self.engine.lacks(options, demands)
        if lacking is None:
            return self.engine
        if self.has_named_engine:
            message = f"the engine {self.engine.name} cannot do {lacking}; leave --engine out, or use --engine native"
            raise UserError("ENGINE", message, USAGE)
        return self.native()

    def _calibrated(self, options: DecodingOptions) -> bool:
        """Scores with another length penalty mean something else, and samples are not what was asked for."""
        own = self.decoding
        is_alike = (options.length_penalty, options.alpha) == (own.length_penalty, own.alpha)
        return self.calibration is not None and is_alike and options.temperature is None

    def __repr__(self) -> str:
        source, target = self.languages
        model = self.config["model"]
        return f"<Translator {source} → {target}, {model['kind']} of width {model['width']}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        source, target = self.languages
        model = self.config["model"]
        about = f"{model['kind']} of width {model['width']}, engine {self.engine.name}, beam {self.decoding.beam}"
        return f"<p><b>{escape(source)} → {escape(target)}</b><br><small>{escape(about)}</small></p>"


def _options_of(way: str, options: DecodingOptions) -> DecodingOptions:
    """How a segment is searched in this way."""
    if way == BLOCKED:
        return replace(options, block_ngrams=BLOCKED_NGRAMS)
    if way == WIDE:
        beam = max(WIDER * options.beam, LEAST_WIDE)
        return replace(options, beam=beam, n_best=beam)
    return options


def load(path: str | Path, engine: str = "auto", deterministic: bool = False) -> Translator:
    """The translator in a run folder or a model folder."""
    folder = find_model(Path(path))
    config = read_config(folder)
    opened = _open_engine(folder, engine, deterministic)
    tokenizers = _tokenizers(folder, config)
    decoding = from_dict(DecodingOptions, config.get("decoding", {}), "decoding")
    translator = Translator(opened, *tokenizers, decoding, config, folder)
    if translator.calibration is not None and translator.calibration.sense:
        translator.seen = _seen(folder)
    translator.has_named_engine, translator.deterministic = engine != "auto", deterministic
    return translator


def _open_engine(folder: Path, name: str, deterministic: bool) -> Engine:
    from clearhead.engines.choice import open_engine

    return open_engine(folder, name, deterministic=deterministic)


def _seen(folder: Path) -> Seen:
    try:
        return Seen.from_bytes(read_file(folder, SEEN))
    except ValueError as error:
        raise damaged(folder / SEEN, str(error)) from error


def _tokenizers(folder: Path, config: dict[str, Any]) -> tuple[Tokenizer, Tokenizer]:
    """As the manifest vouches for them, and of the sizes that the model has."""
    from clearhead.data.folders import load_tokenizers, tokenizer_files

    for file in tokenizer_files(folder):
        read_file(folder, file.name)
    tokenizers = load_tokenizers(folder)
    options = model_options(config)
    for side, tokenizer, size in zip(
        ("source", "target"), tokenizers, (options.source_vocabulary, options.target_vocabulary), strict=True
    ):
        if len(tokenizer) > size:
            raise damaged(folder, f"its {side} tokenizer has {len(tokenizer)} pieces, but the model knows {size}")
    return tokenizers


def _most_positions(config: dict[str, Any]) -> int:
    """Tokens that the model has positions for, EOS or BOS not counted."""
    options = model_options(config)
    if isinstance(options, TransformerOptions) and options.positions == "learned":
        return options.max_positions - 1
    return 1 << 30


def _waves(texts: Sequence[str]) -> list[Sequence[str]]:
    """A first few, and the rest; of few texts all at once, as batches are better with more to choose from."""
    return [texts[:FIRST_WAVE], texts[FIRST_WAVE:]] if len(texts) > 4 * FIRST_WAVE else [texts]
