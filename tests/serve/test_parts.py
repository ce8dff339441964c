"""The parts that need no process: messages, slices, detection, bodies, metrics, addresses."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from clearhead.decoding import DecodingOptions
from clearhead.serve.bodies import json_object
from clearhead.serve.desk import Desk, Inbox, Sliced
from clearhead.serve.detection import detect
from clearhead.serve.engine import _about
from clearhead.serve.gate import host_name
from clearhead.serve.messages import LENGTH, LONG, SHORT, Message, messages_from, packed
from clearhead.serve.metrics import Counter, Histogram
from clearhead.serve.openapi import document
from clearhead.serve.options import Limits, ServeOptions, require_installed
from clearhead.serve.protocol import Connections
from clearhead.serve.refusal import RefusedError
from clearhead.serve.requests import TranslateRequest, parsed, schema_of
from tests.translator.stub import TOKENIZER, Ids, StubEngine, stub_translator


def test_messages_survive_the_pipe_and_half_of_one_is_none() -> None:
    messages: list[Message] = [{"kind": "work", "rows": ["你好", "\n"]}, {"a": None}, {}]
    content = b"".join(packed(message) for message in messages)
    assert list(messages_from(io.BytesIO(content))) == messages
    for cut in range(1, len(packed({})) + 1):
        assert list(messages_from(io.BytesIO(content[:-cut]))) == messages[:-1]


def test_noise_in_the_pipe_is_seen() -> None:
    with pytest.raises(ValueError, match="a message of 4294967295 bytes was announced"):
        list(messages_from(io.BytesIO(LENGTH.pack(0xFFFFFFFF))))


def test_slices_do_all_the_work_and_pause_between() -> None:
    pauses: list[int] = []
    plain = StubEngine()
    sources = [TOKENIZER.encode("word " * n) for n in (1, 7, 3, 11, 2, 5)]
    sliced = Sliced(plain, 1e-9, lambda: pauses.append(1))  # no time at all: one by one
    options = DecodingOptions(beam=2, n_best=2)
    assert sliced.translate(sources, options) == StubEngine().translate(sources, options)
    assert len(pauses) == len(sources)
    assert sliced.tokens == sum(len(source) + 1 for source in sources)
    assert list(sliced.steps(sources[0], 99)) == sources[0]


def message(batch: int, lane: str, *rows: str) -> Message:
    options = {"beam": 1, "n_best": 1, "prefix": "", "tokens": False}
    return {
        "kind": "work",
        "batch": batch,
        "lane": lane,
        "what": "translate",
        "model": "m",
        "options": options,
        "rows": list(rows),
    }


def desk_with(rule: Callable[[Ids, DecodingOptions], Ids]) -> tuple[Desk, Inbox, list[Message]]:
    inbox, sent = Inbox(), list[Message]()
    desk = Desk(inbox, sent.append, slice_seconds=1e-9)
    desk.seat("m", stub_translator(StubEngine(rule)))
    return desk, inbox, sent


def test_a_short_batch_passes_a_long_one() -> None:
    desk, inbox, sent = desk_with(lambda source, _: source)
    inbox.put(message(2, SHORT, "short"))
    desk.handle(message(1, LONG, "one", "two", "three"))
    assert [answer["batch"] for answer in sent] == [2, 1]
    assert [row["value"]["text"] for row in sent[1]["rows"]] == ["one", "two", "three"]
    assert desk.age == 0


def test_a_cancelled_batch_stops_between_slices() -> None:
    done: list[str] = []

    def rule(source: Ids, _: DecodingOptions) -> Ids:
        done.append(TOKENIZER.decode(source))
        inbox.put({"kind": "cancel", "batch": 1})
        return source

    desk, inbox, sent = desk_with(rule)
    desk.handle(message(1, SHORT, "one", "two", "three"))
    assert len(done) == 1
    assert [(answer["batch"], answer["rows"]) for answer in sent] == [(1, [])]
    desk.handle(message(3, SHORT, "four"))
    assert sent[-1]["rows"][0]["value"]["text"] == "four"


def test_one_row_that_cannot_be_done_leaves_the_others() -> None:
    def rule(source: Ids, _: DecodingOptions) -> Ids:
        if TOKENIZER.decode(source) == "bad":
            raise ValueError("not this one")
        return source

    desk, _, sent = desk_with(rule)
    desk.handle(message(1, SHORT, "one", "bad", "two"))
    first, bad, second = sent[0]["rows"]
    assert (first["value"]["text"], second["value"]["text"]) == ("one", "two")
    assert bad == {"error": "not_possible", "message": "the model cannot do this: not this one"}


@pytest.mark.parametrize(
    ("text", "served", "expected"),
    [
        ("The dog is in the house", ["en", "de"], "en"),
        ("Der Hund ist nicht in dem Haus", ["en", "de"], "de"),
        ("Le chien est dans la maison", ["en", "fr", "de"], "fr"),
        ("El perro está en la casa", ["pt", "es"], "es"),
        ("狗在房子里", ["en", "zh", "ja"], "zh"),
        ("犬は家の中にいます", ["en", "zh", "ja"], "ja"),
        ("Собака в доме, и он не ест", ["uk", "ru"], "ru"),
        ("Собака є і в їжі", ["ru", "uk"], "uk"),
        ("12345", ["en"], "en"),
        ("", ["de"], "de"),
    ],
)
def test_languages_are_told_apart(text: str, served: list[str], expected: str) -> None:
    found = detect(text, served)
    assert found[0][0] == expected
    assert sorted(language for language, _ in found) == sorted(served)
    assert all(0 <= confidence <= 100 for _, confidence in found)


def test_the_only_language_is_not_claimed_of_another_script() -> None:
    (language, confidence), *_ = detect("狗在房子里", ["en"])
    assert (language, confidence) == ("en", 0.0)
    assert detect("the dog of the house", ["en"])[0][1] > 80


@pytest.mark.parametrize("depth", [1, 8])
def test_brackets_in_a_text_are_no_nesting(depth: int) -> None:
    value: Any = '[[[[[[[[[[ " { \\'
    for _ in range(depth - 1):
        value = [value]
    assert json_object(json.dumps({"q": value}).encode(), depth + 1) == {"q": value}
    with pytest.raises(RefusedError, match=f"nested deeper than {depth}"):
        json_object(json.dumps({"q": [value]}).encode(), depth)


def test_histograms_count_as_prometheus_reads_them() -> None:
    histogram = Histogram("h", "help", (0.1, 1.0), ("route",))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value, "/x")
    assert list(histogram.lines()) == [
        'h_bucket{route="/x",le="0.1"} 2',
        'h_bucket{route="/x",le="1"} 3',
        'h_bucket{route="/x",le="+Inf"} 4',
        'h_sum{route="/x"} 7.65',
        'h_count{route="/x"} 4',
    ]
    counter = Counter("c", "help", ("name",))
    counter.add(2, 'a"b\\c\n')
    assert list(counter.lines()) == ['c{name="a\\"b\\\\c\\n"} 2']


@pytest.mark.parametrize(
    ("host", "name"),
    [("Localhost:80", "localhost"), ("[::1]:5", "::1"), ("[::1", None), ("", None), ("a.b:99999", "a.b")],
)
def test_names_without_their_ports(host: str, name: str | None) -> None:
    assert host_name(host) == name


def test_connections_of_one_address_are_counted_unless_it_is_ours() -> None:
    limits = Limits(connections=7, connections_per_address=2)
    connections = Connections()
    for _ in range(3):
        connections.change("192.0.2.7", +1)
        connections.change("127.0.0.1", +1)
    assert connections.is_too_many("192.0.2.7", limits)
    assert not connections.is_too_many("127.0.0.1", limits)
    connections.change("192.0.2.7", -1)
    assert not connections.is_too_many("192.0.2.7", limits)
    for _ in range(3):
        connections.change("127.0.0.1", +1)
    assert connections.is_too_many("127.0.0.1", limits)


def test_the_document_has_the_limits_that_hold() -> None:
    limits = Limits(texts=5, beam=3, deadline=2.0)
    schema = schema_of(TranslateRequest, limits)
    assert schema["required"] == ["texts"]
    assert schema["properties"]["beam"] == {
        "type": ["integer", "null"], "minimum": 1, "maximum": 3, "description": "Width of the search"
    }  # fmt: skip
    for values in ({"texts": ["a"] * 6}, {"texts": ["a"], "beam": 4}, {"texts": ["a"], "timeout": 2.5}):
        with pytest.raises(RefusedError, match="out of bounds"):
            parsed(TranslateRequest, values, limits)
    assert parsed(TranslateRequest, {"texts": ["a"] * 5, "beam": None}, limits).beam is None
    assert "securitySchemes" in document(limits, True, [])["components"]
    assert "security" not in document(limits, False, [])


def test_only_this_machine_is_local() -> None:
    assert ServeOptions([]).is_local
    assert not ServeOptions([], host="0.0.0.0").is_local


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from clearhead.errors import UserError
    from clearhead.serve import options

    monkeypatch.setattr(options, "find_spec", lambda name: None if name == "uvicorn" else name)
    with pytest.raises(UserError, match="uvicorn is not installed, which serve needs"):
        require_installed()


@pytest.mark.parametrize(("given", "told"), [(None, ""), ("big", "big")])
def test_a_model_tells_the_example_that_its_recipe_gives(given: str | None, told: str) -> None:
    assert _about(stub_translator(example=given), "stub")["example"] == told
