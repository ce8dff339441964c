"""Text to text: tokenizer, engine, tokenizer; and around them the guards, so that no text is lost or made up."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.checkpoint.manifest import damaged, read_file
from clearhead.checkpoint.model_folder import find_model, model_options, read_config, said_words
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import BOS, BYTE_PIECES, EOS, LEARNED, PAD, SPECIALS, Tokenizer
from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.decoding.calibration import Calibration
from clearhead.engines import Engine
from clearhead.errors import USAGE, UserError
from clearhead.inspection.change import NOTHING, Change
from clearhead.model.options import TransformerOptions
from clearhead.options import from_dict

from . import guards
from .glossary import Glossary
from .plan import Piece, Plan, Said
from .sources import features_of, has_features, step_labels
from .splitting import join
from .tasks import require_task
from .translation import Decoded, Translation

if TYPE_CHECKING:
    import numpy as np

    from clearhead.inspection.inspect import Subject
    from clearhead.inspection.trace import Trace
    from clearhead.inspection.walk import Stop

LATE = 5  # when one in so many parts of a search is still to come, second searches are begun beside it
FIRST_WAVE = 128  # texts that an engine gets at once, so that it works while the others are planned
BLOCKED = 4  # n-grams of this length are not repeated when a sentence that ran in circles is decoded again
PAST_SOURCE = 50  # tokens that a target may have more than its source, where nothing else is known (paper 6.1)
SHORTEST = 16  # tokens; shorter sources may have targets as long as one of this length


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
        self._native = engine if engine.name == "native" else None
        self._most_positions = _most_positions(config)
        data = from_dict(DataOptions, config.get("data", {}), "data")
        self._longest = min(data.max_tokens, self._most_positions)
        self._known = _known(source_tokenizer) if data.tokenizer != "words" else 0
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
    ) -> Iterator[tuple[list[int], list[list[Translation]]]]:
        """As they are done: which of the texts, and their translations.

        Not `scored`: the texts are the same, found a little sooner; scores mean nothing and confidence is not known.
        """
        require_task(self.task, "translate", "generate")
        guards.require_unicode(texts)
        options = options or self.decoding
        if glossary is not None and options.temperature is not None:
            message = "samples cannot be made to have the glossary's phrases; leave out the glossary or the temperature"
            raise UserError("GLOSSARY", message, USAGE)
        confidence = Confidence(self.calibration if scored and self._calibrated(options) else None)
        plans: list[Plan] = []
        searches: deque[tuple[list[tuple[int, Piece]], Iterator[tuple[list[int], list[list[Said]]]]]] = deque()

        def begin(wanted: list[tuple[int, Piece]]) -> None:
            if wanted:
                pieces = [piece for _, piece in wanted]
                searches.append((wanted, self._search(pieces, options, glossary, prefix, scored)))

        for wave in _waves(texts) if self.engine.works_ahead else [texts]:
            first = len(plans)
            plans += [Plan(text, self._fits) for text in wave]
            ready = [place for place in range(first, len(plans)) if not plans[place].asks]
            if ready:
                yield ready, [plans[place].result(confidence) for place in ready]
            new = range(first, len(plans))
            begin([(place, piece) for place in new for piece in plans[place].pieces if not piece.stays])
        while searches:
            wanted, search = searches.popleft()
            again: list[tuple[int, Piece]] = []
            left, late = len(wanted), len(wanted) // LATE if self.engine.works_ahead else -1
            for some, found in search:
                settled = dict.fromkeys(wanted[i][0] for i in some)
                for i, said in zip(some, found, strict=True):
                    place, piece = wanted[i]
                    again += [(place, more) for more in self._settle(plans[place], piece, said, options, glossary)]
                done = [place for place in settled if not plans[place].is_open]
                if done:
                    yield done, [plans[place].result(confidence) for place in done]
                if left > late >= left - len(some):  # once, so that the engine has them beside its last batches
                    begin(again)
                    again = []
                left -= len(some)
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
        pieces = Plan(text, self._fits).pieces
        said = [piece.part.text if piece.stays else "" for piece in pieces]
        for place, piece in enumerate(pieces):
            if piece.stays:
                continue
            source, target = self.source_tokenizer.encode(piece.part.text), list[int]()
            for token in self.engine.steps(source, self.limit(self.decoding, len(source))):
                target.append(token)
                said[place] = self.target_tokenizer.decode(target).rstrip("\ufffd")  # bytes of half a character
                yield join([one.part for one in pieces[: place + 1]], said[: place + 1]).rstrip()

    def native(self) -> Engine:
        """The engine on torch, loaded when first needed."""
        if self._native is None:
            if self.folder is None:
                raise ValueError(f"a translator made of the engine {self.engine.name} alone cannot load another")
            self._native = _open_engine(self.folder, "native", self.deterministic)
        return self._native

    def _fits(self, text: str) -> bool:
        """Whether the model was trained on sources of this length; a token has at least one byte, a first space too."""
        return len(text.encode()) < self._longest or len(self.source_tokenizer.encode(text)) <= self._longest

    def _search(
        self,
        pieces: Sequence[Piece],
        options: DecodingOptions,
        glossary: Glossary | None,
        prefix: str,
        scored: bool,
    ) -> Iterator[tuple[list[int], list[list[Said]]]]:
        """As they are done: which of the pieces, and what the model says. An engine that works ahead has begun.

        Where the guards decide by scores, there are some: figures alone, and what could run in circles twice.
        """
        sources = self.source_tokenizer.encode_many([piece.part.text for piece in pieces])
        start = self.target_tokenizer.encode(prefix) if prefix else []
        demands = [
            Demand(
                prefix=start if piece.is_first else [],
                phrases=glossary.phrases(piece.part.text, self.target_tokenizer) if glossary else [],
                max_length=self.limit(options, len(source)),
                scored=scored or bool(prefix) or not guards.has_letters(piece.part.text),
            )
            for piece, source in zip(pieces, sources, strict=True)
        ]
        groups: dict[bool, list[int]] = {}
        for place, piece in enumerate(pieces):
            groups.setdefault(bool(piece.first_try), []).append(place)
        begun = []
        for is_second_try, group in groups.items():
            careful = replace(options, block_ngrams=BLOCKED) if is_second_try else options
            some = [demands[place] for place in group]
            engine = self._engine_for(careful, some)
            begun.append((group, engine.translate_batches([sources[place] for place in group], careful, some)))
        return (
            (
                [group[place] for place in places],
                [self._say(sources[group[place]], h) for place, h in zip(places, found, strict=True)],
            )
            for group, batches in begun
            for places, found in batches
        )

    def _say(self, source: list[int], hypotheses: Sequence[Hypothesis]) -> list[Said]:
        decode = self.target_tokenizer.decode
        return [Said(decode(h.tokens), h.score, Decoded(source, h.tokens)) for h in hypotheses]

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

    def _settle(
        self, plan: Plan, piece: Piece, said: list[Said], options: DecodingOptions, glossary: Glossary | None
    ) -> list[Piece]:
        """Take what was said, or find what is wrong with it: the pieces that have to be searched once more."""
        best, text = said[0], piece.part.text
        if not self._translates_digits and not guards.has_letters(text):
            piece.stays = self._loses_digits(text, best, options)
        elif piece.first_try:
            said = _better(piece.first_try, said)
        elif not self._repeats and guards.is_repetitive(best.decoded.source, best.decoded.target):
            plan.warnings.add("repetition")
            piece.first_try = said
            return [piece]
        if not piece.stays:
            wanted = self._wanted(text, best.decoded.source)
            if guards.any_missing(wanted, said[0].text):
                left = [new for new in plan.keep_apart(piece, wanted, self._fits) if not new.stays]
                if left:
                    return left
            piece.said = said
            if self._is_low(said[0], options):
                plan.warnings.add("low_confidence")
            if glossary is not None and glossary.misses(text, said[0].text):
                plan.warnings.add("glossary_missed")
        return []

    def _loses_digits(self, text: str, best: Said, options: DecodingOptions) -> bool:
        """Of figures alone, only a translation that puts words to all of them is one: 2026-03-04 is 2026年3月4日."""
        is_one = guards.has_letters(best.text) and guards.numbers_kept(text, best.text)
        return not is_one or self._is_low(best, options)

    def _wanted(self, text: str, ids: list[int]) -> list[str]:
        """What must be in the translation as it is in the text."""
        wanted = guards.protected(text)
        if min(ids, default=self._known) < self._known:
            tokenizer = self.source_tokenizer
            wanted += guards.foreign_words(text, lambda word: tokenizer.pieces(tokenizer.encode(word)))
        return wanted

    def _is_low(self, said: Said, options: DecodingOptions) -> bool:
        return self._calibrated(options) and self.calibration is not None and self.calibration.is_low(said.score)

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


class Confidence:
    """That of the least sure part; none if it cannot be known."""

    def __init__(self, calibration: Calibration | None) -> None:
        self.calibration = calibration

    def __call__(self, said: Sequence[Said]) -> float | None:
        if self.calibration is None:
            return None
        return min(self.calibration.confidence(one.score) for one in said)


def load(path: str | Path, engine: str = "auto", deterministic: bool = False) -> Translator:
    """The translator in a run folder or a model folder."""
    folder = find_model(Path(path))
    config = read_config(folder)
    opened = _open_engine(folder, engine, deterministic)
    tokenizers = _tokenizers(folder, config)
    decoding = from_dict(DecodingOptions, config.get("decoding", {}), "decoding")
    translator = Translator(opened, *tokenizers, decoding, config, folder)
    translator.has_named_engine, translator.deterministic = engine != "auto", deterministic
    return translator


def _open_engine(folder: Path, name: str, deterministic: bool) -> Engine:
    from clearhead.engines.choice import open_engine

    return open_engine(folder, name, deterministic=deterministic)


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


def _known(tokenizer: Tokenizer) -> int:
    """The first id that stands for more than a byte or something unknown."""
    has_bytes = len(tokenizer) > SPECIALS and tokenizer.pieces([SPECIALS]) == [BYTE_PIECES[0]]
    return LEARNED if has_bytes else SPECIALS


def _most_positions(config: dict[str, Any]) -> int:
    """Tokens that the model has positions for, EOS or BOS not counted."""
    options = model_options(config)
    if isinstance(options, TransformerOptions) and options.positions == "learned":
        return options.max_positions - 1
    return 1 << 30


def _waves(texts: Sequence[str]) -> list[Sequence[str]]:
    """A first few, and the rest; of few texts all at once, as batches are better with more to choose from."""
    return [texts[:FIRST_WAVE], texts[FIRST_WAVE:]] if len(texts) > 4 * FIRST_WAVE else [texts]


def _better(first: list[Said], second: list[Said]) -> list[Said]:
    """The second try, unless it runs in circles as well and is less likely; or has nothing to say."""

    def worth(said: list[Said]) -> tuple[bool, bool, float]:
        best = said[0]
        return bool(best.text.strip()), not guards.is_repetitive(best.decoded.source, best.decoded.target), best.score

    return max(first, second, key=worth)
