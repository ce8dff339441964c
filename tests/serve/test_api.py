"""/v1, the streams and what the server tells of itself, compared with what the translator says directly."""

import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import clearhead
from clearhead.inspection.change import Change
from clearhead.translator import Translator, load
from clearhead.translator.translation import Decoded

from .running import ROOT, Running, real, started

pytestmark = pytest.mark.slow
TEXTS = ["abc head a", "bad cabbage j dig", "big"]


@pytest.fixture(scope="module")
def own(model: Path) -> Translator:
    return load(model)


def test_translations_have_scores_alternatives_and_warnings(server: Running, own: Translator) -> None:
    answer = server.ask("POST", "/v1/translate", {"texts": [*TEXTS, "42"], "beam": 3, "n_best": 2}).json
    expected = own.alternatives([*TEXTS, "42"], replace(own.decoding, beam=3, n_best=2))
    for result, (best, *others) in zip(answer["results"], expected, strict=True):
        assert result["text"] == best.text
        assert result["score"] == pytest.approx(best.score, abs=1e-4)
        assert result["warnings"] == list(best.warnings)
        assert [other["text"] for other in result["alternatives"]] == [other.text for other in others]
        assert "tokens" not in result
    assert answer["model"]["name"] == "tiny"
    assert answer["seconds"]["total"] >= answer["seconds"]["queue"] >= 0


def test_tokens_have_the_probabilities_that_score_gives(server: Running) -> None:
    (result,) = server.ask("POST", "/v1/translate", {"texts": TEXTS[:1], "tokens": True}).json["results"]
    tokens = result["tokens"]["target"]
    asked = {"sources": TEXTS[:1], "targets": [result["text"]]}
    (scored,) = server.ask("POST", "/v1/score", asked).json["results"]
    assert [token["piece"] for token in tokens] == [token["piece"] for token in scored["tokens"]]
    for one, other in zip(tokens, scored["tokens"], strict=True):
        assert one["log_probability"] == pytest.approx(other["log_probability"], abs=1e-5)
    assert scored["mean"] == pytest.approx(result["score"], abs=1e-4)
    assert result["tokens"]["parts"] == [{"source": TEXTS[0], "target": result["text"]}]


def test_scores_and_tokens_are_those_of_the_translator(server: Running, own: Translator) -> None:
    targets = ["a head", "dig big", "cage cage cage"]
    answer = server.ask("POST", "/v1/score", {"sources": TEXTS, "targets": targets}).json["results"]
    pairs = [
        Decoded(own.source_tokenizer.encode(s), own.target_tokenizer.encode(t))
        for s, t in zip(TEXTS, targets, strict=True)
    ]
    for result, expected in zip(answer, own.score(pairs), strict=True):
        assert result["log_probability"] == pytest.approx(sum(expected), abs=1e-4)
    cut = server.ask("POST", "/v1/tokenize", {"texts": TEXTS, "side": "target"}).json["results"]
    assert [result["ids"] for result in cut] == own.target_tokenizer.encode_many(TEXTS)
    assert cut[0]["pieces"] == TEXTS[0].split()


def test_a_look_with_another_beginning_or_without_some_heads(server: Running, own: Translator) -> None:
    before = own.inspect(TEXTS[1])
    begin = before.steps[0].chosen, next(id for id, _ in before.steps[1].top if id > 3)
    off = ("cross", 0, 2), ("encoder", 0, 5)
    for fields, change in (
        ({"prefix": list(begin)}, Change(prefix=begin)),
        ({"off": [list(head) for head in off]}, Change(off=off)),
        ({"prefix": list(begin), "off": [list(head) for head in off]}, Change(begin, off)),
    ):
        answer = server.ask("POST", "/v1/inspect", {"text": TEXTS[1], **fields}).json["trace"]
        expected = own.inspect(TEXTS[1], change=change)
        assert answer["target"]["text"] == expected.target.text
        assert [step["chosen"] for step in answer["steps"]] == [step.chosen for step in expected.steps]
        assert answer["off"] == [list(head) for head in expected.off]
        assert answer["target"]["begun"] == len(change.prefix)


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"off": [["cross", 0]]}, "bad_field", "off has something that is no head"),
        ({"off": [["sideways", 0, 0]]}, "bad_field", "a kind of encoder, decoder, cross, a layer and a head"),
        ({"off": [["cross", 0, -1]]}, "bad_field", "counted from 0"),
        ({"off": [["cross", 0, 7]]}, "head", "there is no head cross:1:8, counted from 1"),
        ({"prefix": [1]}, "prefix", "the prefix has the id 1 at 0"),
        ({"prefix": [5], "translation": "a"}, "out_of_bounds", "a translation and a prefix of another"),
        ({"prefix": [5.5]}, "bad_field", "prefix"),
    ],
)
def test_a_change_that_cannot_be_is_refused(server: Running, fields: dict[str, Any], code: str, said: str) -> None:
    refused = server.ask("POST", "/v1/inspect", {"text": TEXTS[0], **fields})
    assert (refused.status, refused.json["code"]) == (400, code)
    assert said in refused.json["error"]


