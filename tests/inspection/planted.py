"""A trace whose attention is known beforehand, so that whatever draws it can be read back.

H heads, Q rows (queries), K columns (keys), D model width, d head width; sizes are primes where they can be.
"""

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SOURCE = ["we", "met", "on", "the", "4", "th", "of", "March", "2026", "."]
TARGET = ["2026", "年", "3", "月", "4", "日"]
PLANTED = [8, 2, 7, 6, 4, 5, 10]  # the source token that each row of the planted head reads: 2026, on, March, of, …
LAYER, HEAD = 1, 0  # where it is planted, in the cross attention
HEADS, ENCODER_LAYERS, DECODER_LAYERS, FEED_FORWARD, VOCABULARY = 3, 2, 3, 53, 211
WIDTHS_OF_HEAD = (13, 29, 61, 131)  # a head can make any map of as many keys as it is wide
TOP, TOP_ABOVE = 8, 128
STATISTICS = ("entropy", "distance", "special_mass", "coverage")
PATTERNS = ("previous", "self", "next", "first", "last", "diagonal", "uniform", "broad")


def planted_trace(source: list[str] | None = None, target: list[str] | None = None, seed: int = 0) -> dict[str, Any]:
    """A whole trace/1; row r of cross attention, layer 1, head 0 reads `planted(…)[r]`, the rest is random."""
    random = np.random.default_rng(seed)
    source, target = source or SOURCE, target or TARGET
    sources, targets = tokens(source, False), tokens(target, True)
    K, Q = len(sources), len(targets) - 1
    d = next((width for width in WIDTHS_OF_HEAD if width >= max(K, Q)), WIDTHS_OF_HEAD[0])
    details, maps = [], {}
    for kind, layer, head in [("cross", LAYER, HEAD), ("encoder", 0, 1), ("decoder", 2, 2)]:
        wanted = random_rows(random, *{"cross": (Q, K), "encoder": (K, K), "decoder": (Q, Q)}[kind], kind == "decoder")
        if kind == "cross":
            wanted = one_hot_rows(planted(source, target), K)
        maps[kind, layer, head] = wanted
        if max(K, Q) <= d:
            detail, maps[kind, layer, head] = head_detail(random, wanted, kind, d)
            details.append({"kind": kind, "layer": layer, "head": head, **detail})
    return {
        "format": "trace/1",
        "tool": "clearhead 0.1.0",
        "made": "2026-11-16T08:00:00Z",
        "command": f"clearhead inspect runs/planted '{' '.join(source)}' --html report.html",
        "model": model("transformer", d),
        "source": {"lang": "en", "text": " ".join(source), "tokens": sources},
        "target": {"lang": "zh", "text": "".join(target), "forced": False, "tokens": targets},
        "attention": [
            attention(random, kind, layer, (Q, K), maps)
            for kind, layers in (("encoder", ENCODER_LAYERS), ("decoder", DECODER_LAYERS), ("cross", DECODER_LAYERS))
            for layer in range(layers)
        ],
        "alignment": {
            "kind": "cross",
            "layer": LAYER,
            "head": HEAD,
            "score": 0.81,
            "formula": "0.5·(1 − entropy) + 0.3·coverage − 0.2·special mass",
            "runners_up": [{"layer": 0, "head": 2, "score": 0.43}, {"layer": 2, "head": 1, "score": 0.37}],
        },
        "stats": statistics(random),
        "steps": steps(random, targets),
        "beam": beam(random, targets),
        "head_detail": details,
        "residual": residual(random, K, Q),
        "positions": positions(random, max(K, Q) + 29, K, d * HEADS),
        "occlusion": {"axes": ["target", "source"], **packed(random.normal(-0.3, 0.7, (Q, K)), "f16")},
        "health": {
            "unread": [1],
            "coverage": [round(float(x), 3) for x in random.uniform(0.05, 1, K)],
            "repeated": [["年", "3"]],
            "special_share": 0.17,
            "low_contribution": [2],
            "length_ratio": round(Q / K, 3),
        },
        "limits": {"reduced": False, "quantisation_max_error": 0.0039, "note": ""},
        "notes": [],
    }


