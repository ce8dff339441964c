"""A model that reads pictures, by options alone: letters that are patterns of bars, drawn here without any font."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from clearhead.cli import run
from clearhead.config import Flags, make_request
from clearhead.errors import BAD_DATA, MISSING, OK, exit_code_of
from clearhead.training.run import train

pytestmark = pytest.mark.slow

LETTERS = "abcdefg"
LONGEST = 5
HIGH, WIDE = 8, 6  # pixels of a letter
SETS = [
    "task=image", f"data.image_height={HIGH}", "data.tokenizer=characters",
    "model.width=64", "model.heads=4", "model.feed_forward=128", "model.encoder_blocks=2", "model.decoder_blocks=2",
    "model.dropout=0", "training.steps=311", "training.tokens_per_batch=512", "training.peak_rate=0.004",
    "training.warmup=31", "training.label_smoothing=0", "training.validate_every=311", "training.decode_pairs=3",
    "training.processes=1", "training.threads=1", "training.precision=float32", "training.average=1",
]  # fmt: skip
Command = Callable[..., tuple[int, str, str]]


def picture(word: str, rng: np.random.Generator) -> Image.Image:
    """A letter is which of its three bars are dark."""
    pixels = np.full((HIGH, WIDE * len(word)), 230.0)
    for place, letter in enumerate(word):
        bits = LETTERS.index(letter) + 1
        for bar in range(3):
            if bits >> bar & 1:
                pixels[3 * bar : 3 * bar + 2, WIDE * place + 1 : WIDE * (place + 1) - 1] = 30
    pixels += rng.normal(0, 13, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def write_pictures(folder: Path, name: str, words: list[str]) -> Path:
    rng = np.random.default_rng(len(words))
    (folder / name).mkdir()
    lines = []
    for number, word in enumerate(words):
        picture(word, rng).save(folder / name / f"{number}.png")
        lines.append(f"{name}/{number}.png\t{word}\n")
    manifest = folder / f"{name}.tsv"
    manifest.write_text("".join(lines), encoding="utf-8")
    return manifest


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Unseen words are seen in no picture before they are read."""
    rng = random.Random(7)
    words = list({"".join(rng.choices(LETTERS, k=rng.randint(1, LONGEST))) for _ in range(1400)})
    words.sort(key=lambda word: (len(word) > 2, word[::-1]))  # short ones are all seen
    unseen = words[150::7][:53]
    folder = tmp_path_factory.mktemp("pictures")
    seen = [word for word in words if word not in unseen]
    return [
        write_pictures(folder, name, some) for name, some in (("train", seen), ("valid", seen[::31]), ("test", unseen))
    ]


COLUMNS = ["data.patch_width=2", "model.strides=1"]
GRID = ["data.patch_width=3", "data.patch_height=4"]


@pytest.fixture(scope="module", params=[COLUMNS, GRID], ids=["columns", "grid"])
def folder(request: pytest.FixtureRequest, manifests: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    flags = Flags(manifests[:1], manifests[1:2])
    assert train(make_request(None, flags, [*SETS, *request.param]), out) == 0
    return out


@pytest.fixture
def clearhead(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = exit_code_of(lambda: run(list(arguments)))
        return (code, *capsys.readouterr())

    return call


def test_unseen_words_are_read_without_a_mistake(folder: Path, manifests: list[Path], clearhead: Command) -> None:
    rows = [line.split("\t") for line in manifests[2].read_text(encoding="utf-8").splitlines()]
    files = [str(manifests[2].parent / name) for name, _ in rows]
    code, out, err = clearhead("transcribe", str(folder), *files)
    assert (code, err) == (OK, "")
    assert out.splitlines() == [f"{file}\t{word}" for file, (_, word) in zip(files, rows, strict=True)]


def test_evaluation_finds_no_error(folder: Path, manifests: list[Path], clearhead: Command) -> None:
    code, out, _ = clearhead("evaluate", str(folder), str(manifests[2]), "--json")
    found = json.loads(out)
    assert code == OK
    assert (found["files"], found["cer"], found["exact_match"]) == (53, 0, 1)


def test_a_look_inside_names_the_places_of_the_picture(
    folder: Path, manifests: list[Path], clearhead: Command, tmp_path: Path
) -> None:
    name, word = manifests[2].read_text(encoding="utf-8").splitlines()[0].split("\t")
    path = str(manifests[2].parent / name)
    code, _, err = clearhead("inspect", str(folder), path, "--json", str(tmp_path / "a.json"))
    assert code == OK, err
    trace = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    labels = [token["text"] for token in trace["source"]["tokens"]]
    width = WIDE * len(word)
    is_grid = labels[0].startswith("y")
    assert labels[0] == ("y0–4,x0–3" if is_grid else "x0–4")
    assert labels[-1] == (f"y4–8,x{width - 3}–{width}" if is_grid else f"x{(width - 1) // 4 * 4}–{width}")
    assert "".join(token["text"] for token in trace["target"]["tokens"][1:-1]) == word


def test_a_picture_that_cannot_be_read_is_said(folder: Path, clearhead: Command, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no picture")
    code, out, err = clearhead("transcribe", str(folder), str(tmp_path / "a.png"))
    assert (code, out) == (BAD_DATA, "")
    assert f"cannot read {tmp_path / 'a.png'}: it is no picture" in err
    code, _, err = clearhead("transcribe", str(folder), str(tmp_path / "b.png"))
    assert code == MISSING
    assert f"there is no file {tmp_path / 'b.png'}; expected a picture" in err


def test_a_broken_picture_is_named_with_its_line(manifests: list[Path], clearhead: Command, tmp_path: Path) -> None:
    folder = manifests[0].parent
    (folder / "broken.png").write_bytes((folder / "train" / "3.png").read_bytes()[:99])
    manifest = folder / "broken.tsv"
    lines = manifests[0].read_text(encoding="utf-8").splitlines()
    manifest.write_text("\n".join([*lines[:12], "broken.png\tabc", *lines[12:]]) + "\n", encoding="utf-8")
    sets = [part for one in SETS for part in ("--set", one)]
    code, _, err = clearhead("train", "--train", str(manifest), "--out", str(tmp_path / "run"), *sets)
    assert code == BAD_DATA
    assert f"cannot read {folder / 'broken.png'} (line 13 of {manifest}): it is broken (" in err
