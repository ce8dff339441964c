"""All that translates, with the same weights where it can have them, ready to be started."""

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.joeynmt_weights import write_for_joeynmt
from benchmarks.machine import THREADS
from benchmarks.peers import Sizes
from benchmarks.rounds import Start
from clearhead.checkpoint.model_folder import read_config
from clearhead.engines.ct2_form import ct2_form
from clearhead.exchange import export_model

AUTO, NATIVE = "Clearhead auto", "Clearhead native"
CT2, CT2_DEFAULTS, CT2_FLOAT = "CTranslate2 int8 at its best", "CTranslate2 int8, its defaults", "CTranslate2 float32"
TRANSFORMERS, JOEYNMT, EOLE = "transformers", "JoeyNMT", "Eole (random weights)"
AT_ITS_BEST = [str(THREADS), "1", "32"]  # workers, threads of each, sentences at a time: the best that was found


def translators(model: Path, scratch: Path) -> dict[str, Start]:
    """Of a post-norm model with one vocabulary; `scratch` is for its other forms."""
    export_model(model, scratch / "hf", "hf")
    export_model(model, scratch / "ct2", "ct2", "float32")
    write_for_joeynmt(model, scratch / "joeynmt")
    form, pieces = str(ct2_form(model)), str(model / "source.model")
    return {
        AUTO: Start("clearhead_translator", [str(model), "auto"]),
        NATIVE: Start("clearhead_translator", [str(model), "native"]),
        CT2: Start("ctranslate2_direct", [form, pieces, pieces, *AT_ITS_BEST]),
        CT2_DEFAULTS: Start("ctranslate2_direct", [form, pieces, pieces, "1", "0", "0"]),
        CT2_FLOAT: Start("ctranslate2_direct", [str(scratch / "ct2"), pieces, pieces, *AT_ITS_BEST]),
        TRANSFORMERS: Start("transformers_generate", [str(scratch / "hf"), str(THREADS)], "transformers"),
        JOEYNMT: Start("joeynmt_search", [str(scratch / "joeynmt"), str(THREADS)], "joeynmt"),
        EOLE: Start("eole_search", [json.dumps(asdict(_sizes(model))), pieces, str(scratch / "eole")], "eole"),
    }


def _sizes(model: Path) -> Sizes:
    options = read_config(model)["model"]
    names = ("width", "heads", "feed_forward", "encoder_blocks", "decoder_blocks")
    return Sizes(
        **{name: options[name] for name in names},
        vocabulary=options["source_vocabulary"],
        pairs=1,
        tokens=1,
        threads=THREADS,
    )
