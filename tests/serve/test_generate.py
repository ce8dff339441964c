"""/v1/generate: texts that go on, as the model says them directly; and models of both kinds on one server."""

import asyncio
import http.client
import itertools
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clearhead.translator import Translator
from clearhead.translator.generating import Wishes, generate, load_generator
from tests.tiny_model import SEARCHED, write_generator

from .running import Running, ask, real, request_bytes, started, with_options

pytestmark = pytest.mark.slow
PROMPT = "abc head"
MOST = 1 << 15  # tokens; nobody waits for so many


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_generator(tmp_path_factory.mktemp("writes") / "writer")


@pytest.fixture(scope="module")
def server(model: Path, writer: Path) -> Iterator[Running]:
    """One that writes, before one that translates, and one that never ends."""
    endless = write_generator(writer.with_name("endless"), output_bias=True)
    models = [str(writer), str(model), str(endless)]
    with started(with_options(writer, models=models, limits={"length": MOST})) as running:
        yield running


@pytest.fixture(scope="module")
def own(writer: Path) -> Translator:
    return load_generator(writer)


def events(running: Running, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    connection.request("POST", "/v1/generate", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
    blocks = [block.split("\n") for block in answer.read().decode().strip().split("\n\n")]
    connection.close()
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


@pytest.mark.parametrize(
    "asked",
    [{"temperature": 0}, {"seed": 3}, {"temperature": 1.5, "top_k": 3, "top_p": 0.9}, {"beam": 3}],
    ids=["greedy", "sampled", "narrowly sampled", "beam"],
)
def test_texts_are_those_of_the_model(server: Running, own: Translator, asked: dict[str, Any]) -> None:
    (expected,) = generate(own, PROMPT, Wishes(length=13, **asked))[0]
    body = {"prompt": PROMPT, "length": 13, **asked}
    answer = server.ask("POST", "/v1/generate", body).json
    (result,) = answer["results"]
    assert result["text"] == expected.text
    assert result["prompt"] + result["continuation"] == expected.text
    assert result["prompt"] == PROMPT
    assert result["score"] == pytest.approx(expected.score, abs=SEARCHED)
    assert result["tokens"] == len(expected.decoded[0].target)
    assert (answer["model"]["name"], answer["model"]["task"]) == ("writer", "generate")
    *steps, (last, streamed) = events(server, {**body, "stream": True})
    texts = [data["text"] for _, data in steps]
    assert {name for name, _ in steps} == {"partial"}
    assert all(after.startswith(before) for before, after in itertools.pairwise(texts))
    assert (last, streamed["results"]) == ("result", answer["results"])
    assert texts[-1] == expected.text
    assert len(texts) == (1 if "beam" in asked else 1 + result["tokens"] - 2)


def test_models_are_listed_with_their_task(server: Running) -> None:
    models = server.ask("GET", "/v1/models").json["models"]
    assert [(model["name"], model["task"]) for model in models] == [
        ("writer", "generate"),
        ("tiny", "translate"),
        ("endless", "generate"),
    ]
    document = server.ask("GET", "/spec").json
    assert "text/event-stream" in document["paths"]["/v1/generate"]["post"]["responses"]["200"]["content"]
    languages = document["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert languages["properties"]["source"] == {"enum": ["en", "auto"]}


def test_each_task_has_its_route(server: Running) -> None:
    """Without a name the first that can do it is meant; with one of the other kind, the answer says where to go."""
    assert server.ask("POST", "/v1/translate", {"texts": ["abc"]}).json["model"]["name"] == "tiny"
    assert server.translate("abc head").status == 200
    assert [one["code"] for one in server.ask("GET", "/languages").json] == ["en"]
    assert server.ask("GET", "/frontend/settings").json["language"]["source"]["code"] == "en"
    assert server.ask("POST", "/detect", {"q": "the head"}).json[0]["language"] == "en"
    for path, body, other in (
        ("/v1/translate", {"texts": ["abc"], "model": "writer"}, "/v1/generate"),
        ("/v1/score", {"sources": ["a"], "targets": ["a"], "model": "writer"}, "/v1/generate"),
        ("/v1/generate", {"prompt": "abc", "model": "tiny"}, "/v1/translate"),
    ):
        refused = server.ask("POST", path, body)
        assert (refused.status, refused.json["code"]) == (400, "wrong_task")
        assert refused.json["error"].endswith(f"use {other}")
    unknown = server.ask("POST", "/v1/generate", {"prompt": "abc", "model": "nobody"})
    assert (unknown.status, unknown.json["code"]) == (400, "no_model")
    assert server.translate("abc", source="und", target="und").status == 400


def test_its_tokens_and_its_inside_can_be_seen(server: Running, own: Translator) -> None:
    cut = server.ask("POST", "/v1/tokenize", {"texts": [PROMPT], "side": "target", "model": "writer"}).json
    assert cut["results"][0]["ids"] == own.target_tokenizer.encode(PROMPT)
    looked = server.ask("POST", "/v1/inspect", {"text": PROMPT, "model": "writer"}).json["trace"]
    assert looked["target"]["text"].startswith(PROMPT)
    assert {one["kind"] for one in looked["attention"]} == {"decoder"}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"prompt": 3}, "bad_field"),
        ({"length": 0}, "out_of_bounds"),
        ({"length": MOST + 1}, "out_of_bounds"),
        ({"beam": 9}, "out_of_bounds"),
        ({"top_p": 0}, "out_of_bounds"),
        ({"temperature": -1}, "out_of_bounds"),
        ({"beam": 2, "temperature": 1}, "out_of_bounds"),
        ({"prompt": "a" * 5_001}, "too_long"),
        ({"prompts": "a"}, "bad_field"),
    ],
)
def test_what_is_out_of_bounds_is_refused(server: Running, wrong: dict[str, Any], code: str) -> None:
    refused = server.ask("POST", "/v1/generate", wrong)
    assert (refused.status, refused.json["code"]) == (400, code)