def events(running: Running, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    connection.request("POST", "/v1/translate", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
    text = answer.read().decode()
    connection.close()
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


def test_a_stream_has_greedy_steps_first_and_the_beams_result_last(server: Running, own: Translator) -> None:
    *steps, (last, result) = events(server, {"texts": TEXTS[:1], "stream": True, "beam": 3})
    texts = [data["text"] for name, data in steps if name == "partial"]
    assert len(texts) == len(steps) > 1
    assert texts == list(own.steps(TEXTS[0]))
    assert all(after.startswith(before) for before, after in itertools.pairwise(texts))
    assert texts[-1] == own.translate(TEXTS[0], beam=1)[0]
    assert last == "result"
    assert result["results"][0]["text"] == own.translate(TEXTS[0], beam=3)[0]


def test_what_a_stream_cannot_do_is_its_last_event(copier: Running) -> None:
    (name, data), *_ = events(copier, {"texts": ["a number"], "stream": True})
    assert (name, data["code"]) == ("error", "not_possible")
    assert len(data["request_id"]) == 16
    long = "\n".join(["one line", "", "another one"])
    *steps, (last, result) = events(copier, {"texts": [long], "stream": True})
    assert (last, result["results"][0]["text"]) == ("result", long)
    assert steps[-1][1]["text"] == long


def settled(running: Running) -> int:
    """Requests in the log, when all that were answered are there."""
    marker = running.ask("GET", "/livez").headers["x-request-id"]
    while marker not in "".join(running.lines):
        time.sleep(0.02)
    return len(running.events("request"))


def test_a_bug_of_ours_is_a_500_without_a_traceback(copier: Running) -> None:
    """A score that is no number cannot be written as JSON."""
    before = settled(copier)
    answer = copier.ask("POST", "/v1/translate", {"texts": ["nan and nothing else"]})
    assert (answer.status, answer.json["code"]) == (500, "internal_error")
    assert b"Traceback" not in answer.content
    assert answer.headers["x-content-type-options"] == "nosniff"
    logged = copier.event("library")
    assert logged["exception"] == "ValueError"
    assert "nothing else" not in "".join(copier.lines)
    assert copier.event("request", before + 1)["status"] == 500


def test_what_the_server_says_of_itself(server: Running) -> None:
    info = server.ask("GET", "/v1/info").json
    assert (info["version"], info["status"], info["limits"]["beam"]) == (clearhead.__version__, "ready", 8)
    (model,) = server.ask("GET", "/v1/models").json["models"]
    assert (model["source"], model["target"], model["engine"]) == ("en", "zh", "ct2")
    assert re.fullmatch("[0-9a-f]{64}", model["sha256"])
    assert server.ask("GET", "/livez").json == {"status": "ok"}
    missing = server.ask("GET", "/no/such/thing")
    assert (missing.status, missing.json["code"]) == (404, "not_found")
    assert (server.ask("GET", "/translate").status, server.ask("DELETE", "/livez").status) == (405, 405)


METRICS = [
    "clearhead_batch_duration_seconds",
    "clearhead_batch_rows",
    "clearhead_cancelled_total",
    "clearhead_characters_total",
    "clearhead_engine_batch_age_seconds",
    "clearhead_engine_heartbeat_age_seconds",
    "clearhead_engine_restarts_total",
    "clearhead_engine_up",
    "clearhead_http_rejected_total",
    "clearhead_http_request_duration_seconds",
    "clearhead_http_requests_in_flight",
    "clearhead_http_requests_total",
    "clearhead_model_info",
    "clearhead_queue_texts",
    "clearhead_queue_wait_seconds",
    "clearhead_source_tokens_total",
    "clearhead_warnings_total",
    "process_open_fds",
    "process_resident_memory_bytes",
]


def test_metrics_keep_their_names_and_count(server: Running) -> None:
    before = server.metric("clearhead_http_requests_total")
    server.translate("abc head")
    text = server.ask("GET", "/metrics").content.decode()
    assert sorted(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)) == METRICS
    assert server.metric("clearhead_http_requests_total") == before + 3
    for line in text.splitlines():
        assert line.startswith("# ") or re.fullmatch(r'\w+(\{(\w+="[^"]*",?)*\})? [0-9.e+-]+', line), line


def test_no_text_is_logged(server: Running) -> None:
    before = settled(server)
    server.translate("cabbage secretword")
    answered = server.event("request", before + 1)
    assert {"id", "route", "status", "seconds", "texts", "characters"} <= set(answered)
    server.ask("POST", "/v1/translate", {"texts": ["secretword"], "secretfield": "secretword"})
    server.ask("GET", "/secretpath?secretquery=1")
    server.event("request", before + 3)
    assert not re.search("secret|cabbage", "\n".join(server.lines))


def test_neither_process_has_torch_and_the_engine_ends_when_its_front_is_killed(model: Path) -> None:
    """By what they have mapped, and by what importing the front loads; a look inside loads it."""
    code = "import sys, clearhead.serve.server; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    with started(real(model)) as running:
        engine = running.engine()
        assert running.translate("abc head").status == 200
        for pid in (running.process.pid, engine):
            assert "libtorch" not in Path(f"/proc/{pid}/maps").read_text()
        running.process.kill()
        running.process.wait()
        for _ in range(100):
            if not Path(f"/proc/{engine}").exists() or "Z" in Path(f"/proc/{engine}/stat").read_text().split()[2]:
                break
            time.sleep(0.1)
        else:
            pytest.fail("the engine goes on without its front")
