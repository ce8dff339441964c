"""The planted trace is what it says: its maps, its vectors and what it planted agree with each other."""

from typing import Any

import numpy as np
import pytest

from tests.inspection.planted import HEAD, LAYER, PLANTED, SOURCE, TARGET, planted_trace, softmax, unpacked


def the_map(trace: dict[str, Any], kind: str, layer: int, head: int) -> Any:
    return unpacked(next(one for one in trace["attention"] if (one["kind"], one["layer"]) == (kind, layer)))[head]


def test_the_planted_head_reads_what_was_planted() -> None:
    trace = planted_trace()
    assert the_map(trace, "cross", LAYER, HEAD).argmax(-1).tolist() == PLANTED
    assert (len(SOURCE) + 1, len(TARGET) + 1) == the_map(trace, "cross", LAYER, HEAD).shape[::-1]


def test_rows_sum_to_one() -> None:
    for one in planted_trace()["attention"]:
        np.testing.assert_allclose(unpacked(one).sum(-1), 1, atol=1e-12)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_vectors_of_a_head_give_its_map_and_its_output(which: int) -> None:
    trace = planted_trace(seed=5)
    detail = trace["head_detail"][which]
    q, k, v, x = (unpacked(detail[name]).astype(float) for name in "qkvx")
    memory = unpacked(detail["memory"]) if detail["memory"] else x
    np.testing.assert_allclose(q, x @ unpacked(detail["w_q"]).T + unpacked(detail["b_q"]), atol=2e-5)
    np.testing.assert_allclose(k, memory @ unpacked(detail["w_k"]).T + unpacked(detail["b_k"]), atol=1e-5)
    scores = q @ k.T * detail["scale"]
    if detail["mask"] == "causal":
        scores = np.where(np.tril(np.ones_like(scores, bool)), scores, -np.inf)
    weights = softmax(scores)
    np.testing.assert_allclose(weights @ v, unpacked(detail["out"]), atol=1e-5)
    shown = the_map(trace, detail["kind"], detail["layer"], detail["head"])
    assert abs(weights - shown).max() <= trace["limits"]["quantisation_max_error"]
