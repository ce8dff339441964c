"""Builds the site of docs/ in English and Chinese: plain files that a browser opens from disk, with no network.

    python -m docs.build [FOLDER]

X.md becomes FOLDER/en/X.html and X.zh-CN.md FOLDER/zh/X.html. What a page links to in the repository is shown as a page
too, with its line numbers, so that "file and line" can be followed without leaving the site.
"""

import html
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from string import Template

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

DOCS = Path(__file__).parent
ROOT = DOCS.parent
# The order of the pages; every one of them is there in both languages.
PAGES = ["index", "concept", "reading", "cookbook", "uses", "options", "formats", "comparison", "lab", "notes", "faq"]
LANGUAGES = {"en": ".md", "zh": ".zh-CN.md"}
WORDS = {
    "en": {"search": "Search", "other": "中文", "contents": "On this page", "pages": "Pages", "code": "en"},
    "zh": {"search": "搜索", "other": "English", "contents": "本页内容", "pages": "目录", "code": "zh-CN"},
}
COPIED = ["lab", "images", "tour.ipynb"]  # as they are
EXTERNAL = re.compile(r"[a-z]+:")
CHINESE = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")


@dataclass
class Page:
    """One page in one language; `linked` collects the files of the repository that it refers to."""

    name: str
    language: str
    title: str
    body: str
    sections: list[tuple[str, str, str]]  # anchor, heading, text
    linked: set[Path]


def main(folder: Path) -> None:
    """Write the site; what an earlier build left in the folder is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "assets").mkdir(parents=True)
    for name in COPIED:
        copy = shutil.copytree if (DOCS / name).is_dir() else shutil.copy2
        copy(DOCS / name, folder / name)
    for name in ("style.css", "page.js"):
        shutil.copy2(DOCS / "site" / name, folder / "assets" / name)
    colours = HtmlFormatter(style="friendly").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    style = f"{colours}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
    (folder / "assets" / "code.css").write_text(style, encoding="utf-8")
    shutil.copy2(DOCS / "site" / "index.html", folder / "index.html")
    linked: set[Path] = set()
    for language in LANGUAGES:
        pages = [render(name, language) for name in PAGES]
        (folder / language).mkdir()
        for page in pages:
            linked |= page.linked
            path = folder / language / f"{page.name}.html"
            path.write_text(whole_page(page, pages), encoding="utf-8")
        index = f"window.SECTIONS = {json.dumps(search_index(pages), ensure_ascii=False)};\n"
        (folder / "assets" / f"search-{language}.js").write_text(index, encoding="utf-8")
    for path in sorted(linked):
        write_source(path, folder / "source" / f"{path}.html")


def render(name: str, language: str) -> Page:
    """A Markdown file as HTML, its links pointing into the site."""
    path = DOCS / f"{name}{LANGUAGES[language]}"
    return render_text(path.read_text(encoding="utf-8"), Page(name, language, name, "", [], set()))


def render_text(text: str, page: Page) -> Page:
    """The page, with its body and sections."""
    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted}).enable("table")
    tokens = markdown.parse(text)
    anchor, heading, words = "", "", []  # type: str, str, list[str]
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _plain(tokens[place + 1])
            page.sections.append((anchor, heading, " ".join(words)))
            anchor, heading, words = slug(text), text, []
            token.attrSet("id", anchor)
            if token.tag == "h1":
                page.title, anchor = text, ""
        elif token.type == "inline":
            words.append(_plain(token))
            _turn_links(token.children or [], page)
            _join_lines(token.children or [])
        elif token.type == "fence":
            words.append(token.content)
    page.sections.append((anchor, heading, " ".join(words)))
    body = markdown.renderer.render(tokens, markdown.options, {})
    page.body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    return page


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    kept = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
    return kept.strip().replace(" ", "-")


def target_of(link: str, page: Page) -> str:
    """Where a link of a Markdown file leads in the site."""
    if EXTERNAL.match(link) or link.startswith("#"):
        return link
    path, _, anchor = link.partition("#")
    anchor = f"#{anchor}" if anchor else ""
    for ending in reversed(LANGUAGES.values()):
        if path.endswith(ending) and path.removesuffix(ending) in PAGES:
            language = next(key for key, value in LANGUAGES.items() if value == ending)
            folder = "" if language == page.language else f"../{language}/"
            return f"{folder}{path.removesuffix(ending)}.html{anchor}"
    if path.split("/")[0] in COPIED:
        return f"../{path}{anchor}"
    real = Path(os.path.normpath(DOCS / path)).relative_to(ROOT)
    if (ROOT / real).is_file():
        page.linked.add(real)
        return f"../source/{real}.html{anchor}"
    raise ValueError(f"{page.name} ({page.language}) links to {link}, which is no page and no file of the repository")


def _turn_links(tokens: Iterable[Token], page: Page) -> None:
    for token in tokens:
        token.content = re.sub(r"(?<=\d) (?=%)", "\u00a0", token.content)  # a number and its sign stay together
        for name in ("href", "src"):
            if name in token.attrs:
                token.attrSet(name, target_of(str(token.attrs[name]), page))


def _join_lines(tokens: list[Token]) -> None:
    """Chinese has no spaces: where a line ends in it or begins with it, the next line follows without one."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.type == "softbreak" and (CHINESE.search(before.content[-1:]) or CHINESE.search(after.content[:1])):
            token.type, token.content = "text", ""


