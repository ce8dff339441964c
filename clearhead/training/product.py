"""The model folder of a run: what every other command reads, from the first good checkpoint on."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from clearhead.checkpoint.model import Model, save_model
from clearhead.data.folders import tokenizer_files
from clearhead.data.prepare import open_prepared
from clearhead.data.seen import SEEN, Seen
from clearhead.decoding.calibration import Calibration

from .guidance import make_guide
from .plan import Plan
from .settings import Settings
from .vocabulary import target_words


def write_model(
    run: Path,
    settings: Settings,
    plan: Plan,
    model: Model,
    about: Mapping[str, Any],
    calibration: Calibration | None = None,
    seen: Seen | None = None,
) -> None:
    """Replace the run's model by this one; `about` says which weights these are. Only finished ones are calibrated."""
    source, target = plan.languages
    config: dict[str, Any] = {
        "data": asdict(replace(settings.data, source_language=source, target_language=target)),
        "decoding": asdict(settings.decoding),
        "about": dict(about),
    }
    prepared = open_prepared(Path(plan.prepared))
    if prepared.source.scale is not None:
        config["scale"] = asdict(prepared.source.scale)
    if prepared.facts.get("lines"):  # a corpus prepared before they were counted has none
        config["lines"] = prepared.facts["lines"]
    if guide := make_guide(settings, prepared):
        config["alignment"] = asdict(guide.head)
    if calibration is not None:
        config["calibration"] = asdict(calibration)
    words = target_words(prepared, settings)
    if words.unsaid:
        config["target"] = asdict(words)
    files = {file.name: file.read_bytes() for file in tokenizer_files(Path(plan.prepared))}
    if calibration is not None and calibration.sense and seen is not None:
        files[SEEN] = seen.to_bytes()
    save_model(run / "model", model, config, files)
