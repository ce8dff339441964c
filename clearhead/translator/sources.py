"""Files of numbers as a model wants them: read by its task's reader, scaled as when it was trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.data.features import FeatureScale
from clearhead.data.options import CONTINUOUS, DataOptions
from clearhead.options import from_dict

if TYPE_CHECKING:
    import numpy as np


def has_features(task: str) -> bool:
    """Whether sources are files of numbers, not text."""
    return task in CONTINUOUS


def features_of(config: Mapping[str, Any], path: Path) -> "np.ndarray":
    """(steps, features) of a file, for the model of this config.json."""
    from clearhead.data.readers import scaled_features

    data = from_dict(DataOptions, config["data"], "data")
    return scaled_features(path, data, from_dict(FeatureScale, config["scale"], "scale"))


def step_labels(config: Mapping[str, Any], steps: int) -> list[str]:
    """How people call what the encoder sees of so many steps: `0.32s`, `x12–16`."""
    from clearhead.data.readers import READERS

    data = from_dict(DataOptions, config["data"], "data")
    return READERS[data.task].labels(steps, 2 ** config["model"]["strides"], data)
