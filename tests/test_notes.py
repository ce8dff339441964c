"""Every worked number and every checkable claim of the five lecture notes, 000 to 004, held against our code.

The notes write a sentence as columns: m words of width d are a d×m matrix, q = W_Q·x and O = V·A′. Our tensors
hold the same numbers by rows, (B, m, d), so `columns` turns one sentence of ours into the notes' matrix.

B sentences, S source tokens, T target tokens, D model width, H heads, K head width, m words of any sentence.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from clearhead.data.tokenizer import PAD
from clearhead.model import SIZES, ModelOptions, TransformerOptions
from clearhead.model.attention import MultiHeadAttention, ScaledDotProduct, attention_weights, causal_mask
from clearhead.model.linear import Linear
from clearhead.model.positions import Learned, sinusoidal
from clearhead.model.rnn import RNN
from clearhead.model.transformer import DecoderBlock, EncoderBlock, FeedForward, Residual, Transformer
from tests.samples import LSTM, PAPER, cross_attention, make_model, random_ids, random_source

NOTE_VECTOR = torch.tensor([1.0, 2.0, 3.0, 4.0])  # the x of note 001's examples
GRU = replace(LSTM, cell="gru", layers=1, attention=False)  # the plain RNN seq2seq: one fixed context vector
PLAIN = TransformerOptions(width=4, heads=1, dropout=0.0)  # as wide as the note's vector


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(7)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """These matrices are small: where cores are shared, a second thread costs more in waiting than it computes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def base() -> Transformer:
    """The paper's base model, 512 wide with six blocks on each side, for eleven words."""
    return transformer(replace(preset("base"), source_vocabulary=11, target_vocabulary=11))


def preset(name: str) -> TransformerOptions:
    options = SIZES[name]
    assert isinstance(options, TransformerOptions)
    return options


def transformer(options: TransformerOptions) -> Transformer:
    model = make_model(options)
    assert isinstance(model, Transformer)
    return model


def encoder_blocks(model: Transformer) -> list[EncoderBlock]:
    return [block for block in model.encoder if isinstance(block, EncoderBlock)]


def decoder_blocks(model: Transformer) -> list[DecoderBlock]:
    return [block for block in model.decoder if isinstance(block, DecoderBlock)]


def make_attention(width: int, heads: int, head_width: int, output_projection: bool = False) -> MultiHeadAttention:
    attention = MultiHeadAttention(width, heads, head_width, head_width**-0.5, False, output_projection)
    for matrix in attention.parameters():
        nn.init.normal_(matrix, std=width**-0.5)
    return attention


def w_o(attention: MultiHeadAttention) -> Tensor:
    """W_O as the columns see it, D×(l·d)."""
    (matrix,) = attention.output.parameters()
    return matrix


def make_residual(options: TransformerOptions) -> Residual:
    """With a norm whose gain and shift are not at their ones and zeros any more."""
    residual = Residual(options)
    for parameter in residual.parameters():
        nn.init.normal_(parameter)
    return residual


def one_sentence(length: int, words: int = 11) -> tuple[Tensor, Tensor]:
    src = torch.randint(4, words, (1, length))
    return src, torch.ones_like(src, dtype=torch.bool)


def columns(x: Tensor) -> Tensor:
    """One sentence (1, m, D) as the notes write it, D×m."""
    (sentence,) = x
    return sentence.T


def differ(a: Tensor, b: Tensor) -> bool:
    return not torch.allclose(a, b, rtol=1e-3, atol=1e-4)


class Call(NamedTuple):
    """What one call of a watched module read and wrote."""

    module: nn.Module
    inputs: tuple[Tensor, ...]
    output: Tensor


@contextmanager
def watched(modules: Iterable[nn.Module]) -> Iterator[list[Call]]:
    """The calls of these modules, in the order in which they happen."""
    calls: list[Call] = []

    def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        calls.append(Call(module, inputs, output))

    handles = [module.register_forward_hook(keep) for module in modules]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def all_weights(model: Transformer, src: Tensor, src_mask: Tensor, tgt: Tensor) -> list[Tensor]:
    """The weights (B, H, T, S) of every attention in the model, from the bottom of the encoder upwards."""
    dot_products = [module for module in model.modules() if isinstance(module, ScaledDotProduct)]
    with watched(dot_products) as calls:
        model(src, src_mask, tgt)
    weights = []
    for module, (q, k, _, mask), _ in calls:
        assert isinstance(module, ScaledDotProduct)
        weights.append(attention_weights(q, k, mask, module.scale))
    return weights


def single_head(matrices: tuple[Tensor, Tensor, Tensor], X: Tensor, Z: Tensor, mask: Tensor | None = None) -> Tensor:
    """Notes 000 and 002 in columns: X looks at Z; A = KᵀQ over √d_k, softmax down each column, O = V·A′."""
    W_Q, W_K, W_V = matrices
    A = (W_K @ Z).T @ (W_Q @ X) / math.sqrt(len(W_K))
    if mask is not None:
        A = A.masked_fill(~mask.T, float("-inf"))
    return (W_V @ Z) @ A.softmax(dim=0)


def separate_heads(attention: MultiHeadAttention, X: Tensor, Z: Tensor, mask: Tensor | None = None) -> Tensor:
    """l single heads, one after the other, and their outputs stacked: (l·d)×m."""
    return torch.cat([single_head(attention.matrices(head), X, Z, mask) for head in range(attention.heads)])


def standardised(x: Tensor, dims: int | tuple[int, ...]) -> Tensor:
    """Mean 0 and variance 1 over these dimensions, with the population's variance."""
    return (x - x.mean(dims, keepdim=True)) / (x.var(dims, correction=0, keepdim=True) + 1e-5).sqrt()


def add_and_norm(residual: Residual, x: Tensor, y: Tensor) -> Tensor:
    """LayerNorm(x + y) by hand, with the residual connection's own gain and shift."""
    gain, shift = residual.norm.parameters()
    return standardised(x + y, -1) * gain + shift


def source_embedding(model: Transformer, src: Tensor) -> Tensor:
    """Embedding · √D + sinusoids, without the model's help."""
    D = model.options.width
    return model.get_parameter("source_embedding.weight")[src] * math.sqrt(D) + sinusoidal(
        torch.arange(src.shape[1]), D
    )


# Note 000: multi-head attention, the stacked encoder and decoder, the RNN that they replace


def test_note_000_l_heads_have_3l_projection_matrices() -> None:
    """每个单头自注意力有3个参数矩阵, so l heads have 3l; together they are all that multi-head attention learns."""
    heads, d = 5, 3
    attention = make_attention(width=7, heads=heads, head_width=d)
    matrices = [matrix for head in range(heads) for matrix in attention.matrices(head)]
    assert [matrix.shape for matrix in matrices] == 3 * heads * [(d, 7)]
    assert len({matrix.data_ptr() for matrix in matrices}) == 3 * heads
    assert sum(matrix.numel() for matrix in matrices) == sum(p.numel() for p in attention.parameters())


def test_note_000_heads_share_no_parameters() -> None:
    """它们不共享参数: other matrices in head 2 change head 2's rows of the output and leave head 1's alone."""
    attention, x = make_attention(width=7, heads=2, head_width=3), torch.randn(1, 5, 7)
    before = columns(attention(x, x, None))
    with torch.no_grad():
        for matrix in attention.matrices(head=1):
            matrix.normal_()
    after = columns(attention(x, x, None))
    assert torch.equal(after[:3], before[:3])
    assert differ(after[3:], before[3:])