def _plain(inline: Token) -> str:
    return "".join(t.content for t in inline.children or [] if t.type in ("text", "code_inline", "softbreak")).strip()


def _highlighted(code: str, name: str, _attributes: str) -> str:
    try:
        lexer = get_lexer_by_name(name.split(" ")[0] or "text")
    except ClassNotFound:
        lexer = TextLexer()
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def whole_page(page: Page, pages: list[Page]) -> str:
    """The page in its frame: the other pages, the other language, what is on it, search."""
    here = ' aria-current="page"'
    links = [f'<a href="{one.name}.html"{here if one is page else ""}>{html.escape(one.title)}</a>' for one in pages]
    contents = [
        f'<a href="#{html.escape(anchor)}">{html.escape(heading)}</a>'
        for anchor, heading, _ in page.sections
        if anchor and f'<h2 id="{anchor}"' in page.body
    ]
    words = WORDS[page.language]
    return Template((DOCS / "site" / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(page.title),
        pages="\n".join(links),
        contents="\n".join(contents),
        contents_title=words["contents"] if contents else "",
        body=page.body,
        language=page.language,
        code=words["code"],
        search=words["search"],
        pages_title=words["pages"],
        other=words["other"],
        other_page=f"../{'zh' if page.language == 'en' else 'en'}/{page.name}.html",
    )


def search_index(pages: list[Page]) -> list[list[str]]:
    """[address, page, heading, text] of each section; the browser looks for the words in them."""
    return [
        [f"{page.name}.html{'#' + anchor if anchor else ''}", page.title, heading, text]
        for page in pages
        for anchor, heading, text in page.sections
        if heading or text
    ]


def write_source(path: Path, out: Path) -> None:
    """A file of the repository with line numbers; line 12 is at #L12."""
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    code = highlight((ROOT / path).read_text(encoding="utf-8"), lexer, HtmlFormatter(nowrap=True))
    lines = [
        f'<span class="line" id="L{number}"><a href="#L{number}">{number}</a>{line}</span>'
        for number, line in enumerate(code.rstrip("\n").split("\n"), start=1)
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    template = Template((DOCS / "site" / "source.html").read_text(encoding="utf-8"))
    root = "../" * len(path.parts)
    out.write_text(template.substitute(path=html.escape(str(path)), root=root, lines="".join(lines)), "utf-8")


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    main(chosen)
    print(f"wrote {chosen / 'index.html'}")
