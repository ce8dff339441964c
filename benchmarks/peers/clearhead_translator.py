"""Ours: MODEL and the engine's name."""

import sys

from benchmarks.peers import serve
from clearhead.translator import load

if __name__ == "__main__":
    translator = load(sys.argv[1], engine=sys.argv[2])
    serve(lambda lines, beam: translator.translate(lines, beam=beam))
