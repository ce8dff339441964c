"""A request's bytes to checked values: strict JSON or a form, within limits; what is wrong is a 400 that says so."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from clearhead.data.corpus import SURROGATE

from .options import Limits
from .refusal import RefusedError, bad_request

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
MOST_FIELDS = 32
LONGEST_NUMBER = 32  # digits
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|$)', re.DOTALL)  # also one that does not end
BRACKET = re.compile(r"[\[\]{}]")
MESSAGE = 300  # characters of what was wrong that are sent back


async def read_values(request: Request, limits: Limits) -> tuple[dict[str, Any], bool]:
    """The fields of a JSON object or a form, and whether it was a form, in which all values are text."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in (JSON, FORM):
        message = f"the content type is {kind[:60]!r}; expected {JSON} or {FORM}"
        raise RefusedError(415, "unsupported_media_type", message)
    content = await read_content(request, limits)
    values = form_values(content) if kind == FORM else json_object(content, limits.json_depth)
    return values, kind == FORM


async def read_content(request: Request, limits: Limits) -> bytes:
    """At most as much as the limit: by what is announced, before it is read, and by what comes."""
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or len(announced) > LONGEST_NUMBER or int(announced) > limits.body:
        raise _too_large(limits)
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > limits.body:
                raise _too_large(limits)
    except ClientDisconnect as error:
        raise RefusedError(400, "disconnected", "the request ended early") from error
    return bytes(content)


def json_object(content: bytes, depth: int) -> dict[str, Any]:
    """Without NaN, doubled keys, endless numbers and nesting that nobody needs."""
    text = _unicode(content)
    if _depth(text) > depth:
        raise bad_request(f"the body is nested deeper than {depth}; expected a plain JSON object", "bad_json")
    try:
        values = json.loads(text, parse_constant=_refuse, parse_int=_whole, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is no JSON: {str(error)[:MESSAGE]}", "bad_json") from error
    if not isinstance(values, dict):
        raise bad_request("the body is no JSON object; expected one with named fields", "bad_json")
    if "\\u" in text and SURROGATE.search(json.dumps(values, ensure_ascii=False)):  # UTF-8 itself has none
        raise bad_request("the body has half a surrogate pair; expected Unicode text", "invalid_unicode")
    return values


def form_values(content: bytes) -> dict[str, Any]:
    """The last of fields that come twice, as everywhere. Raw UTF-8, which curl -d sends, is read as what it says."""
    fields = content.count(b"&") + 1
    if fields > MOST_FIELDS:
        raise bad_request(f"the form has {fields} fields; expected at most {MOST_FIELDS}", "bad_form")
    try:
        pairs = parse_qsl(content.decode("utf-8"), keep_blank_values=True, errors="strict")
    except ValueError as error:  # UnicodeDecodeError too
        raise bad_request("the body is no form of UTF-8 text, raw or in percent encoding", "bad_form") from error
    return dict(pairs)


def _unicode(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise bad_request("the body is no UTF-8; expected UTF-8 text", "invalid_unicode") from error


def _depth(text: str) -> int:
    """The deepest nesting of brackets outside of strings, in one pass."""
    depth = deepest = 0
    for bracket in BRACKET.findall(STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a field comes twice")
    return values


def _too_large(limits: Limits) -> RefusedError:
    return RefusedError(413, "too_large", f"the body is larger than {limits.body} bytes; send less at once")
