"""Do all engines say the same? Multi30k's Test2016 by ours, CTranslate2 and Hugging Face on one model.

    python -m benchmarks.parity RUN [--lines 1000]

Texts of the native engine, of CTranslate2 in float32 and int8, and of Hugging Face's `generate` on the exported model
(a post-norm one; else it is left out), all among all words, with length penalty mean and alpha 1; how their texts and
ours are scored by one and the same model; and whether a sentence alone gets the text that it gets among others.
"""

import argparse
import tempfile
from pathlib import Path

import torch

from benchmarks.machine import describe
from benchmarks.peers import Peer
from benchmarks.quality import DATA, HERE
from clearhead.checkpoint.model import load_model
from clearhead.checkpoint.model_folder import find_model, read_config
from clearhead.data.folders import load_tokenizers
from clearhead.data.tokenizer import Tokenizer
from clearhead.decoding import DecodingOptions
from clearhead.engines import Engine
from clearhead.engines.ct2 import Ct2Engine
from clearhead.engines.ct2_form import ct2_form
from clearhead.engines.native import NativeEngine
from clearhead.evaluation import score_translations
from clearhead.exchange import export_model


class Side:
    """An engine, and what it says of each line in each of the searches."""

    def __init__(self, engine: Engine, source: Tokenizer, target: Tokenizer) -> None:
        self.engine, self.source, self.target = engine, source, target

    def translate(self, lines: list[str], beam: int) -> list[str]:
        options = DecodingOptions(beam=beam, length_penalty="mean", alpha=1.0)
        found = self.engine.translate(self.source.encode_many(lines), options)
        return [self.target.decode(hypotheses[0].tokens) for hypotheses in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    folder = find_model(arguments.run)
    lines, references = (
        (DATA / "multi30k" / f"test_2016_flickr.{language}").read_text(encoding="utf-8").splitlines()[: arguments.lines]
        for language in ("en", "de")
    )
    tokenizers = load_tokenizers(folder)
    judge = NativeEngine(load_model(folder)[0])
    rows, alone = [], []
    with tempfile.TemporaryDirectory() as scratch:
        float32 = ct2_form(_copy(folder, Path(scratch) / "copy"), "float32")
        sides = {
            "native": Side(judge, *tokenizers),
            "ct2 float32": Side(Ct2Engine(float32, among_all=True), *tokenizers),
            "ct2 int8": Side(Ct2Engine(ct2_form(folder), among_all=True), *tokenizers),
        }
        said = {name: {beam: side.translate(lines, beam) for beam in (1, 5)} for name, side in sides.items()}
        if read_config(folder)["model"]["norm"] == "post":
            export_model(folder, Path(scratch) / "hf", "hf")
            with Peer("transformers_generate", [str(Path(scratch) / "hf"), "2"]) as peer:
                said["transformers"] = {beam: peer.translate(lines, beam).lines for beam in (1, 5)}
        for name, texts in said.items():
            rows += [_row(name, beam, texts[beam], said["native"][beam], lines, references, sides) for beam in texts]
        for name, side in sides.items():
            alone.append(_alone(name, side, lines, said[name][5]))
    page = "\n".join(
        [
            "# Do all engines say the same?",
            "",
            f"Written by `python -m benchmarks.parity`: {len(lines):,} lines of Test2016, en→de, "
            + ", ".join(f"{k} {v}" for k, v in describe().items())
            + ".",
            "",
            "| engine | search | same text as native | score where they differ | native's there | BLEU |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            "Scores are mean log-probabilities per token, by the native model in float32.",
            "",
            "| engine | a line alone = among the others (beam 5) | deterministic |",
            "|---|---|---|",
            *alone,
        ]
    )
    (HERE / "PARITY.md").write_text(page + "\n", encoding="utf-8")
    print(page)


def _row(
    name: str, beam: int, texts: list[str], ours: list[str], lines: list[str], references: list[str],
    sides: dict[str, Side],
) -> str:  # fmt: skip
    differ = [i for i in range(len(lines)) if texts[i] != ours[i]]
    same = f"{1 - len(differ) / len(lines):.1%}"
    bleu = score_translations(texts, references, "de").bleu
    means = [
        _mean_score(sides["native"], [lines[i] for i in differ], [some[i] for i in differ]) for some in (texts, ours)
    ]
    cells = [f"{mean:.4f}" for mean in means] if differ else ["–", "–"]
    return f"| {name} | {'greedy' if beam == 1 else f'beam {beam}'} | {same} | {cells[0]} | {cells[1]} | {bleu:.2f} |"


def _mean_score(judge: Side, lines: list[str], texts: list[str]) -> float:
    scores = judge.engine.score(judge.source.encode_many(lines), judge.target.encode_many(texts))
    means = [sum(some) / len(some) for some in scores]
    return sum(means) / max(1, len(means))


def _alone(name: str, side: Side, lines: list[str], together: list[str]) -> str:
    some = range(0, len(lines), 5)
    found = [side.translate([lines[i]], 5)[0] == together[i] for i in some]
    careful = _deterministic(side)
    strict = careful.translate(lines[:64], 5) == [careful.translate([line], 5)[0] for line in lines[:64]]
    return f"| {name} | {sum(found)} of {len(found)} | {'same' if strict else 'DIFFERS'} |"


def _deterministic(side: Side) -> Side:
    if isinstance(side.engine, NativeEngine):
        return Side(NativeEngine(side.engine.model, deterministic=True), side.source, side.target)
    assert isinstance(side.engine, Ct2Engine)
    return Side(Ct2Engine(side.engine.form, deterministic=True), side.source, side.target)


def _copy(folder: Path, to: Path) -> Path:
    """So that no float32 form is left in the model's own folder."""
    to.mkdir()
    for file in folder.iterdir():
        if file.is_file():
            (to / file.name).write_bytes(file.read_bytes())
    return to


if __name__ == "__main__":
    main()
