"""What docs/ says works: commands and Python run, what is named exists, links lead somewhere, nothing is loaded."""

import contextlib
import dataclasses
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
import torch
from typer.main import get_command

from clearhead import cli
from clearhead.lab.catalogue import EXPERIMENTS
from docs import build, generate

from .test_readme import ROOT, environment, shell_lines, smaller, write_files

DOCS = ROOT / "docs"
COMMANDS = get_command(cli.app).commands  # type: ignore[attr-defined]
NOT_RUN = "# not run by the tests"  # the first line of Python that needs what is not here
VERDICTS = {"holds": "What holds", "holds in part": "What holds in part", "does not hold": "What does not hold"}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(name: str, language: str = "en") -> str:
    return (DOCS / f"{name}{build.LANGUAGES[language]}").read_text(encoding="utf-8")


def all_pages() -> list[tuple[str, str]]:
    return [(name, language) for name in build.PAGES for language in build.LANGUAGES]


# -- what is written in two languages, or written by the code --------------------------------------------------------


@pytest.mark.parametrize("name", build.PAGES)
def test_both_languages_have_the_same_sections_and_code(name: str) -> None:
    def code(language: str) -> list[str]:
        found = [match for match in BLOCK.findall(text_of(name, language)) if match[0] != "text"]
        return [re.sub(r" *#.*$", "", body, flags=re.MULTILINE) for _, body in found]

    assert code("en") == code("zh")
    headings = [len(re.findall(r"^##+ ", text_of(name, language), re.MULTILINE)) for language in build.LANGUAGES]
    assert headings[0] == headings[1]
    links = [sorted(re.findall(r"\]\((\.\./[^)]+|lab/[^)]+)\)", text_of(name, one))) for one in build.LANGUAGES]
    assert links[0] == links[1]


def test_the_pages_of_options_are_up_to_date() -> None:
    assert generate.PAGE.read_text(encoding="utf-8") == generate.page(), "run make docs"
    assert generate.CHINESE_PAGE.read_text(encoding="utf-8") == generate.chinese_page(), "run make docs"


def test_every_option_is_explained_in_chinese() -> None:
    names = {(kind.__name__, field.name) for _, kind in generate.SECTIONS for field in dataclasses.fields(kind)}
    explained = {(kind, name) for kind, words in generate.CHINESE.items() for name in words}
    assert names - explained == set(), "add them to docs/options.zh-CN.toml and run make docs"


@pytest.mark.parametrize(("name", "language"), all_pages())
def test_lines_of_links_are_true(name: str, language: str) -> None:
    text = text_of(name, language)
    assert generate.with_true_lines(text) == text, "run make docs"


def test_a_link_to_what_is_gone_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no no_such_name in clearhead/model/attention\.py"):
        generate.with_true_lines("[`no_such_name`](../clearhead/model/attention.py#L1)")


def test_lines_are_those_of_the_definition() -> None:
    lines = (ROOT / "clearhead/model/attention.py").read_text(encoding="utf-8").splitlines()
    found = generate.lines_of(DOCS / "../clearhead/model/attention.py")
    assert "def causal_mask(" in lines[found["causal_mask"] - 1]
    assert "def attend(" in lines[found["MultiHeadAttention.attend"] - 1]


# -- the lecture notes and the lab -----------------------------------------------------------------------------------


def test_the_page_of_notes_has_every_test_and_experiment() -> None:
    text = text_of("notes")
    tests = {name for name in generate.lines_of(ROOT / "tests/test_notes.py") if name.startswith("test_note_")}
    assert tests - set(re.findall(r"`(test_note_\w+)`", text)) == set()
    claimed = set(re.findall(r"lab/index\.html#([\w-]+)", text))
    assert set(EXPERIMENTS) - claimed == set()


