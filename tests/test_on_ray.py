"""The translator on a local Ray says what it says alone, row by row and in their order."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from clearhead.errors import MISSING, USAGE, UserError
from clearhead.on_ray import _Actor, translate_dataset
from clearhead.translator import load

from .tiny_model import WORDS, write_model

pytest.importorskip("ray", reason="Ray is not installed: pip install 'clearhead[ray]'")
pyarrow = pytest.importorskip("pyarrow")

TEXTS = [" ".join(WORDS[(row * k) % len(WORDS)] for k in range(1, 2 + row % 5)) for row in range(61)]

# Ray warns of what it does itself, and leaves files and sockets open until the process ends.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An actor sets it for its process."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("run") / "model").parent


@pytest.fixture(scope="module")
def ray_data() -> Iterator[Any]:
    """Two cores of this machine, no dashboard, and little memory; sockets need a short path."""
    import ray

    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder:
        environment = {
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]),
        }
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            ray.init(
                num_cpus=2,
                include_dashboard=False,
                _node_ip_address="127.0.0.1",
                object_store_memory=100 * 2**20,
                _temp_dir=folder,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
            ray.data.DataContext.get_current().enable_progress_bars = False
            try:
                yield ray.data
            finally:
                ray.shutdown()


def test_the_same_texts_in_their_order(ray_data: Any, model: Path) -> None:
    """Seven blocks on two actors, in batches that do not divide them."""
    dataset = ray_data.from_items([{"id": i, "text": text} for i, text in enumerate(TEXTS)], override_num_blocks=7)
    result = translate_dataset(dataset, model, actors=2, batch_size=5)
    assert result.context.execution_options.preserve_order
    assert not ray_data.DataContext.get_current().execution_options.preserve_order  # only where it was asked for
    found = result.take_all()
    assert [row["id"] for row in found] == list(range(len(TEXTS)))
    assert [row["text"] for row in found] == TEXTS
    assert [row["translation"] for row in found] == load(model).translate(TEXTS)


def test_a_text_file_as_in_the_example(ray_data: Any, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("".join(f"{text}\n" for text in TEXTS[:13]), encoding="utf-8")
    texts = ray_data.read_text(str(tmp_path / "a.en"))
    found = translate_dataset(texts, model, actors=1, beam=1).take_all()
    assert [row["translation"] for row in found] == load(model).translate(TEXTS[:13], beam=1)


# -- one actor, without Ray -----------------------------------------------------------------------------------------


def actor(model: Path, column: str = "text", into: str = "translation", engine: str = "auto") -> _Actor:
    return _Actor(str(model), column, into, threads=1, beam=None, engine=engine)


def test_other_columns_and_rows_without_text(model: Path) -> None:
    table = pyarrow.table({"en": [TEXTS[0], None, ""], "zh": ["old", "old", "old"]})
    assert actor(model, "en", "zh")(table).to_pylist() == [
        {"en": TEXTS[0], "zh": load(model).translate(TEXTS[:1])[0]},
        {"en": None, "zh": None},
        {"en": "", "zh": ""},
    ]


def test_no_such_column(model: Path) -> None:
    with pytest.raises(ValueError, match="the rows have no column 'text'; expected one of theirs: en"):
        actor(model)(pyarrow.table({"en": ["abc"]}))


def test_a_model_that_cannot_be_loaded_is_said_in_words_that_ray_can_carry(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"clearhead: error\[E_MISSING\]: .* does not exist"):
        actor(tmp_path / "nothing")


def test_no_such_model_is_said_before_there_are_actors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist") as error:
        translate_dataset(cast(Any, None), tmp_path / "nothing")
    assert error.value.exit_code == MISSING


def test_without_ray(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(UserError, match=r"Ray is not installed: pip install 'clearhead\[ray\]'") as error:
        translate_dataset(cast(Any, None), model)
    assert error.value.exit_code == USAGE
