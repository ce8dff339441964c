"""Pictures as patches: put together again they are the picture; what is no usable picture is said, file by file."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from clearhead.data.images import (
    MOST_STEPS,
    PLACE_FEATURES,
    grid,
    image_features,
    patch_names,
    patches,
    places,
    read_image,
)
from clearhead.data.options import DataOptions
from clearhead.errors import UserError

COLUMNS = DataOptions(image_height=7, patch_width=3)
GRID = DataOptions(image_height=15, patch_height=5, patch_width=3)


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (height, width), np.uint8)


def saved(path: Path, pixels: np.ndarray) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def together(steps: np.ndarray, options: DataOptions) -> np.ndarray:
    """The picture, patch by patch: each is put where `patch_names` says."""
    high, wide = options.patch_rows, options.patch_width
    rows = options.image_height // high
    picture = np.full((options.image_height, len(steps) // rows * wide), np.nan, np.float32)
    for patch, name in zip(steps, patch_names(len(steps), 1, options), strict=True):
        across = name.rpartition("x")[2].split("–")
        down = name.removeprefix("y").partition(",")[0].split("–") if rows > 1 else ("0", str(high))
        picture[int(down[0]) : int(down[1]), int(across[0]) : int(across[1])] = patch[: high * wide].reshape(high, wide)
    return picture


@pytest.mark.parametrize("options", [COLUMNS, GRID])
@pytest.mark.parametrize("width", [1, 3, 11, 12])
def test_patches_put_together_are_the_picture(options: DataOptions, width: int) -> None:
    pixels = noise(options.image_height, width).astype(np.float32)
    steps = patches(pixels, options)
    assert steps.shape == (np.prod(grid(width, options)), image_features(options))
    assert steps.dtype == np.float32
    picture = together(steps, options)
    np.testing.assert_array_equal(picture[:, :width], pixels)
    np.testing.assert_array_equal(picture[:, width:], np.repeat(pixels[:, -1:], picture.shape[1] - width, axis=1))


def test_patches_that_are_seen_as_one_have_one_name() -> None:
    assert patch_names(5, 2, COLUMNS) == ["x0–6", "x6–12", "x12–15"]
    assert patch_names(6, 1, GRID)[:3] == ["y0–5,x0–3", "y0–5,x3–6", "y5–10,x0–3"]


def test_every_patch_of_a_grid_knows_its_place() -> None:
    steps = patches(noise(15, 31).astype(np.float32), GRID)
    assert len(np.unique(steps[:, -PLACE_FEATURES:].round(5), axis=0)) == len(steps) == 3 * 11
    wider = places(3, 13).reshape(3, 13, -1)[:, :11]  # a patch at the same place of another picture is told the same
    np.testing.assert_allclose(places(3, 11).reshape(3, 11, -1), wider)
    assert image_features(GRID) == 5 * 3 + PLACE_FEATURES
    assert image_features(COLUMNS) == 7 * 3


@pytest.mark.parametrize("ending", ["png", "pgm", "bmp", "tiff", "webp", "gif"])
def test_formats_without_loss_are_read_alike(ending: str, tmp_path: Path) -> None:
    pixels = noise(7, 13)
    path = tmp_path / f"a.{ending}"
    Image.fromarray(pixels).save(path, lossless=True) if ending == "webp" else saved(path, pixels)
    expected = (pixels - pixels.mean()) / pixels.std()
    np.testing.assert_allclose(together(read_image(path, COLUMNS), COLUMNS)[:, :13], expected, atol=1e-5)


def test_a_picture_is_scaled_to_its_height_and_brightness_does_not_matter(tmp_path: Path) -> None:
    pixels = np.kron(noise(7, 11), np.ones((5, 5), np.uint8))
    steps = read_image(saved(tmp_path / "a.png", pixels // 2), COLUMNS)
    assert steps.shape == (4, 21)
    brighter = read_image(saved(tmp_path / "b.png", pixels // 2 + 101), COLUMNS)
    np.testing.assert_allclose(steps, brighter, atol=0.05)
    assert abs(steps.mean()) < 0.2
    assert steps.tobytes() == read_image(tmp_path / "a.png", COLUMNS).tobytes()


def test_a_blank_picture_is_nothing_but_zeros(tmp_path: Path) -> None:
    assert not read_image(saved(tmp_path / "a.png", np.full((7, 13), 201, np.uint8)), COLUMNS).any()


def test_colour_transparency_depth_and_turned_cameras(tmp_path: Path) -> None:
    grey = np.where(noise(7, 13) > 127, 0, 255).astype(np.uint8)
    expected = read_image(saved(tmp_path / "grey.png", grey), COLUMNS)
    hidden = np.stack([np.zeros_like(grey)] * 3 + [255 - grey], axis=-1)  # black ink, nothing where it is white
    saved(tmp_path / "transparent.png", hidden)
    saved(tmp_path / "colour.png", np.stack([grey] * 3, axis=-1))
    saved(tmp_path / "deep.png", grey.astype(np.uint16) * 257)
    palette = Image.fromarray(grey).convert("P")
    palette.save(
        tmp_path / "palette.png", transparency=palette.getpixel((int(grey.argmax() % 13), int(grey.argmax() // 13)))
    )
    turned = Image.fromarray(np.rot90(grey).copy())
    exif = turned.getexif()
    exif[0x0112] = 6  # the camera was turned: show it clockwise by a quarter
    turned.save(tmp_path / "turned.png", exif=exif)
    for name in ("transparent", "colour", "deep", "palette", "turned"):
        np.testing.assert_allclose(read_image(tmp_path / f"{name}.png", COLUMNS), expected, atol=1e-5, err_msg=name)


def refusal(path: Path) -> str:
    with pytest.raises(ValueError, match="it ") as caught:
        read_image(path, COLUMNS)
    return str(caught.value)


def test_what_is_no_picture_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("P7 but not quite")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "script.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 7 7\n")
    for path in tmp_path.iterdir():
        assert refusal(path) == "it is no picture, has no pixels, or is broken where it begins"


def test_the_disk_speaks_for_itself(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_image(tmp_path / "none.png", COLUMNS)
    with pytest.raises(IsADirectoryError):
        read_image(tmp_path, COLUMNS)


@pytest.mark.parametrize("ending", ["png", "jpeg", "pgm", "bmp"])
def test_a_picture_that_is_cut_off_is_broken_wherever_it_ends(ending: str, tmp_path: Path) -> None:
    whole = saved(tmp_path / f"whole.{ending}", noise(31, 37)).read_bytes()
    for share in (0.2, 0.5, 0.9):
        part = tmp_path / f"part.{ending}"
        part.write_bytes(whole[: int(share * len(whole))])
        assert refusal(part).startswith(("it is broken (", "it is no picture, has no pixels"))


def test_a_damaged_picture_is_broken(tmp_path: Path) -> None:
    damaged = bytearray(saved(tmp_path / "a.png", noise(31, 37)).read_bytes())
    damaged[101:107] = b"\0" * 6
    (tmp_path / "a.png").write_bytes(bytes(damaged))
    assert refusal(tmp_path / "a.png").startswith("it is broken (")


def test_a_moving_picture_is_refused(tmp_path: Path) -> None:
    frames = [Image.fromarray(noise(7, 13) // n) for n in (1, 2, 3)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert refusal(tmp_path / "a.gif") == "it has 3 pictures, not one"


def test_a_picture_with_fractions_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "a.tiff", noise(7, 13).astype(np.float32))
    with pytest.raises(ValueError, match="its pixels have fractions"):
        read_image(tmp_path / "a.tiff", COLUMNS)


def test_a_picture_without_pixels_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pgm").write_bytes(b"P5 0 7 255\n")
    (tmp_path / "b.gif").write_bytes(b"GIF89a\0\0\7\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\0\0\7\0\0\2\2D\1\0;")
    assert all("has no pixels" in refusal(path) for path in tmp_path.iterdir())


@pytest.mark.parametrize("times", [1, 3])
def test_a_picture_with_too_many_pixels_is_refused_before_it_is_decoded(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 31 * 37 // times - 1)  # Pillow itself warns, then refuses
    expected = f"it is too large: at most {31 * 37 // times - 1:,} pixels can be read"
    assert refusal(saved(tmp_path / "a.png", noise(31, 37))).startswith(expected)


def test_a_picture_that_would_become_too_long_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", np.zeros((1, MOST_STEPS), np.uint8))
    assert f"it is {MOST_STEPS} × 1 pixels, 38,230 patches; at most 16,384 can be read" in refusal(path)


def test_pillow_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match=r"pip install 'clearhead\[image\]'"):
        read_image(tmp_path / "a.png", COLUMNS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_height": 0}, "image_height is 0; expected 1 to 1024"),
        ({"patch_width": 1025}, "patch_width is 1025"),
        ({"patch_height": 5}, "patch_height is 5; expected a divisor of image_height, which is 32"),
        ({"patch_height": 0}, "patch_height is 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataOptions(**options)  # type: ignore[arg-type]
