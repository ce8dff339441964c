"""Model folders to and from Hugging Face's Marian: what MarianMTModel and MarianTokenizer load, and what OPUS-MT is.

A Marian model is our Transformer with the paper's norms and sinusoids, a bias everywhere and one more on the logits.
Its special ids are where its vocabulary has them; OPUS-MT begins a target with its padding token.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from clearhead.checkpoint.files import write_folder
from clearhead.checkpoint.manifest import damaged, json_bytes, parse_json
from clearhead.checkpoint.model import load_model, save_model
from clearhead.checkpoint.model_folder import LARGEST
from clearhead.checkpoint.weights import (
    TYPES,
    WEIGHTS,
    header_of,
    load_tensors,
    read_tensors,
    require_finite,
    require_same,
)
from clearhead.data.folders import load_tokenizers
from clearhead.data.languages import TWO_LETTERS
from clearhead.data.options import IMPORTED, DataOptions
from clearhead.data.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES, Imported, Subwords, Tokenizer
from clearhead.decoding import DecodingOptions
from clearhead.errors import DAMAGED, MISSING, USAGE, UserError
from clearhead.model.options import ModelOptions, TransformerOptions
from clearhead.model.transformer import Transformer
from clearhead.options import from_dict

from .marian_readme import readme
from .marian_weights import Tensors, marian_tensors, our_tensors

MARK = "source.spm"  # a folder that has this file and a manifest was exported by us
POSITIONS = 1024  # rows of Marian's table; ours has no end
LONGEST = 512  # tokens of a target, BOS and EOS counted, where our limit follows the source
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "swish"}
OUR_ACTIVATIONS = {theirs: ours for ours, theirs in ACTIVATIONS.items()} | {"silu": "silu"}
NEVER_SAID = -100.0  # a logit whose probability is nothing, but which training can still smooth labels with


# -- to Marian ------------------------------------------------------------------------------------------------------


def to_marian(folder: Path, out: Path) -> None:
    """Write the model of a run or model folder as a folder that `from_pretrained` loads: the same logits."""
    model, config, folder = load_model(folder)
    options = _expressible(model.options)
    tokenizers = [_with_sentencepiece(tokenizer) for tokenizer in load_tokenizers(folder)]
    decoding = from_dict(DecodingOptions, config.get("decoding", {}), "decoding")
    data = from_dict(DataOptions, config.get("data", {}), "data")
    is_joint = _vocabulary(tokenizers[0]) == _vocabulary(tokenizers[1])
    files = {
        WEIGHTS: _weights(marian_tensors(model.state_dict(), options)),
        "config.json": json_bytes(_marian_config(options)),
        "generation_config.json": json_bytes(_generation_config(decoding)),
        "tokenizer_config.json": json_bytes(_tokenizer_config(data, is_joint)),
        MARK: tokenizers[0].model,
        "target.spm": tokenizers[1].model,
        "vocab.json": json_bytes(_vocabulary(tokenizers[0])),
        **({} if is_joint else {"target_vocab.json": json_bytes(_vocabulary(tokenizers[1]))}),
        "README.md": readme(data, decoding, _longest(decoding) - 2, POSITIONS).encode(),
    }
    write_folder(out, files)


def _expressible(options: ModelOptions) -> TransformerOptions:
    if not isinstance(options, TransformerOptions):
        raise _cannot("an RNN", "a Transformer")
    if options.features is not None:
        raise _cannot("sources of numbers", "a model that translates")
    if not options.encoder_blocks:
        raise _cannot("no encoder", "a model that translates")
    required: dict[str, tuple[object, Sequence[object]]] = {
        "norm": (options.norm, ["post"]),
        "normalizer": (options.normalizer, ["layer"]),
        "skip": (options.skip, [True]),
        "final_norm": (options.ends_with_norm, [False]),
        "dense": (options.dense, ["two"]),
        "positions": (options.positions, ["sinusoidal", "sinusoidal-half"]),
        "head_width": (options.key_width, [options.width / options.heads]),
    }
    for name, (found, allowed) in required.items():
        if found not in allowed:
            raise _cannot(f"model.{name} = {found!r}", " or ".join(f"{one!r}" for one in allowed))
    return options


def _with_sentencepiece(tokenizer: Tokenizer) -> Subwords | Imported:
    if isinstance(tokenizer, Subwords | Imported):
        return tokenizer
    raise _cannot(f"a tokenizer of {type(tokenizer).__name__.lower()}", "subwords, bpe or unigram")


def _cannot(found: str, expected: str) -> UserError:
    message = (
        f"the model has {found}, which Hugging Face's Marian cannot express; expected {expected}. "
        "Train such a model, or use this one with clearhead itself"
    )
    return UserError("NOT_EXPRESSIBLE", message, USAGE)


def _weights(tensors: Tensors) -> bytes:
    from safetensors.torch import save

    return save(tensors, metadata={"format": "pt"})  # older transformers refuse a file without it


def _vocabulary(tokenizer: Tokenizer) -> dict[str, int]:
    """Special pieces last, so that they win over learned ones of the same name."""
    ids = list(range(len(tokenizer)))
    words = {piece: i for i, piece in zip(ids, tokenizer.pieces(ids), strict=True) if i >= len(SPECIAL_PIECES)}
    return words | {piece: i for i, piece in enumerate(SPECIAL_PIECES)}


def _marian_config(options: TransformerOptions) -> dict[str, Any]:
    sides = {
        f"{side}_{name}": value
        for side, number in (("encoder", options.encoder_blocks), ("decoder", options.decoder_blocks))
        for name, value in (
            ("layers", number),
            ("attention_heads", options.heads),
            ("ffn_dim", options.feed_forward),
        )
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": options.source_vocabulary,
        "decoder_vocab_size": options.target_vocabulary,
        "d_model": options.width,
        **sides,
        "activation_function": ACTIVATIONS[options.activation],
        "dropout": options.dropout,
        "scale_embedding": options.scale_embedding,
        "share_encoder_decoder_embeddings": options.tied == "all",
        "tie_word_embeddings": options.tied != "none",
        "max_position_embeddings": POSITIONS,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,
        "dtype": "float32",
    }


def _generation_config(decoding: DecodingOptions) -> dict[str, Any]:
    """What `generate` does when it is told nothing: our search, as far as it has words for it."""
    return {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,
        "bad_words_ids": [[PAD], [BOS]],
        "num_beams": decoding.beam,
        "length_penalty": decoding.alpha,
        "early_stopping": False,
        "max_length": _longest(decoding),
        "no_repeat_ngram_size": decoding.block_ngrams,
    }


def _longest(decoding: DecodingOptions) -> int:
    """Of a target, as Hugging Face counts: with BOS and EOS."""
    return LONGEST if decoding.max_length is None else decoding.max_length + 2


def _tokenizer_config(data: DataOptions, is_joint: bool) -> dict[str, Any]:
    pad, bos, eos, unk = SPECIAL_PIECES
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": data.source_language,
        "target_lang": data.target_language,
        "pad_token": pad,
        "bos_token": bos,
        "eos_token": eos,
        "unk_token": unk,
        "separate_vocabs": not is_joint,
        "split_special_tokens": True,  # </s> in a text is text
        "clean_up_tokenization_spaces": False,
        "model_max_length": POSITIONS,
    }


# -- from Marian ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vocabulary:
    """One side's pieces by id, and which of the ids are special."""

    pieces: list[str]
    pad: int
    start: int
    eos: int
    unk: int

    @property
    def special(self) -> list[int]:
        """In our order."""
        return [self.pad, self.start, self.eos, self.unk]

    def rows(self) -> list[int]:
        """For each of our ids the id it had: the special ones first, the others in their order."""
        special = self.special
        return special + [i for i in range(len(self.pieces)) if i not in special]

    def words(self) -> list[str]:
        """The pieces of our ids after the special ones."""
        return [self.pieces[i] for i in self.rows()[len(SPECIAL_PIECES) :]]


