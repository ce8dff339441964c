"""Files of numbers to text: what a model of speech, pictures or series says of a recording, a picture, a table."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from clearhead.data.options import CONTINUOUS
from clearhead.decoding import DecodingOptions, Demand
from clearhead.engines.native import NativeEngine

from .sources import features_of
from .tasks import require_task
from .translation import Decoded, Translation
from .translator import Translator, load

AT_ONCE = 64  # files


def load_transcriber(path: Path) -> Translator:
    """The model in a run folder or a model folder, if its sources are files of numbers."""
    translator = load(path, engine="native")
    require_task(translator.task, *CONTINUOUS)
    return translator


def transcribe(translator: Translator, files: Sequence[Path], options: DecodingOptions) -> Iterator[list[Translation]]:
    """For each file, in order, the n best texts."""
    engine, decode = translator.native(), translator.target_tokenizer.decode
    assert isinstance(engine, NativeEngine)
    for start in range(0, len(files), AT_ONCE):
        some = [features_of(translator.config, path) for path in files[start : start + AT_ONCE]]
        demands = [Demand(max_length=translator.limit(options, len(one))) for one in some]
        for hypotheses in engine.translate(some, options, demands):
            yield [Translation(decode(h.tokens), h.score, decoded=(Decoded([], h.tokens),)) for h in hypotheses]
