"""Our weights in CTranslate2: the same log-probabilities, for every variant that it has a word for."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clearhead.checkpoint.files import write_folder
from clearhead.checkpoint.manifest import json_bytes, read_file, read_manifest, verify
from clearhead.checkpoint.weights import WEIGHTS
from clearhead.convert import ctranslate2 as module
from clearhead.convert.ctranslate2 import inexpressible, made_of, to_ctranslate2, vocabulary
from clearhead.data.tokenizer import SPECIAL_PIECES, Words
from clearhead.engines.ct2 import Ct2Engine
from clearhead.engines.native import NativeEngine
from clearhead.errors import DAMAGED, USAGE, UserError
from clearhead.model import TransformerOptions
from tests.convert.variants import save_variant
from tests.samples import PAPER, TARGET_WORDS, VARIANTS

pytestmark = pytest.mark.slow  # each variant is converted and loaded

EXPRESSIBLE = {name: options for name, options in VARIANTS.items() if inexpressible(options) is None}
REASONS = {
    "own-positions": "model.positions is 'own'; sinusoidal or sinusoidal-half or learned or rotary or none would work",
    "branch": "model.norm is 'branch'; post or pre would work",
    "no-norm": "model.norm is 'none'; post or pre would work",
    "lecture": "model.norm is 'none'; post or pre would work",
    "no-skip": "model.skip is false; true would work",
    "batch-norm": "model.normalizer is 'batch'; layer or rms would work",
    "no-encoder": "the model has no encoder; one that translates would work",
    **{
        name: "the model is an RNN; a Transformer would work"
        for name, options in VARIANTS.items()
        if not isinstance(options, TransformerOptions)
    },
}
SHARED_NO_BIAS = replace(PAPER, tied="none", output_projection=False, scale_embedding=False, norm="pre", bias=True)


def some_ids(n: int, longest: int = 11) -> list[list[int]]:
    rng = random.Random(n)
    return [[rng.randrange(4, TARGET_WORDS) for _ in range(rng.randint(0, longest))] for _ in range(n)]


def assert_close(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], within: float) -> None:
    assert [len(row) for row in ours] == [len(row) for row in theirs]
    for our_row, their_row in zip(ours, theirs, strict=True):
        assert our_row == pytest.approx(their_row, abs=within)


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_log_probabilities_are_the_same(name: str, tmp_path: Path) -> None:
    model = save_variant(tmp_path / "model", EXPRESSIBLE[name])
    to_ctranslate2(tmp_path / "model", tmp_path / "out", "float32")
    sources, targets = some_ids(13), some_ids(13)[::-1]
    ours = NativeEngine(model).score(sources, targets)
    assert_close(Ct2Engine(tmp_path / "out", workers=1).score(sources, targets), ours, within=1e-4)


def test_without_output_projection_and_with_all_that_differs(tmp_path: Path) -> None:
    model = save_variant(tmp_path / "model", SHARED_NO_BIAS)
    to_ctranslate2(tmp_path / "model", tmp_path / "out", "float32")
    sources, targets = some_ids(7), some_ids(7)[::-1]
    ours = NativeEngine(model).score(sources, targets)
    assert_close(Ct2Engine(tmp_path / "out", workers=1).score(sources, targets), ours, within=1e-4)


def test_positions_go_on_to_the_end_of_the_table(tmp_path: Path) -> None:
    model = save_variant(tmp_path / "model", PAPER)
    to_ctranslate2(tmp_path / "model", tmp_path / "out", "float32")
    rng = random.Random(1)
    long = [rng.randrange(4, TARGET_WORDS) for _ in range(module.POSITIONS - 1)]
    ours = NativeEngine(model).score([long], [long])
    engine = Ct2Engine(tmp_path / "out", workers=1)
    assert_close(engine.score([long], [long]), ours, within=1e-3)
    with pytest.raises(UserError, match=r"2049 tokens, but this model has no more than 2048 positions"):
        engine.score([long], [[*long, 5]])


def test_int8_is_nearly_the_same(tmp_path: Path) -> None:
    model = save_variant(tmp_path / "model", PAPER)
    to_ctranslate2(tmp_path / "model", tmp_path / "out")
    sources, targets = some_ids(13), some_ids(13)[::-1]
    ours = NativeEngine(model).score(sources, targets)
    theirs = Ct2Engine(tmp_path / "out", workers=1).score(sources, targets)
    assert_close(theirs, ours, within=0.2)
    differences = [
        abs(a - b) for ours_, theirs_ in zip(ours, theirs, strict=True) for a, b in zip(ours_, theirs_, strict=True)
    ]
    assert 0.0 < sum(differences) / len(differences) < 0.05


def test_every_variant_is_either_expressed_or_explained() -> None:
    assert {name: inexpressible(options) for name, options in VARIANTS.items() if name not in EXPRESSIBLE} == REASONS


@pytest.mark.parametrize("name", [name for name in REASONS if name != "own-positions"])
def test_what_cannot_be_expressed_is_an_error_that_names_the_option(name: str, tmp_path: Path) -> None:
    save_variant(tmp_path / "model", VARIANTS[name])
    with pytest.raises(UserError) as caught:
        to_ctranslate2(tmp_path / "model", tmp_path / "out")
    assert caught.value.exit_code == USAGE
    assert REASONS[name] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_an_unknown_quantization_is_an_error(tmp_path: Path) -> None:
    save_variant(tmp_path / "model", PAPER)
    with pytest.raises(UserError, match=r"quantization is 'int4'; expected one of int8, float16, float32"):
        to_ctranslate2(tmp_path / "model", tmp_path / "out", "int4")


def test_the_folder_proves_itself_and_says_what_it_was_made_of(tmp_path: Path) -> None:
    save_variant(tmp_path / "model", PAPER)
    to_ctranslate2(tmp_path / "model", tmp_path / "out")
    entries = verify(tmp_path / "model")
    verify(tmp_path / "out", ["model.bin", "config.json", "source_vocabulary.json", "target_vocabulary.json"])
    said = json.loads(read_file(tmp_path / "out", module.MADE_OF))
    found = said.pop(module.FOUND)
    assert 0 <= found["block"] < PAPER.decoder_blocks
    assert said == made_of(tmp_path / "model", entries, "int8")
    assert said["weights"] == entries[WEIGHTS].sha256
    assert said["longest"] == module.POSITIONS
    assert module.WEIGHTS == WEIGHTS


def test_words_that_look_like_special_pieces_get_a_sign_of_their_own(tmp_path: Path) -> None:
    Words(["<s>", "a", "<pad>", "b"]).save(tmp_path, "source")
    assert vocabulary(tmp_path, "target", 8) == [*SPECIAL_PIECES, "<s>#4", "a", "<pad>#6", "b"]


def test_a_tokenizer_of_another_size_is_an_error(tmp_path: Path) -> None:
    Words(["a", "b"]).save(tmp_path, "source")
    with pytest.raises(UserError, match="its source tokenizer has 6 pieces, but its model 7"):
        vocabulary(tmp_path, "source", 7)


def test_weights_of_another_shape_are_damage(tmp_path: Path) -> None:
    save_variant(tmp_path / "model", PAPER)
    files = {name: read_file(tmp_path / "model", name) for name in read_manifest(tmp_path / "model")}
    config = json.loads(files["config.json"])
    config["model"]["feed_forward"] = 11
    write_folder(tmp_path / "other", {**files, "config.json": json_bytes(config)})
    with pytest.raises(UserError, match=r"feed_forward\.outer\.weight is \[14, 13\], expected \[14, 11\]") as caught:
        to_ctranslate2(tmp_path / "other", tmp_path / "out")
    assert caught.value.exit_code == DAMAGED
    config["model"]["encoder_blocks"] = 5
    config["model"]["feed_forward"] = 13
    write_folder(tmp_path / "other", {**files, "config.json": json_bytes(config)})
    with pytest.raises(UserError, match=r"it has no tensor encoder\.3\.attention"):
        to_ctranslate2(tmp_path / "other", tmp_path / "out")
    write_folder(tmp_path / "other", {**files, WEIGHTS: b"?"})
    with pytest.raises(UserError, match="it is no safetensors file"):
        to_ctranslate2(tmp_path / "other", tmp_path / "out")
