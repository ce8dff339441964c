"""What the page at / is made of."""

import json
import re

import pytest

from clearhead.inspection.report import LANGUAGES, PAGE, page_file
from clearhead.serve import front_page
from clearhead.serve.front_page import SCRIPTS, page_files, texts
from clearhead.translator.guards import WARNINGS

FILES = page_files()
LIVE = {name: FILES[f"/{name}"][0].decode() for name in SCRIPTS}
OURS = {language: json.loads(FILES[f"/live-{language}.json"][0]) for language in LANGUAGES}
INDEX = FILES["/"][0].decode()


def keys(language: str) -> set[str]:
    return {f"{group}.{name}" for group, names in OURS[language].items() for name in names}


def test_all_files_that_the_page_names_are_served_and_no_other_is_left_out() -> None:
    named = set(re.findall(r'(?:src|href)="([^"]+)"', INDEX))
    assert {f"/{name}" for name in named} | {"/", "/index.html"} == {
        path for path in FILES if not path.endswith(".json")
    }
    assert [re.sub(r".*\.", "", path) for path in FILES if FILES[path][1] == "application/octet-stream"] == []


def test_the_reports_files_are_served_as_they_are() -> None:
    for file in PAGE.iterdir():
        if file.name != "index.html":
            assert FILES[f"/{file.name}"][0] == file.read_bytes()
    assert all(script in INDEX for script in re.findall(r'src="([^"]+)"', page_file("index.html")))


def test_the_page_holds_the_texts_of_both_parts() -> None:
    (held,) = re.findall(r'id="strings">(.*?)</script>', INDEX, re.DOTALL)
    assert json.loads(held) == {language: texts(language) for language in LANGUAGES}
    for language in LANGUAGES:
        assert not OURS[language].keys() & json.loads(page_file(f"{language}.json")).keys()


def test_both_languages_say_the_same_things() -> None:
    assert keys("en") == keys("zh")
    places = re.compile(r"\{(\w+)\}")
    for group, names in OURS["en"].items():
        for name, text in names.items():
            assert set(places.findall(text)) == set(places.findall(OURS["zh"][group][name])), f"{group}.{name}"


def test_every_text_is_used_and_every_text_used_is_there() -> None:
    scripts = "\n".join(LIVE.values())
    known = {f"{group}.{name}" for group, names in texts("en").items() for name in names}
    groups = "|".join(texts("en"))
    literal = set(re.findall(rf'"((?:{groups})\.\w+)"', scripts))
    begun = set(re.findall(rf'"((?:{groups})\.)" \+', scripts))
    assert literal <= known
    assert begun == {"error.", "example.", "theme.", "warning."}
    assert [key for key in keys("en") if key not in literal and f"{key.split('.')[0]}." not in begun] == []


def test_every_warning_has_its_words() -> None:
    for language in LANGUAGES:
        assert set(OURS[language]["warning"]) == set(WARNINGS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_make_no_html_of_text_and_stay_short(name: str) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|setAttribute\(\"style|https?:"
    )
    assert re.findall(forbidden, LIVE[name]) == []
    lines = LIVE[name].splitlines()
    assert len(lines) <= 300
    assert max(map(len, lines)) <= 120


def test_the_folder_is_part_of_the_package() -> None:
    assert {file.name for file in front_page.PAGE.iterdir()} >= {"live.js", "live.css", "live-en.json", "live-zh.json"}