def test_note_000_fused_projections_equal_l_single_heads() -> None:
    """是由l个single-head self-attentions组成的: our one product for all heads is l single heads, stacked."""
    attention, x = make_attention(width=7, heads=3, head_width=5), torch.randn(1, 11, 7)
    X = columns(x)
    torch.testing.assert_close(columns(attention(x, x, None)), separate_heads(attention, X, X))


def test_note_000_attention_of_two_sequences_is_l_single_heads_too() -> None:
    """同样可以用l个Attention构建多头Attention: t words look at m others, and t columns come out."""
    attention, x, memory = make_attention(7, 3, 5), torch.randn(1, 2, 7), torch.randn(1, 11, 7)
    output = columns(attention(x, memory, None))
    assert output.shape == (3 * 5, 2)
    torch.testing.assert_close(output, separate_heads(attention, columns(x), columns(memory)))


def test_note_000_heads_of_d_by_m_concatenate_to_ld_by_m() -> None:
    """单头的输出是dxm的矩阵, 多头的输出就是(ld)xm的矩阵; both for d×m in."""
    heads, d, m = 3, 7, 11
    x = torch.randn(1, m, d)
    one, many = make_attention(d, 1, d), make_attention(d, heads, d)
    assert columns(x).shape == (d, m)
    assert columns(one(x, x, None)).shape == (d, m)
    assert columns(many(x, x, None)).shape == (heads * d, m)


def test_note_000_eight_heads_of_512_concatenate_to_4096_by_m() -> None:
    """With d = 512 and l = 8 the concatenation is 4096×m; 我想Dense的矩阵是512x(512xl), which makes it 512×m again."""
    m = 3
    x = torch.randn(1, m, 512)
    assert columns(make_attention(512, 8, 512)(x, x, None)).shape == (4096, m)
    attention = make_attention(512, 8, 512, output_projection=True)
    assert [parameter.shape for parameter in attention.output.parameters()] == [(512, 512 * 8)]
    assert columns(attention(x, x, None)).shape == (512, m)


def test_note_000_all_positions_share_one_dense_matrix() -> None:
    """注意所有全连接层都相同，矩阵W_U: each column is u = ReLU(W_U·c), with one square matrix for all of them."""
    dense = FeedForward(replace(PAPER, dense="one"))
    (W_U,) = dense.parameters()
    nn.init.normal_(W_U)
    c = torch.randn(1, 5, PAPER.width)
    u = columns(dense(c))
    assert W_U.shape == (PAPER.width, PAPER.width)
    for i, column in enumerate(columns(c).unbind(dim=1)):
        torch.testing.assert_close(u[:, i], (W_U @ column).clamp(min=0))


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_note_000_any_number_of_layers_can_be_stacked(blocks: int) -> None:
    """想搭多少层都可以: D×m goes in and comes out, however many blocks there are, and each of them runs."""
    model, (src, mask) = transformer(replace(PAPER, encoder_blocks=blocks)), one_sentence(7)
    with watched(model.encoder) as calls:
        output = model.read(src, mask)
    assert [call.module for call in calls] == list(model.encoder)
    assert len(calls) == blocks
    assert columns(output).shape == (PAPER.width, 7)


def test_note_000_six_encoder_blocks_keep_512_by_m(base: Transformer) -> None:
    """总共有6个Block: 512×m into each of them, 512×m out, and 最终输出仍然是512xm的矩阵."""
    src, mask = one_sentence(7)
    with watched(base.encoder) as calls:
        output = base.read(src, mask)
    shapes = [(columns(call.inputs[0]).shape, columns(call.output).shape) for call in calls]
    assert shapes == 6 * [((512, 7), (512, 7))]
    assert columns(output).shape == (512, 7)


def test_note_000_attention_and_dense_keep_512_by_m(base: Transformer) -> None:
    """经过多头注意力和Dense输出的也是一样: each of a block's two layers takes 512×m to 512×m."""
    block, x = encoder_blocks(base)[0], torch.randn(1, 3, 512)
    c = block.attention(x, x, None)
    u = block.feed_forward(c)
    assert columns(c).shape == columns(u).shape == columns(x).shape == (512, 3)


def test_note_000_skip_connection_adds_the_input() -> None:
    """H(x)=F(x)+x: what the layer itself learns is the difference between output and input."""
    residual, x = Residual(replace(PLAIN, norm="none")), torch.randn(2, 3, 4)
    torch.testing.assert_close(residual(x, torch.sin) - x, x.sin())
    without = Residual(replace(PLAIN, norm="none", skip=False))
    torch.testing.assert_close(without(x, torch.sin), x.sin())


def test_note_000_no_residual_means_identity() -> None:
    """If F is 0, H(x) = x: without norms six blocks whose layers give nothing hand the embeddings through."""
    model, (src, mask) = transformer(replace(PAPER, norm="none", encoder_blocks=6)), one_sentence(5)
    assert differ(model.read(src, mask), source_embedding(model, src))
    with torch.no_grad():
        for block in encoder_blocks(model):
            for parameter in (*block.attention.output.parameters(), *block.feed_forward.outer.parameters()):
                parameter.zero_()
    torch.testing.assert_close(model.read(src, mask), source_embedding(model, src))


def test_note_000_add_then_norm() -> None:
    """Output=Input+Attention(Input)。之后会进行层归一化: norm = "post", as in the paper."""
    attention, x = make_attention(14, 7, 2, output_projection=True), torch.randn(1, 5, 14)
    residual = make_residual(replace(PAPER, norm="post")).eval()
    output = residual(x, lambda x: attention(x, x, None))
    torch.testing.assert_close(output, add_and_norm(residual, x, attention(x, x, None)))


def gradient_growth(norm: str, skip: bool) -> float:
    """How much larger the embeddings' gradient is under 13 encoder blocks than under one; median of five models."""

    def gradient(blocks: int, seed: int) -> float:
        torch.manual_seed(seed)
        model = Transformer(replace(PAPER, encoder_blocks=blocks, norm=norm, skip=skip)).eval()
        output = model.read(*one_sentence(7))
        (of_embedding,) = torch.autograd.grad(
            (output * torch.randn_like(output)).sum(), model.get_parameter("source_embedding.weight")
        )
        return float(of_embedding.norm())

    return median(gradient(13, seed) / gradient(1, seed) for seed in range(5))


def test_note_000_skip_connections_keep_the_gradient_alive() -> None:
    """同时解决梯度问题; 保持梯度的稳定: without skips the gradient vanishes, with skip and layer norm it does not.

    The skip alone cures the vanishing only: without a norm the same gradient grows with every block.
    """
    assert gradient_growth("none", skip=False) < 1e-2
    assert gradient_growth("none", skip=True) > 10
    assert 0.1 < gradient_growth("post", skip=True) < 10


def test_note_000_blocks_share_no_parameters(base: Transformer) -> None:
    """Block之间不共享参数: no two of the twelve blocks, nor any two layers in them, hold the same tensor."""
    parameters = [p for block in (*base.encoder, *base.decoder) for p in block.parameters()]
    assert len(base.encoder) + len(base.decoder) == 12
    assert len({parameter.untyped_storage().data_ptr() for parameter in parameters}) == len(parameters)
    for below, above in pairwise(encoder_blocks(base)):
        assert differ(below.attention.projections.weight, above.attention.projections.weight)


