"""Recipes whose corpora a machine makes itself, in full: in `make soak` alone, about twenty minutes on two cores."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clearhead.data.fonts import FOLDERS, LEAST_MAKERS, find_fonts

ROOT = Path(__file__).parent.parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("CLEARHEAD_SOAK"), reason="trains for minutes; CLEARHEAD_SOAK=1"),
]


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_speech_of_voices_that_were_never_heard(tmp_path: Path) -> None:
    assert error_rate("speech-digits", "clearhead.data.spoken", tmp_path) <= 5.0


def test_pictures_in_fonts_that_were_never_seen(tmp_path: Path) -> None:
    if len({font.maker for font in find_fonts(FOLDERS)}) < LEAST_MAKERS:
        pytest.skip("too few fonts")
    assert error_rate("image-digits", "clearhead.data.pictures", tmp_path) <= 5.0


def error_rate(recipe: str, corpus: str, folder: Path) -> float:
    """Of characters, in per cent, as the README's commands find it."""
    run("-m", corpus, "corpus", folder=folder)
    files = "--train", "corpus/train.tsv", "--valid", "corpus/valid.tsv"
    run("-m", "clearhead", "train", recipe, *files, "--out", "run", folder=folder)
    return json.loads(run("-m", "clearhead", "evaluate", "run", "corpus/test.tsv", "--json", folder=folder))["cer"]


def run(*words: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words], check=True, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ).stdout
