"""The translator on Ray Data, for corpora that need a cluster: a pool of actors, each with the model loaded once.

    import ray
    from clearhead.on_ray import translate_dataset

    texts = ray.data.read_text("corpus/*.en")  # a column `text`
    translate_dataset(texts, "my-run", actors=8, threads=2).write_parquet("corpus.de")

Needs `pip install 'clearhead[ray]'`. Every machine must see the model under the same path. Ray's read_text leaves empty
lines out and also ends lines at U+2028; where line numbers matter, use `clearhead translate --shard`.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.checkpoint.model_folder import find_model
from clearhead.errors import USAGE, UserError
from clearhead.translator import load

if TYPE_CHECKING:
    from ray.data import Dataset

Table = Any  # pyarrow's, which has no types


def translate_dataset(
    dataset: "Dataset",
    model: str | Path,
    *,
    column: str = "text",
    into: str = "translation",
    actors: int = 2,
    threads: int = 1,  # and cores that each actor asks Ray for
    batch_size: int = 1024,  # rows; the more, the better they can be sorted by length
    beam: int | None = None,
    engine: str = "auto",
) -> "Dataset":
    """The dataset with one more column, the translation of `column`, and its rows in their order.

    A row without a text (null) gets none. Nothing runs until the result is used.
    """
    try:
        from ray.data import ActorPoolStrategy
    except ImportError as error:
        raise UserError("NO_RAY", "Ray is not installed: pip install 'clearhead[ray]'", USAGE) from error
    folder = find_model(Path(model)).resolve()  # a mistyped path is answered here, not by an actor
    result = dataset.map_batches(
        _Actor,
        fn_constructor_args=(str(folder), column, into, threads, beam, engine),
        compute=ActorPoolStrategy(size=actors),
        num_cpus=threads,
        batch_size=batch_size,
        batch_format="pyarrow",
    )
    result.context.execution_options.preserve_order = True
    return result


class _Actor:
    """One translator, in a process of Ray's."""

    def __init__(self, model: str, column: str, into: str, threads: int, beam: int | None, engine: str) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # before torch is loaded, which reads it
        self._column, self._into, self._beam = column, into, beam
        try:
            self._translator = load(model, engine)
        except UserError as error:  # has no way through Ray
            raise RuntimeError(error.line()) from None

    def __call__(self, table: Table) -> Table:
        import pyarrow  # type: ignore[import-untyped]

        if self._column not in table.column_names:
            found = ", ".join(table.column_names)
            raise ValueError(f"the rows have no column {self._column!r}; expected one of theirs: {found}")
        texts = table.column(self._column).to_pylist()
        asked = [place for place, text in enumerate(texts) if text is not None]
        results: list[str | None] = [None] * len(texts)
        for place, text in zip(asked, self._translator.translate([texts[i] for i in asked], self._beam), strict=True):
            results[place] = text
        values = pyarrow.array(results, pyarrow.string())
        if self._into in table.column_names:
            return table.set_column(table.column_names.index(self._into), self._into, values)
        return table.append_column(self._into, values)