def rnn_trace(seed: int = 0) -> dict[str, Any]:
    """The same sentence by a recurrent model: one head of cross attention, and no blocks to look into."""
    trace = planted_trace(seed=seed)
    cross = next(one for one in trace["attention"] if one["kind"] == "cross" and one["layer"] == LAYER)
    weights = unpacked(cross)[:1]
    return trace | {
        "model": model("rnn", WIDTHS_OF_HEAD[0]),
        "attention": [cross | {"layer": 0, **packed(weights, "u8", 1 / 255)}],
        "alignment": trace["alignment"] | {"layer": 0, "runners_up": []},
        "stats": [one | {"layer": 0} for one in trace["stats"] if one["kind"] == "cross" and one["head"] == 0][:1],
        "head_detail": [],
        "residual": [],
        "positions": None,
    }


def planted(source: list[str], target: list[str]) -> list[int]:
    """Which key each row of the planted head reads."""
    if source == SOURCE and target == TARGET:
        return PLANTED
    return [(3 * row + 2) % (len(source) + 1) for row in range(len(target) + 1)]


def tokens(words: list[str], is_target: bool) -> list[dict[str, Any]]:
    """The words as tokens, the special ones around them; "th" goes on with the word before it."""
    found: list[dict[str, Any]] = []
    if is_target:
        found.append({"id": 1, "text": "<s>", "piece": "<s>", "word": None, "special": True})
    word = -1
    for place, text in enumerate(words):
        word += text != "th"
        piece = text if text == "th" or is_target else f"▁{text}"
        found.append({"id": 23 + place, "text": text, "piece": piece, "word": word, "special": False})
    found.append({"id": 2, "text": "</s>", "piece": "</s>", "word": None, "special": True})
    return [{"i": i, **token} for i, token in enumerate(found)]


def one_hot_rows(keys: list[int], K: int) -> Array:
    rows = np.full((len(keys), K), 0.1 / (K - 1))
    rows[np.arange(len(keys)), keys] = 0.9
    return rows


def random_rows(random: np.random.Generator, Q: int, K: int, causal: bool) -> Array:
    scores = random.normal(0, 1.3, (Q, K))
    return softmax(np.where(np.tril(np.ones((Q, K), bool)), scores, -np.inf) if causal else scores)


def softmax(scores: Array) -> Array:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def head_detail(random: np.random.Generator, wanted: Array, kind: str, d: int) -> tuple[dict[str, Any], Array]:
    """The vectors of a head whose attention comes out as wanted, and the attention itself."""
    Q, K = wanted.shape
    D, scale = d * HEADS, d**-0.5
    x = random.normal(size=(Q, D))
    memory = random.normal(size=(K, D)) if kind == "cross" else x
    w_k, w_v = (random.normal(0, D**-0.5, (d, D)) for _ in range(2))
    b_q, b_k, b_v = (random.normal(0, 0.1, d) for _ in range(3))
    k, v = memory @ w_k.T + b_k, memory @ w_v.T + b_v
    scores = np.log(np.maximum(wanted, 1e-4)) / scale
    q = (scores - scores.mean(-1, keepdims=True)) @ np.linalg.pinv(k).T
    w_q = (np.linalg.pinv(x) @ (q - b_q)).T
    q = x @ w_q.T + b_q
    logits = q @ k.T * scale
    if kind == "decoder":
        logits = np.where(np.tril(np.ones((Q, K), bool)), logits, -np.inf)
    weights = softmax(logits)
    vectors = {"q": q, "k": k, "v": v, "out": weights @ v, "x": x, "w_q": w_q, "w_k": w_k, "w_v": w_v}
    vectors |= {"b_q": b_q, "b_k": b_k, "b_v": b_v}
    return {
        "scale": scale,
        "mask": "causal" if kind == "decoder" else None,
        "memory": packed(memory, "f32") if kind == "cross" else None,
        **{name: packed(vector, "f32") for name, vector in vectors.items()},
    }, weights