def test_note_000_an_encoder_block_has_two_layers(base: Transformer) -> None:
    """每个Block有两层（多头注意力和Dense）, and they run in that order, six times."""
    layers = [layer for block in encoder_blocks(base) for layer in (block.attention.dot_product, block.feed_forward)]
    with watched(layers) as calls:
        base.read(*one_sentence(3))
    assert [call.module for call in calls] == layers
    assert len(layers) == 6 * 2
    for block in encoder_blocks(base):
        assert [type(part) for part in block.children()] == [MultiHeadAttention, FeedForward, Residual, Residual]


def test_note_000_a_decoder_block_has_three_layers(base: Transformer) -> None:
    """Decoder的Block有三层，分别是多头自注意力层、多头注意力层和全连接层; six blocks, and in this order."""
    state = base.encode(*one_sentence(3))
    layers: list[nn.Module] = []
    for block in decoder_blocks(base):
        layers += [block.attention.dot_product, cross_attention(block).dot_product, block.feed_forward]
    with watched(layers) as calls:
        base.decode(torch.randint(4, 11, (1, 2)), state)
    assert [call.module for call in calls] == layers
    assert len(layers) == 6 * 3


def test_note_000_decoder_takes_two_sequences_and_gives_t_vectors(base: Transformer) -> None:
    """两个输入序列和一个输出序列，输出序列的长度t与x′的长度相同; the output depends on both inputs."""
    (src, mask), (other_src, other_mask) = one_sentence(7), one_sentence(5)
    tgt, other_tgt = torch.randint(4, 11, (1, 3)), torch.randint(4, 11, (1, 3))
    state = base.encode(src, mask)
    with watched(base.decoder) as calls:
        output = base.decode(tgt, state)
    shapes = [(columns(call.inputs[0]).shape, columns(call.output).shape) for call in calls]
    assert shapes == 6 * [((512, 3), (512, 3))]
    assert columns(base.read(src, mask)).shape == (512, 7)
    assert columns(output).shape == columns(base(other_src, other_mask, tgt)).shape == (512, 3)
    assert differ(output, base(other_src, other_mask, tgt))
    assert differ(output, base(src, mask, other_tgt))


def test_note_000_every_decoder_block_reads_the_last_encoder_output(base: Transformer) -> None:
    """输入为仍然为Encoder的输出: all six blocks' keys and values are their own W_K and W_V times its last block's."""
    src, mask = one_sentence(5)
    with watched(base.encoder) as calls:
        state = base.encode(src, mask)
    U = columns(calls[-1].output)
    with watched(cross_attention(block).dot_product for block in decoder_blocks(base)) as calls:
        base.decode(torch.randint(4, 11, (1, 3)), state)
    for block, call in zip(decoder_blocks(base), calls, strict=True):
        _, k, v, _ = call.inputs
        for head in range(cross_attention(block).heads):
            _, W_K, W_V = cross_attention(block).matrices(head)
            torch.testing.assert_close(columns(k[:, head]), W_K @ U, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(columns(v[:, head]), W_V @ U, rtol=1e-4, atol=1e-5)


def test_note_000_each_decoder_block_reads_the_block_below(base: Transformer) -> None:
    """第二个序列输入为上一个Block的输出."""
    with watched(base.decoder) as calls:
        output = base(*one_sentence(5), torch.randint(4, 11, (1, 3)))
    for below, above in pairwise(calls):
        assert above.inputs[0] is below.output
    torch.testing.assert_close(output, calls[-1].output)


def lecture_model() -> Transformer:
    """Our `lecture` preset in a small size."""
    options = replace(preset("lecture"), width=14, heads=7, encoder_blocks=3, decoder_blocks=2)
    return transformer(replace(options, source_vocabulary=17, target_vocabulary=17))


def test_note_000_lecture_model_has_only_the_matrices_of_the_note() -> None:
    """3l matrices per attention and W_U or W_S per block: no W_O, no biases, no norms, nothing else."""
    model = lecture_model()
    D = model.options.width
    for block in model.encoder:
        assert [parameter.shape for parameter in block.parameters()] == [(3 * D, D), (D, D)]
    for block in model.decoder:
        assert [parameter.shape for parameter in block.parameters()] == [(3 * D, D), (3 * D, D), (D, D)]


def lecture_encoder(model: Transformer, src: Tensor) -> Tensor:
    """Note 000's encoder in columns: c = x + heads(x, x), u = c + ReLU(W_U·c)."""
    U = columns(source_embedding(model, src))
    for block in encoder_blocks(model):
        C = U + separate_heads(block.attention, U, U)
        U = C + (block.feed_forward.inner.weight @ C).relu()
    return U


def test_note_000_lecture_encoder_in_columns() -> None:
    """u = ReLU(W_U·c) after concatenated heads, 把输入加到输出上 around both: our encoder, block by block."""
    model, (src, mask) = lecture_model(), one_sentence(5)
    torch.testing.assert_close(columns(model.read(src, mask)), lecture_encoder(model, src), rtol=1e-4, atol=1e-4)


def test_note_000_lecture_decoder_in_columns() -> None:
    """Self-attention to c, attention of c to u, s = ReLU(W_S·z): our decoder. (That c sees no later word is ours.)"""
    model, (src, mask), tgt = lecture_model(), one_sentence(5), random_ids(1, 7)
    D, T = model.options.width, tgt.shape[1]
    U = lecture_encoder(model, src)
    S = columns(model.target_embedding.weight[tgt] * math.sqrt(D) + sinusoidal(torch.arange(T), D))
    for block in decoder_blocks(model):
        C = S + separate_heads(block.attention, S, S, causal_mask(T))
        Z = C + separate_heads(cross_attention(block), C, U)
        S = Z + (block.feed_forward.inner.weight @ Z).relu()
    torch.testing.assert_close(columns(model(src, mask, tgt)), S, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [PAPER, GRU, LSTM], ids=["transformer", "rnn", "rnn with attention"])
def test_note_000_rnn_and_transformer_have_the_same_inputs_and_outputs(options: ModelOptions) -> None:
    """RNN Seq2Seq模型与Transformer的输入输出完全一样: two sequences in, one vector per target word out."""
    model, (src, mask), tgt = make_model(options), random_source(3, 5), random_ids(3, 7)
    output = model(src, mask, tgt)
    assert output.shape == (3, 7, options.width)
    assert model.logits(output).shape == (3, 7, options.target_vocabulary)
    assert differ(output, model(src.roll(1, dims=1), mask, tgt))
    assert differ(output, model(src, mask, tgt.roll(1, dims=1)))


# Note 001: softmax, weighted sum, concatenation, LayerNorm and residual connection in numbers


def softmax(scores: Tensor) -> Tensor:
    """What our attention makes of these scores: a query of 1 and a key of width 1 for each score."""
    return attention_weights(torch.ones(1, 1), scores[:, None], None, scale=1.0)[0]


def test_note_001_softmax_of_1_2_3_4() -> None:
    """Softmax([1,2,3,4]) ≈ [0.032, 0.087, 0.237, 0.644], 所有元素的和为1."""
    weights = softmax(NOTE_VECTOR)
    torch.testing.assert_close(weights, torch.tensor([0.032, 0.087, 0.237, 0.644]), rtol=0, atol=0.0005)
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))


def test_note_001_softmax_formula() -> None:
    """Softmax(x_i) = exp(x_i) / Σ exp(x_j), for any real vector; every element lies between 0 and 1."""
    scores = 3 * torch.randn(11)
    weights = softmax(scores)
    torch.testing.assert_close(weights, scores.exp() / scores.exp().sum())
    assert ((weights > 0) & (weights < 1)).all()