def from_marian(folder: Path, out: Path) -> None:
    """Write a folder in the layout of OPUS-MT as a model folder of ours: the same translations."""
    config = _marian_config_of(folder)
    generation = config | _read_json(folder, "generation_config.json", is_optional=True)
    tokenizing = _read_json(folder, "tokenizer_config.json", is_optional=True)
    source, target = _vocabularies(folder, config, tokenizing)
    options = _our_options(folder, config, source, target)
    files = _tokenizer_files(folder, source, target)
    model = _build(folder, options, source, target, bool(generation.get("renormalize_logits")))
    languages = [tokenizing.get(f"{side}_lang") for side in ("source", "target")]
    codes = [TWO_LETTERS.get(code, code) if isinstance(code, str) else None for code in languages]
    data = DataOptions(codes[0], codes[1], tokenizer=IMPORTED, joint=source == target)
    about = {"imported_from": "marian"}
    save_model(
        out, model, {"data": asdict(data), "decoding": asdict(_decoding(folder, generation)), "about": about}, files
    )


def _marian_config_of(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "does not exist"
        message = f"{folder} {found}; expected the folder of a Hugging Face Marian model, on this disk"
        raise UserError("MISSING", message, MISSING)
    config = _read_json(folder, "config.json")
    if config.get("model_type") != "marian":
        raise UserError(
            "NOT_MARIAN",
            f"{folder} has a model of type {config.get('model_type')!r}; expected 'marian', such as those of OPUS-MT",
            DAMAGED,
        )
    return config


def _read_json(folder: Path, name: str, is_optional: bool = False) -> dict[str, Any]:
    path = folder / name
    if is_optional and not path.exists():
        return {}
    return parse_json(path, _read_bytes(folder, name))


def _read_bytes(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError as error:
        needed = "config.json, model.safetensors, source.spm, target.spm and vocab.json"
        message = f"{folder} has no {name}; expected the files of a Marian model: {needed}. Download it again"
        raise UserError("INCOMPLETE", message, DAMAGED) from error


def _vocabularies(
    folder: Path, config: Mapping[str, Any], tokenizing: Mapping[str, Any]
) -> tuple[Vocabulary, Vocabulary]:
    """Of source and target; the same one unless the tokenizer says that they are separate."""
    pad, _, eos, unk = SPECIAL_PIECES
    try:
        ids = _read_json(folder, "vocab.json")
        special = config["pad_token_id"], config["decoder_start_token_id"], config["eos_token_id"]
        source = target = Vocabulary(_by_id(ids, config["vocab_size"]), *special, ids[unk])
        if tokenizing.get("separate_vocabs"):
            source = Vocabulary(source.pieces, ids[pad], ids.get(SPECIAL_PIECES[BOS], ids[pad]), ids[eos], ids[unk])
            ids = _read_json(folder, "target_vocab.json")
            size = config.get("decoder_vocab_size") or config["vocab_size"]
            target = Vocabulary(_by_id(ids, size), *special, ids[unk])
    except KeyError as error:
        raise damaged(folder, f"neither its config.json nor its vocabulary has {error}") from error
    except ValueError as error:
        raise damaged(folder / "config.json", str(error)) from error
    for vocabulary in (source, target):
        wrong = [i for i in vocabulary.special if not (type(i) is int and 0 <= i < len(vocabulary.pieces))]
        if wrong:
            raise damaged(folder, f"a special id is {wrong[0]!r}, but the vocabulary has {len(vocabulary.pieces)} ids")
    return source, target


def _by_id(ids: Mapping[str, Any], size: object) -> list[str]:
    """A vocabulary may have fewer names than rows."""
    if not isinstance(size, int) or not 0 < size <= LARGEST:
        raise ValueError(f"vocab_size is {size!r}")
    names = {i: piece for piece, i in ids.items()}
    return [names.get(i, f"<{i}>") for i in range(size)]


def _our_options(folder: Path, config: Mapping[str, Any], source: Vocabulary, target: Vocabulary) -> TransformerOptions:
    activation = config.get("activation_function", "gelu")
    if activation not in OUR_ACTIVATIONS:
        raise _unknown(folder, f"activation_function is {activation!r}", " or ".join(OUR_ACTIVATIONS))
    for name in ("attention_heads", "ffn_dim"):
        sizes = [config.get(f"{side}_{name}") for side in ("encoder", "decoder")]
        if sizes[0] != sizes[1]:
            raise _unknown(folder, f"{name} is {sizes[0]} in the encoder and {sizes[1]} in the decoder", "one size")
    is_shared = config.get("share_encoder_decoder_embeddings", True)
    values = {
        "source_vocabulary": len(source.rows()),
        "target_vocabulary": len(target.rows()),
        "width": config.get("d_model"),
        "heads": config.get("encoder_attention_heads"),
        "feed_forward": config.get("encoder_ffn_dim"),
        "encoder_blocks": config.get("encoder_layers"),
        "decoder_blocks": config.get("decoder_layers"),
        "dropout": config.get("dropout", 0.1),
        "bias": True,
        "positions": "sinusoidal-half",
        "activation": OUR_ACTIVATIONS[activation],
        "tied": "all" if is_shared else "target" if config.get("tie_word_embeddings", True) else "none",
        "scale_embedding": config.get("scale_embedding", False),
        "output_bias": True,
    }
    try:
        return from_dict(TransformerOptions, values, "model")
    except ValueError as error:
        raise damaged(folder / "config.json", str(error)) from error


def _unknown(folder: Path, found: str, expected: str) -> UserError:
    message = f"the model in {folder} cannot be imported: {found}; expected {expected}. Use another model"
    return UserError("NOT_EXPRESSIBLE", message, USAGE)


def _build(
    folder: Path, options: TransformerOptions, source: Vocabulary, target: Vocabulary, renormalizes: bool
) -> Transformer:
    """Our model of Marian's weights, its rows in our order."""
    path = folder / WEIGHTS
    try:
        tensors = our_tensors(_read_weights(folder), options)
        require_finite(tensors)
        _reorder(tensors, options, source, target, renormalizes)
    except KeyError as error:
        raise damaged(path, f"it has no tensor {error}") from error
    except ValueError as error:
        raise damaged(path, str(error)) from error
    with torch.device("meta"):  # which allocates nothing, whatever config.json says
        expected = header_of(Transformer(options))
    require_same(path, {name: (TYPES[tensor.dtype], tuple(tensor.shape)) for name, tensor in tensors.items()}, expected)
    model = Transformer(options)
    load_tensors(model, tensors)
    return model.eval()


def _read_weights(folder: Path) -> Tensors:
    pickled = folder / "pytorch_model.bin"
    if not (folder / WEIGHTS).exists() and pickled.exists():
        script = f"from transformers import MarianMTModel as M; M.from_pretrained({str(folder)!r}).save_pretrained"
        raise UserError(
            "PICKLE",
            f"{pickled} is a pickle, which may run any program when it is opened; expected {WEIGHTS}. "
            f'If you trust it, convert it first: python -c "{script}({str(folder)!r})"',
            DAMAGED,
        )
    if not (folder / WEIGHTS).exists():
        _read_bytes(folder, WEIGHTS)
    return read_tensors(folder / WEIGHTS)


def _reorder(
    tensors: Tensors, options: TransformerOptions, source: Vocabulary, target: Vocabulary, renormalizes: bool
) -> None:
    """Put rows where our ids are, in place. A token that is two of ours must not count twice in the softmax."""
    sides = {"source_embedding": source, "target_embedding": target, "output": target}
    for name in [name for name in tensors if name.partition(".")[0] in sides]:
        vocabulary = sides[name.partition(".")[0]]
        if len(tensors[name]) != len(vocabulary.pieces):
            raise ValueError(f"{name} has {len(tensors[name])} rows, expected {len(vocabulary.pieces)}")
        tensors[name] = tensors[name][vocabulary.rows()]
    if target.start == target.pad:
        stored = {"all": "source_embedding", "target": "target_embedding", "none": "output"}[options.tied]
        tensors[f"{stored}.weight"][PAD] = 0
        tensors["output.bias"][PAD] = NEVER_SAID
    if renormalizes:  # probabilities without the tokens that are never said
        tensors["output.bias"][[PAD, BOS]] = NEVER_SAID


def _decoding(folder: Path, generation: Mapping[str, Any]) -> DecodingOptions:
    ours = {
        "beam": generation.get("num_beams"),
        "alpha": generation.get("length_penalty"),
        "block_ngrams": generation.get("no_repeat_ngram_size"),
    }
    longest = generation.get("max_length")
    if isinstance(longest, int) and 2 < longest < LONGEST:  # else the limit follows the source
        ours["max_length"] = longest - 2
    try:
        return from_dict(DecodingOptions, {k: v for k, v in ours.items() if v is not None}, "decoding")
    except ValueError as error:
        raise damaged(folder / "generation_config.json", str(error)) from error


def _tokenizer_files(folder: Path, source: Vocabulary, target: Vocabulary) -> dict[str, bytes]:
    """One file if both sides have the same."""
    with tempfile.TemporaryDirectory() as scratch:
        for side, vocabulary in (("source", source), ("target", target)):
            try:
                Imported(_read_bytes(folder, f"{side}.spm"), vocabulary.words()).save(Path(scratch), side)
            except RuntimeError as error:  # SentencePiece's
                raise damaged(folder / f"{side}.spm", f"it is no SentencePiece model ({error})") from error
        files = {file.name: file.read_bytes() for file in sorted(Path(scratch).iterdir())}
    return {"source.json": files["source.json"]} if len(set(files.values())) == 1 else files