def attention(
    random: np.random.Generator, kind: str, layer: int, sizes: tuple[int, int], maps: dict[tuple[str, int, int], Array]
) -> dict[str, Any]:
    """One layer's maps of one kind, in bytes; above 128 tokens the largest eight of a row and the sum of the rest."""
    T, S = sizes
    Q, K = {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}[kind]
    rows = [maps.get((kind, layer, head), random_rows(random, Q, K, kind == "decoder")) for head in range(HEADS)]
    weights = np.stack([quantised(one) for one in rows])
    common = {
        "kind": kind,
        "layer": layer,
        "axes": ["head", "query", "key"],
        "query_tokens": "source" if kind == "encoder" else "target",
        "key_tokens": "target" if kind == "decoder" else "source",
        "query_shift": int(kind != "encoder"),
    }
    if max(Q, K) <= TOP_ABOVE:
        return common | packed(weights / 255, "u8", 1 / 255)
    keys = np.argsort(-weights, axis=-1, kind="stable")[..., :TOP]
    largest = np.take_along_axis(weights, keys, -1)
    return common | {
        "shape": [HEADS, Q, K],
        "enc": "top",
        "k": TOP,
        "keys": packed(keys, "u16"),
        "weights": packed(largest / 255, "u8", 1 / 255),
        "rest": packed((255 - largest.sum(-1)) / 255, "u8", 1 / 255),
    }


def quantised(rows: Array) -> Array:
    """Rows of bytes that sum to 255: rounded down, and what is missing given to the largest remainders."""
    exact = rows * 255
    low = np.floor(exact).astype(int)
    for row, whole, precise in zip(low, low.copy(), exact, strict=True):
        row[np.argsort(whole - precise, kind="stable")[: 255 - row.sum()]] += 1
    return low


def packed(values: Array, enc: str, scale: float | None = None) -> dict[str, Any]:
    kinds = {"u8": "u1", "u16": "<u2", "f16": "<f2", "f32": "<f4"}
    stored = np.rint(values / scale) if scale else values
    data = b64encode(stored.astype(kinds[enc]).tobytes()).decode()
    return {"shape": list(values.shape), "enc": enc, **({"scale": scale} if scale else {}), "data": data}


def unpacked(array: dict[str, Any]) -> Array:
    from base64 import b64decode

    kinds = {"u8": "u1", "u16": "<u2", "f16": "<f2", "f32": "<f4"}
    values = np.frombuffer(b64decode(array["data"]), kinds[array["enc"]]).reshape(array["shape"])
    return values * array["scale"] if "scale" in array else values


def model(kind: str, d: int) -> dict[str, Any]:
    return {
        "name": "runs/planted",
        "sha256": "0f" * 32,
        "kind": kind,
        "layers_enc": ENCODER_LAYERS,
        "layers_dec": DECODER_LAYERS,
        "heads": HEADS if kind == "transformer" else 1,
        "d_model": d * HEADS,
        "d_k": d,
        "d_ff": FEED_FORWARD,
        "norm": "post",
        "positions": "sinusoidal",
        "scale": d**-0.5,
        "vocabulary": VOCABULARY,
        "params": 61_234,
        "dtype": "float32",
    }


def statistics(random: np.random.Generator) -> list[dict[str, Any]]:
    found = []
    for kind, layers in (("encoder", ENCODER_LAYERS), ("decoder", DECODER_LAYERS), ("cross", DECODER_LAYERS)):
        for layer in range(layers):
            for head in range(HEADS):
                one: dict[str, Any] = {"kind": kind, "layer": layer, "head": head}
                one |= {name: round(float(random.uniform(0, 1)), 3) for name in STATISTICS}
                one["align_score"] = round(float(random.uniform(0, 0.7)), 3) if kind == "cross" else None
                one["ablate_dlogp"] = round(float(random.normal(-0.1, 0.1)), 3)
                one["pattern"] = PATTERNS[int(random.integers(len(PATTERNS)))]
                found.append(one)
    return found