@pytest.mark.parametrize(("name", "language"), all_pages())
def test_named_tests_files_and_experiments_exist(name: str, language: str) -> None:
    text = text_of(name, language)
    experiments = {path.stem for path in (DOCS / "lab").glob("*.json")}
    assert set(re.findall(r"lab/index\.html#([\w-]+)", text)) <= experiments
    paths = re.findall(r"`((?:clearhead|benchmarks|tests|docs|deploy)/[\w./-]*)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_page_of_the_lab_says_what_came_out() -> None:
    """Each experiment stands once, under its verdict, and its numbers are those of the run."""
    sections = dict(re.findall(r"^## (.*)\n((?:(?!^## ).*\n)*)", text_of("lab") + "\n", re.MULTILINE))
    for path in sorted((DOCS / "lab").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        rows = re.findall(rf"^\| \[.*#{path.stem}\) \| (.*) \|$", sections[VERDICTS[result["verdict"]]], re.MULTILINE)
        assert len(rows) == 1, path.stem
        said = result["summary"]["en"] + result["did"]["en"]
        numbers = re.findall(r"\d[\d.,]*\d|\d", re.sub(r"note \d+", "", rows[0]))
        assert [number for number in numbers if number not in said] == [], path.stem


# -- the site --------------------------------------------------------------------------------------------------------


class Links(HTMLParser):
    """What a page loads by itself, what it leads to, and where it can be entered."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.assets: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a":
            self.links.append(found.get("href", ""))
        else:
            self.assets += [found[name] for name in ("src", "href", "srcset", "data") if name in found]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build.main(folder)
    return folder


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 2 * len(build.PAGES)
    for page in pages:
        for asset in Links(page.read_text(encoding="utf-8")).assets:
            assert asset.startswith("data:") or (page.parent / asset).is_file(), f"{page.name} loads {asset}"
    for file in [
        *site.rglob("*.css"),
        *site.rglob("*.js"),
        *(site / "en").glob("*.html"),
        *(site / "zh").glob("*.html"),
    ]:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import|import\(|fetch\(|src=)\s*[\"']?\s*(?:https?:)?//", text), file.name


def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    entrances = {page: Links(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    lost = []
    for page, found in entrances.items():
        if page.is_relative_to(site / "lab"):
            continue  # its links are made by its own tests
        for link in found.links:
            if build.EXTERNAL.match(link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.is_file() or (anchor and target in entrances and anchor not in entrances[target].anchors):
                lost.append(f"{page.relative_to(site)}: {unquote(link)}")
    assert lost == []


def test_the_site_can_be_searched_in_both_languages(site: Path) -> None:
    for language, word in (("en", "back-translation"), ("zh", "回译")):
        index = (site / "assets" / f"search-{language}.js").read_text(encoding="utf-8")
        sections = json.loads(index.removeprefix("window.SECTIONS = ").rstrip(";\n"))
        hits = [address for address, _, _, text in sections if word in text.lower()]
        assert any(address.startswith("cookbook.html#") for address in hits)


def test_text_of_a_page_is_no_markup(site: Path) -> None:
    assert "&lt;/s&gt; 0.51" in (site / "en" / "concept.html").read_text(encoding="utf-8")
    markdown = "# <script>alert(1)</script>\n\n[x](javascript:alert(1))\n"
    page = build.render_text(markdown, build.Page("x", "en", "x", "", [], set()))
    assert "<script" not in build.whole_page(page, [page]).split("<main>")[1].split("</main>")[0]
    assert 'href="javascript' not in page.body


# -- everything that can be typed ------------------------------------------------------------------------------------


def shown_lines(name: str) -> list[str]:
    """Commands after a `$`, which are not run; a trailing backslash is not used on these pages."""
    blocks = [body for kind, body in BLOCK.findall(text_of(name)) if kind == "console"]
    lines = [line for body in blocks for line in body.splitlines()]
    return [line.removeprefix("$ ").split("  #")[0].strip() for line in lines if line.startswith("$ ")]


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of each `clearhead …` in a shell line."""
    for found in re.finditer(r"(?:^|\| |-m )clearhead ([^|<>]*)", line):
        yield shlex.split(found[1])


@pytest.mark.parametrize("name", build.PAGES)
def test_every_option_that_is_shown_exists(name: str) -> None:
    inline = [code for code in re.findall(r"`(clearhead [^`\n]+)`", text_of(name)) if "…" not in code]
    for line in shell_lines(f"docs/{name}.md") + shown_lines(name) + inline:
        for command, *arguments in calls(line):
            if command.startswith("-"):
                continue
            known = {option for parameter in COMMANDS[command].params for option in parameter.opts}
            used = {word.split("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
            assert used <= known, line


@contextlib.contextmanager
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the folder of the examples, with this process's threads and random numbers as they were afterwards."""
    threads = torch.get_num_threads()
    with monkeypatch.context() as patch, torch.random.fork_rng():
        patch.chdir(folder)
        patch.setenv("CLEARHEAD_CACHE", str(folder / "cache"))
        yield
    torch.set_num_threads(threads)


def run_line(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command: in this process, which has torch already, unless a shell is needed."""
    line = smaller(line)
    command, _, output = line.partition(" > ")
    if not command.startswith("clearhead ") or re.search(r"[|<]", command):
        ran = subprocess.run(line, shell=True, cwd=folder, env=environment(folder), capture_output=True, text=True)
        assert ran.returncode == 0, f"{line}\n{ran.stderr}"
        return
    arguments = shlex.split(command)
    written = io.StringIO()
    with inside(folder, monkeypatch), contextlib.redirect_stdout(written):
        monkeypatch.setattr(sys, "argv", arguments)
        assert cli.run(arguments[1:]) == 0, line
    if output:
        (folder / output.strip()).write_text(written.getvalue(), encoding="utf-8")


def write_more_files(folder: Path) -> None:
    """What the pages of docs/ name besides README's."""
    read = {name: (folder / name).read_text(encoding="utf-8") for name in ("train.en", "train.de")}
    lines = list(zip(read["train.en"].splitlines(), read["train.de"].splitlines(), strict=True))
    files = {
        "domain.en": read["train.en"],
        "domain.de": read["train.de"],
        "mono.de": "".join(f"{target}\n" for _, target in lines[::7]),
        "pairs.tsv": "".join(f"{source}\t{target}\n" for source, target in lines),
        "words.txt": "".join(f"{' '.join(source.replace(' ', ''))}\n" for source, _ in lines),
        "sounds.txt": "".join(f"{' '.join(target.replace(' ', '').upper())}\n" for _, target in lines),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files that the pages name, and `my-run`, trained by the first page's own command."""
    made = tmp_path_factory.mktemp("examples")
    write_files(made)
    write_more_files(made)
    with pytest.MonkeyPatch.context() as monkeypatch:
        for line in shell_lines("docs/index.md"):
            if line.startswith("clearhead train"):
                run_line(line, made, monkeypatch)
        assert (made / "my-run" / "model").is_dir()
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in build.PAGES if shell_lines(f"docs/{name}.md")])
def test_the_commands_of_a_page_run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in shell_lines(f"docs/{name}.md"):
        run_line(line, folder, monkeypatch)


def printed(name: str) -> dict[str, str]:
    """Python blocks that a block of text follows directly, which is what they print."""
    found = list(BLOCK.finditer(text_of(name)))
    pairs = [(one, two) for one, two in pairwise(found) if text_of(name)[one.end() : two.start()].isspace()]
    return {one[2]: two[2] for one, two in pairs if (one[1], two[1]) == ("python", "text")}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in build.PAGES if "```python" in text_of(name)])
def test_the_python_of_a_page_runs_and_prints_what_it_says(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    outputs = printed(name)
    with inside(folder, monkeypatch):
        for kind, body in BLOCK.findall(text_of(name)):
            if kind != "python":
                continue
            code, written = compile(body, f"docs/{name}.md", "exec"), io.StringIO()
            if body.startswith(NOT_RUN):
                continue
            with contextlib.redirect_stdout(written):
                exec(code, names)
            assert written.getvalue()
            if body in outputs:
                assert written.getvalue() == outputs[body]
    assert (name == "concept") == bool(outputs)


@pytest.mark.slow
def test_the_tour_runs(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(DOCS / "tour.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "stored without outputs"
    resources = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources)
    client.execute(env=environment(tmp_path))
    shown = "".join(json.dumps(cell.outputs, ensure_ascii=False) for cell in code)
    assert "2026年" in shown
    assert "<table>" in shown
    assert "iframe" in shown
    assert (tmp_path / "tour" / "report.html").stat().st_size > 100_000
    assert (tmp_path / "tour" / "ct2" / "model.bin").exists()
