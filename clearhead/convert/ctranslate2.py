"""A model folder to CTranslate2's format, by its specification API; without torch.

CTranslate2 has post-norm and pre-norm blocks, and positions as a table or rotary. What it has no word for is
an error that names the option (`inexpressible`). What it can only say in another way is said so: no W_O, or a Dense
of one matrix, is a product with the identity.

It shows the mean attention of the first heads of one decoder block, so where one head follows the words, the heads of
its block are put in another order, which makes no other difference. Of a model that names no such head one is looked
for (`alignment_head`).

D model width, J heads × head width, F feed-forward width, V vocabulary, P rows of the table of positions.
"""

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.checkpoint.files import write_folder
from clearhead.checkpoint.manifest import Entry, damaged, json_bytes, verify
from clearhead.checkpoint.model_folder import CONFIG, aligning_heads, model_options, read_config, said_words
from clearhead.data.tokenizer import BOS, EOS, SPECIAL_PIECES, UNK, load
from clearhead.decoding.options import AligningHeads
from clearhead.errors import USAGE, UserError
from clearhead.model.options import ModelOptions, TransformerOptions

from .alignment_head import find_heads, usual_heads

if TYPE_CHECKING:
    import numpy as np

CONVERTER = 3  # raised when the same model gives another folder
MADE_OF = "made_of.json"  # which model a folder was made of
FOUND = "found_alignment"  # in it: the heads that were looked for; all else follows from the model
SAID = "vmap.txt"  # CTranslate2's name for the words that a search considers, if asked to
WEIGHTS = "model.safetensors"  # as in checkpoint.weights, which needs torch
SIDES = ("source", "target")  # what the files of the tokenizers are called
POSITIONS = 2048  # rows of the table where the model itself has no end
QUANTIZATIONS = ("int8", "float16", "float32")
# The largest int8 weight. CPUs without VNNI add two products of a weight and an activation of up to 255 in 16 bits, and
# what is too large for them is cut off: with weights of up to 127, as CTranslate2's own converters have them, random
# models were off by 0.3 in each log-probability on such a CPU, by 0.01 on others; with 64 by 0.02 on all.
LARGEST_INT8 = 64
LAYER_EPSILON, RMS_EPSILON = 1e-5, 2.0**-23  # what torch's two norms add to the variance


def inexpressible(options: ModelOptions) -> str | None:
    """The first option that CTranslate2 has no word for, and what would work; none: it can have this model."""
    if not isinstance(options, TransformerOptions):
        return "the model is an RNN; a Transformer would work"
    if options.features is not None:
        return "the model's sources are numbers, not text; one that translates would work"
    if not options.encoder_blocks:
        return "the model has no encoder; one that translates would work"
    works: dict[str, tuple[str, ...]] = {
        "norm": ("post", "pre"),
        "normalizer": ("layer", "rms"),
        "positions": ("sinusoidal", "sinusoidal-half", "learned", "rotary", "none"),
    }
    for name, choices in works.items():
        if getattr(options, name) not in choices:
            return f"model.{name} is {getattr(options, name)!r}; {' or '.join(choices)} would work"
    if not options.skip:
        return "model.skip is false; true would work"
    return None


def to_ctranslate2(folder: Path, out: Path, quantization: str = "int8") -> None:
    """Make `out` a CTranslate2 folder of the model in `folder`; it appears complete or not at all."""
    if quantization not in QUANTIZATIONS:
        expected = ", ".join(QUANTIZATIONS)
        raise UserError("QUANTIZATION", f"quantization is {quantization!r}; expected one of {expected}", USAGE)
    entries = verify(folder, [WEIGHTS, CONFIG])
    config = read_config(folder)
    options = model_options(config)
    reason = inexpressible(options)
    if reason or not isinstance(options, TransformerOptions):
        message = f"CTranslate2 cannot express the model in {folder}: {reason}, or use --engine native"
        raise UserError("NOT_IN_CT2", message, USAGE)
    tensors = _Tensors(folder / WEIGHTS)
    vocabularies = [
        vocabulary(folder, side, size)
        for side, size in zip(SIDES, (options.source_vocabulary, options.target_vocabulary), strict=True)
    ]
    made = made_of(folder, entries, quantization)
    heads = aligning_heads(config)
    files = _files(tensors, options, heads or usual_heads(options), vocabularies, quantization)
    if heads is None:
        found = find_heads(files, options)
        made[FOUND] = found._asdict()
        if found != usual_heads(options):
            files = _files(tensors, options, found, vocabularies, quantization)
    files |= _said_file(said_words(config), vocabularies[1])
    write_folder(out, {**files, MADE_OF: json_bytes(made)}, point="ct2")
    if heads is None:
        _say(found)


