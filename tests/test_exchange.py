"""Out to CTranslate2 and Hugging Face and back in: what translates otherwise is never written."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from clearhead import exchange
from clearhead.checkpoint.manifest import MANIFEST, verify
from clearhead.checkpoint.model import load_model
from clearhead.cli import run
from clearhead.data.folders import load_tokenizers
from clearhead.decoding import DecodingOptions
from clearhead.engines.native import NativeEngine
from clearhead.errors import DAMAGED, DISK, MISSING, USAGE, UserError
from clearhead.exchange import export_model, import_model, parity
from tests.tiny_model import write_model

transformers = pytest.importorskip("transformers")
ctranslate2 = pytest.importorskip("ctranslate2")

from clearhead.convert import ctranslate2 as to_ct2  # noqa: E402
from clearhead.convert import marian  # noqa: E402
from tests.convert.marian_folders import SMALL, TEXTS, write_opus, write_subword_model  # noqa: E402
from tests.convert.variants import save_talkative  # noqa: E402

pytestmark = pytest.mark.slow  # many small runs of the whole

OPTIONS = DecodingOptions(beam=2, max_length=11, block_ngrams=1)


@pytest.fixture(autouse=True)
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity, "SENTENCES", ("the cat sees 2 dogs.", "我们"))
    monkeypatch.setattr(parity, "PIECE_TEXTS", 2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_subword_model(tmp_path_factory.mktemp("model") / "model", replace(SMALL, output_bias=True))


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_opus(tmp_path_factory.mktemp("opus") / "opus-mt-en-de")


def translated(folder: Path) -> list[str]:
    engine = NativeEngine(load_model(folder)[0])
    source, target = load_tokenizers(folder)
    return [target.decode(found[0].tokens).strip() for found in engine.translate(source.encode_many(TEXTS), OPTIONS)]


def test_words_that_are_never_said_are_listed_for_ctranslate2(tmp_path: Path) -> None:
    """Both sides of the comparison search among all words, however likely those are."""
    save_talkative(tmp_path / "model", unsaid="7 9-12")
    export_model(tmp_path / "model", tmp_path / "ct2", "ct2")
    assert (tmp_path / "ct2" / to_ct2.SAID).read_bytes().startswith(b"\t<pad> <s> </s> <unk> target4 target5")


def test_out_to_hugging_face_and_back_in_translates_the_same(model: Path, tmp_path: Path) -> None:
    export_model(model, tmp_path / "hf", "hf")
    import_model(tmp_path / "hf", tmp_path / "back")
    assert len(set(translated(model))) > 3
    assert translated(tmp_path / "back") == translated(model)
    verify(tmp_path / "hf", ["model.safetensors", "README.md"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "hf"]


@pytest.mark.slow
def test_in_from_opus_and_out_again(opus: Path, tmp_path: Path) -> None:
    import_model(opus, tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "hf", "hf")
    import_model(tmp_path / "hf", tmp_path / "back")
    assert translated(tmp_path / "back") == translated(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "ct2", "ct2")


def test_an_imported_model_can_be_trained_on(opus: Path, tmp_path: Path) -> None:
    import_model(opus, tmp_path / "model")
    for end in ("en", "de"):
        (tmp_path / f"text.{end}").write_text("".join(f"{text}\n" for text in TEXTS * 7), encoding="utf-8")
    text = [str(tmp_path / "text.en"), str(tmp_path / "text.de")]
    out = str(tmp_path / "out")
    sets = [f"--set=training.{option}" for option in ("steps=3", "processes=1", "threads=1", "tokens_per_batch=97")]
    command = ["train", "--train", *text, "--valid", *text, "--init-from", str(tmp_path / "model"), "--out", out, *sets]
    assert run(command) == 0
    before, after = (
        load_tokenizers(folder)[0].encode_many(TEXTS) for folder in (tmp_path / "model", Path(out, "model"))
    )
    assert before == after
    assert len(translated(Path(out, "model"))) == len(TEXTS)
    export_model(Path(out), tmp_path / "hf", "hf")


@pytest.mark.parametrize("quantization", ["int8", "float32"])
def test_out_to_ctranslate2(quantization: str, model: Path, tmp_path: Path) -> None:
    export_model(model, tmp_path / "ct2", "ct2", quantization)
    verify(tmp_path / "ct2", ["model.bin", "source.model", "README.md"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ct2"]
    readme = (tmp_path / "ct2" / "README.md").read_text(encoding="utf-8")
    assert "# en → de\n" in readme
    assert 'target = sentencepiece.SentencePieceProcessor("source.model")' in readme


def test_a_model_of_words_can_go_to_ctranslate2(tmp_path: Path) -> None:
    export_model(write_model(tmp_path / "model"), tmp_path / "ct2", "ct2", "float32")
    readme = (tmp_path / "ct2" / "README.md").read_text(encoding="utf-8")
    assert "Its tokenizer is source.json." in readme
    assert "sentencepiece" not in readme


@pytest.mark.slow
def test_the_readmes_example_runs(model: Path, tmp_path: Path) -> None:
    export_model(model, tmp_path / "ct2", "ct2")
    example = (tmp_path / "ct2" / "README.md").read_text(encoding="utf-8").split("```")[1].removeprefix("python\n")
    subprocess.run([sys.executable, "-c", example], check=True, cwd=tmp_path / "ct2", stdout=subprocess.DEVNULL)
    export_model(model, tmp_path / "hf", "hf")
    example = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8").split("```")[1].removeprefix("python\n")
    example = example.replace("this folder", str(tmp_path / "hf"))
    subprocess.run([sys.executable, "-c", example], check=True, capture_output=True)


def spoil(monkeypatch: pytest.MonkeyPatch, module: Any, function: str, change: Callable[[Any], Any]) -> None:
    """Let a step of the conversion give something else."""
    right = getattr(module, function)
    monkeypatch.setattr(module, function, lambda *inputs: change(right(*inputs)))


def with_one_matrix_turned(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    name = next(name for name in tensors if "decoder" in name and name.endswith(("fc2.weight", "outer.weight")))
    return {**tensors, name: -tensors[name]}


def test_a_wrong_weight_in_an_export_is_found(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, marian, "marian_tensors", with_one_matrix_turned)
    with pytest.raises(UserError, match=r"'the cat sees 2 dogs.' .*in clearhead and .*in transformers") as caught:
        export_model(model, tmp_path / "hf", "hf")
    assert (caught.value.code, caught.value.exit_code) == ("PARITY", DAMAGED)
    assert "nothing was written" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_weight_in_an_import_is_found(opus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, marian, "our_tensors", with_one_matrix_turned)
    with pytest.raises(UserError, match="the two sides disagree, so nothing was written"):
        import_model(opus, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_vocabulary_is_found(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(ids: dict[str, int]) -> dict[str, int]:
        return {**ids, "▁": ids["t"], "t": ids["▁"]}

    spoil(monkeypatch, marian, "_vocabulary", swapped)
    with pytest.raises(UserError, match=r"becomes|log-probabilities|reads"):
        export_model(model, tmp_path / "hf", "hf")


def test_a_wrong_number_in_ctranslate2_is_found(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(to_ct2, "LAYER_EPSILON", 0.5)
    with pytest.raises(UserError, match=r"in clearhead and .*in ctranslate2 in float32"):
        export_model(model, tmp_path / "ct2", "ct2")
    assert list(tmp_path.iterdir()) == []


class Stub:
    """A side that has learned its answers by heart."""

    def __init__(self, name: str, pieces: str = "a", said: str = "b", scores: tuple[float, float] = (-1, -2)) -> None:
        self.name, self.pieces, self.said, self.scores = name, pieces, said, scores

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        return [[self.pieces, text] for text in texts]

    def translate(self, texts: Sequence[str]) -> list[tuple[list[str], str]]:
        return [([self.said], f"{self.said} for {text}") for text in texts]

    def score(self, texts: Sequence[str], targets: Sequence[list[str]]) -> list[list[float]]:
        return [[self.scores[target[0] > "b"], -0.5] for _, target in zip(texts, targets, strict=True)]


SAMPLE = [("one", ["b"]), ("two", ["z"])]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Stub("theirs", pieces="x"), "'one' is cut into 'a one' in ours and 'x one' in theirs"),
        (Stub("theirs", said="c"), "'one' becomes 'b for one' in ours and 'c for one' in theirs"),
        (Stub("theirs", scores=(-1.002, -2)), "'one' has for 'b' the log-probabilities '-1.0000 -0.5000' in ours"),
        (Stub("theirs", scores=(-1, float("nan"))), "'two' has for 'z' the log-probabilities .*nan"),
    ],
)
def test_the_first_difference_is_named(other: Stub, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parity.check(Stub("ours"), other, [*SAMPLE, ("three", ["z"])], lambda _: None)


def test_what_rounding_decides_is_no_difference() -> None:
    parity.check(Stub("ours"), Stub("theirs", scores=(-1.0009, -2)), SAMPLE, lambda _: None)
    tied = (-1.0, -1.0005)
    parity.check(Stub("ours", scores=tied), Stub("theirs", said="c", scores=tied), SAMPLE, lambda _: None)


def test_other_text_for_the_same_pieces_is_a_difference() -> None:
    class Shouting(Stub):
        def translate(self, texts: Sequence[str]) -> list[tuple[list[str], str]]:
            return [(pieces, said.upper()) for pieces, said in super().translate(texts)]

    with pytest.raises(UserError, match="'one' reads 'b for one' in ours and 'B FOR ONE' in theirs"):
        parity.check(Stub("ours"), Shouting("theirs"), SAMPLE, lambda _: None)


def test_fewer_bits_may_be_a_little_off() -> None:
    parity.check_loosely(Stub("ours"), Stub("int8", scores=(-1.9, -2)), ["one", "two"])
    with pytest.raises(
        UserError, match=r"int8 gives the sample's tokens log-probabilities .*by 0.55 on average"
    ) as caught:
        parity.check_loosely(Stub("ours"), Stub("int8", scores=(-2.1, -2)), ["one", "two"])
    assert caught.value.exit_code == DAMAGED
    with pytest.raises(UserError, match="by nan"):
        parity.check_loosely(Stub("ours"), Stub("int8", scores=(float("nan"), -2)), ["one"])


def test_only_an_older_export_of_the_same_kind_is_replaced(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "hf"
    out.mkdir()
    export_model(model, out, "hf")
    export_model(model, out, "hf")
    (tmp_path / "file").touch()
    for taken in (model, tmp_path, tmp_path / "file"):
        before = sorted(path.name for path in taken.parent.rglob("*"))
        with pytest.raises(UserError) as caught:
            export_model(model, taken, "hf")
        assert (caught.value.code, caught.value.exit_code) == ("EXISTS", DISK)
        with pytest.raises(UserError):
            import_model(out, taken)
        assert sorted(path.name for path in taken.parent.rglob("*")) == before
    with pytest.raises(UserError, match="holds something else"):
        export_model(model, out, "ct2")
    load_model(model)


def test_what_a_killed_export_left_is_cleaned_up_by_the_next(model: Path, tmp_path: Path) -> None:
    left = tmp_path / ".tmp-clearhead-hf-dead"
    left.mkdir()
    export_model(model, tmp_path / "hf", "hf")
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_without_the_library_there_is_no_check_and_no_export(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "find_spec", lambda _: None)
    for form in ("hf", "ct2"):
        with pytest.raises(UserError, match=rf"is not installed.*pip install 'clearhead\[{form}\]'") as caught:
            export_model(model, tmp_path / "out", form)
        assert caught.value.exit_code == USAGE
    with pytest.raises(UserError, match=r"clearhead\[hf\]"):
        import_model(model, tmp_path / "out")


def test_the_command_line(model: Path, opus: Path, tmp_path: Path) -> None:
    assert run(["export", str(model), str(tmp_path / "hf"), "--to", "hf"]) == 0
    assert run(["import", str(opus), str(tmp_path / "model")]) == 0
    assert (tmp_path / "hf" / MANIFEST).exists()
    assert (tmp_path / "model" / MANIFEST).exists()
    with pytest.raises(UserError, match="--to is 'onnx'; expected ct2 or hf") as caught:
        run(["export", str(model), str(tmp_path / "x"), "--to", "onnx"])
    assert caught.value.exit_code == USAGE
    with pytest.raises(UserError, match="quantization is 'int3'") as caught:
        run(["export", str(model), str(tmp_path / "x"), "--to", "ct2", "--quantization", "int3"])
    assert caught.value.exit_code == USAGE
    with pytest.raises(UserError, match="nowhere does not exist") as caught:
        run(["export", str(tmp_path / "nowhere"), str(tmp_path / "x"), "--to", "hf"])
    assert caught.value.exit_code == MISSING
    with pytest.raises(UserError, match="nowhere does not exist") as caught:
        run(["import", str(tmp_path / "nowhere"), str(tmp_path / "x")])
    assert caught.value.exit_code == MISSING
