"""The recipe's pictures: the same seed draws the same, and nothing of the test is seen in training."""

import json
import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from clearhead.data.dates import SPELLINGS, is_held_out, spell
from clearhead.data.fonts import FOLDERS, Font, FontShares, find_fonts, font_shares, legible
from clearhead.data.images import read_image
from clearhead.data.options import DataOptions
from clearhead.data.pictures import CHARACTERS, LONGEST, PictureOptions, draw, main, random_line, write_pictures
from clearhead.errors import MISSING, UserError

FEW = PictureOptions(train=7, valid=3, test=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A font of every maker that this machine has: looking at all of them takes seconds."""
    folder = tmp_path_factory.mktemp("fonts")
    for font in {font.maker: font for font in find_fonts(FOLDERS)}.values():
        (folder / font.path.name).symlink_to(font.path)
    return folder


@pytest.fixture(scope="module")
def fonts(folder: Path) -> FontShares:
    try:
        return font_shares(CHARACTERS, [folder])
    except UserError as error:
        pytest.skip(f"too few fonts: {error}")


def test_no_maker_is_in_two_shares(fonts: FontShares, folder: Path) -> None:
    makers = [{font.maker for font in some} for some in (fonts.train, fonts.valid, fonts.test)]
    assert all(makers)
    assert sum(map(len, makers)) == len(set.union(*makers))
    assert fonts == font_shares(CHARACTERS, [folder])


def test_pictures_are_lines_of_the_height_and_the_same_every_time(fonts: FontShares, tmp_path: Path) -> None:
    for folder in ("once", "again"):
        manifests = write_pictures(tmp_path / folder, FEW, fonts)
        assert [path.name for path in manifests] == ["train.tsv", "valid.tsv", "test.tsv"]
    rows = [line.split("\t") for line in manifests[0].read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 7
    for name, text in rows:
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        steps = read_image(tmp_path / "once" / name, DataOptions())
        assert steps.shape[0] >= len(text)  # a character is wider than a patch
        assert steps.shape[1] == 4 * 32
    about = json.loads((tmp_path / "once" / "pictures.json").read_text(encoding="utf-8"))
    assert about["options"]["train"] == 7
    assert set(about["fonts"]["test"]) == {font.family for font in fonts.test}


def test_what_is_drawn_is_the_text(fonts: FontShares) -> None:
    plain = PictureOptions(degrees=0, stretch=0, margin=0.02, blur=0, noise=0)
    for font in (fonts.train[0], fonts.test[-1]):
        eight, one = (
            np.asarray(draw(text, font.path, np.random.default_rng(3), plain), float) for text in ("888", "111")
        )
        darkness = [(picture.max() - picture).sum() / np.ptp(picture) for picture in (eight, one)]
        assert darkness[0] > 1.2 * darkness[1]
        wider = np.asarray(draw("888888", font.path, np.random.default_rng(3), plain))
        assert 1.9 < wider.shape[1] / eight.shape[1] < 2.1


def test_days_of_the_test_are_not_trained_on() -> None:
    spelled = {
        held_out: {random_line(np.random.default_rng([7, place]), held_out) for place in range(300)}
        for held_out in (False, True)
    }
    for held_out, lines in spelled.items():
        assert all(len(line) <= LONGEST for line in lines)
        days = [date.fromisoformat(line[-10:]) for line in lines if line[-6:-5] == "-" and line[-3] == "-"]
        assert days
        assert all(is_held_out(day) == held_out for day in days)


def test_the_characters_are_those_of_all_lines() -> None:
    days = [date(2026, month, day) for month in range(1, 13) for day in range(1, 29)]
    lines = [spell(day, spelling) for day in days for spelling in range(len(SPELLINGS))]
    seen = {character for line in lines if len(line) <= LONGEST for character in line if character.isalnum()}
    assert "".join(sorted(seen)) == CHARACTERS


def test_symbols_and_ornaments_are_left_out(fonts: FontShares, tmp_path: Path) -> None:
    some = [*fonts.train, *fonts.valid, *fonts.test][:7]
    odd = next((font for font in find_fonts(FOLDERS) if font.family in ("D050000L", "Standard Symbols PS")), None)
    assert legible([*some, odd] if odd else some, CHARACTERS) == some
    assert legible([], CHARACTERS) == []
    (tmp_path / "broken.ttf").write_bytes(b"\0\1\0\0 no font")
    shutil.copy(some[0].path, tmp_path / "good.TTF")
    assert [font.path.name for font in find_fonts([tmp_path])] == ["good.TTF"]


def test_too_few_fonts_are_said_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(UserError, match=r"found fonts of 0 makers \(none\).*expected at least 4.*apt-get") as caught:
        font_shares(CHARACTERS, [tmp_path])
    assert caught.value.exit_code == MISSING
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(UserError, match="DejaVu, Liberation and Lato"):
        font_shares(CHARACTERS, [tmp_path])


def test_a_maker_is_the_first_word_of_a_family() -> None:
    assert Font(Path("a.ttf"), "DejaVu Sans Mono").maker == "DejaVu"


def test_the_command_writes_manifests(
    fonts: FontShares, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clearhead.data.pictures.font_shares", lambda _: fonts)
    assert main([str(tmp_path), "--train", "3", "--valid", "2", "--test", "2", "--noise", "0"]) == 0
    out = capsys.readouterr()
    assert out.out.split() == [str(tmp_path / f"{name}.tsv") for name in ("train", "valid", "test")]
    assert "test: " in out.err