def _say(found: AligningHeads) -> None:
    which = "all heads" if found.head is None else f"head {found.head + 1}"
    message = f"the model names no head that aligns; read from {which} of decoder block {found.block + 1}"
    print(f"clearhead: {message}", file=sys.stderr, flush=True)


def _files(
    tensors: "_Tensors",
    options: TransformerOptions,
    heads: AligningHeads,
    vocabularies: Sequence[list[str]],
    quantization: str,
) -> dict[str, bytes]:
    """What CTranslate2 reads."""
    spec = _specification(tensors, options, heads)
    if quantization == "int8":
        _quantize(spec)
    spec.register_source_vocabulary(vocabularies[0])
    spec.register_target_vocabulary(vocabularies[1])
    spec.validate()
    spec.optimize(None if quantization == "int8" else quantization)
    with tempfile.TemporaryDirectory() as scratch:
        spec.save(scratch)
        return {file.name: file.read_bytes() for file in sorted(Path(scratch).iterdir())}


def _said_file(said: list[int] | None, pieces: list[str]) -> dict[str, bytes]:
    """A list of the words that may follow whatever source; with a blank in a word it could not be told from two."""
    words = [pieces[i] for i in said or ()]
    if not words or any(blank in word for word in words for blank in " \t\n"):
        return {}
    return {SAID: f"\t{' '.join(words)}\n".encode()}


def made_of(folder: Path, entries: dict[str, Entry], quantization: str) -> dict[str, Any]:
    """All that a CTranslate2 folder depends on; `entries` is the model's manifest."""
    if WEIGHTS not in entries:
        raise damaged(folder, f"its manifest does not list {WEIGHTS}")
    config = read_config(folder)
    tokenizers = {name: entry.sha256 for name, entry in entries.items() if name.partition(".")[0] in SIDES}
    made = {
        "converter": CONVERTER,
        "quantization": quantization,
        "longest": longest(config),
        "weights": entries[WEIGHTS].sha256,
        "model": config["model"],
        "tokenizers": tokenizers,
    }
    return made | {section: config[section] for section in ("target", "alignment") if section in config}


def longest(config: dict[str, Any]) -> int | None:
    """Tokens, EOS or BOS counted, that a source or a target may have; none: as many as one likes."""
    options = model_options(config)
    if not isinstance(options, TransformerOptions) or options.positions == "rotary":
        return None
    return options.max_positions if options.positions == "learned" else POSITIONS


def vocabulary(folder: Path, side: str, size: int) -> list[str]:
    """The pieces of one side's tokenizer, by id; where a word looks like another piece it gets a sign of its own."""
    has_own = any((folder / f"{side}.{ending}").exists() for ending in ("model", "json"))
    tokenizer = load(folder, side if has_own else "source")
    if len(tokenizer) != size:
        raise damaged(folder, f"its {side} tokenizer has {len(tokenizer)} pieces, but its model {size}")
    pieces = [*SPECIAL_PIECES, *tokenizer.pieces(list(range(len(SPECIAL_PIECES), size)))]
    seen: set[str] = set()
    for i, piece in enumerate(pieces):
        if piece in seen:
            pieces[i] = f"{piece}#{i}"
        seen.add(pieces[i])
    return pieces


class _Tensors:
    """The weights by name; each must have the shape that the model's options say."""

    def __init__(self, path: Path) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        self._path = path
        try:
            self._tensors = load_file(path)
        except SafetensorError as error:
            raise damaged(path, f"it is no safetensors file ({error})") from error

    def take(self, name: str, *shape: int) -> "np.ndarray":
        if name not in self._tensors:
            raise damaged(self._path, f"it has no tensor {name}")
        found = self._tensors[name]
        if found.shape != shape:
            raise damaged(self._path, f"{name} is {list(found.shape)}, expected {list(shape)}")
        return found.astype("float32", copy=False)


@contextlib.contextmanager
def _torch_unseen() -> Iterator[None]:
    """CTranslate2's specifications import torch if they can, which takes seconds and is not needed."""
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["torch"]


