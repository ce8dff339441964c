"""How well a model's alignment follows the words: on a planted corpus, and where human translators put tags.

    python -m benchmarks.alignment plant FOLDER [--pairs 20000]       writes train, valid and test with known links
    clearhead train --train FOLDER/train.src FOLDER/train.tgt --out RUN --minutes 2
    python -m benchmarks.alignment planted FOLDER MODEL …             alignment error rate on FOLDER/test
    python -m benchmarks.alignment tags DATA MODEL …                  DATA has test.tags.en and test.tags.de

Sources and reference targets are given; each target word belongs to the source word that its pieces look at most. Of
each MODEL there are two rows: the mean of all heads of the last decoder block but one, and the heads that the model
names, or that were found when its CTranslate2 form was made. What is measured is added to ALIGNMENT.md.
"""

import argparse
import random
import re
import string
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.machine import describe
from clearhead.checkpoint.model_folder import aligning_heads, find_model, model_options, read_config
from clearhead.convert.alignment_head import usual_heads
from clearhead.data.folders import load_tokenizers
from clearhead.data.tokenizer import BYTE_PIECES, Tokenizer
from clearhead.decoding.options import AligningHeads
from clearhead.engines.ct2_form import found_heads
from clearhead.engines.native import NativeEngine, open_native
from clearhead.model.options import TransformerOptions

HERE = Path(__file__).parent
WORDS = 2_000  # of the planted language
SHORTEST, LONGEST = 4, 12
MOVED = 0.25  # of the words stand behind the next one in the target
TAG = re.compile(r"<(/?)(\w+)>")
BYTES = {piece: bytes([value]) for value, piece in enumerate(BYTE_PIECES)}

Span = tuple[int, int]  # of bytes


class Planted(NamedTuple):
    """A pair, and the place of the source word of each target word."""

    source: list[str]
    target: list[str]
    origins: list[int]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    tasks = parser.add_subparsers(dest="task", required=True)
    plant_it = tasks.add_parser("plant")
    plant_it.add_argument("folder", type=Path)
    plant_it.add_argument("--pairs", type=int, default=20_000)
    for name in ("planted", "tags"):
        task = tasks.add_parser(name)
        task.add_argument("data", type=Path)
        task.add_argument("models", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.task == "plant":
        plant(arguments.folder, arguments.pairs)
        return
    measure = error_rate if arguments.task == "planted" else right_tags
    rows = []
    for model in arguments.models:
        folder = find_model(model)
        for name, heads in {"mean of the last block but one": None, **_own(folder)}.items():
            rows.append(
                f"| {arguments.task} | {model.name} | {name} | {measure(arguments.data, aligner(folder, heads))} |"
            )
            print(rows[-1], flush=True)
    page = HERE / "ALIGNMENT.md"
    about = ", ".join(f"{key} {value}" for key, value in describe().items())
    page.write_text("\n".join([page.read_text(encoding="utf-8").rstrip(), *rows, ""]), encoding="utf-8")
    print(about)


def _own(folder: Path) -> dict[str, AligningHeads]:
    config = read_config(folder)
    heads = aligning_heads(config) or found_heads(folder)
    options = model_options(config)
    if heads is None or (isinstance(options, TransformerOptions) and heads == usual_heads(options)):
        return {}
    which = "mean" if heads.head is None else f"head {heads.head}"
    return {f"{which} of block {heads.block}": heads}


# -- what is asked ---------------------------------------------------------------------------------------------------

Aligner = Callable[[Sequence[str], Sequence[str]], Iterator[tuple[list[Span], list[Span], np.ndarray]]]


def aligner(folder: Path, heads: AligningHeads | None) -> Aligner:
    """For each pair of texts the bytes that each source and target token stands for, and the weights (T, S)."""
    engine = NativeEngine(open_native(folder).model, heads=heads)
    tokenizers = load_tokenizers(folder)

    def align(sources: Sequence[str], targets: Sequence[str]) -> Iterator[tuple[list[Span], list[Span], np.ndarray]]:
        ids = [tokenizer.encode_many(texts) for tokenizer, texts in zip(tokenizers, (sources, targets), strict=True)]
        for source, target, weights in zip(*ids, engine.align(*ids), strict=True):
            yield spans(tokenizers[0], source), spans(tokenizers[1], target), weights[:-1, :-1]

    return align


def spans(tokenizer: Tokenizer, ids: list[int]) -> list[Span]:
    """Which bytes of the text each token stands for, by what the tokens before it say."""
    ends, said = [], b""
    for piece in tokenizer.pieces(ids):
        said += BYTES[piece] if piece in BYTES else piece.replace("\u2581", " ").encode()
        ends.append(len(said))
    blank = len(said) - len(said.lstrip())
    starts = [0, *ends[:-1]]
    return [(max(0, start - blank), max(0, end - blank)) for start, end in zip(starts, ends, strict=True)]


def words(text: str) -> list[Span]:
    """What stands between blanks."""
    return [(len(text[: m.start()].encode()), len(text[: m.end()].encode())) for m in re.finditer(r"\S+", text)]


def tokens_of(tokens: Sequence[Span], span: Span) -> list[int]:
    return [i for i, (start, end) in enumerate(tokens) if start < span[1] and span[0] < end]


# -- planted links ---------------------------------------------------------------------------------------------------


def plant(folder: Path, pairs: int) -> None:
    """Each source word has one target word, which stands behind the next one if it is one of those that move."""
    rng = random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    source_words, target_words = (
        ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 8))) for _ in range(WORDS)] for _ in range(2)
    )
    moves = [rng.random() < MOVED for _ in range(WORDS)]
    weights = [1 / (rank + 3) for rank in range(WORDS)]  # Zipf's law
    for name, count in (("train", pairs), ("valid", 500), ("test", 1_000)):
        lines: dict[str, list[str]] = {"src": [], "tgt": [], "links": []}
        for _ in range(count):
            chosen = rng.choices(range(WORDS), weights, k=rng.randint(SHORTEST, LONGEST))
            order = list(range(len(chosen)))
            place = 0
            while place + 1 < len(order):
                if moves[chosen[place]]:
                    order[place], order[place + 1] = order[place + 1], order[place]
                    place += 1
                place += 1
            lines["src"].append(" ".join(source_words[i] for i in chosen))
            lines["tgt"].append(" ".join(target_words[chosen[place]] for place in order))
            lines["links"].append(" ".join(map(str, order)))
        for ending, some in lines.items():
            (folder / f"{name}.{ending}").write_text("".join(f"{line}\n" for line in some), encoding="utf-8")


