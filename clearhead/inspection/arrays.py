"""Arrays as JSON: base64 of their numbers, row by row, in as few bytes as their use allows."""

import base64
from typing import Any

import numpy as np

TYPES: dict[str, Any] = {"u8": "<u1", "u16": "<u2", "f16": "<f2", "f32": "<f4"}


def packed(array: np.ndarray, encoding: str) -> dict[str, Any]:
    """{"shape", "enc", "data"}."""
    data = np.ascontiguousarray(array, dtype=TYPES[encoding])
    return {"shape": list(array.shape), "enc": encoding, "data": base64.b64encode(data.tobytes()).decode()}


def unpacked(packed: dict[str, Any]) -> np.ndarray:
    """The array that `packed` or `weights_as_bytes` wrote, with the scale it names."""
    array = np.frombuffer(base64.b64decode(packed["data"]), TYPES[packed["enc"]]).reshape(packed["shape"])
    return array * packed["scale"] if "scale" in packed else array


def weights_as_bytes(weights: np.ndarray) -> np.ndarray:
    """Rows that sum to one as bytes that sum to exactly 255: those nearest to the next byte are rounded up."""
    exact = weights.astype(np.float64) * 255 / weights.sum(axis=-1, keepdims=True)
    whole = np.floor(exact)
    missing = np.rint(255 - whole.sum(axis=-1, keepdims=True))
    rank = np.argsort(np.argsort(whole - exact, axis=-1, kind="stable"), axis=-1, kind="stable")
    return (whole + (rank < missing)).astype(np.uint8)


def packed_weights(weights: np.ndarray) -> dict[str, Any]:
    """One byte per weight; at most 1/255 off, and each row still sums to one."""
    return {**packed(weights_as_bytes(weights), "u8"), "scale": 1 / 255}


def packed_top(weights: np.ndarray, k: int) -> dict[str, Any]:
    """Of each row (…, K) only the k largest weights with their places, and the sum of the rest."""
    k = min(k, weights.shape[-1])
    places = np.argsort(-weights, axis=-1, kind="stable")[..., :k]
    top = np.take_along_axis(weights, places, axis=-1)
    rest = np.clip(1 - top.sum(axis=-1, keepdims=True), 0, None)
    as_bytes = weights_as_bytes(np.concatenate([top, rest], axis=-1))
    return {
        "shape": list(weights.shape),
        "enc": "top",
        "k": k,
        "keys": packed(places, "u16"),
        "weights": {**packed(as_bytes[..., :k], "u8"), "scale": 1 / 255},
        "rest": {**packed(as_bytes[..., k], "u8"), "scale": 1 / 255},
    }
