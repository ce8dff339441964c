"""SERVE.md, from what benchmarks.serve measured."""

import statistics
from collections.abc import Sequence
from typing import Any

Rows = Sequence[dict[str, Any]]


def page(results: dict[str, Any]) -> str:
    parts = [
        "# The server under load",
        f"Written by `{results['command']}`. {_facts(results['machine'])}."
        + (f" Peers: {_facts(results['versions'])}." if results["versions"] else ""),
        f"Each figure is the median of the rounds, with their range; a measurement takes {results['seconds']:g} s, all "
        "servers are up and measured in turn, and the clients run on the same cores. One client asks its next question "
        "when it has its answer; 64 do the same at once, on connections that are kept.",
        _servers(results["servers"], results["errors"]),
        "`other` are answers of another status than 200, 429 and 503; `texts` are good answers that say something else "
        "than the same server says to the line alone: batches of other shapes round otherwise. CPU is what an answer "
        "took at 64 clients in the server's process, in its engine and in the clients. LibreTranslate and FastAPI have "
        "the same CTranslate2 weights and beam and else their defaults; LibreTranslate's sentence splitter, which it "
        "would download, is left out, as each text is one sentence.",
        "## At ten times what the engine can do",
        "An engine held to 40 texts a second; an open loop of 400 a second; clients on one core, the server on the "
        "other.",
        _overload(results["overload"]),
    ]
    return "\n\n".join(parts) + "\n"


def _servers(servers: dict[str, Rows], errors: dict[str, str]) -> str:
    lines = [
        "| | one: answers/s | one: p99 ms | 64: answers/s | 64: p99 ms | gain | other | texts | CPU ms | MiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in servers.items():
        other = sum(row[which]["other_answers"] for row in rows for which in ("one", "many"))
        texts = sum(row["many"]["different_texts"] for row in rows)
        cpu = ", ".join(
            f"{part} {statistics.median([row['cpu_ms'][part] for row in rows]):.1f}" for part in rows[0]["cpu_ms"]
        )
        cells = [
            name,
            _spread([row["one"]["answers_per_second"] for row in rows]),
            _spread([row["one"]["p99_ms"] for row in rows]),
            _spread([row["many"]["answers_per_second"] for row in rows]),
            _spread([row["many"]["p99_ms"] for row in rows]),
            _spread([row["gain"] for row in rows], 2) + " ×",
            str(other),
            str(texts),
            cpu,
            _spread([row["memory_mib"] for row in rows]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| {name} | {error} |" + " |" * 8 for name, error in errors.items()]
    return "\n".join(lines)


def _overload(rounds: Rows) -> str:
    wanted = {
        "peak: answers/s": [row["peak"]["answers_per_second"] for row in rounds],
        "ten times: answers/s": [row["over"]["answers_per_second"] for row in rounds],
        "ten times: p99 of answers, ms": [row["over"]["p99_ms"] for row in rounds],
        "ten times: p50 of refusals, ms": [row["over"]["refused_p50_ms"] for row in rounds],
        "ten times: p99 of refusals, ms": [row["over"]["refused_p99_ms"] for row in rounds],
        "ten times: p99 of /livez, ms": [row["over"]["livez_p99_ms"] for row in rounds],
        "afterwards, one client: p99, ms": [row["calm"]["p99_ms"] for row in rounds],
    }
    lines = ["| | |", "|---|---|"]
    lines.append(f"| goodput of the peak | {_spread([row['goodput_of_peak'] for row in rounds], 2)} |")
    return "\n".join([*lines, *(f"| {name} | {_spread(values)} |" for name, values in wanted.items())])


def _spread(values: Sequence[float | None], places: int = 1) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    low, middle, high = min(known), statistics.median(known), max(known)
    return f"{middle:.{places}f} ({low:.{places}f}–{high:.{places}f})"


def _facts(facts: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())