LONG = {"prompt": "abc head", "length": MOST, "temperature": 9, "model": "endless"}


@pytest.mark.parametrize("fields", [{"stream": True}, {}, {"beam": 8, "temperature": None}])
def test_F49_a_text_for_a_client_that_left_is_not_written_on(server: Running, fields: dict[str, Any]) -> None:
    gone = server.metric("clearhead_cancelled_total")
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(request_bytes("POST", "/v1/generate", {**LONG, **fields}))
        until = time.monotonic() + 30
        while server.metric("clearhead_engine_batch_age_seconds") == 0 and time.monotonic() < until:
            time.sleep(0.05)
        started = time.monotonic()
    answer = server.ask("POST", "/v1/generate", {"prompt": "abc", "length": 3})
    assert answer.status == 200
    assert time.monotonic() - started < 10
    assert server.metric("clearhead_cancelled_total") == gone + 1


def test_F50_a_deadline_ends_the_writing_and_sentences_pass_meanwhile(server: Running) -> None:
    async def both() -> None:
        late = asyncio.create_task(ask(server.port, "POST", "/v1/generate", {**LONG, "timeout": 3.0}))
        await asyncio.sleep(0.5)
        short = await ask(server.port, "POST", "/v1/translate", {"texts": ["abc head"], "model": "tiny"})
        stream = await ask(server.port, "POST", "/v1/translate", {"texts": ["abc head"], "stream": True})
        assert not late.done()
        assert (short.status, b"event: result" in stream.content) == (200, True)
        answer = await late
        assert (answer.status, answer.json["code"]) == (503, "deadline_exceeded")

    asyncio.run(both())
    (name, data), *rest = reversed(events(server, {**LONG, "stream": True, "timeout": 1.0}))
    assert (name, data["code"]) == ("error", "deadline_exceeded")
    assert len(rest) > 3


def test_a_server_of_writers_alone_says_so_to_those_who_want_translations(writer: Path) -> None:
    with started(real(writer)) as running:
        for path, body in (
            ("/translate", {"q": "abc", "source": "en", "target": "zh"}),
            ("/detect", {"q": "abc"}),
            ("/v1/translate", {"texts": ["abc"]}),
        ):
            refused = running.ask("POST", path, body)
            assert (refused.status, refused.json["code"]) == (400, "wrong_task")
            assert "no model of this server was trained to translate; there is /v1/generate" in refused.json["error"]
        assert running.ask("GET", "/languages").json == []
        assert running.ask("POST", "/v1/generate", {"prompt": "abc"}).status == 200
