"""Operators are counted by kind, and shares are of the whole."""

import pytest

from benchmarks.profile import KINDS, Operator, kind_of, section


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::addmm", "matrix products"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "matrix products"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("aten::_fused_adam_", "optimizer"),
        ("aten::native_layer_norm", "norms"),
        ("aten::_log_softmax", "loss and softmax"),
        ("_FusedLoss", "loss and softmax"),
        ("aten::index_select", "copies"),
        ("aten::expand", "views"),
        ("aten::topk", "choosing"),
        ("aten::add", "rest"),
    ],
)
def test_every_operator_has_a_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind
    assert kind in {*KINDS, "rest"}


def test_shares_are_of_the_whole() -> None:
    text = section(
        "A step", [Operator("aten::mm", 0.006, 3), Operator("aten::add", 0.003, 5), Operator("mm", 0.001, 1)]
    )
    assert "**A step**: 10 ms in operators. By kind: matrix products 70%, rest 30%." in text
    assert "| `aten::mm` | 6.0 | 60% | 3 |" in text
