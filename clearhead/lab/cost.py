"""What being parallel costs: time by length (note 002, section 1), time per token (note 003, second weakness)."""

from collections.abc import Callable
from time import process_time

import torch

from clearhead.data.tokenizer import BOS, SPECIALS
from clearhead.model import ModelOptions, RNNOptions, Seq2Seq, TransformerOptions, build
from clearhead.model.rnn import RNN

from .experiment import (
    Experiment,
    Finding,
    Lines,
    Measured,
    Runs,
    Spread,
    Table,
    Text,
    curve,
    number,
    over,
    row,
    verdict,
)
from .learn import SMALL
from .recurrence import LSTM, WITH_ATTENTION
from .tasks import VOCABULARY

NOTE_003_SLOW = Text("note 003, second weakness of the RNN", "笔记 003，RNN 的第二个弱点")
LENGTHS = (16, 64, 256, 1024)
SENTENCES, TIMES = 4, 3
READERS: dict[str, tuple[Text, ModelOptions]] = {
    "lstm": (Text("LSTM, both directions", "LSTM，双向"), LSTM),
    "attention": (Text("one attention block", "一个注意力块"), SMALL),
}


def measure_lengths(seed: int) -> Measured:
    """Milliseconds to read sentences of each length and to go back through the encoder; the fastest of a few."""
    measured: Measured = {}
    for name, (_, options) in READERS.items():
        torch.manual_seed(seed)
        model = build(options)
        measured[name] = [_reading_time(model, length) for length in LENGTHS]
    return measured


def _reading_time(model: Seq2Seq, length: int) -> float:
    src = torch.randint(SPECIALS, VOCABULARY, (SENTENCES, length))
    mask = torch.ones_like(src, dtype=torch.bool)

    def read() -> None:
        state = model.encode(src, mask)
        total = state.values.sum() if isinstance(model, RNN) else sum(k.sum() + v.sum() for k, v in state.memory)
        total.backward()

    return 1000 * fastest(read)


def fastest(work: Callable[[], None]) -> float:
    """Seconds of the CPU, whatever else the machine does."""
    seconds = []
    for _ in range(TIMES):
        started = process_time()
        work()
        seconds.append(process_time() - started)
    return min(seconds)


def conclude_lengths(runs: Runs) -> Finding:
    lstm, attention = ([over(runs, name, i) for i in range(len(LENGTHS))] for name in READERS)
    faster = [length for length, a, r in zip(LENGTHS, attention, lstm, strict=True) if a.mean < r.mean]
    growth = {name: over(runs, name, 3).mean / over(runs, name, 1).mean for name in READERS}
    where = ", ".join(str(length) for length in faster)
    return Finding(
        verdict(len(faster) == len(LENGTHS), bool(faster)),
        Text(
            f"On one thread attention is faster at lengths {where or 'none'}. From {LENGTHS[1]} to "
            f"{LENGTHS[3]} words, 16 "
            f"times as many, its time grows {number(growth['attention'])}-fold and the LSTM's "
            f"{number(growth['lstm'])}-fold.",
            f"在单线程上，注意力更快的长度是：{where or '没有'}。从 {LENGTHS[1]} 到 {LENGTHS[3]} 个词（16 倍），"
            f"注意力的时间增长到 {number(growth['attention'])} 倍，LSTM 增长到 {number(growth['lstm'])} 倍。",
        ),
        Table(
            [Text("length", "长度"), *(Text(f"{name.en}, ms", f"{name.zh}，毫秒") for name, _ in READERS.values())],
            [row(str(n), lstm[i], attention[i]) for i, n in enumerate(LENGTHS)],
        ),
        [
            Lines(
                Text("Reading and going back, one thread", "前向加反向，单线程"),
                Text("length", "长度"),
                Text("milliseconds (log)", "毫秒（对数）"),
                [(name, curve(runs, kind, LENGTHS)) for kind, (name, _) in READERS.items()],
                log_x=True,
                log_y=True,
            )
        ],
    )


LENGTH_COST = Experiment(
    "cost",
    Text("Is attention faster than recurrence?", "注意力比循环快吗？"),
    Text(
        "An RNN must go through a sentence step by step, so training is slow; attention computes all "
        "positions at once.",
        "RNN 必须串行处理数据，所以训练速度较慢；注意力可以并行计算所有位置。",
    ),
    Text("note 002, section 1; note 003, second weakness of the RNN", "笔记 002 第 1 节；笔记 003，RNN 的第二个弱点"),
    Text(
        f"Encoders of one layer and width 64 read {SENTENCES} sentences of each length and go back, on one thread. The "
        "claim holds if attention is faster at all lengths.",
        f"单层、宽 64 的编码器读 {SENTENCES} 个各种长度的句子，前向加反向，单线程。如果各种长度注意力都更快，算成立。",
    ),
    Text(
        "The true advantage is fewer steps that must follow each other. It pays on hardware that does much at once.",
        "真正的优势是必须先后进行的步骤更少。在能大量并行的硬件上才见效。",
    ),
    (1, 2, 3),
    measure_lengths,
    conclude_lengths,
)