def _specification(tensors: _Tensors, options: TransformerOptions, heads: AligningHeads) -> Any:
    with _torch_unseen():
        from ctranslate2.specs import TransformerSpec, transformer_spec  # type: ignore[import-untyped]

    common = {
        "pre_norm": True,  # so that a final norm can be had with post-norm too
        "no_final_norm": not options.ends_with_norm,
        "activation": _activation(options.activation),
        "ffn_glu": options.dense == "gated",
        "rms_norm": options.normalizer == "rms",
        "head_dim": options.key_width,
        "rotary_dim": options.key_width if options.positions == "rotary" else None,  # pairs of neighbours, as ours
    }
    encoder = transformer_spec.TransformerEncoderSpec(options.encoder_blocks, options.heads, **common)
    decoder = transformer_spec.TransformerDecoderSpec(
        options.decoder_blocks,
        options.heads,
        alignment_layer=heads.block,
        alignment_heads=options.heads if heads.head is None else 1,
        **common,
    )
    spec = TransformerSpec(encoder, decoder)
    filled = _Filled(tensors, options, heads)
    filled.stack(encoder, "encoder", "source")
    filled.stack(decoder, "decoder", "target")
    encoder.embeddings[0].weight = filled.embedding("source")
    decoder.embeddings.weight = filled.embedding("target")
    filled.output(decoder.projection)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (SPECIAL_PIECES[i] for i in (UNK, BOS, EOS))
    spec.config.decoder_start_token = SPECIAL_PIECES[BOS]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = RMS_EPSILON if options.normalizer == "rms" else LAYER_EPSILON
    return spec


def _quantize(spec: Any) -> None:
    """Each row of a matrix in whole numbers of up to LARGEST_INT8, times what the row's largest is worth."""
    import numpy as np

    for part in _parts(spec):
        if hasattr(part, "weight_scale"):
            largest = np.abs(part.weight).max(axis=1)
            part.weight_scale = np.where(largest > 0, LARGEST_INT8 / np.maximum(largest, 1e-30), 1).astype(np.float32)
            part.weight = np.rint(part.weight * part.weight_scale[:, None]).astype(np.int8)


def _parts(spec: Any) -> Iterator[Any]:
    """The layers in a specification, and those in them."""
    yield spec
    for value in vars(spec).values():
        for part in value if isinstance(value, list) else [value]:
            if hasattr(part, "validate"):
                yield from _parts(part)


def _activation(name: str) -> Any:
    from ctranslate2.specs.common_spec import Activation  # type: ignore[import-untyped]

    return {"relu": Activation.RELU, "gelu": Activation.GELU, "silu": Activation.SWISH}[name]