def steps(random: np.random.Generator, targets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for token in targets[1:]:
        p = np.sort(softmax(random.normal(0, 1, 5) + np.array([3, 0, 0, 0, 0])))[::-1] * 0.97
        others = [token["id"], *(100 + 7 * i for i in range(1, 5))]
        texts = [token["text"], "日子", "study", "<unk>", "研究"]
        logp = [round(float(x), 4) for x in np.log(p)]
        found.append(
            {
                "t": token["i"],
                "chosen": token["id"],
                "logp": logp[0],
                "entropy": round(float(-(p * np.log(p)).sum()), 4),
                "top": [list(pair) for pair in zip(others, logp, strict=True)],
                "top_text": texts,
                "source_contrib": round(float(random.uniform(0.2, 0.9)), 3),
            }
        )
    return found


def beam(random: np.random.Generator, targets: list[dict[str, Any]], size: int = 3) -> dict[str, Any]:
    """A lattice in which the translation shown is always rank 0, the other ranks branch from it or go on alone."""
    nodes: list[dict[str, Any]] = [
        {"n": 0, "t": 0, "rank": 0, "id": 1, "text": "<s>", "logp": 0.0, "sum": 0.0, "score": 0.0, "parent": None}
        | {"state": "alive"}
    ]
    before = [0]
    for token in targets[1:]:
        now = []
        for rank in range(size):
            parent = before[0] if rank == 0 else before[int(random.integers(len(before)))]
            logp = round(float(-random.uniform(0.05, 0.4) - 0.8 * rank), 4)
            total = round(nodes[parent]["sum"] + logp, 4)
            text, ident = (token["text"], token["id"]) if rank == 0 else (("日子", 107), ("study", 114))[rank - 1]
            state = "finished" if rank == 0 and token["special"] else "alive" if rank < size - 1 else "pruned"
            node = {"n": len(nodes), "t": token["i"], "rank": rank, "id": ident, "text": text, "logp": logp}
            score = round(total / token["i"] ** 0.6, 4)
            nodes.append(node | {"sum": total, "score": score, "parent": parent, "state": state})
            if state == "alive":
                now.append(node["n"])
            if rank == 0:
                best = node["n"]
        before = [best, *(n for n in now if n != best)]
    return {"size": size, "length_penalty": "average", "alpha": 0.6, "nodes": nodes, "best": best}


def residual(random: np.random.Generator, K: int, Q: int) -> list[dict[str, Any]]:
    found = []
    for stack, layers, places in (("encoder", ENCODER_LAYERS, K), ("decoder", DECODER_LAYERS, Q)):
        norm = random.uniform(5, 7, places)
        for layer in range(layers):
            for sublayer in ("attention", "cross_attention", "feed_forward"):
                if stack == "encoder" and sublayer == "cross_attention":
                    continue
                after = norm * random.uniform(1.0, 1.2, places)
                one: dict[str, Any] = {"stack": stack, "layer": layer, "sublayer": sublayer}
                found.append(one | {"norm_in": norm.round(3).tolist(), "norm_out": after.round(3).tolist()})
                norm = after
    return found


def positions(random: np.random.Generator, n: int, K: int, D: int) -> dict[str, Any]:
    angles = np.arange(n)[:, None] / 10_000 ** (np.arange(0, D, 2) / D)
    table = np.zeros((n, D))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)[:, : D // 2]
    return {
        "kind": "sinusoidal",
        "table": packed(table, "f16"),
        "embedding_norms": random.uniform(4, 9, K).round(3).tolist(),
        "position_norms": np.linalg.norm(table[:K], axis=1).round(3).tolist(),
    }