WIDTH, LAYERS, GENERATED, STRETCH = 128, 2, 192, 32
WRITERS: dict[str, tuple[Text, ModelOptions]] = {
    "rnn": (
        Text("RNN with attention", "带注意力的 RNN"),
        RNNOptions(VOCABULARY, VOCABULARY, WIDTH, LAYERS, WITH_ATTENTION.cell, dropout=0.0),
    ),
    "transformer": (
        Text("Transformer", "Transformer"),
        TransformerOptions(
            VOCABULARY,
            VOCABULARY,
            WIDTH,
            4,
            feed_forward=4 * WIDTH,
            encoder_blocks=LAYERS,
            decoder_blocks=LAYERS,
            dropout=0.0,
        ),
    ),
}
PLACES = tuple(range(STRETCH, GENERATED + 1, STRETCH))


@torch.no_grad()
def measure_tokens(seed: int) -> Measured:
    """Milliseconds per token, in stretches of one long target that is generated token by token."""
    measured: Measured = {}
    src = torch.randint(SPECIALS, VOCABULARY, (1, 16))
    for name, (_, options) in WRITERS.items():
        torch.manual_seed(seed)
        model: Seq2Seq = build(options).eval()
        rounds = [_write(model, src) for _ in range(TIMES)]
        measured[name] = [min(times) for times in zip(*rounds, strict=True)]
    return measured


def _write(model: Seq2Seq, src: torch.Tensor) -> list[float]:
    state = model.encode(src, torch.ones_like(src, dtype=torch.bool))
    token, times = torch.tensor([[BOS]]), []
    for _ in PLACES:
        started = process_time()
        for _ in range(STRETCH):
            token = model.logits(model.decode(token, state)).argmax(dim=-1)
        times.append(1000 * (process_time() - started) / STRETCH)
    return times


def conclude_tokens(runs: Runs) -> Finding:
    mean = {name: Spread(tuple(sum(run[name]) / len(run[name]) for run in runs)) for name in WRITERS}
    growth = over(runs, "transformer", len(PLACES) - 1).mean / over(runs, "transformer", 0).mean
    ratio = mean["rnn"].mean / mean["transformer"].mean
    return Finding(
        verdict(ratio > 1.2, ratio > 0.8),
        Text(
            f"A token takes the RNN {number(mean['rnn'].mean)} ms and the Transformer "
            f"{number(mean['transformer'].mean)} ms; the Transformer's last tokens take {number(growth)} "
            "times as long as its first. Generating is one token after another for both.",
            f"每个词元，RNN 用 {number(mean['rnn'].mean)} 毫秒，Transformer 用 "
            f"{number(mean['transformer'].mean)} 毫秒；"
            f"Transformer 最后的词元用时是开头的 {number(growth)} 倍。生成时两者都只能一个接一个。",
        ),
        Table(
            [Text("tokens", "词元"), *(Text(f"{name.en}, ms", f"{name.zh}，毫秒") for name, _ in WRITERS.values())],
            [row(f"≤ {n}", *(over(runs, kind, i) for kind in WRITERS)) for i, n in enumerate(PLACES)],
        ),
        [
            Lines(
                Text("Time per generated token", "生成每个词元的时间"),
                Text("tokens so far", "已生成的词元"),
                Text("milliseconds", "毫秒"),
                [(name, curve(runs, kind, PLACES)) for kind, (name, _) in WRITERS.items()],
                low=0.0,
            )
        ],
    )


TOKEN_COST = Experiment(
    "token-time",
    Text("Is it faster at generating, too?", "生成时也更快吗？"),
    Text(
        "RNNs work in sequence, so both training and inference are slow; attention solves this.",
        "RNN 必须串行处理数据，所以训练和推理速度会比较慢；注意力机制解决了这个问题。",
    ),
    NOTE_003_SLOW,
    Text(
        f"Both models, {LAYERS} layers of width {WIDTH}, generate {GENERATED} tokens of one sentence on one "
        "thread; the Transformer keeps keys and values. The claim holds if it is clearly faster.",
        f"两种模型都是 {LAYERS} 层、宽 {WIDTH}，单线程为一个句子生成 {GENERATED} 个词元；Transformer 缓存键和值。"
        "如果它明显更快，算成立。",
    ),
    Text(
        "One sentence, small models, Python around every step: most of the time is not arithmetic.",
        "一个句子，小模型，每一步外面都是 Python：大部分时间并不在计算上。",
    ),
    (1, 2, 3),
    measure_tokens,
    conclude_tokens,
)
