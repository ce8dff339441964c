"""Files of numbers to text: what a model of speech, pictures or series says of a recording, a picture, a table."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clearhead.data.options import CONTINUOUS
from clearhead.decoding import DecodingOptions, Demand
from clearhead.engines.native import NativeEngine
from clearhead.errors import OK, UserError

from .sources import features_of
from .tasks import require_task
from .translation import Decoded, Translation
from .translator import Translator, load

if TYPE_CHECKING:
    import numpy as np

AT_ONCE = 64  # files, at most
FEW, QUICK = 4, 0.5  # files at first, and the seconds below which twice as many are read together


def load_transcriber(path: Path) -> Translator:
    """The model in a run folder or a model folder, if its sources are files of numbers."""
    translator = load(path, engine="native")
    require_task(translator.task, *CONTINUOUS)
    return translator


def transcribe(translator: Translator, files: Sequence[Path], options: DecodingOptions) -> Iterator[list[Translation]]:
    """For each file, in order, the n best texts; the first file that cannot be read ends it."""
    for found in transcribe_what_can_be_read(translator, files, options):
        if isinstance(found, UserError):
            raise found
        yield found


def transcribe_what_can_be_read(
    translator: Translator, files: Sequence[Path], options: DecodingOptions
) -> Iterator[list[Translation] | UserError]:
    """For each file, in order, the n best texts, or what is wrong with it."""
    engine, decode = translator.native(), translator.target_tokenizer.decode
    assert isinstance(engine, NativeEngine)
    first, at_once = 0, FEW
    while first < len(files):
        started = time.monotonic()
        some = [_read(translator, path) for path in files[first : first + at_once]]
        good = [one for one in some if not isinstance(one, UserError)]
        demands = [Demand(max_length=translator.limit(options, len(one))) for one in good]
        texts = iter(engine.translate(good, options, demands))
        for one in some:
            if isinstance(one, UserError):
                yield one
            else:
                yield [Translation(decode(h.tokens), h.score, decoded=(Decoded([], h.tokens),)) for h in next(texts)]
        first += len(some)
        if time.monotonic() - started < QUICK:
            at_once = min(AT_ONCE, 2 * at_once)


def _read(translator: Translator, path: Path) -> "np.ndarray | UserError":
    try:
        return features_of(translator.config, path)
    except UserError as error:
        return error


def print_transcripts(translator: Translator, files: Sequence[Path], options: DecodingOptions, as_json: bool) -> int:
    """A line for each file as soon as it is known; on stderr which cannot be read. The first one's exit code."""
    code = OK
    for file, found in zip(files, transcribe_what_can_be_read(translator, files, options), strict=True):
        if isinstance(found, UserError):
            print(found.line(), file=sys.stderr, flush=True)
            code = code or found.exit_code
        elif as_json:
            shown = {"file": str(file), "text": found[0].text, "score": found[0].score}
            print(json.dumps(shown, ensure_ascii=False), flush=True)
        else:
            print(f"{file}\t{found[0].text}" if len(files) > 1 else found[0].text, flush=True)
    return code