def test_note_001_softmax_keeps_order_and_raises_the_ratio() -> None:
    """最大元素4 gets the largest weight, 最小元素1 the smallest; 放大较大的元素，缩小较小的元素.

    True of the note's vector. Where numbers lie closer than their logarithms it is the other way round.
    """
    weights = softmax(NOTE_VECTOR)
    assert (weights.diff() > 0).all()
    assert weights[3] / weights[0] > NOTE_VECTOR[3] / NOTE_VECTOR[0]
    assert weights[3] > NOTE_VECTOR[3] / NOTE_VECTOR.sum()
    assert weights[0] < NOTE_VECTOR[0] / NOTE_VECTOR.sum()
    close = softmax(NOTE_VECTOR / 10)
    assert close[3] / close[0] < NOTE_VECTOR[3] / NOTE_VECTOR[0]


def test_note_001_weighted_sum_is_3() -> None:
    """WeightedSum([0.1,0.2,0.3,0.4], [1,2,3,4]) = 3, a scalar, to which 0.4 × 4 contributes most and 0.1 × 1 least."""
    w = torch.tensor([0.1, 0.2, 0.3, 0.4])
    query, keys, values = torch.ones(1, 1, 1, 1), w.log().view(1, 1, 4, 1), NOTE_VECTOR.view(1, 1, 4, 1)
    torch.testing.assert_close(attention_weights(query, keys, None, 1.0).flatten(), w)
    attention = ScaledDotProduct(scale=1.0)
    torch.testing.assert_close(attention(query, keys, values, None), torch.full((1, 1, 1, 1), 3.0))
    shares = [float(attention(query, keys, values * torch.eye(4)[i].view(4, 1), None)) for i in range(4)]
    assert shares == sorted(shares)
    assert shares == pytest.approx([0.1, 0.4, 0.9, 1.6])


def test_note_001_concatenation_of_1_2_3_and_4_5_6() -> None:
    """Concatenate([1,2,3], [4,5,6]) = [1,2,3,4,5,6]: two heads' outputs at one position."""
    attention = make_attention(width=6, heads=2, head_width=3)
    q, k = torch.randn(2, 1, 2, 1, 3).unbind()
    v = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).view(1, 2, 1, 3)
    torch.testing.assert_close(attention.attend(q, k, v, None), torch.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]]))


def test_note_001_concatenation_loses_nothing() -> None:
    """不会丢失任何信息: splitting into heads undoes the concatenation."""
    attention = make_attention(width=6, heads=2, head_width=3)
    with torch.no_grad():
        attention.projections.weight.copy_(torch.eye(6).repeat(3, 1))
    heads = torch.randn(1, 2, 5, 3)
    itself_only = torch.eye(5, dtype=torch.bool)
    joined = attention.attend(torch.randn_like(heads), torch.randn_like(heads), heads, itself_only)
    _, split = attention.keys_values(joined)
    assert joined.shape == (1, 5, 6)
    torch.testing.assert_close(split, heads)


@pytest.mark.parametrize("heads", [1, 2, 7])
def test_note_001_output_is_as_long_as_the_input(heads: int) -> None:
    """拼接, 再乘以一个权重矩阵: 输出向量的长度与输入向量的长度相同, for any number of heads; each of them counts."""
    attention, x = make_attention(11, heads, 5, output_projection=True), torch.randn(1, 3, 11)
    output = attention(x, x, None)
    assert output.shape == x.shape
    torch.testing.assert_close(columns(output), w_o(attention) @ separate_heads(attention, columns(x), columns(x)))
    for head in range(heads):
        with torch.no_grad():
            attention.matrices(head)[2].normal_()
        assert differ(attention(x, x, None), output)
        output = attention(x, x, None)


def test_note_001_layer_norm_of_1_2_3_4() -> None:
    """LayerNorm([1,2,3,4]) ≈ [-1.16, -0.39, 0.39, 1.16], from the sample standard deviation 1.29.

    Ba et al. and PyTorch, hence we, divide by the population's, 1.118: ours are the note's times √(4/3). Both
    have mean 0 and, each by its own count, variance 1; a learned gain makes up for the difference.
    """
    note = torch.tensor([-1.16, -0.39, 0.39, 1.16])
    ours = Residual(replace(PLAIN, norm="post"))(NOTE_VECTOR, torch.zeros_like)
    by_sample = (NOTE_VECTOR - NOTE_VECTOR.mean()) / NOTE_VECTOR.std(correction=1)
    assert round(float(NOTE_VECTOR.std(correction=1)), 2) == 1.29
    torch.testing.assert_close(by_sample, note, rtol=0, atol=0.005)
    torch.testing.assert_close(ours, (NOTE_VECTOR - 2.5) / math.sqrt(1.25), rtol=1e-4, atol=0)
    torch.testing.assert_close(ours * math.sqrt(3 / 4), note, rtol=0, atol=0.005)
    assert differ(ours, note)
    for normalised, correction in ((by_sample, 1), (ours, 0)):
        torch.testing.assert_close(normalised.mean(), torch.tensor(0.0), rtol=0, atol=1e-6)
        torch.testing.assert_close(normalised.var(correction=correction), torch.tensor(1.0), rtol=1e-4, atol=0)


def test_note_001_layer_norm_is_of_each_vector_alone() -> None:
    """对每个向量单独进行的，而不是对整个批次: a sentence comes out alike alone and in a batch; not so by BatchNorm."""
    x = torch.randn(3, 5, 4)
    for normalizer, depends_on_the_batch in (("layer", False), ("batch", True)):
        residual = make_residual(replace(PLAIN, normalizer=normalizer))
        together, alone = residual(x, torch.sin), residual(x[:1], torch.sin)
        assert differ(together[:1], alone) == depends_on_the_batch


def test_note_001_residual_sum() -> None:
    """ResidualConnection([1,2,3,4], [0.5,0.6,0.7,0.8]) = [1.5, 2.6, 3.7, 4.8]."""
    y = torch.tensor([0.5, 0.6, 0.7, 0.8])
    output = Residual(replace(PLAIN, norm="none"))(NOTE_VECTOR, lambda _: y)
    torch.testing.assert_close(output, torch.tensor([1.5, 2.6, 3.7, 4.8]))


def test_note_001_layer_norm_then_residual() -> None:
    """进行层归一化和残差连接, in this order, is x + LN(F(x)): norm = "branch", and not the paper's LN(x + F(x))."""
    x = torch.randn(2, 3, 4)
    branch = make_residual(replace(PLAIN, norm="branch"))
    gain, shift = branch.norm.parameters()
    output = branch(x, torch.sin)
    torch.testing.assert_close(output, x + standardised(x.sin(), -1) * gain + shift)
    post = Residual(replace(PLAIN, norm="post"))
    post.load_state_dict(branch.state_dict())
    assert differ(post(x, torch.sin), output)


@pytest.mark.parametrize("heads", [1, 7])
def test_note_001_scores_are_divided_by_the_root_of_the_embedding_width(heads: int) -> None:
    """嵌入向量的维度的平方根: scale = "width". With one head that is the paper's √d_k; with more it is larger."""
    options = replace(PAPER, heads=heads, scale="width")
    attention, x = encoder_blocks(transformer(options))[0].attention, torch.randn(1, 5, 14)
    q, k, v = attention.queries_keys_values(x)
    weights = (q @ k.transpose(-2, -1) / math.sqrt(PAPER.width)).softmax(dim=-1)
    torch.testing.assert_close(attention.dot_product(q, k, v, None), weights @ v)
    assert (options.score_scale == replace(options, scale="head_width").score_scale) == (heads == 1)


