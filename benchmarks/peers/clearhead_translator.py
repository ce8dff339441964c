"""Ours: MODEL and the engine's name."""

import sys
from dataclasses import replace

from benchmarks.peers import serve_translations
from clearhead.decoding import Demand
from clearhead.translator import load

if __name__ == "__main__":
    translator = load(sys.argv[1], engine=sys.argv[2])

    def translate(lines: list[str], beam: int, length: int | None) -> list[str]:
        if length is None:
            return translator.translate(lines, beam=beam)
        # Without the guards, which would search a second time for what runs in circles, as random weights do.
        options = replace(translator.options(beam), min_length=length, max_length=length)
        sources = translator.source_tokenizer.encode_many(lines)
        found = translator.engine.translate(sources, options, [Demand(scored=False)] * len(sources))
        return [translator.target_tokenizer.decode(best.tokens) for best, *_ in found]

    serve_translations(translate)