def error_rate(data: Path, align: Aligner) -> str:
    """1 - 2 |A ∩ S| / (|A| + |S|): each target word has one link in both (Och & Ney 2003)."""
    sources, targets, links = (
        (data / f"test.{ending}").read_text(encoding="utf-8").splitlines() for ending in ("src", "tgt", "links")
    )
    right = total = 0
    for source, target, origins, (s_tokens, t_tokens, weights) in zip(
        sources, targets, links, align(sources, targets), strict=True
    ):
        columns = [tokens_of(s_tokens, word) for word in words(source)]
        for word, origin in zip(words(target), origins.split(), strict=True):
            looked = weights[tokens_of(t_tokens, word)].sum(axis=0)
            right += int(np.argmax([looked[places].sum() for places in columns]) == int(origin))
            total += 1
    return f"AER {1 - right / total:.3f} ({total - right:,} of {total:,} words)"


# -- tags ------------------------------------------------------------------------------------------------------------


def right_tags(data: Path, align: Aligner) -> str:
    """Of the tags around one word on each side those whose source word leads to the tagged target word."""
    sides = [(data / f"test.tags.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "de")]
    cases = [[enclosed(line) for line in lines] for lines in sides]
    texts = [[text for text, _ in side] for side in cases]
    right = total = 0
    for (source, s_tags), (target, t_tags), (s_tokens, t_tokens, weights) in zip(*cases, align(*texts), strict=True):
        for key, s_span in s_tags.items():
            t_span = t_tags.get(key)
            if t_span is None or not is_word(source, s_span) or not is_word(target, t_span):
                continue
            total += 1
            looked = weights[:, tokens_of(s_tokens, s_span)].sum(axis=1)
            candidates = words(target)
            shares = [looked[tokens_of(t_tokens, word)].sum() for word in candidates]
            start, end = candidates[int(np.argmax(shares))]
            right += int(start < t_span[1] and t_span[0] < end)
    return f"{right:,} of {total:,} tags ({right / total:.3f})"


def enclosed(line: str) -> tuple[str, dict[tuple[str, int], Span]]:
    """The text without tags, and the bytes in each tag, by its name and how many of that name came before."""
    text, begun, found = "", dict[str, list[int]](), dict[tuple[str, int], Span]()
    last, count = 0, dict[str, int]()
    for match in TAG.finditer(line):
        text += line[last : match.start()]
        last = match.end()
        name = match[2]
        if not match[1]:
            begun.setdefault(name, []).append(len(text.encode()))
        elif begun.get(name):
            found[name, count.get(name, 0)] = begun[name].pop(), len(text.encode())
            count[name] = count.get(name, 0) + 1
    return text + line[last:], found


def is_word(text: str, span: Span) -> bool:
    inside = text.encode()[slice(*span)].decode()
    return len(inside.split()) == 1


if __name__ == "__main__":
    main()
