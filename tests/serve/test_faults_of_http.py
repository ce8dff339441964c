"""Faults F43, F44, F45, F47 and F48: slow, broken and hostile requests. A raw socket says what no client would."""

import json
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import UserError
from clearhead.serve.keys import Rates, read_keys
from clearhead.serve.options import Limits
from clearhead.serve.refusal import RefusedError

from .running import Running, question, request_bytes, started, with_options

slow = pytest.mark.slow
QUICK = {"header_seconds": 0.6, "request_seconds": 1.2, "stall_seconds": 1.0, "idle_seconds": 1.0}
KEY = "correct-horse-battery"


@pytest.fixture(scope="module")
def impatient(model: Path) -> Iterator[Running]:
    with started(with_options(model, seconds=0.0, limits=QUICK)) as running:
        yield running


def say(running: Running, *parts: bytes, pause: float = 0.0, patience: float = 10.0) -> bytes:
    """Send the parts, and read until the server closes."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=patience) as client:
        for part in parts:
            try:
                client.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(pause)
        received = b""
        try:
            while block := client.recv(1 << 16):
                received += block
        except ConnectionResetError:
            pass
        return received


def status_of(received: bytes) -> int:
    return int(received.split(b" ", 2)[1])


# -- F43 --------------------------------------------------------------------------------------------------------------


@slow
@pytest.mark.parametrize(
    ("parts", "pause", "most"),
    [
        ([b""], 0.0, 2.0),
        ([b"GET /livez HT"], 0.0, 2.0),
        ([bytes([byte]) for byte in b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n"], 0.2, 4.0),
        ([request_bytes("POST", "/translate", question("abc"))[:-3]], 0.0, 3.0),
        ([request_bytes("POST", "/translate", question("abc"))[:-9], *[b" "] * 8], 0.5, 5.0),
    ],
    ids=["nothing", "half a line", "a byte now and then", "half a body", "a body in drops"],
)
def test_F43_slow_senders_are_shown_the_door(impatient: Running, parts: list[bytes], pause: float, most: float) -> None:
    started = time.monotonic()
    received = say(impatient, *parts, pause=pause)
    assert time.monotonic() - started < most + 1.0
    assert status_of(received) == 408
    assert json.loads(received.partition(b"\r\n\r\n")[2])["code"] == "too_slow"


@slow
def test_F43_a_connection_that_rests_after_an_answer_is_closed(impatient: Running) -> None:
    request = request_bytes("GET", "/livez").replace(b"connection: close", b"connection: keep-alive")
    started = time.monotonic()
    assert status_of(say(impatient, request, request)) == 200
    assert 0.5 < time.monotonic() - started < 4.0


@slow
def test_F43_who_never_reads_is_cut_off(impatient: Running) -> None:
    keep = request_bytes("GET", "/spec").replace(b"connection: close", b"connection: keep-alive")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", impatient.port))
        client.settimeout(10.0)
        started = time.monotonic()
        with pytest.raises(ConnectionError):  # while it is still asking for more and more
            client.sendall(keep * 300_000)
        assert time.monotonic() - started < 9.0
    assert impatient.translate("and the others").status == 200


@slow
def test_F43_five_hundred_of_them_are_in_nobodys_way(impatient: Running) -> None:
    clients = [socket.create_connection(("127.0.0.1", impatient.port)) for _ in range(499)]
    for client in clients:
        client.sendall(b"POST /translate HTTP/1.1\r\n")
    answers = [impatient.translate(f"text {n}") for n in range(7)]
    assert [answer.json["translatedText"] for answer in answers] == [f"text {n}" for n in range(7)]
    assert impatient.ask("GET", "/livez").seconds < 1.0
    for client in clients:
        client.close()


# -- F44 --------------------------------------------------------------------------------------------------------------

HEAD = b"POST /translate HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
BODY = json.dumps(question("abc")).encode()
LENGTH = b"content-length: %d\r\n" % len(BODY)

BROKEN: dict[str, tuple[list[bytes], set[int]]] = {
    "oversize by its length": ([HEAD + b"content-length: 1048577\r\n\r\n"], {413}),
    "oversize in chunks": (
        [HEAD + b"transfer-encoding: chunked\r\n\r\n", *[b"10000\r\n" + b" " * 65536 + b"\r\n"] * 20],
        {413},
    ),
    "length and chunks": ([HEAD + LENGTH + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"], {400}),
    "two lengths": ([HEAD + LENGTH + b"content-length: 3\r\n\r\n" + BODY], {400}),
    "negative length": ([HEAD + b"content-length: -5\r\n\r\n"], {400}),
    "length in words": ([HEAD + b"content-length: ten\r\n\r\n"], {400}),
    "endless length": ([HEAD + b"content-length: " + b"9" * 500 + b"\r\n\r\n"], {400, 413}),
    "unknown coding": ([HEAD + b"transfer-encoding: gzip\r\n\r\n"], {400, 501}),
    "chunk without a size": ([HEAD + b"transfer-encoding: chunked\r\n\r\nxyz\r\n"], {400}),
    "70 kB of one header": ([HEAD + b"x-long: " + b"a" * 70_000 + b"\r\n\r\n"], {400, 431}),
    "70 kB in one go, complete": (
        [b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx-long: " + b"a" * 70_000 + b"\r\n\r\n"],
        {400, 431},
    ),
    "a thousand headers": ([HEAD + b"".join(b"x-%d: 1\r\n" % n for n in range(1000)) + b"\r\n"], {400, 431}),
    "a path without end": ([b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"], {400, 414, 431}),
    "TLS": ([bytes.fromhex("16030100c8010000c40303") + bytes(range(200)) + b"\r\n\r\n"], {400}),
    "HTTP/0.9": ([b"GET /\r\n\r\n"], {400}),
    "HTTP/2": ([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], {400}),
    "HTTP/1.0 without a host": ([b"GET /livez HTTP/1.0\r\n\r\n"], {421}),
    "no host": ([b"GET /livez HTTP/1.1\r\n\r\n"], {400, 421}),
    "two hosts": ([b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n\r\n"], {400, 421}),
    "bare line feeds in a header": ([HEAD + b"x: a\nb\r\n\r\n"], {400}),
    "a space before the colon": ([b"GET /livez HTTP/1.1\r\nhost : 127.0.0.1\r\n\r\n"], {400}),
    "a zero byte": ([b"GET /li\0vez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"], {400}),
    "a method of its own": ([b"BREW /translate HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"], {405}),
    "an upgrade": (
        [b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"],
        {200, 400, 426},
    ),
    "more than was announced": ([HEAD + LENGTH + b"\r\n" + BODY + b"GARBAGE\r\n\r\n"], {200}),
    "path traversal": ([b"GET /../../etc/passwd HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"], {404}),
    "encoded traversal": (
        [b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"],
        {404},
    ),
}


@slow
@pytest.mark.parametrize("name", list(BROKEN))
def test_F44_broken_HTTP_is_refused_and_the_connection_closed(impatient: Running, name: str) -> None:
    parts, expected = BROKEN[name]
    received = say(impatient, *parts)
    assert status_of(received) in expected
    assert b"Traceback" not in received
    assert b"\r\nserver:" not in received.lower()
    assert impatient.translate("next").json == {"translatedText": "next"}


@slow
def test_F44_what_is_unusual_but_right_is_answered(impatient: Running) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[:5], BODY[5:])) + b"0\r\n\r\n"
    assert status_of(say(impatient, HEAD + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n" + chunks)) == 200
    expecting = say(impatient, HEAD + LENGTH + b"connection: close\r\nexpect: 100-continue\r\n\r\n", BODY, pause=0.1)
    assert expecting.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 200 " in expecting
    first, last = (request_bytes("GET", "/livez"), request_bytes("GET", "/livez"))
    piped = say(impatient, first.replace(b"connection: close", b"connection: keep-alive") + last)
    assert piped.count(b"HTTP/1.1 200 ") == 2


# -- F45 --------------------------------------------------------------------------------------------------------------

MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{q: abc}",
    "cut off": BODY[:-1],
    "NaN": b'{"q": "abc", "source": "en", "target": "zh", "alternatives": NaN}',
    "Infinity": b'{"q": "abc", "source": "en", "target": "zh", "alternatives": -Infinity}',
    "a field twice": b'{"q": "abc", "q": "abd", "source": "en", "target": "zh"}',
    "depth of 100,000": b'{"q": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "depth without end": b"[" * 500_000,
    "a number of 5,000 digits": b'{"q": "abc", "source": "en", "target": "zh", "alternatives": ' + b"9" * 5_000 + b"}",
    "a list": b"[1, 2]",
    "a text": b'"abc"',
    "no UTF-8": b'{"q": "\xff\xfe", "source": "en", "target": "zh"}',
    "half a surrogate": b'{"q": "\\ud800", "source": "en", "target": "zh"}',
    "escapes without end": b'{"q": "' + b'\\"' * 100_000,
}


@slow
@pytest.mark.parametrize("name", list(MALFORMED))
@pytest.mark.parametrize("path", ["/translate", "/v1/translate"])
def test_F45_malformed_JSON_is_a_400_at_once(copier: Running, path: str, name: str) -> None:
    answer = copier.ask("POST", path, MALFORMED[name], {"content-type": "application/json"})
    assert answer.status == 400
    assert answer.seconds < 2.0
    assert len(answer.json["error"]) < 400
    assert copier.ask("GET", "/livez").status == 200


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/translate", {}, "request has no texts"),
    ("/v1/translate", {"texts": "abc"}, "request.texts is 'abc', text; expected a list"),
    ("/v1/translate", {"texts": []}, "texts is out of bounds; expected minItems 1"),
    ("/v1/translate", {"texts": ["a"] * 129}, "texts is out of bounds; expected maxItems 128"),
    ("/v1/translate", {"texts": ["a", 5]}, "request.texts is"),
    ("/v1/translate", {"texts": ["a"], "beams": 5}, "request has no option 'beams'; did you mean 'beam'?"),
    ("/v1/translate", {"texts": ["a"], "beam": -1}, "beam is out of bounds; expected minimum 1"),
    ("/v1/translate", {"texts": ["a"], "beam": 9}, "beam is out of bounds; expected maximum 8"),
    ("/v1/translate", {"texts": ["a"], "beam": 2.5}, "request.beam is 2.5"),
    ("/v1/translate", {"texts": ["a"], "beam": True}, "request.beam is True"),
    ("/v1/translate", {"texts": ["a"], "n_best": 10**9}, "n_best is out of bounds; expected maximum 8"),
    ("/v1/translate", {"texts": ["a"], "beam": 2, "n_best": 3}, "n_best is 3, but a beam of 2 finds no more than 2"),
    ("/v1/translate", {"texts": ["a"], "timeout": 0}, "timeout is out of bounds; expected minimum 0.001"),
    ("/v1/translate", {"texts": ["a", "b"], "stream": True}, "a stream is of one text, and there are 2; ask for each"),
    ("/v1/translate", {"texts": ["a"], "model": "nothing"}, "no model fits"),
    ("/v1/score", {"sources": ["a"], "targets": ["b", "c"]}, "there are 1 sources and 2 targets; expected as many"),
    ("/v1/score", {"sources": [""], "targets": ["b"]}, "a text has 0 tokens; expected 1 to 1024"),
    ("/v1/tokenize", {"texts": ["a"], "side": "left"}, "side is out of bounds; expected enum"),
    ("/v1/inspect", {"text": ""}, "text is out of bounds; expected minLength 1"),
    ("/v1/translate", {"texts": ["a number"]}, "the model cannot do this: no number will do"),
]


@slow
@pytest.mark.parametrize(("path", "body", "error"), WRONG)
def test_F45_what_is_wrong_is_named(copier: Running, path: str, body: dict[str, Any], error: str) -> None:
    answer = copier.ask("POST", path, body)
    assert answer.status == 400
    assert answer.json["error"].startswith(error)


@slow
def test_F45_one_bad_row_does_not_spoil_the_others(copier: Running) -> None:
    import asyncio

    from .running import ask

    async def three() -> list[int]:
        texts = ["one", "a number", "three"]
        return [
            answer.status
            for answer in await asyncio.gather(*(ask(copier.port, "POST", "/translate", question(t)) for t in texts))
        ]

    assert asyncio.run(three()) == [200, 400, 200]


@slow
@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "", "application/xml"])
def test_F45_other_content_types_are_refused(copier: Running, kind: str) -> None:
    answer = copier.ask("POST", "/translate", BODY, {"content-type": kind})
    assert (answer.status, answer.json["code"]) == (415, "unsupported_media_type")


@slow
@pytest.mark.parametrize("form", [b"q=%ff&source=en&target=zh", b"q=\xff", b"&".join([b"a=b"] * 99)])
def test_F45_bad_forms_are_refused(copier: Running, form: bytes) -> None:
    answer = copier.ask("POST", "/translate", form, {"content-type": "application/x-www-form-urlencoded"})
    assert (answer.status, answer.json["code"]) == (400, "bad_form")
    answer = copier.ask("POST", "/v1/translate", b"texts=a", {"content-type": "application/x-www-form-urlencoded"})
    assert answer.status == 415


# -- F47, F48 ---------------------------------------------------------------------------------------------------------


@slow
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:5000", "[::1", ""])
def test_F47_another_name_is_not_ours(copier: Running, host: str) -> None:
    for method, path, body in (("GET", "/languages", None), ("POST", "/translate", question("abc"))):
        answer = copier.ask(method, path, body, {"host": host})
        assert (answer.status, answer.json["code"]) == (421, "bad_host")


@slow
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1:80", "[::1]:5000"])
def test_F47_our_names_are(copier: Running, host: str) -> None:
    assert copier.ask("GET", "/languages", None, {"host": host}).status == 200


@slow
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_F47_pages_of_other_sites_may_not_ask(copier: Running, headers: dict[str, str]) -> None:
    answer = copier.ask("POST", "/translate", question("abc"), headers)
    assert (answer.status, answer.json["code"]) == (403, "foreign_origin")


@slow
def test_F47_our_own_page_may_and_no_preflight_is_granted(copier: Running) -> None:
    own = {"origin": copier.url, "sec-fetch-site": "same-origin"}
    assert copier.ask("POST", "/translate", question("abc"), own).status == 200
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answer = copier.ask("OPTIONS", "/translate", None, asked)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@slow
def test_F47_every_answer_has_the_headers_that_keep_a_browser_in_check(copier: Running) -> None:
    for path in ("/livez", "/languages", "/nothing", "/metrics"):
        headers = copier.ask("GET", path).headers
        assert "require-trusted-types-for 'script'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


@pytest.fixture(scope="module")
def locked(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    file.touch(mode=0o600)
    file.write_text(f"# who\n{KEY} friend\nanother-key-of-someone\n")
    with started(with_options(model, seconds=0.0, api_keys=str(file))) as running:
        yield running


@slow
def test_F48_without_a_key_there_is_nothing(locked: Running) -> None:
    for path in ("/translate", "/v1/translate"):
        answer = locked.ask("POST", f"{path}?api_key={KEY}", question("abc"))
        assert answer.status == 403
        assert answer.json["error"] == "Please contact the server operator to get an API key"
    wrong = {"authorization": "Bearer wrong-horse-battery"}
    assert locked.ask("POST", "/v1/translate", {"texts": ["abc"]}, wrong).json["error"] == "Invalid API key"
    assert locked.translate("abc", api_key="wrong").json["error"] == "Invalid API key"
    assert locked.ask("GET", "/metrics").status == 403
    assert locked.ask("GET", "/livez").status == 200
    assert locked.ask("GET", "/frontend/settings").json["keyRequired"] is True


@slow
def test_F48_with_a_key_all_is_there_and_it_is_never_logged(locked: Running) -> None:
    bearer = {"authorization": f"Bearer {KEY}"}
    assert locked.translate("abc", api_key=KEY).json == {"translatedText": "abc"}
    assert locked.ask("POST", "/v1/translate", {"texts": ["my secret text"]}, bearer).status == 200
    metrics = locked.ask("GET", "/metrics", None, bearer).content.decode()
    logged = "\n".join(locked.lines)
    assert '"label": "friend"' in logged
    for private in (KEY, "wrong-horse", "my secret", "api_key"):
        assert private not in logged
        assert private not in metrics


@pytest.mark.parametrize(
    ("content", "mode", "found"),
    [
        ("short\n", 0o600, "line 1 is no key of 16 characters"),
        ("a-key-that-is-long-enough one two\n", 0o600, "line 1 is no key"),
        ("# none\n\n", 0o600, "has no keys"),
        ("a-key-that-is-long-enough\n", 0o644, "can be read by others (mode 644)"),
    ],
)
def test_F48_a_file_of_keys_that_is_none_is_refused(tmp_path: Path, content: str, mode: int, found: str) -> None:
    file = tmp_path / "keys"
    file.write_text(content)
    file.chmod(mode)
    assert stat.S_IMODE(file.stat().st_mode) == mode
    with pytest.raises(UserError, match="keys") as error:
        read_keys(file)
    assert found in str(error.value)


def test_F48_a_missing_file_of_keys_and_a_hash_in_place_of_a_key(tmp_path: Path) -> None:
    import hashlib

    with pytest.raises(UserError, match="does not exist"):
        read_keys(tmp_path / "nothing")
    with pytest.raises(UserError, match="cannot read"):
        read_keys(tmp_path)
    file = tmp_path / "keys"
    file.touch(mode=0o600)
    file.write_text(f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()} hashed\n")
    assert read_keys(file).label(KEY) == "hashed"
    assert read_keys(file).label(KEY + "x") is None


def test_a_client_gets_its_share_a_minute_and_no_more() -> None:
    now = 100.0
    rates = Rates(Limits(requests_per_minute=3, characters_per_minute=70), lambda: now)
    for _ in range(3):
        rates.spend("one", 7)
    with pytest.raises(RefusedError, match="Slowdown") as refused:
        rates.spend("one", 7)
    assert refused.value.status == 429
    assert refused.value.headers() == {"retry-after": "20"}
    rates.spend("another", 70)
    with pytest.raises(RefusedError):
        rates.spend("another", 1)
    now += 20.0
    rates.spend("one", 7)