class _Filled:
    """Puts our tensors where CTranslate2 has them; the head that aligns is the first of its block."""

    def __init__(self, tensors: _Tensors, options: TransformerOptions, heads: AligningHeads) -> None:
        self.take = tensors.take
        self.options = options
        self.heads = heads

    def stack(self, spec: Any, name: str, side: str) -> None:
        """The encoder or the decoder, without its embedding."""
        spec.pre_norm = self.options.norm == "pre"
        spec.scale_embeddings = self.options.scale_embedding
        if hasattr(spec, "position_encodings"):  # with rotary positions CTranslate2's encoder has a table all the same
            spec.position_encodings.encodings = self.positions(side)
        if self.options.ends_with_norm:
            self.norm(spec.layer_norm, f"{name}_norm")
        for i, block in enumerate(spec.layer):
            self.block(block, f"{name}.{i}")

    def block(self, spec: Any, name: str) -> None:
        self.attention(spec.self_attention, name, "attention", reads_itself=True)
        if hasattr(spec, "attention"):
            self.attention(spec.attention, name, "cross_attention", reads_itself=False)
        self.norm(spec.ffn.layer_norm, f"{name}.around_feed_forward.norm")
        self.feed_forward(spec.ffn, f"{name}.feed_forward")

    def attention(self, spec: Any, block: str, kind: str, reads_itself: bool) -> None:
        """W_Q, W_K and W_V lie one below the other with us; cross-attention has W_Q apart."""
        D, J, name = self.options.width, self.options.heads * self.options.key_width, f"{block}.{kind}"
        weight = self.take(f"{name}.projections.weight", 3 * J, D)
        bias = self.take(f"{name}.projections.bias", 3 * J) if self.options.bias else None
        parts = [slice(0, 3 * J)] if reads_itself else [slice(0, J), slice(J, 3 * J)]
        has_output = self.options.output_projection
        output = self.take(f"{name}.output.weight", D, J) if has_output else self.identity()
        output_bias = self.take(f"{name}.output.bias", D) if has_output and self.options.bias else None
        if self.heads.head is not None and name == f"decoder.{self.heads.block}.cross_attention":
            order = self.order(self.heads.head)
            weight, output = weight.reshape(3, J, D)[:, order].reshape(3 * J, D), output[:, order]
            bias = None if bias is None else bias.reshape(3, J)[:, order].reshape(3 * J)
        for linear, part in zip(spec.linear, parts, strict=False):
            _set(linear, weight[part], None if bias is None else bias[part])
        _set(spec.linear[-1], output, output_bias)
        spec.queries_scale = self.options.score_scale
        self.norm(spec.layer_norm, f"{block}.around_{kind}.norm")

    def order(self, first: int) -> "np.ndarray":
        """The J places of all heads' numbers, with this head in front."""
        import numpy as np

        heads = [first, *(head for head in range(self.options.heads) if head != first)]
        return np.arange(self.options.heads * self.options.key_width).reshape(self.options.heads, -1)[heads].ravel()

    def feed_forward(self, spec: Any, name: str) -> None:
        D, F = self.options.width, self.options.feed_forward
        if self.options.dense == "one":
            self.linear(spec.linear_0, f"{name}.inner", D, D, has_bias=False)
            _set(spec.linear_1, self.identity(), None)
            return
        self.linear(spec.linear_1, f"{name}.outer", D, F, has_bias=True)
        if self.options.dense == "two":
            self.linear(spec.linear_0, f"{name}.inner", F, D, has_bias=True)
            return
        weight, bias = self.take(f"{name}.inner.weight", 2 * F, D), self.take(f"{name}.inner.bias", 2 * F)
        _set(spec.linear_0_noact, weight[:F], bias[:F])
        _set(spec.linear_0, weight[F:], bias[F:])  # the gate

    def embedding(self, side: str) -> "np.ndarray":
        stored = "source" if self.options.tied == "all" else side
        size = self.options.source_vocabulary if side == "source" else self.options.target_vocabulary
        return self.take(f"{stored}_embedding.weight", size, self.options.width)

    def output(self, spec: Any) -> None:
        V, D = self.options.target_vocabulary, self.options.width
        weight = self.take("output.weight", V, D) if self.options.tied == "none" else self.embedding("target")
        _set(spec, weight, self.take("output.bias", V) if self.options.output_bias else None)

    def positions(self, side: str) -> "np.ndarray":
        """(P, D)."""
        import numpy as np

        D = self.options.width
        if self.options.positions == "learned":
            return self.take(f"{side}_positions.rule.table.weight", self.options.max_positions, D)
        table = np.zeros((POSITIONS, D), dtype=np.float32)
        if self.options.positions in ("none", "rotary"):
            return table
        even = np.arange(0, D, 2, dtype=np.float32)
        turns = np.arange(POSITIONS, dtype=np.float32)[:, None] / np.power(np.float32(10000), even / np.float32(D))
        if self.options.positions == "sinusoidal":
            table[:, 0::2], table[:, 1::2] = np.sin(turns), np.cos(turns)[:, : D // 2]
        else:
            table[:] = np.concatenate([np.sin(turns), np.cos(turns)], axis=1)[:, :D]
        return table

    def norm(self, spec: Any, name: str) -> None:
        spec.gamma = self.take(f"{name}.weight", self.options.width)
        if self.options.normalizer == "layer":
            spec.beta = self.take(f"{name}.bias", self.options.width)

    def linear(self, spec: Any, name: str, rows: int, columns: int, has_bias: bool) -> None:
        _set(spec, self.take(f"{name}.weight", rows, columns), self.take(f"{name}.bias", rows) if has_bias else None)

    def identity(self) -> "np.ndarray":
        import numpy as np

        return np.eye(self.options.width, dtype=np.float32)


def _set(spec: Any, weight: "np.ndarray", bias: "np.ndarray | None") -> None:
    spec.weight = weight
    if bias is not None:
        spec.bias = bias
