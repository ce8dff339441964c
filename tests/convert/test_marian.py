"""A model folder as Hugging Face's Marian and back: the same ids, the same logits, the same translations."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from clearhead.checkpoint.model import load_model
from clearhead.checkpoint.model_folder import read_config
from clearhead.data.batching import pad_sources
from clearhead.data.folders import load_tokenizers
from clearhead.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from clearhead.decoding import DecodingOptions
from clearhead.engines.native import NativeEngine
from clearhead.errors import DAMAGED, MISSING, USAGE, UserError
from clearhead.model import ModelOptions
from clearhead.model.transformer import Transformer
from tests.samples import VARIANTS
from tests.tiny_model import write_model

transformers = pytest.importorskip("transformers")

from clearhead.convert.marian import from_marian, to_marian  # noqa: E402
from tests.convert.marian_folders import PAIRS, SMALL, TEXTS, write_opus, write_subword_model  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")]

EXPRESSIBLE: dict[str, ModelOptions] = {
    "paper": SMALL,
    "biases": replace(SMALL, bias=True, output_bias=True),
    "scale-width": replace(SMALL, scale="width"),
    "scale-number": replace(SMALL, scale=0.3, bias=True),
    "sinusoidal-half": replace(SMALL, positions="sinusoidal-half"),
    "odd-width": replace(SMALL, width=15, heads=3),
    "no-output-projection": replace(SMALL, output_projection=False),
    "gelu": replace(SMALL, activation="gelu"),
    "silu": replace(SMALL, activation="silu"),
    "unscaled-embedding": replace(SMALL, scale_embedding=False),
    "untied": replace(SMALL, tied="none"),
    "target-tied": replace(SMALL, tied="target"),
}
ODD_TEXTS = [
    *TEXTS,
    "",
    " ",
    "  two  spaces ",
    "我们 喜欢，苹果！",
    "</s> <unk> <pad> <s> <0x41>",
    "a\tb\u00a0c\u3000d",
    "ﬁne 😀 \ufffd",
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    yield
    transformers.utils.logging.enable_progress_bar()


def load_marian(folder: Path) -> tuple[Any, Any]:
    model, report = transformers.MarianMTModel.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values())
    return model.eval(), transformers.MarianTokenizer.from_pretrained(folder)


def load_ours(folder: Path) -> tuple[Transformer, Tokenizer, Tokenizer]:
    model, _, folder = load_model(folder)
    assert isinstance(model, Transformer)
    return model, *load_tokenizers(folder)


@torch.no_grad()
def our_logits(model: Transformer, sources: list[list[int]], tgt: Tensor) -> Tensor:
    src, src_mask = pad_sources(sources)
    return model.logits(model(src, src_mask, tgt))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", EXPRESSIBLE)
@torch.no_grad()
def test_an_exported_model_has_the_same_logits(name: str, joint: bool, tmp_path: Path) -> None:
    folder = write_subword_model(tmp_path / "model", EXPRESSIBLE[name], joint)
    to_marian(folder, tmp_path / "hf")
    theirs, their_tokenizer = load_marian(tmp_path / "hf")
    ours, source, target = load_ours(folder)
    tgt = torch.randint(len(target), (len(TEXTS), 7))
    batch = their_tokenizer(TEXTS, return_tensors="pt", padding=True)
    assert_close(batch.input_ids, pad_sources(source.encode_many(TEXTS))[0])
    their_logits = theirs(**batch, decoder_input_ids=tgt).logits
    assert their_logits.std() > 0.3
    assert_close(our_logits(ours, source.encode_many(TEXTS), tgt), their_logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize("joint", [True, False])
def test_an_exported_tokenizer_gives_the_same_ids_and_texts(joint: bool, tmp_path: Path) -> None:
    to_marian(write_subword_model(tmp_path / "model", joint=joint), tmp_path / "hf")
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path / "hf")
    source, target = load_tokenizers(tmp_path / "model")
    assert (theirs.pad_token_id, theirs.eos_token_id, theirs.unk_token_id) == (PAD, EOS, UNK)
    for text in ODD_TEXTS:
        assert theirs(text).input_ids == [*source.encode(text), EOS]
        ids = target.encode(text)
        assert theirs(text_target=text).input_ids == [*ids, EOS]
        assert theirs.decode([BOS, *ids, EOS, PAD], skip_special_tokens=True) == target.decode(ids).strip()


@pytest.mark.parametrize(("text", "note"), [("e\u0301", "NFC"), ("a▁b", "▁"), (">>a<< b", "language code")])
def test_where_tokenizers_differ_the_readme_says_so(text: str, note: str, tmp_path: Path) -> None:
    to_marian(write_subword_model(tmp_path / "model"), tmp_path / "hf")
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path / "hf")
    source, _ = load_tokenizers(tmp_path / "model")
    assert theirs(text).input_ids != [*source.encode(text), EOS]
    assert note in (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("decoding", "notes"),
    [
        (DecodingOptions(), ["at most 510 tokens, where Clearhead allows 50 more"]),
        (DecodingOptions(max_length=31), ["at most 31 tokens, and"]),
        (DecodingOptions(length_penalty="paper", alpha=0.6), ["to the power of 0.6"]),
    ],
)
def test_the_readme_names_limits_and_penalty(decoding: DecodingOptions, notes: list[str], tmp_path: Path) -> None:
    to_marian(write_subword_model(tmp_path / "model", decoding=decoding), tmp_path / "hf")
    readme = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    assert "# en → de\n" in readme
    for note in notes:
        assert note in readme


def generated(folder: Path, texts: list[str], **settings: Any) -> list[str]:
    model, tokenizer = load_marian(folder)
    ids = model.generate(**tokenizer(texts, return_tensors="pt", padding=True), **settings)
    return tokenizer.batch_decode(ids, skip_special_tokens=True)


def translated(folder: Path, texts: list[str], options: DecodingOptions) -> list[str]:
    model, source, target = load_ours(folder)
    found = NativeEngine(model).translate(source.encode_many(texts), options)
    return [target.decode([i for i in hypotheses[0].tokens if i != UNK]).strip() for hypotheses in found]


@pytest.mark.parametrize("joint", [True, False])
def test_generate_translates_as_we_do_without_being_told_how(joint: bool, tmp_path: Path) -> None:
    decoding = DecodingOptions(beam=5, max_length=47, block_ngrams=1)
    options = replace(SMALL, output_bias=True)
    to_marian(write_subword_model(tmp_path / "model", options, joint, decoding), tmp_path / "hf")
    ours = translated(tmp_path / "model", TEXTS, decoding)
    assert len({len(text) for text in ours}) > 5
    same = sum(a == b for a, b in zip(generated(tmp_path / "hf", TEXTS), ours, strict=True))
    assert same >= 0.9 * len(TEXTS)  # the two searches stop at different times
    greedy = translated(tmp_path / "model", TEXTS, replace(decoding, beam=1))
    assert generated(tmp_path / "hf", TEXTS, num_beams=1) == greedy


@pytest.mark.parametrize(
    ("variant", "found"),
    [
        ("pre", "model.norm = 'pre'"),
        ("branch", "model.norm = 'branch'"),
        ("no-norm", "model.norm = 'none'"),
        ("final-norm", "model.final_norm = True"),
        ("no-skip", "model.skip = False"),
        ("rms", "model.normalizer = 'rms'"),
        ("batch-norm", "model.normalizer = 'batch'"),
        ("learned", "model.positions = 'learned'"),
        ("rotary", "model.positions = 'rotary'"),
        ("no-positions", "model.positions = 'none'"),
        ("gated", "model.dense = 'gated'"),
        ("one-matrix", "model.dense = 'one'"),
        ("head_width", "model.head_width = 5"),
        ("lstm-attention", "an RNN"),
    ],
)
def test_what_marian_cannot_express_is_named(variant: str, found: str, tmp_path: Path) -> None:
    folder = write_subword_model(tmp_path / "model", VARIANTS[variant], joint=False)
    with pytest.raises(UserError, match=f"the model has {found}, which Hugging Face's Marian cannot express") as caught:
        to_marian(folder, tmp_path / "hf")
    assert caught.value.exit_code == USAGE
    assert not (tmp_path / "hf").exists()


def test_a_tokenizer_of_words_cannot_be_expressed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a tokenizer of words, which"):
        to_marian(write_model(tmp_path / "model"), tmp_path / "hf")


# -- from OPUS-MT ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_opus(tmp_path_factory.mktemp("opus") / "opus-mt-en-de")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "gelu", "scale_embedding": False},
        {"activation_function": "relu", "decoder_layers": 1},
        {"share_encoder_decoder_embeddings": False},
        {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    ],
    ids=["opus", "gelu", "relu", "not-shared", "untied"],
)
@torch.no_grad()
def test_an_imported_model_has_the_same_logits(changes: dict[str, Any], tmp_path: Path) -> None:
    folder = write_opus(tmp_path / "opus", **changes)
    from_marian(folder, tmp_path / "model")
    theirs, their_tokenizer = load_marian(folder)
    ours, source, target = load_ours(tmp_path / "model")
    batch = their_tokenizer(TEXTS, return_tensors="pt", padding=True)
    words = [target.encode(pair[1])[:5] for pair in PAIRS] * 2
    named = [their_tokenizer.convert_tokens_to_ids(target.pieces(ids)) for ids in words]
    start = theirs.config.decoder_start_token_id
    expected = theirs(**batch, decoder_input_ids=torch.tensor([[start, *ids] for ids in named])).logits
    logits = our_logits(ours, source.encode_many(TEXTS), torch.tensor([[BOS, *ids] for ids in words]))
    columns = [start, 0, 1, *their_tokenizer.convert_tokens_to_ids(target.pieces(list(range(4, len(target)))))]
    assert sorted(columns) == list(range(len(their_tokenizer)))
    assert_close(logits[..., BOS:], expected[..., columns], rtol=0, atol=1e-4)
    both = logits.log_softmax(-1)[..., BOS:], expected.log_softmax(-1)[..., columns]
    assert_close(*both, rtol=0, atol=1e-4)  # the start of a target counts once, though it is padding too


def test_an_imported_tokenizer_gives_the_same_pieces_and_texts(opus: Path, tmp_path: Path) -> None:
    from_marian(opus, tmp_path / "model")
    theirs = transformers.MarianTokenizer.from_pretrained(opus)
    source, target = load_tokenizers(tmp_path / "model")
    texts = [text for text in ODD_TEXTS if "<unk>" not in text]
    for text in [*texts, ">>deu<< two books", ">>nld<<the cat?", "Ｆｕｌｌ ｗｉｄｔｈ", "e\u0301 a▁b"]:
        assert source.pieces(source.encode(text)) == theirs.convert_ids_to_tokens(theirs(text).input_ids[:-1])
        their_ids = theirs(text_target=text).input_ids
        assert target.pieces(target.encode(text)) == theirs.convert_ids_to_tokens(their_ids[:-1])
        assert target.decode(target.encode(text)) == theirs.decode(their_ids, skip_special_tokens=True)


def test_an_imported_model_translates_the_same(opus: Path, tmp_path: Path) -> None:
    from_marian(opus, tmp_path / "model")
    for beam in (1, 4):
        ours = translated(tmp_path / "model", TEXTS, DecodingOptions(beam=beam, max_length=47, block_ngrams=1))
        assert len({len(text) for text in ours}) > 5
        theirs = generated(opus, TEXTS, num_beams=beam, max_length=49, no_repeat_ngram_size=1)
        same = sum(a == b for a, b in zip(theirs, ours, strict=True))
        assert same >= (1 if beam == 1 else 0.8) * len(TEXTS)


def test_probabilities_without_padding_are_imported_as_such(opus: Path, tmp_path: Path) -> None:
    folder = copy_of(opus, tmp_path)
    change_json(folder / "generation_config.json", renormalize_logits=True)
    from_marian(folder, tmp_path / "model")
    ours, source, _ = load_ours(tmp_path / "model")
    logits = our_logits(ours, [source.encode("the cat")], torch.tensor([[BOS]]))
    assert float(logits.softmax(-1)[..., [PAD, BOS]].sum()) < 1e-12


def test_what_an_imported_model_says_of_itself(opus: Path, tmp_path: Path) -> None:
    from_marian(opus, tmp_path / "model")
    config = read_config(tmp_path / "model")
    data = config["data"]
    assert (data["source_language"], data["target_language"], data["tokenizer"]) == ("en", "de", "imported")
    assert data["joint"]
    assert (config["decoding"]["beam"], config["decoding"]["max_length"]) == (4, 59)
    assert config["model"]["positions"] == "sinusoidal-half"


@pytest.mark.parametrize("joint", [True, False])
def test_out_and_back_again_translates_the_same(joint: bool, tmp_path: Path) -> None:
    options = DecodingOptions(beam=3, max_length=13, block_ngrams=2, alpha=0.7)
    to_marian(write_subword_model(tmp_path / "model", joint=joint, decoding=options), tmp_path / "hf")
    from_marian(tmp_path / "hf", tmp_path / "back")
    assert translated(tmp_path / "back", TEXTS, options) == translated(tmp_path / "model", TEXTS, options)
    assert read_config(tmp_path / "back")["decoding"] == read_config(tmp_path / "model")["decoding"]
    to_marian(tmp_path / "back", tmp_path / "hf-again")
    for name in ("model.safetensors", "vocab.json", "source.spm", "generation_config.json"):
        assert (tmp_path / "hf-again" / name).read_bytes() == (tmp_path / "hf" / name).read_bytes()


def copy_of(folder: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_pickle_is_not_opened(opus: Path, tmp_path: Path) -> None:
    folder = copy_of(opus, tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pytorch_model.bin is a pickle.*save_pretrained\(") as caught:
        from_marian(folder, tmp_path / "model")
    assert caught.value.exit_code == DAMAGED


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"])
def test_a_missing_file_is_named(name: str, opus: Path, tmp_path: Path) -> None:
    folder = copy_of(opus, tmp_path)
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"copy has no {name}; expected the files of a Marian model") as caught:
        from_marian(folder, tmp_path / "model")
    assert caught.value.exit_code == DAMAGED


@pytest.mark.parametrize(
    ("changes", "message", "code"),
    [
        ({"model_type": "t5"}, "has a model of type 't5'; expected 'marian'", DAMAGED),
        ({"activation_function": "mish"}, "activation_function is 'mish'; expected relu or gelu or swish", USAGE),
        ({"encoder_ffn_dim": 17}, "ffn_dim is 17 in the encoder and 13 in the decoder", USAGE),
        ({"d_model": 28}, r"source_embedding.weight is F32 \[76, 14\], expected F32 \[76, 28\]", DAMAGED),
        ({"vocab_size": 1 << 40}, "config.json is damaged: vocab_size is 1099511627776", DAMAGED),
        ({"d_model": "wide"}, "model.width is 'wide'", DAMAGED),
        ({"encoder_layers": 4}, "it has no tensor 'model.encoder.layers.3", DAMAGED),
        ({"vocab_size": 5}, "a special id is 7", DAMAGED),
        ({"vocab_size": 501}, "_embedding.weight has 7. rows, expected 501", DAMAGED),
        ({"eos_token_id": None}, "a special id is None, but the vocabulary has", DAMAGED),
    ],
)
def test_a_config_that_does_not_fit_is_named(
    changes: dict[str, Any], message: str, code: int, opus: Path, tmp_path: Path
) -> None:
    folder = copy_of(opus, tmp_path)
    change_json(folder / "config.json", **changes)
    with pytest.raises(UserError, match=message) as caught:
        from_marian(folder, tmp_path / "model")
    assert caught.value.exit_code == code
    assert not (tmp_path / "model").exists()


def test_other_damage_is_named(opus: Path, tmp_path: Path) -> None:
    folder = copy_of(opus, tmp_path)
    change_json(folder / "generation_config.json", num_beams=0)
    with pytest.raises(UserError, match=r"generation_config.json is damaged: .*beam is 0"):
        from_marian(folder, tmp_path / "model")
    (folder / "source.spm").write_bytes(b"no model")
    with pytest.raises(UserError, match=r"source.spm is damaged: it is no SentencePiece model"):
        from_marian(folder, tmp_path / "model")
    (folder / "vocab.json").write_text('{"a": 0}')
    with pytest.raises(UserError, match=r"neither its config.json nor its vocabulary has '<unk>'"):
        from_marian(folder, tmp_path / "model")


def test_a_path_that_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere does not exist; expected the folder of a Hugging Face") as caught:
        from_marian(tmp_path / "nowhere", tmp_path / "model")
    assert caught.value.exit_code == MISSING
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file is a file"):
        from_marian(tmp_path / "file", tmp_path / "model")