def test_note_001_distance_does_not_matter() -> None:
    """不仅仅是依赖于相邻位置的元素: a word 97 places away counts as much as the same word next door."""
    attention, x, memory = make_attention(7, 2, 3), torch.randn(1, 1, 7), torch.randn(1, 101, 7)
    swapped = memory.clone()
    swapped[:, [1, 98]] = memory[:, [98, 1]]
    weights = attention_weights(attention.queries(x), attention.keys_values(memory)[0], None, scale=1.0)
    after = attention_weights(attention.queries(x), attention.keys_values(swapped)[0], None, scale=1.0)
    torch.testing.assert_close(after[..., [1, 98]], weights[..., [98, 1]])
    torch.testing.assert_close(attention(x, swapped, None), attention(x, memory, None))


def test_note_001_encoder_and_decoder_have_six_blocks_each(base: Transformer) -> None:
    """由Encoder和Decoder两个部分组成，每个部分包含6个block; each with several heads."""
    assert [type(block) for block in base.encoder] == 6 * [EncoderBlock]
    assert [type(block) for block in base.decoder] == 6 * [DecoderBlock]
    assert [block.attention.heads for block in encoder_blocks(base)] == 6 * [8]
    assert [block.attention.heads for block in decoder_blocks(base)] == 6 * [8]


# Note 002: self-attention as matrix products, folded heads, positions, LayerNorm, the encoder


def test_note_002_all_queries_keys_and_values_in_one_product() -> None:
    """Q=W^q·I, K=W^k·I, V=W^v·I at once is qⁱ=W^q·aⁱ, kⁱ=W^k·aⁱ, vⁱ=W^v·aⁱ one by one."""
    attention, x = make_attention(width=7, heads=1, head_width=5), torch.randn(1, 11, 7)
    for W, at_once in zip(attention.matrices(head=0), attention.queries_keys_values(x), strict=True):
        one_by_one = torch.stack([W @ a for a in columns(x).unbind(dim=1)], dim=1)
        torch.testing.assert_close(columns(at_once[:, 0]), W @ columns(x))
        torch.testing.assert_close(columns(at_once[:, 0]), one_by_one)


def test_note_002_columns_of_the_attention_matrix_sum_to_one() -> None:
    """A′ ← A=KᵀQ: with words as columns, A′'s columns sum to one; it is our weights, whose rows do, transposed."""
    attention, x = make_attention(width=7, heads=1, head_width=5), torch.randn(1, 11, 7)
    W_Q, W_K, _ = attention.matrices(head=0)
    A = (W_K @ columns(x)).T @ (W_Q @ columns(x))
    q, k, _ = attention.queries_keys_values(x)
    A_prime = attention_weights(q, k, None, scale=1.0)[0, 0].T
    torch.testing.assert_close(A_prime, A.exp() / A.exp().sum(dim=0))
    torch.testing.assert_close(A_prime.sum(dim=0), torch.ones(11))
    assert differ(A_prime.sum(dim=1), torch.ones(11))


def test_note_002_output_is_v_times_a_prime() -> None:
    """O=V·A′ is our output transposed."""
    attention, x = make_attention(width=7, heads=1, head_width=5), torch.randn(1, 11, 7)
    W_Q, W_K, W_V = attention.matrices(head=0)
    Q, K, V = W_Q @ columns(x), W_K @ columns(x), W_V @ columns(x)
    A = K.T @ Q / math.sqrt(5)
    A_prime = A.exp() / A.exp().sum(dim=0)
    torch.testing.assert_close(attention(x, x, None), (V @ A_prime).T[None])


def test_note_002_two_matrices_in_a_row_are_one_folded_matrix() -> None:
    """q^{i,1}=W^{q,1}·qⁱ with qⁱ=W^q·aⁱ: our heads hold the product W^{q,1}·W^q, and likewise for k and v."""
    attention, x = make_attention(width=7, heads=2, head_width=3), torch.randn(1, 5, 7)
    first = torch.randn(3, 7, 7)  # W^q, W^k, W^v
    second = torch.randn(3, 2, 3, 7)  # W^{q,1} and W^{q,2}, then those of k and of v
    with torch.no_grad():
        for head in range(2):
            for kind, matrix in enumerate(attention.matrices(head)):
                matrix.copy_(second[kind, head] @ first[kind])
    for kind, projected in enumerate(attention.queries_keys_values(x)):
        for head in range(2):
            in_two_steps = second[kind, head] @ (first[kind] @ columns(x))
            torch.testing.assert_close(columns(projected[:, head]), in_two_steps, rtol=1e-4, atol=1e-4)


def test_note_002_w_o_makes_one_vector_of_two_heads() -> None:
    """纵向拼接b^{i,1}与b^{i,2}，乘一个转换矩阵W^O: bⁱ, as long as one big head's."""
    attention, x = make_attention(width=7, heads=2, head_width=3, output_projection=True), torch.randn(1, 5, 7)
    b_1, b_2 = (single_head(attention.matrices(head), columns(x), columns(x)) for head in range(2))
    b = w_o(attention) @ torch.cat([b_1, b_2])
    assert b.shape == columns(make_attention(7, 1, 7)(x, x, None)).shape
    torch.testing.assert_close(columns(attention(x, x, None)), b)


def test_note_002_without_positions_order_has_no_effect() -> None:
    """没有位置信息嵌入，位置对每个输出没有影响: words in another order give the same vectors in that order."""
    (src, mask), order = one_sentence(7), torch.randperm(7)
    model = transformer(replace(PAPER, positions="none"))
    torch.testing.assert_close(model.read(src[:, order], mask), model.read(src, mask)[:, order])
    attention, x = make_attention(7, 2, 3), torch.randn(1, 7, 7)
    torch.testing.assert_close(attention(x[:, order], x[:, order], None), attention(x, x, None)[:, order])


def index_as_position(positions: Tensor) -> Tensor:
    """自己设计生成规则: a seventh of the position in every dimension."""
    return positions[:, None].expand(-1, PAPER.width) / 7


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "own"])
def test_note_002_with_positions_order_matters(positions: str) -> None:
    """直接将位置编码加上即可完成对位置信息的嵌入: by sinusoids, by a learned table or by a rule of one's own."""
    rule = index_as_position if positions == "own" else None
    model = Transformer(replace(PAPER, positions=positions), rule).eval()
    (src, mask), order = one_sentence(7), torch.arange(7).roll(1)
    assert differ(model.read(src[:, order], mask), model.read(src, mask)[:, order])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "own"])
