"""Sizes and choices of both models, without torch: what a recipe may set, each with its one default.

The letters in the comments are the paper's. Where the lecture notes differ from the paper or from each
other, the option says which note asks for which value.
"""

from dataclasses import dataclass

TYING = ("all", "target", "none")
POSITIONS = ("sinusoidal", "sinusoidal-half", "learned", "rotary", "none", "own")
NORMS = ("post", "pre", "branch", "none")
NORMALIZERS = ("layer", "rms", "batch")
DENSES = ("two", "gated", "one")
ACTIVATIONS = ("relu", "gelu", "silu")
SCALES = ("head_width", "width", "none")
CELLS = ("tanh", "gru", "lstm")
MOST_STRIDES = 8


@dataclass(frozen=True)
class TransformerOptions:
    """Sizes and choices of the Transformer. The defaults are the paper's base model."""

    source_vocabulary: int = 37000
    target_vocabulary: int = 37000
    width: int = 512  # d_model
    heads: int = 8  # h
    head_width: int | None = None  # d_k = d_v; none given: width / heads
    feed_forward: int = 2048  # d_ff
    encoder_blocks: int = 6  # N; 0: a language model, which has no source
    decoder_blocks: int = 6  # N
    dropout: float = 0.1  # P_drop, on each sub-layer's output and on embedding + position
    scale: str | float = "head_width"  # scores are multiplied by 1/√head_width, 1/√width (note 001), 1, or this
    bias: bool = False  # of W_Q, W_K, W_V and W_O; notes and paper have none, nn.Transformer and Marian do
    output_projection: bool = True  # W_O; note 000 concatenates and stops
    positions: str = "sinusoidal"  # sin, cos interleaved (paper) | sinusoidal-half (Marian) | learned | ...
    max_positions: int = 1024  # rows of the learned table
    norm: str = "post"  # LN(x+F(x)) (paper) | pre x+F(LN(x)) | branch x+LN(F(x)) (note 001) | none
    normalizer: str = "layer"  # layer | rms | batch, the last only to measure how it fails
    skip: bool = True  # the x + of the residual connection
    final_norm: bool | None = None  # after each stack; none given: only with pre
    dense: str = "two"  # max(0, xW1+b1)W2+b2 (paper 3.3) | gated (Shazeer 2020) | one: ReLU(W_U c) of note 000
    activation: str = "relu"
    tied: str = "all"  # both embeddings and the output layer (paper 3.4) | target: the latter two | none
    scale_embedding: bool = True  # by √width (paper 3.4)
    output_bias: bool = False  # of the output layer; Marian has one
    features: int | None = None  # numbers in each step of a continuous source; none: the source is ids
    strides: int = 0  # convolutions before the encoder, each of which halves the steps of a continuous source

    def __post_init__(self) -> None:
        sizes = "source_vocabulary target_vocabulary width heads feed_forward decoder_blocks"
        _require_positive(self, sizes + " max_positions")
        _require_choice(self, "tied", TYING)
        _require_choice(self, "positions", POSITIONS)
        _require_choice(self, "norm", NORMS)
        _require_choice(self, "normalizer", NORMALIZERS)
        _require_choice(self, "dense", DENSES)
        _require_choice(self, "activation", ACTIVATIONS)
        _require_rate(self)
        if isinstance(self.scale, str):
            _require_choice(self, "scale", SCALES)
        if self.head_width is None and self.width % self.heads:
            raise ValueError(
                f"width {self.width} cannot be split into {self.heads} heads; "
                f"try width {self.width - self.width % self.heads + self.heads}, or set head_width"
            )
        if self.head_width is not None and self.head_width < 1:
            raise ValueError(f"head_width is {self.head_width}; expected at least 1")
        if not self.output_projection and self.heads * self.key_width != self.width:
            raise ValueError(
                f"without output_projection {self.heads} heads of {self.key_width} are concatenated to "
                f"{self.heads * self.key_width} numbers, but the skip and the next layer expect a width of "
                f"{self.width}; make heads × head_width equal to width"
            )
        if self.positions == "rotary" and self.key_width % 2:
            raise ValueError(
                f"rotary positions turn pairs of numbers, but head_width is {self.key_width}; "
                'expected an even one, or positions = "sinusoidal"'
            )
        _require_one_vocabulary(self)
        if self.encoder_blocks < 0:
            raise ValueError(f"encoder_blocks is {self.encoder_blocks}; expected at least 0")
        _require_one_embedding(self, has_encoder=self.encoder_blocks > 0)
        _require_readable(self, has_encoder=self.encoder_blocks > 0)

    @property
    def key_width(self) -> int:
        """The width of one head: d_k, and d_v."""
        return self.width // self.heads if self.head_width is None else self.head_width

    @property
    def score_scale(self) -> float:
        """What q·k is multiplied by."""
        if not isinstance(self.scale, str):
            return self.scale
        return {"head_width": self.key_width**-0.5, "width": self.width**-0.5, "none": 1.0}[self.scale]

    @property
    def ends_with_norm(self) -> bool:
        return self.norm == "pre" if self.final_norm is None else self.final_norm


