"""Files of numbers to text: what a model of speech or of series says of a recording, a table or an array."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.data.features import FeatureScale
from clearhead.data.options import CONTINUOUS, DataOptions
from clearhead.data.readers import READERS, scaled_features
from clearhead.decoding import DecodingOptions, Demand
from clearhead.engines.native import NativeEngine
from clearhead.options import from_dict

from .tasks import require_task
from .translation import Decoded, Translation
from .translator import Translator, load

AT_ONCE = 64  # files


@dataclass(frozen=True)
class Transcriber:
    """A model whose sources are files of numbers, with the scale that it was trained with."""

    translator: Translator
    engine: NativeEngine
    data: DataOptions
    scale: FeatureScale

    def transcribe(self, files: Sequence[Path], options: DecodingOptions) -> Iterator[list[Translation]]:
        """For each file, in order, the n best texts."""
        for start in range(0, len(files), AT_ONCE):
            some = [scaled_features(path, self.data, self.scale) for path in files[start : start + AT_ONCE]]
            demands = [Demand(max_length=self.translator.limit(options, len(one))) for one in some]
            decode = self.translator.target_tokenizer.decode
            for hypotheses in self.engine.translate(some, options, demands):
                yield [Translation(decode(h.tokens), h.score, decoded=(Decoded([], h.tokens),)) for h in hypotheses]

    def label(self, step: int) -> str:
        """How people call a step of the source."""
        return READERS[self.data.task].label(step)


def load_transcriber(path: Path) -> Transcriber:
    """The model in a run folder or a model folder, if its sources are files of numbers."""
    translator = load(path, engine="native")
    require_task(translator.task, *CONTINUOUS)
    assert isinstance(translator.engine, NativeEngine)
    data = from_dict(DataOptions, translator.config["data"], "data")
    return Transcriber(
        translator, translator.engine, data, from_dict(FeatureScale, translator.config["scale"], "scale")
    )