def test_note_002_position_vector_is_added_to_the_word_vector(positions: str) -> None:
    """eⁱ + aⁱ is what q, k and v are made of; 三角函数 (Sinusoidal), 神经网络进行嵌入, 还可以自己设计生成规则."""
    rule = index_as_position if positions == "own" else None
    model, (src, mask) = Transformer(replace(PAPER, positions=positions), rule).eval(), one_sentence(5)
    D = PAPER.width
    with watched([encoder_blocks(model)[0].attention.projections]) as calls:
        model.read(src, mask)
    added = calls[0].inputs[0][0] - model.get_parameter("source_embedding.weight")[src[0]] * math.sqrt(D)
    turns = [[i / 10000 ** (2 * (j // 2) / D) for j in range(D)] for i in range(5)]
    by_sines = [[math.cos(turn) if j % 2 else math.sin(turn) for j, turn in enumerate(row)] for row in turns]
    learned = model.source_positions.rule.table.weight[:5] if isinstance(model.source_positions.rule, Learned) else None
    by_index = torch.arange(5.0)[:, None].expand(5, D) / 7
    expected = {"sinusoidal": torch.tensor(by_sines), "learned": learned, "own": by_index}[positions]
    torch.testing.assert_close(added, expected, rtol=1e-4, atol=1e-5)


def test_note_002_learned_positions_are_learned_and_sinusoids_are_not() -> None:
    """利用神经网络进行嵌入: learned vectors get a gradient where their position is in use; sinusoids learn nothing."""
    model, (src, mask) = Transformer(replace(PAPER, positions="learned")).eval(), one_sentence(5)
    (table,) = model.source_positions.parameters()
    (gradient,) = torch.autograd.grad(model.read(src, mask).square().sum(dim=-1)[0, 0], table)
    assert [bool(row.any()) for row in gradient[:7]] == 5 * [True] + 2 * [False]
    assert not list(Transformer(PAPER).source_positions.parameters())


def test_note_002_a_block_keeps_the_dimension() -> None:
    """由一组向量输入，输出相同维度的一组向量进入下一个Block."""
    model, (src, mask) = transformer(PAPER), one_sentence(7)
    with watched(model.encoder) as calls:
        model.read(src, mask)
    assert [call.inputs[0].shape for call in calls] == [call.output.shape for call in calls]
    for below, above in pairwise(calls):
        assert above.inputs[0] is below.output


def test_note_002_residual_connection_adds_input_and_output() -> None:
    """自注意力层的输出a再加上其输入b，以a+b作为自注意力层输出的结果."""
    attention, b = make_attention(14, 7, 2, output_projection=True), torch.randn(1, 5, 14)
    a = attention(b, b, None)
    residual = Residual(replace(PAPER, norm="none")).eval()
    torch.testing.assert_close(residual(b, lambda x: attention(x, x, None)), a + b)


def test_note_002_layer_norm_over_dimensions_batch_norm_over_samples() -> None:
    """批归一化: 不同的样本, 同一个维度; 层归一化: 相同的样本, 不同维度; both x′=(x-m)/σ."""
    x = torch.randn(3, 5, 4) * torch.arange(1, 5) + torch.randn(3, 5, 1)
    layer, batch = (Residual(replace(PLAIN, normalizer=name))(x, torch.zeros_like) for name in ("layer", "batch"))
    torch.testing.assert_close(layer, standardised(x, -1))
    torch.testing.assert_close(batch, standardised(x, (0, 1)))
    assert differ(layer, batch)


def test_note_002_encoder_overview() -> None:
    """嵌入后加上位置编码, 多头注意力, 残差连接和层归一化, 前馈神经网络, and these two again: our encoder by hand."""
    model, (src, mask) = transformer(PAPER), one_sentence(5)
    x = source_embedding(model, src)
    for block in encoder_blocks(model):
        looked = (w_o(block.attention) @ separate_heads(block.attention, columns(x), columns(x))).T[None]
        x = add_and_norm(block.around_attention, x, looked)
        W_1, b_1, W_2, b_2 = block.feed_forward.parameters()
        x = add_and_norm(block.around_feed_forward, x, (x @ W_1.T + b_1).clamp(min=0) @ W_2.T + b_2)
    torch.testing.assert_close(model.read(src, mask), x, rtol=1e-4, atol=1e-4)


# Note 003: what an RNN cannot do, attention step by step, the split into heads


def test_note_003_an_rnn_needs_step_t_minus_1_before_step_t() -> None:
    """在计算时间t的计算之前，它必须完成时间t-1的计算: T calls of the cell, each reading what the last one wrote."""
    model = make_model(GRU)
    assert isinstance(model, RNN)
    with watched(model.decoder) as calls:
        model(*one_sentence(5), random_ids(1, 7))
    assert len(calls) == 7
    for before, after in pairwise(calls):
        assert torch.equal(after.inputs[1], before.output)


def test_note_003_the_transformer_computes_all_positions_at_once() -> None:
    """Attention ... 解决了这两个问题: one call per block for all the words, in the encoder and in the decoder."""
    model = transformer(PAPER)
    with watched([*model.encoder, *model.decoder]) as calls:
        model(*one_sentence(5), random_ids(1, 7))
    assert [call.module for call in calls] == [*model.encoder, *model.decoder]
    assert [call.output.shape[1] for call in calls] == PAPER.encoder_blocks * [5] + PAPER.decoder_blocks * [7]


@pytest.mark.parametrize(("options", "fades"), [(GRU, True), (PAPER, False)], ids=["rnn", "transformer"])
def test_note_003_far_words_fade_in_an_rnn_and_not_under_attention(options: ModelOptions, fades: bool) -> None:
    """难以处理 ... 长距离依赖关系: how much the first words influence the 31st vector, against the nearest words."""
    model = make_model(options)
    with watched([model.target_embedding]) as calls:
        hidden = model(*one_sentence(5), random_ids(1, 31))
    (gradient,) = torch.autograd.grad(hidden[0, -1] @ torch.randn(options.width), calls[0].output)
    influence = gradient[0, :-1].norm(dim=-1)  # of the 30 words before the last
    ratio = influence[:5].mean() / influence[-5:].mean()
    assert (ratio < 0.01) if fades else (ratio > 0.1)


YOU, ARE, WELCOME = 5, 7, 11


def test_note_003_a_sentence_becomes_one_matrix() -> None:
    """“you are welcome PAD”: 每一个token都表示成一个数值向量, 一句话 a matrix of Embedding+Positional Encoding."""
    model, src = transformer(PAPER), torch.tensor([[YOU, ARE, WELCOME, PAD]])
    with watched(model.encoder) as calls:
        model.read(src, src != PAD)
    (matrix,) = calls[0].inputs[0]
    assert matrix.shape == (4, PAPER.width)
    torch.testing.assert_close(matrix, source_embedding(model, src)[0])


def test_note_003_pad_gets_weight_zero() -> None:
    """In “you are welcome PAD” nobody looks at PAD: exactly zero in every attention that reads the source."""
    model, src = transformer(PAPER), torch.tensor([[YOU, ARE, WELCOME, PAD]])
    weights = all_weights(model, src, src != PAD, random_ids(1, 7))
    of_source = [matrix for matrix in weights if matrix.shape[-1] == 4]
    assert len(of_source) == PAPER.encoder_blocks + PAPER.decoder_blocks
    for matrix in of_source:
        assert (matrix[..., 3] == 0).all()
        assert (matrix[..., :3] > 0).all()


def test_note_003_pad_changes_nothing() -> None:
    """With or without PAD after “you are welcome”, and whatever stands in its place, all other vectors are the same."""
    model, tgt = transformer(PAPER), random_ids(1, 7)
    padded = torch.tensor([[YOU, ARE, WELCOME, PAD]])
    bare, other = padded[:, :3], torch.tensor([[YOU, ARE, WELCOME, YOU]])
    mask, seen = padded != PAD, torch.ones(1, 4, dtype=torch.bool)
    for src, src_mask in ((bare, mask[:, :3]), (other, mask)):
        torch.testing.assert_close(model.read(src, src_mask)[:, :3], model.read(padded, mask)[:, :3])
        torch.testing.assert_close(model(src, src_mask, tgt), model(padded, mask, tgt))
    assert differ(model(padded, seen, tgt), model(padded, mask, tgt))


def test_note_003_queries_keys_and_values_are_linear_in_the_input() -> None:
    """Q/K/V 都是原始输入数据通过线性变换得到的."""
    attention, x, y = make_attention(7, 2, 3), torch.randn(1, 5, 7), torch.randn(1, 5, 7)
    parts = zip(*(attention.queries_keys_values(z) for z in (2 * x + y, x, y)), strict=True)
    for of_sum, of_x, of_y in parts:
        torch.testing.assert_close(of_sum, 2 * of_x + of_y, rtol=1e-4, atol=1e-5)


def test_note_003_one_head_has_matrices_of_512_by_512() -> None:
    """这3个矩阵的维度相同 (维度都是Emb*Emb): 512×512 if the one head is as wide as the embedding."""
    attention = EncoderBlock(TransformerOptions(heads=1)).attention
    assert [matrix.shape for matrix in attention.matrices(head=0)] == 3 * [(512, 512)]


def test_note_003_scores_are_the_similarity_of_every_pair() -> None:
    """Q矩阵和K的转置矩阵做点积运算: m×m numbers, 每一个token和其他token（包括自己）, each one dot product."""
    attention, x = make_attention(width=7, heads=1, head_width=5), torch.randn(1, 3, 7)
    q, k, _ = attention.queries_keys_values(x)
    weights = attention_weights(q, k, None, scale=1.0)[0, 0]
    similarity = torch.stack([torch.stack([query @ key for key in k[0, 0]]) for query in q[0, 0]])
    assert weights.shape == (3, 3)
    torch.testing.assert_close(weights.log().diff(dim=1), similarity.diff(dim=1), rtol=1e-4, atol=1e-5)


def softmax_slope(d_k: int, scale: float) -> float:
    """The mean size of ∂weight/∂score for 31 queries and 7 keys whose numbers have variance one."""
    q, k = torch.randn(31, d_k), torch.randn(7, d_k)
    scores = q @ k.T * scale

    def weights(scores: Tensor) -> Tensor:
        return attention_weights(scores, torch.eye(7), None, scale=1.0)

    slopes = [torch.autograd.functional.jacobian(weights, row[None]).abs().mean() for row in scores]
    return float(torch.stack(slopes).mean())


def test_note_003_large_d_k_pushes_softmax_into_tiny_gradients() -> None:
    """当d_k比较大时, 产生非常小的梯度: unscaled, d_k = 2003 flattens softmax; over √d_k it is as steep as for 5."""
    small, large = 5, 2003
    assert softmax_slope(large, 1.0) < 0.25 * softmax_slope(small, 1.0)
    scaled = softmax_slope(large, large**-0.5) / softmax_slope(small, small**-0.5)
    assert 0.7 < scaled < 1.4


def test_note_003_dot_products_grow_with_the_root_of_d_k() -> None:
    """The dot products grow large in magnitude: q·k of unit variance has deviation √d_k, and 1 after scaling."""
    for d_k in (11, 101, 1009):
        q, k = torch.randn(997, d_k), torch.randn(997, d_k)
        products = (q * k).sum(dim=1)
        assert float(products.std()) == pytest.approx(math.sqrt(d_k), rel=0.1)
        options = TransformerOptions(width=2 * d_k, heads=2)
        assert float((products * options.score_scale).std()) == pytest.approx(1, rel=0.1)


def test_note_003_rows_of_weights_sum_to_one() -> None:
    """每一行的和为1: in every head of every attention, padding and causal mask or not."""
    model, (src, mask) = transformer(PAPER), random_source(3, 5)
    matrices = all_weights(model, src, mask, random_ids(3, 7))
    assert len(matrices) == PAPER.encoder_blocks + 2 * PAPER.decoder_blocks
    for weights in matrices:
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def test_note_003_output_of_shi_is_the_weighted_sum_of_three_value_vectors() -> None:
    """最终输出“是”的编码向量 ... 就是原始“我/是/谁”3个向量的相关度的加权和: of their value vectors, in our code."""
    attention, sentence = make_attention(width=7, heads=1, head_width=5), torch.randn(1, 3, 7)
    W_Q, W_K, W_V = attention.matrices(head=0)
    words = sentence[0].unbind()
    _, shi, _ = words
    relevance = [((W_Q @ shi) @ (W_K @ word) / math.sqrt(5)).exp() for word in words]
    wo, shi, shei = (share / sum(relevance) * (W_V @ word) for share, word in zip(relevance, words, strict=True))
    torch.testing.assert_close(attention(sentence, sentence, None)[0, 1], wo + shi + shei)


def test_note_003_every_word_contributes_to_every_output() -> None:
    """这是一种全局的特征提取: every output of self-attention depends on every word of the sentence."""
    attention = make_attention(width=7, heads=2, head_width=3)

    def of_sentence(x: Tensor) -> Tensor:
        return attention(x[None], x[None], None)[0]

    influence = torch.autograd.functional.jacobian(of_sentence, torch.randn(5, 7)).abs().sum(dim=(1, 3))
    assert influence.shape == (5, 5)
    assert (influence > 1e-4).all()


def test_note_003_and_004_eight_heads_map_512_to_64(base: Transformer) -> None:
    """h=8, dq=dk=dv=dmodel/h = 64; and note 004: 新向量的维度比输入词向量的维度要小."""
    for block in encoder_blocks(base):
        for head in range(8):
            assert [matrix.shape for matrix in block.attention.matrices(head)] == 3 * [(64, 512)]
        assert block.attention.queries(torch.randn(1, 3, 512)).shape == (1, 8, 3, 64)


def test_note_003_multi_head_is_one_big_head_split() -> None:
    """将一个大的高维单头拆分成了h个多头: q, k, v of eight heads are slices of the big head's; no parameter is added."""
    one, eight = (EncoderBlock(TransformerOptions(heads=heads)).attention for heads in (1, 8))
    x = torch.randn(1, 3, 512)
    with torch.no_grad():
        for matrix, cut in zip(one.parameters(), eight.parameters(), strict=True):
            cut.copy_(nn.init.normal_(matrix, std=512**-0.5))
    for big, small in zip(one.queries_keys_values(x), eight.queries_keys_values(x), strict=True):
        torch.testing.assert_close(torch.cat(small.unbind(dim=1), dim=-1), big[:, 0])
    assert differ(one(x, x, None), eight(x, x, None))


def test_note_003_concatenated_heads_are_multiplied_by_w_o() -> None:
    """拼接在一起 (Concat)，然后传入一个Linear层【和一个Wo矩阵（列数dm）进行点积运算】: by rows Z = Concat·Wo."""
    attention, x = make_attention(width=11, heads=3, head_width=5, output_projection=True), torch.randn(1, 7, 11)
    Wo = w_o(attention).T
    assert Wo.shape == (3 * 5, 11)
    Z = separate_heads(attention, columns(x), columns(x)).T @ Wo
    torch.testing.assert_close(attention(x, x, None)[0], Z)


def test_note_003_heads_can_look_elsewhere_than_at_themselves() -> None:
    """过度的将注意力集中于自身的位置: compared as they are, words look at themselves; a second head may look elsewhere.

    ❝jointly attend to information from different representation subspaces at different positions❞
    """
    words = 5
    attention, x = make_attention(width=words, heads=2, head_width=words), 3 * torch.eye(words)[None]
    with torch.no_grad():
        for head, keys in enumerate((torch.eye(words), torch.eye(words).roll(1, dims=0))):
            W_Q, W_K, _ = attention.matrices(head)
            W_Q.copy_(torch.eye(words))
            W_K.copy_(keys)
    q, k, _ = attention.queries_keys_values(x)
    looks_at = attention_weights(q, k, None, scale=1.0)[0].argmax(dim=-1)
    assert looks_at[0].tolist() == [0, 1, 2, 3, 4]
    assert looks_at[1].tolist() == [4, 0, 1, 2, 3]


# Note 004: the high-level look


def test_note_004_six_encoders_of_one_structure_and_no_shared_parameters(base: Transformer) -> None:
    """6层的encoder ... 完全结构相同的，但是并不共享参数."""
    structures = [[(name, p.shape) for name, p in block.named_parameters()] for block in base.encoder]
    assert structures == 6 * [structures[0]]
    pointers = [{p.untyped_storage().data_ptr() for p in block.parameters()} for block in base.encoder]
    assert len(set().union(*pointers)) == 6 * len(structures[0])


def test_note_004_feed_forward_is_two_linear_layers_and_an_activation() -> None:
    """FFN由两个全连接层+一个非线性激活函数: W₂·max(0, W₁x + b₁) + b₂."""
    feed_forward, x = encoder_blocks(transformer(PAPER))[0].feed_forward, torch.randn(1, 3, PAPER.width)
    W_1, b_1, W_2, b_2 = feed_forward.parameters()
    assert [type(part) for part in feed_forward.children()] == [Linear, Linear]
    by_hand = W_2 @ (W_1 @ columns(x) + b_1[:, None]).clamp(min=0) + b_2[:, None]
    torch.testing.assert_close(columns(feed_forward(x)), by_hand)


@pytest.mark.parametrize("dense", ["two", "gated", "one"])
def test_note_004_feed_forward_treats_each_position_alone(dense: str) -> None:
    """每个输入位置对应的前向网络是独立互不干扰的, 可以并行执行: one by one, at once and in any order it is the same."""
    feed_forward = encoder_blocks(transformer(replace(PAPER, dense=dense)))[0].feed_forward
    x, order = torch.randn(1, 7, PAPER.width), torch.randperm(7)
    at_once = feed_forward(x)
    one_by_one = torch.cat([feed_forward(word) for word in x.split(1, dim=1)], dim=1)
    torch.testing.assert_close(one_by_one, at_once)
    torch.testing.assert_close(feed_forward(x[:, order]), at_once[:, order])


def test_note_004_word_4_changes_attention_at_word_1_but_not_feed_forward() -> None:
    """在self-attention中，这些路径是两两之间相互依赖的。前向网络层没有这些依赖性."""
    block, x = encoder_blocks(transformer(PAPER))[0], torch.randn(1, 5, PAPER.width)
    changed = x.clone()
    changed[0, 3] = torch.randn(PAPER.width)
    assert differ(block.attention(changed, changed, None)[0, 0], block.attention(x, x, None)[0, 0])
    kept, at_word_4 = [0, 1, 2, 4], 3
    assert torch.equal(block.feed_forward(changed)[0, kept], block.feed_forward(x)[0, kept])
    assert differ(block.feed_forward(changed)[0, at_word_4], block.feed_forward(x)[0, at_word_4])


def test_note_004_the_decoder_adds_attention_to_the_source_between_the_two() -> None:
    """解码器同样也有这些子层，但是在两个子层[之间]增加了attention层: the encoder's parts and one attention more."""

    def shapes(block: nn.Module, without: str = "-") -> list[torch.Size]:
        return [p.shape for name, p in block.named_parameters() if without not in name]

    model = transformer(PAPER)
    (encoder, *_), (decoder, *_) = encoder_blocks(model), decoder_blocks(model)
    assert shapes(decoder, without="cross_attention") == shapes(encoder)
    assert [p.shape for p in cross_attention(decoder).parameters()] == [p.shape for p in encoder.attention.parameters()]
    state = model.encode(*one_sentence(5))
    parts: list[nn.Module] = [decoder.feed_forward, decoder.attention.dot_product, cross_attention(decoder).dot_product]
    with watched(parts) as calls:
        model.decode(random_ids(1, 7), state)
    assert [parts.index(call.module) for call in calls] == [1, 2, 0]
    assert [call.inputs[1].shape[2] for call in calls[:2]] == [7, 5]  # keys: its own words, then the source's


def test_note_004_only_the_lowest_encoder_sees_embeddings() -> None:
    """向量化只是发生在最底层的编码器的输入时，其他编码器[的输入]是前个编码器的输出."""
    model, (src, mask) = transformer(PAPER), one_sentence(7)
    with watched(model.encoder) as calls:
        model.read(src, mask)
    embedded = source_embedding(model, src)
    torch.testing.assert_close(calls[0].inputs[0], embedded)
    for below, above in pairwise(calls):
        assert above.inputs[0] is below.output
        assert differ(above.inputs[0], embedded)


def test_note_004_the_length_of_the_list_is_a_hyperparameter() -> None:
    """list的尺寸是可以设置的超参数: `max_positions`, where positions are learned; sinusoids set no limit."""
    learned = transformer(replace(PAPER, positions="learned", max_positions=5))
    assert learned.read(*one_sentence(5)).shape == (1, 5, PAPER.width)
    with pytest.raises(ValueError, match="6 tokens is longer than the learned table of 5"):
        learned.read(*one_sentence(6))
    assert transformer(replace(PAPER, max_positions=5)).read(*one_sentence(6)).shape == (1, 6, PAPER.width)


def test_note_004_all_words_share_w_q_w_k_and_w_v() -> None:
    """不是每个词向量独享三个matrix，而是所有输入共享三个转换矩阵: a word's q, k, v are the same wherever it stands."""
    attention, x = make_attention(width=7, heads=2, head_width=3), torch.randn(1, 5, 7)
    x[0, 4] = x[0, 1]
    at_once = attention.queries_keys_values(x)
    for i, word in enumerate(x.split(1, dim=1)):
        for whole, alone in zip(at_once, attention.queries_keys_values(word), strict=True):
            torch.testing.assert_close(whole[:, :, [i]], alone)
    for part in at_once:
        torch.testing.assert_close(part[:, :, 4], part[:, :, 1])
        assert differ(part[:, :, 3], part[:, :, 1])


@pytest.mark.parametrize("heads", [1, 2, 7])
def test_note_003_and_004_scores_are_divided_by_the_root_of_d_k(heads: int) -> None:
    """q_1和k_1的点积 ... 除以√d_k, 然后加上softmax: the default, for heads of any width."""
    model = transformer(replace(PAPER, heads=heads))
    attention, x = encoder_blocks(model)[0].attention, torch.randn(1, 5, 14)
    q, k, v = attention.queries_keys_values(x)
    d_k = q.shape[-1]
    scores = torch.einsum("bhtk,bhsk->bhts", q, k) / math.sqrt(d_k)
    assert d_k == 14 // heads
    torch.testing.assert_close(attention.dot_product(q, k, v, None), scores.softmax(dim=-1) @ v)


def test_note_003_and_004_root_of_d_k_is_8_in_the_paper() -> None:
    """dk = dmodel/h = 64, so that scores are divided by 8; the embedding's 512 of note 001 would make it 22.6."""
    assert 1 / preset("base").score_scale == pytest.approx(8)
    assert 1 / replace(preset("base"), scale="width").score_scale == pytest.approx(math.sqrt(512))


def test_note_004_weights_are_positive_and_sum_to_one() -> None:
    """归一化分值使得全是整数且加权和为1: 整数 (integers) must be a slip for 正数, positive numbers."""
    model, (src, mask), one_word = transformer(PAPER), one_sentence(5), random_ids(1, 1)  # so nothing is masked
    for weights in all_weights(model, src, mask, one_word):
        assert (weights > 0).all()
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
