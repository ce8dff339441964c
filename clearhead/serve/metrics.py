"""Counters, gauges and histograms in Prometheus's text format. Labels are of closed sets: no address, key or text."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

Labels = tuple[str, ...]
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ROWS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)


class Counter:
    """Counts up, for each combination of its labels."""

    kind = "counter"

    def __init__(self, name: str, help_: str, labels: Labels = ()) -> None:
        self.name, self.help, self.labels = name, help_, labels
        self.values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, amount: float = 1.0, *labels: str) -> None:
        self.values[labels] = self.values.get(labels, 0.0) + amount

    def lines(self) -> Iterator[str]:
        for labels, value in sorted(self.values.items()):
            yield f"{self.name}{_braces(self.labels, labels)} {_number(value)}"


class Gauge(Counter):
    """What can also go down."""

    kind = "gauge"

    def set(self, value: float, *labels: str) -> None:
        self.values[labels] = value


class Histogram:
    """How often a value was at most so large."""

    kind = "histogram"

    def __init__(self, name: str, help_: str, bounds: Sequence[float], labels: Labels = ()) -> None:
        self.name, self.help, self.labels, self._bounds = name, help_, labels, bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterator[str]:
        for labels, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip([*map(_number, self._bounds), "+Inf"], counts, strict=True):
                total += count
                yield f"{self.name}_bucket{_braces((*self.labels, 'le'), (*labels, bound))} {total}"
            yield f"{self.name}_sum{_braces(self.labels, labels)} {_number(self._sums[labels])}"
            yield f"{self.name}_count{_braces(self.labels, labels)} {total}"


class Metrics:
    """All that there is; the names are an interface, and a test holds them."""

    def __init__(self) -> None:
        self.requests = Counter("clearhead_http_requests_total", "Answered requests", ("route", "method", "code"))
        self.duration = Histogram("clearhead_http_request_duration_seconds", "Until answered", SECONDS, ("route",))
        self.in_flight = Gauge("clearhead_http_requests_in_flight", "Requests being answered")
        self.rejected = Counter("clearhead_http_rejected_total", "Requests refused, by reason", ("reason",))
        self.queue_texts = Gauge("clearhead_queue_texts", "Texts that wait")
        self.queue_wait = Histogram("clearhead_queue_wait_seconds", "From arrival to the engine", SECONDS)
        self.batch_rows = Histogram("clearhead_batch_rows", "Texts of a batch", ROWS)
        self.batch_duration = Histogram("clearhead_batch_duration_seconds", "Work of a batch", SECONDS)
        self.tokens = Counter("clearhead_source_tokens_total", "Tokens given to the model")
        self.characters = Counter("clearhead_characters_total", "Characters of texts that were admitted")
        self.cancelled = Counter("clearhead_cancelled_total", "Texts given up, by stage", ("stage",))
        self.warnings = Counter("clearhead_warnings_total", "Warnings on translations, by kind", ("kind",))
        self.engine_up = Gauge("clearhead_engine_up", "Whether the engine is ready")
        self.restarts = Gauge("clearhead_engine_restarts_total", "Restarts of the engine, by cause", ("cause",))
        self.heartbeat = Gauge("clearhead_engine_heartbeat_age_seconds", "Since the engine was heard of")
        self.batch_age = Gauge("clearhead_engine_batch_age_seconds", "Age of the work that the engine does")
        self.model = Gauge("clearhead_model_info", "Served models", ("name", "sha256", "version"))
        self.memory = Gauge("process_resident_memory_bytes", "Memory of a process", ("process",))
        self.files = Gauge("process_open_fds", "Open files of the front")
        self.restarts.kind = "counter"

    def text(self) -> str:
        lines: list[str] = []
        for metric in vars(self).values():
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *metric.lines()]
        return "\n".join(lines) + "\n"


def _braces(names: Labels, values: Labels) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}" if names else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
