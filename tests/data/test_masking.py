"""What is hidden in training: as much as is asked for, whole stretches and single words, by random numbers alone."""

import numpy as np
import pytest
import torch

from clearhead.data.batching import make_batch
from clearhead.data.masking import hide_parts, hide_words
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import SPECIAL_PIECES, UNK
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


def test_words_that_are_read_are_hidden_and_what_is_to_be_said_is_not() -> None:
    words = list(range(len(SPECIAL_PIECES), 997))
    batch = make_batch([(words, words[:53]), (words[:7], words)])
    torch.manual_seed(3)
    hidden = hide_words(batch, 0.3)
    assert torch.equal(hidden.tgt_out, batch.tgt_out)
    assert torch.equal(hidden.src_mask, batch.src_mask)
    for before, after in ((batch.src, hidden.src), (batch.tgt_in, hidden.tgt_in)):
        changed = before != after
        assert (after[changed] == UNK).all()
        assert (before[changed] >= len(SPECIAL_PIECES)).all()  # never the beginning, the end or padding
        assert 0.25 < float(changed.sum()) / float((before >= len(SPECIAL_PIECES)).sum()) < 0.35
    torch.manual_seed(3)
    assert torch.equal(hide_words(batch, 0.3).src, hidden.src)
    assert not torch.equal(hide_words(batch, 0.3).src, hidden.src)
    assert hide_words(batch, 0.0) is batch


def test_of_a_recording_only_words_of_the_target_are_hidden() -> None:
    batch = make_batch([(FEATURES, list(range(len(SPECIAL_PIECES), 97)))])
    hidden = hide_words(batch, 0.5)
    assert torch.equal(hidden.src, batch.src)
    assert (hidden.tgt_in == UNK).any()


def test_a_rate_of_words_is_below_one() -> None:
    with pytest.raises(ValueError, match=r"word_dropout is 1\.0; expected a number from 0 up to, but not, 1"):
        DataOptions(word_dropout=1.0)