@dataclass(frozen=True)
class RNNOptions:
    """Sizes and choices of the RNN seq2seq of notes 000 and 003, which the Transformer replaces."""

    source_vocabulary: int = 37000
    target_vocabulary: int = 37000
    width: int = 256  # of embeddings, encoder states and decoder states
    layers: int = 2  # in the encoder and in the decoder
    cell: str = "gru"  # tanh (plain) | gru | lstm
    encoder: bool = True  # false: a language model, which has no source
    attention: bool = True  # Bahdanau et al. 2015; without it one fixed context vector
    dropout: float = 0.1  # on embeddings and between layers
    tied: str = "target"  # target embedding and output layer | all: source embedding too | none
    features: int | None = None  # numbers in each step of a continuous source; none: the source is ids
    strides: int = 0  # convolutions before the encoder, each of which halves the steps of a continuous source

    def __post_init__(self) -> None:
        _require_positive(self, "source_vocabulary target_vocabulary width layers")
        _require_choice(self, "cell", CELLS)
        _require_choice(self, "tied", TYING)
        _require_rate(self)
        _require_one_vocabulary(self)
        _require_one_embedding(self, has_encoder=self.encoder)
        _require_readable(self, has_encoder=self.encoder)


ModelOptions = TransformerOptions | RNNOptions


def _require_positive(options: ModelOptions, names: str) -> None:
    for name in names.split():
        if getattr(options, name) < 1:
            raise ValueError(f"{name} is {getattr(options, name)}; expected at least 1")


def _require_choice(options: ModelOptions, name: str, choices: tuple[str, ...]) -> None:
    if getattr(options, name) not in choices:
        raise ValueError(f"{name} is {getattr(options, name)!r}; expected one of {', '.join(choices)}")


def _require_rate(options: ModelOptions) -> None:
    if not 0 <= options.dropout < 1:
        raise ValueError(f"dropout is {options.dropout}; expected a number from 0 up to, but not, 1")


def _require_one_vocabulary(options: ModelOptions) -> None:
    if options.tied == "all" and options.source_vocabulary != options.target_vocabulary:
        raise ValueError(
            f'tied = "all" needs one vocabulary, but source_vocabulary is {options.source_vocabulary} and '
            f'target_vocabulary {options.target_vocabulary}; use tied = "target"'
        )


def _require_one_embedding(options: ModelOptions, has_encoder: bool) -> None:
    if not has_encoder and options.tied != "all":
        raise ValueError(f'tied is {options.tied!r}, but without an encoder there is one embedding; use tied = "all"')


def _require_readable(options: ModelOptions, has_encoder: bool) -> None:
    if not 0 <= options.strides <= MOST_STRIDES:
        raise ValueError(f"strides is {options.strides}; expected 0 to {MOST_STRIDES}")
    if options.features is None:
        return
    _require_positive(options, "features")
    if not has_encoder:
        raise ValueError(f"features is {options.features}, but without an encoder no source is read; leave one of both")
    if options.tied == "all":
        raise ValueError(
            f'tied is "all", but a source of {options.features} features has no words; use tied = "target"'
        )


# The paper's base and big; `tiny` is Wu et al. 2021's, `lecture` is note 000 taken at its word.
SIZES: dict[str, ModelOptions] = {
    "tiny": TransformerOptions(width=128, heads=4, feed_forward=256, encoder_blocks=4, decoder_blocks=4),
    "small": TransformerOptions(width=256, heads=4, feed_forward=1024, encoder_blocks=3, decoder_blocks=3),
    "base": TransformerOptions(),
    "big": TransformerOptions(width=1024, heads=16, feed_forward=4096, dropout=0.3),
    # Concatenation without W_O, one matrix per Dense, a skip around every layer and no norm: it trains
    # badly. norm = "post" adds what the note's own paragraph on add-then-norm says, and helps.
    "lecture": TransformerOptions(output_projection=False, dense="one", norm="none"),
    "rnn": RNNOptions(),
}
