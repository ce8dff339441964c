"""What SpecAugment hides: as much as it may, whole stretches, and by the random numbers alone."""

import numpy as np
import pytest

from clearhead.data.masking import hide_parts
from clearhead.data.options import DataOptions
from clearhead.options import from_dict

FEATURES = np.random.default_rng(1).normal(1, 0.1, (53, 11)).astype(np.float32)


def hidden(options: DataOptions, seed: int) -> np.ndarray:
    found = hide_parts(FEATURES, options, np.random.default_rng(seed))
    assert isinstance(found, np.ndarray)
    changed = found != FEATURES
    assert not found[changed].any()
    return changed


def test_nothing_is_hidden_unless_it_is_asked_for() -> None:
    assert hide_parts(FEATURES, DataOptions(), np.random.default_rng(1)) is FEATURES
    ids = [3, 5]
    assert hide_parts(ids, DataOptions(time_masks=1), np.random.default_rng(1)) is ids


def test_stretches_of_time_are_hidden_in_all_features_and_bands_at_all_times() -> None:
    in_time = [hidden(DataOptions(time_masks=1, time_mask_steps=7), seed) for seed in range(101)]
    assert all((one.all(axis=1) == one.any(axis=1)).all() for one in in_time)
    sizes = {int(one[:, 0].sum()) for one in in_time}
    assert sizes == set(range(8))
    bands = [hidden(DataOptions(feature_masks=1, feature_mask_width=3), seed) for seed in range(101)]
    assert {int(one[0].sum()) for one in bands} == set(range(4))
    assert all((one.all(axis=0) == one.any(axis=0)).all() for one in bands)


def test_at_most_a_fifth_of_the_time_at_once() -> None:
    most = max(int(hidden(DataOptions(time_masks=1, time_mask_steps=500), seed)[:, 0].sum()) for seed in range(101))
    assert most == 53 // 5


def test_masks_follow_from_the_seed() -> None:
    options = DataOptions(time_masks=2, feature_masks=2, feature_mask_width=4)
    assert (hidden(options, 3) == hidden(options, 3)).all()
    assert (hidden(options, 3) != hidden(options, 4)).any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time_masks", -1),
        ("feature_masks", -1),
        ("time_mask_steps", 0),
        ("feature_mask_width", 0),
        ("max_steps", 0),
        ("mel_bins", 1),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}; expected at least"):
        from_dict(DataOptions, {name: value}, "data")


def test_no_subwords_are_dropped_of_numbers() -> None:
    with pytest.raises(ValueError, match='not with task = "speech"'):
        DataOptions(task="speech", subword_dropout=0.1)
