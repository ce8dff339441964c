"""Arrays and tables of numbers: the same numbers from every kind of file, and nothing else from any."""

from pathlib import Path

import numpy as np
import pytest

from clearhead.data.options import DataOptions
from clearhead.data.readers import read_features
from clearhead.data.series import read_series
from clearhead.errors import UserError

SERIES = DataOptions(task="series")
NUMBERS = np.array([[1.5, -2.0], [3.0, 4e3], [0.25, 7.0]])


@pytest.mark.parametrize(
    "text", ["1.5,-2\n3,4000\n0.25,7\n", "a;b\n1.5;-2\n3;4e3\n0.25;7", "1.5\t-2\r\n3\t4e3\r\n.25\t7\r\n"]
)
def test_tables_of_all_kinds_are_the_array(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    np.save(tmp_path / "a.npy", NUMBERS)
    for name in ("a.csv", "a.npy"):
        found = read_series(tmp_path / name, SERIES)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, NUMBERS)


def test_one_column_is_one_feature(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffvalue\n1\n2\n3\n", encoding="utf-8")
    np.save(tmp_path / "a.npy", np.arange(1, 4))
    for name in ("a.csv", "a.npy"):
        np.testing.assert_array_equal(read_series(tmp_path / name, SERIES), [[1], [2], [3]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2\n3\n", "its row 2 has 1 numbers, the first has 2"),
        ("1,2\n3,x\n", "its row 2 has something that is no number"),
        ("a,b\n", "it has no numbers"),
        ("", "it has no numbers"),
        ("1,2\n3,nan\n", "numbers that are not finite"),
    ],
)
def test_a_wrong_table_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=said):
        read_features(tmp_path / "a.csv", SERIES)


def test_bytes_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe1")
    with pytest.raises(UserError, match=r"no UTF-8 text; expected a \.npy or CSV file"):
        read_features(tmp_path / "a.csv", SERIES)


@pytest.mark.parametrize("shape", [(2, 3, 5), (0, 3), ()])
def test_other_shapes_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "a.npy", np.zeros(shape))
    with pytest.raises(UserError, match=r"it has the shape .*, not steps × features"):
        read_features(tmp_path / "a.npy", SERIES)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="cannot read"):
        read_features(tmp_path / "a.npy", SERIES)
    np.save(tmp_path / "b.npy", np.array(["text"]))
    with pytest.raises(UserError, match="no plain array of real numbers"):
        read_features(tmp_path / "b.npy", SERIES)
