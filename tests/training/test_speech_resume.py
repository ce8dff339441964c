"""A run on recordings, parts of which are hidden at random, goes on exactly where it was interrupted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import BAD_DATA, UserError
from clearhead.failpoint import FailpointError
from tests.recordings import tone, write_melodies, write_wav

from .toy import STEPS, VALIDATE, Toy, losses, outcome

pytestmark = pytest.mark.slow

MASKS = ("data.time_masks=2", "data.time_mask_steps=5", "data.feature_masks=1", "data.feature_mask_width=3")
SETS = ("task=speech", "data.mel_bins=7", "training.tokens_per_batch=300", *MASKS)
Fail = Callable[[str], None]


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("melodies")
    return {
        "train": [write_melodies(folder / "train", 61)],
        "valid": [write_melodies(folder / "valid", 11, seed=9)],
    }


@pytest.mark.parametrize(
    "kind", [(), ("preset=rnn", "model.layers=1", "training.micro_tokens=101")], ids=["transformer", "rnn"]
)
def test_F03_interrupted_with_parts_hidden(
    toy: Toy, tmp_path: Path, fail_at: Fail, manifests: dict[str, Any], kind: tuple[str, ...]
) -> None:
    without = "model.heads model.feed_forward model.encoder_blocks model.decoder_blocks" if kind else ""
    for out in ("straight", "disturbed"):
        for point in ["train.step.3:raise", f"train.step.{STEPS}:raise"] if out == "disturbed" else []:
            fail_at(point)
            with pytest.raises(FailpointError):
                toy.train(tmp_path / out, *SETS, *kind, without=without, **manifests)
        fail_at("")
        assert toy.train(tmp_path / out, *SETS, *kind, without=without, **manifests) == 0
    assert outcome(tmp_path / "disturbed") == outcome(tmp_path / "straight")


def test_what_is_hidden_differs_from_epoch_to_epoch(toy: Toy, tmp_path: Path, manifests: dict[str, Any]) -> None:
    """One batch that is the same in every epoch, at a rate of nothing: only the masks can change its loss."""
    still = ("training.peak_rate=1e-30", "training.tokens_per_batch=100000", "model.dropout=0", "training.steps=3")
    plain = [one for one in SETS if not one.startswith(("data.time", "data.feature"))]
    assert toy.train(tmp_path / "masked", *SETS, *still, **manifests) == 0
    assert toy.train(tmp_path / "plain", *plain, *still, **manifests) == 0
    assert len({round(loss, 4) for loss in losses(tmp_path / "masked")}) == 3
    assert len({round(loss, 4) for loss in losses(tmp_path / "plain")}) == 1


def test_recordings_that_changed_are_other_data(toy: Toy, tmp_path: Path, fail_at: Fail) -> None:
    manifest = write_melodies(tmp_path / "own", 31)
    fail_at(f"train.step.{VALIDATE + 1}:raise")
    with pytest.raises(FailpointError):
        toy.train(tmp_path / "run", *SETS, train=[manifest], valid=[])
    fail_at("")
    write_wav(manifest.parent / "5.wav", tone(440, 0.3))
    with pytest.raises(UserError, match="was trained on other data") as refusal:
        toy.train(tmp_path / "run", *SETS, train=[manifest], valid=[])
    assert refusal.value.exit_code == BAD_DATA
