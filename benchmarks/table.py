"""The short tables of the READMEs and of the comparison with the peers, taken from what was measured.

python -m benchmarks.table [--write]        print them, or write them between the marks in these pages
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality_table import EQUAL, QUALITY, equal_table, quality_table, written
from benchmarks.results import Result, best_peer, load_results, ratio, spread
from benchmarks.translators import AUTO

HERE = Path(__file__).parent
RESULTS, END = "RESULTS.json", "<!-- end -->"


@dataclass(frozen=True)
class Headline:
    """A column of a table in RESULTS.json, by what it is called in both languages."""

    question: str
    table: str
    column: str
    ours: str
    english: str
    chinese: str


STEP, LOW_STEP = "float32, target tokens/s", "bfloat16, target tokens/s"
FILE, ALONE = "target tokens/s", "p50, ms"
HEADLINES = [
    *(
        Headline(
            "training", f"`{size}`", column, "Clearhead",
            f"a step of `{size}`, {kind}, tokens/s", f"`{size}` 的一步，{kind}，词元/秒",
        )
        for column, kind in ((STEP, "float32"), (LOW_STEP, "bfloat16"))
        for size in ("tiny", "small", "base")
    ),
    *(
        Headline(
            "pipeline", f"`{size}`", FILE, ours,
            f"train `{size}` from files{english}, tokens/s", f"从文件训练 `{size}`{chinese}，词元/秒",
        )
        for size in ("tiny", "small")
        for ours, english, chinese in (("Clearhead", "", ""), ("Clearhead, Adam", ", Adam", "，Adam"))
    ),
    Headline(
        "translation", "`tiny`, beam 5, 1,000 lines as a file", FILE, AUTO,
        "translate a file, beam 5, tokens/s", "翻译文件，束宽 5，词元/秒",
    ),
    Headline(
        "translation", "`tiny`, greedy, 1,000 lines as a file", FILE, AUTO,
        "translate a file, greedy, tokens/s", "翻译文件，贪心，词元/秒",
    ),
    Headline(
        "translation", "`tiny`, beam 5, one sentence at a time", ALONE, AUTO,
        "one sentence, beam 5, ms", "单句，束宽 5，毫秒",
    ),
    Headline(
        "translation", "`tiny`, greedy, one sentence at a time", ALONE, AUTO,
        "one sentence, greedy, ms", "单句，贪心，毫秒",
    ),
    Headline(
        "translation", "`tiny`, cold start and memory", "cold start, s", AUTO,
        "from nothing to the first sentence, s", "从启动到第一句，秒",
    ),
    Headline(
        "serving", "64 clients at once", "answers/s", "Clearhead",
        "serve 64 clients, answers/s", "64 个客户端，回答/秒",
    ),
]  # fmt: skip
PAGES = ("README.md", "README.zh-CN.md", "docs/comparison.md", "docs/comparison.zh-CN.md")
HEADER = ["", "Clearhead", "the best peer", "", "Clearhead is", "CPU"]
CHINESE_HEADER = ["", "Clearhead", "最好的同类", "", "Clearhead 是其", "CPU"]


def short_table(results: dict[str, Result], page: str) -> str:
    """What was measured of the headlines, ours against the best of the peers."""
    is_chinese = "zh" in page
    rows = [CHINESE_HEADER if is_chinese else HEADER, ["---"] * len(HEADER)]
    for headline in HEADLINES:
        tables = results[headline.question].tables if headline.question in results else []
        for table in (table for table in tables if table.title == headline.table):
            column = next((column for column in table.columns if column.name == headline.column), None)
            peer = best_peer(table, column) if column else None
            if column is None or peer is None:
                continue
            ours, theirs = (table.rows.get(name, {}).get(column.name) for name in (headline.ours, peer))
            if not isinstance(ours, list) or not isinstance(theirs, list):
                continue
            name = headline.chinese if is_chinese else headline.english
            cpu = results[headline.question].machine["cpu"]
            rows.append([name, spread(ours), spread(theirs), peer, ratio(ours, theirs, column.better), cpu])
    return written(rows)


def begin_of(source: str) -> str:
    """The mark after which the table of a file in benchmarks/ stands."""
    return f"<!-- from benchmarks/{source} -->"


def with_table(text: str, table: str, source: str = RESULTS) -> str:
    """A page with this between its two marks."""
    before, begin, rest = text.partition(begin_of(source))
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"there is no {begin_of(source)} … {END} to write between")
    return f"{before}{begin}\n{table}\n{end}{after}"


def tables_of(page: str) -> dict[str, str]:
    """By the file that they are taken from."""
    tables = {RESULTS: short_table(load_results(HERE / RESULTS), page)}
    if page.startswith("README"):
        for source, table in ((QUALITY, quality_table), (EQUAL, equal_table)):
            runs = json.loads((HERE / source).read_text(encoding="utf-8"))
            tables[source] = table(runs, "zh" in page)
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    for page in PAGES if write else PAGES[:2]:
        path = HERE.parent / page
        for source, table in tables_of(page).items():
            if write:
                path.write_text(with_table(path.read_text(encoding="utf-8"), table, source), encoding="utf-8")
            else:
                print(table, end="\n\n")


if __name__ == "__main__":
    main()
