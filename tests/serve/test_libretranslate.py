"""LibreTranslate's contract: its clients work unchanged."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from libretranslatepy import LibreTranslateAPI  # type: ignore[import-untyped]

from clearhead.translator import Translator, load
from tests.tiny_model import write_model

from .running import Running, real, started

pytestmark = pytest.mark.slow
TEXTS = ["abc head a", "bad cabbage j dig", "big", "cage cage a head"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pairs")
    return [write_model(folder / "en-zh"), write_model(folder / "de-fr", languages=("de", "fr"), seed=7)]


@pytest.fixture(scope="module")
def server(models: list[Path]) -> Iterator[Running]:
    with started(real(*models)) as running:
        yield running


@pytest.fixture(scope="module")
def own(models: list[Path]) -> Translator:
    return load(models[0])


def test_its_python_client_works_unchanged(server: Running, own: Translator) -> None:
    client = LibreTranslateAPI(server.url)
    assert [client.translate(text, "en", "zh") for text in TEXTS] == own.translate(TEXTS)
    assert [language["code"] for language in client.languages()] == ["de", "en"]
    assert client.detect("the head of the cage")[0]["language"] == "en"


def test_a_list_is_answered_with_a_list_in_its_order(server: Running, own: Translator) -> None:
    answer = server.translate([*TEXTS, ""])
    assert answer.status == 200
    assert answer.json == {"translatedText": [*own.translate(TEXTS), ""]}


def test_json_and_forms_are_the_same(server: Running) -> None:
    fields = {"q": "abc head", "source": "en", "target": "zh", "alternatives": 1}
    form = urlencode(fields).encode()
    kind = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    assert server.ask("POST", "/translate", form, kind).json == server.ask("POST", "/translate", fields).json


def test_alternatives_come_only_when_asked_for(server: Running) -> None:
    answer = server.translate(TEXTS, alternatives=2).json
    assert set(answer) == {"translatedText", "alternatives"}
    assert [len(others) for others in answer["alternatives"]] == [2] * len(TEXTS)


def test_each_text_has_its_own_language(server: Running) -> None:
    answer = server.translate(["the head is in the cage", "der Kopf ist nicht im"], source="auto", target="zh")
    assert answer.status == 400
    assert answer.json["error"] == "Chinese (zh) is not available as a target language from German (de)"
    answer = server.translate("the head is in the cage", source="auto")
    assert answer.json["detectedLanguage"]["language"] == "en"
    assert 50 < answer.json["detectedLanguage"]["confidence"] <= 100


def test_a_language_to_itself_is_a_copy(server: Running) -> None:
    assert server.translate("a  head", target="en").json == {"translatedText": "a  head"}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "xx"}, "xx is not supported"),
        ({"target": "xx"}, "xx is not supported"),
        ({"format": "html"}, "html format is not supported; expected text, without mark-up"),
        ({"format": 5}, "this format is not supported; expected text, without mark-up"),
        ({"q": [5]}, "Invalid request: q is no text and no list of texts"),
        ({"q": {"a": "b"}}, "Invalid request: q is no text and no list of texts"),
        ({"source": 7}, "Invalid request: source is no text"),
        ({"alternatives": "x"}, "Invalid request: alternatives is no whole number from 0 to 5"),
        ({"alternatives": True}, "Invalid request: alternatives is no whole number from 0 to 5"),
        ({"alternatives": 10_000}, "Invalid request: alternatives is no whole number from 0 to 5"),
        ({"q": "a" * 5_001}, "Invalid request: request (5001) exceeds text limit (5000)"),
        ({"q": ["a"] * 129}, "Invalid request: request (129) exceeds batch limit (128)"),
        ({"q": ["a" * 4_999] * 11}, "Invalid request: request (54989) exceeds text limit (50000) of all texts"),
    ],
)
def test_what_is_wrong_is_said_in_its_words(server: Running, fields: dict[str, Any], error: str) -> None:
    answer = server.ask("POST", "/translate", {"q": "abc", "source": "en", "target": "zh", **fields})
    assert answer.status == 400
    assert answer.json["error"] == error
    assert set(answer.json) == {"error", "code", "request_id"}


def test_unknown_fields_are_ignored_as_there(server: Running) -> None:
    assert server.translate("abc", secret="x").status == 200


def test_what_it_says_of_itself(server: Running) -> None:
    assert server.ask("GET", "/languages").json == [
        {"code": "de", "name": "German", "targets": ["de", "fr"]},
        {"code": "en", "name": "English", "targets": ["en", "zh"]},
    ]
    settings = server.ask("GET", "/frontend/settings").json
    assert (settings["charLimit"], settings["keyRequired"], settings["filesTranslation"]) == (5000, False, False)
    assert server.ask("GET", "/health").json == {"status": "ok"}


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/translate_file", "Files translation are disabled on this server."),
        ("/suggest", "Suggestions are disabled on this server."),
    ],
)
def test_what_it_has_and_we_do_not(server: Running, path: str, error: str) -> None:
    answer = server.ask("POST", path, {})
    assert (answer.status, answer.json["error"]) == (403, error)


def test_models_are_chosen_by_name_and_by_languages(server: Running, models: list[Path]) -> None:
    german = load(models[1])
    by_name = server.ask("POST", "/v1/translate", {"texts": TEXTS, "model": "de-fr"}).json
    by_pair = server.ask("POST", "/v1/translate", {"texts": TEXTS, "source": "de", "target": "fr"}).json
    assert by_name["results"] == by_pair["results"]
    assert [result["text"] for result in by_name["results"]] == german.translate(TEXTS)
    assert [model["name"] for model in server.ask("GET", "/v1/models").json["models"]] == ["en-zh", "de-fr"]
    nothing = server.ask("POST", "/v1/translate", {"texts": TEXTS, "model": "de-fr", "target": "zh"})
    assert (nothing.status, nothing.json["code"]) == (400, "no_model")
    assert "there is en-zh (en to zh), de-fr (de to fr)" in nothing.json["error"]
