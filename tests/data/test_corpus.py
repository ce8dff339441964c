"""Faults F21-F25: whatever the files hold, pairs stay aligned, drops are counted, and errors help."""

import gzip
import hashlib
import json
import os
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from clearhead.data import corpus
from clearhead.data.corpus import Pair, Report, count_lines, fingerprint, read_pairs
from clearhead.data.languages import how_to_name, languages, looks_swapped, require_codes
from clearhead.data.options import DataOptions
from clearhead.errors import BAD_DATA, DISK, MISSING, USAGE, UserError


def write(folder: Path, **files: bytes) -> list[Path]:
    """`train__en=b"…"` becomes the file train.en."""
    paths = [folder / name.replace("__", ".") for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    return paths


def read(*paths: Path) -> tuple[list[Pair], Report]:
    report = Report()
    return list(read_pairs(paths, report)), report


def fails(*paths: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        read(*paths)
    return caught.value


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


# --------------------------------------------------------------------------------------- F21: numbers of lines


def sentences(n: int) -> list[str]:
    """Lengths that look random but are the same in each run."""
    return ["w" * (1 + hashlib.sha256(b"%d" % i).digest()[0]) for i in range(n)]


@pytest.mark.parametrize("extra", [1, 2, 1000])
@pytest.mark.parametrize("longer", ["source", "target"])
def test_F21_line_counts_differ(tmp_path: Path, extra: int, longer: str) -> None:
    texts = sentences(3000)
    more = texts[:1234] + sentences(5000)[-extra:] + texts[1234:]
    sides = (more, texts) if longer == "source" else (texts, more)
    source, target = write(
        tmp_path, **{f"{n}__txt": "\n".join(t).encode() + b"\n" for n, t in zip("ab", sides, strict=True)}
    )
    error = fails(source, target)
    assert (error.code, error.exit_code) == ("LINE_COUNTS", BAD_DATA)
    assert f"{source} has {len(sides[0])} lines but {target} has {len(sides[1])}" in str(error)
    assert f"{source if longer == 'source' else target} seems to have {extra} too many near line " in str(error)
    near = int(str(error).split("near line ")[1].split(";")[0])
    assert abs(near - 1235) <= 3


def test_F21_place_is_not_guessed_without_ground(tmp_path: Path) -> None:
    error = fails(*write(tmp_path, a__en=b"same\n" * 100, a__de=b"gleich\n" * 101))
    assert "has 100 lines but" in str(error)
    assert "near line" not in str(error)
    assert "near line" not in str(fails(*write(tmp_path, a__en=b"x\n", a__de=b"y\nz\n")))


def test_F21_a_missing_final_newline_is_no_missing_line(tmp_path: Path) -> None:
    pairs, report = read(*write(tmp_path, a__en=b"one\ntwo", a__de=b"eins\nzwei\n"))
    assert pairs == [Pair(1, "one", "eins"), Pair(2, "two", "zwei")]
    assert report.notes["no_final_newline"].lines == [2]


# --------------------------------------------------------------------------------------- F22: drops are counted


def test_F22_empty_sides_are_dropped_and_counted(tmp_path: Path) -> None:
    source = b"one\n\n \t \nfour\nfive\n" + b"\n" * 5
    target = "eins\nzwei\ndrei\n\u3000\nfünf\n".encode() + b"x\n" * 5
    pairs, report = read(*write(tmp_path, a__en=source, a__de=target))
    assert [pair.line for pair in pairs] == [1, 5]
    assert (report.read, report.kept) == (10, 2)
    assert report.to_dict() == {
        "read": 10,
        "kept": 2,
        "dropped": {"empty": {"count": 8, "lines": [2, 3, 4, 6, 7]}},
        "notes": {},
    }
    assert report.lines() == [
        "2 of 10 pairs kept",
        "  dropped 8: one side is empty (lines 2, 3, 4, 6, 7, …)",
    ]


def test_F22_later_stages_add_to_the_report() -> None:
    report = Report(read=1000)
    report.drop("too_long", 3)
    report.drop("length_ratio", 5)
    report.note("control", 7)
    report.note("control", 7)
    assert report.kept == 998
    assert json.loads(json.dumps(report.to_dict()))["dropped"]["length_ratio"] == {"count": 1, "lines": [5]}
    assert report.lines()[0] == "998 of 1,000 pairs kept"
    assert report.lines()[1:] == [
        "  dropped 1: more tokens than data.max_tokens (line 3)",
        "  dropped 1: one side has over data.max_ratio times the other's tokens (line 5)",
        "  noted 1: control characters replaced by spaces (line 7)",
    ]


def test_F22_spaces_around_a_line_are_removed(tmp_path: Path) -> None:
    pairs, report = read(*write(tmp_path, a__en=b"  a b \n", a__de=b"\tc  d\t\n"))
    assert pairs == [Pair(1, "a b", "c  d")]
    assert report.lines() == ["1 of 1 pairs kept"]


# --------------------------------------------------------------------------------------- F23: any bytes

PIECES = [
    b"\n",
    b"\r\n",
    b"\r",
    b"\x00",
    b"\x0b\x0c",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"\xff",
    b"a",
    b"\t",
]
ANY_BYTES = st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join)


@settings(deadline=None, max_examples=100)
@given(ANY_BYTES)
@example(b"a\r\nb\x0bc\x0cd\xc2\x85e\xe2\x80\xa8f\xe2\x80\xa9g\rh")
def test_F23_any_bytes_keep_their_number_of_lines(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    assume(data.count(0) < 16)
    data = b"first\n" + data
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    numbers = b"".join(b"%d\n" % line for line in range(1, lines + 1))
    source, target = write(tmp_path_factory.mktemp("any"), a__en=data, a__de=numbers)
    assert count_lines(source) == lines
    pairs, report = read(source, target)
    assert report.read == lines
    assert report.kept == len(pairs)
    assert all(pair.target == str(pair.line) for pair in pairs)
    by_line = {pair.line: pair.source for pair in pairs}
    for line, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        try:
            expected = corpus.CONTROL.sub(" ", raw.decode()).strip()
        except UnicodeDecodeError:
            expected = ""
        assert by_line.get(line, "") == expected


@settings(deadline=None, max_examples=60)
@given(st.lists(ANY_BYTES.map(lambda data: data.replace(b"\n", b"")), min_size=1, max_size=20), st.integers(1, 17))
def test_F23_block_size_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], size: int
) -> None:
    data = b"ok\n" + b"\n".join(lines) + b"\n"
    assume(data.count(0) < 16)
    paths = write(tmp_path_factory.mktemp("blocks"), a__en=data, a__de=b"x\n" * data.count(b"\n"))
    whole, report = read(*paths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BLOCK", size)
        parts, report_of_parts = read(*paths)
    assert parts == whole
    assert report_of_parts == report


def test_F23_each_oddity_is_noted_or_dropped(tmp_path: Path) -> None:
    source = b"\xef\xbb\xbfbom\r\nnul\x00here\nbad\xff\nlone\rcr\n"
    source += b"line\xe2\x80\xa8sep\nnel\xc2\x85\xef\xbb\xbf\ntab\there\nlast"
    pairs, report = read(*write(tmp_path, a__en=source, a__de=b"1\r\n2\n3\n4\n5\n6\n7\n8\n"))
    assert [pair.source for pair in pairs] == [
        "bom",
        "nul here",
        "lone cr",
        "line\u2028sep",
        "nel \ufeff",
        "tab\there",
        "last",
    ]
    assert [pair.target for pair in pairs] == list("1245678")
    assert report.to_dict()["dropped"] == {"invalid_utf8": {"count": 1, "lines": [3]}}
    assert report.to_dict()["notes"] == {
        "bom": {"count": 1, "lines": [1]},
        "no_final_newline": {"count": 1, "lines": [8]},
        "carriage_return": {"count": 1, "lines": [1]},
        "control": {"count": 3, "lines": [2, 4, 6]},
    }


def test_F23_only_canonical_text_is_left_alone(tmp_path: Path) -> None:
    decomposed = "cafe\u0301"
    pairs, _ = read(*write(tmp_path, a__en=decomposed.encode() + b"\n", a__de=b"x\n"))
    assert pairs[0].source == decomposed  # NFC is the tokenizer's


# --------------------------------------------------------------------------------------- formats and packing


def test_tsv(tmp_path: Path) -> None:
    (path,) = write(tmp_path, a__tsv=b"one\teins\ntwo\nthree\tdrei\tx\n\tvier\nfive\tf\xfcnf\n\nsix\x00\tsechs\n")
    pairs, report = read(path)
    assert pairs == [Pair(1, "one", "eins"), Pair(7, "six", "sechs")]
    assert {reason: tally.lines for reason, tally in report.dropped.items()} == {
        "columns": [2, 3],
        "empty": [4, 6],
        "invalid_utf8": [5],
    }
    assert "  dropped 2: not two columns with one tab between them (lines 2, 3)" in report.lines()


def test_jsonl(tmp_path: Path) -> None:
    rows = [
        '{"source": "one", "target": "eins", "more": 1}',
        '{"src": "two\\nlines", "tgt": "zwei"}',
        '{"source": "three"}',
        '{"source": 4, "target": "vier"}',
        "[1]",
        "not json",
        "[" * 100_000,
        '{"source": "\\ud800", "target": "acht"}',
        '{"source": " ", "target": "neun"}',
        "1" * 5000,
    ]
    pairs, report = read(*write(tmp_path, a__jsonl="\n".join(rows).encode() + b"\n"))
    assert pairs == [Pair(1, "one", "eins"), Pair(2, "two lines", "zwei")]
    assert {reason: tally.count for reason, tally in report.dropped.items()} == {
        "json": 6,
        "invalid_utf8": 1,
        "empty": 1,
    }
    assert report.notes["control"].lines == [2]


@pytest.mark.parametrize("size", [0, 10, 20_000])
def test_packed_files_read_like_plain_ones(tmp_path: Path, size: int) -> None:
    source = b"first\n" + b"".join(b"line %d \xc3\xa9\n" % i for i in range(size))
    target = source.replace(b"line", b"Zeile")
    half = source.index(b"\n", len(source) // 2) if size else 3
    plain = write(tmp_path, a__en=source, a__de=target)
    packed = write(
        tmp_path,
        a__en__gz=gzip.compress(source[:half], 1, mtime=0) + gzip.compress(source[half:], 1),
        a__de__zst=zst(target[:half]) + zst(target[half:]),
    )
    assert read(*packed) == read(*plain)
    tsv = b"".join(b"%s\t%s\n" % pair for pair in zip(source.split(b"\n"), target.split(b"\n"), strict=True))
    assert read(*write(tmp_path, a__tsv__zst=zst(tsv)))[0] == read(*plain)[0]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a__en__gz", gzip.compress(os.urandom(5000), mtime=0)[:-100]),
        ("a__en__gz", gzip.compress(b"text\n" * 999, mtime=0)[:-8] + b"12345678"),
        ("a__en__gz", b"plain text\n"),
        ("a__en__gz", gzip.compress(b"text\n" * 999, mtime=0)[:30] + b"\xff" * 30),
        ("a__en__zst", zst(os.urandom(5000))[:-100]),
        ("a__en__zst", zst(b"text\n")[:-1]),
        ("a__en__zst", b"plain text\n"),
        ("a__en__zst", zst(b"text\n") + b"more"),
    ],
)
def test_F24_damaged_archive(tmp_path: Path, name: str, data: bytes) -> None:
    error = fails(*write(tmp_path, **{name: data, "a__de": b"Text\n" * 999}))
    kind = "zstd" if name.endswith("zst") else "gzip"
    assert (error.code, error.exit_code) == ("DAMAGED_ARCHIVE", BAD_DATA)
    assert f"{tmp_path / name.replace('__', '.')} is no complete {kind} file (" in str(error)


# --------------------------------------------------------------------------------------- F24: what is not text


@pytest.mark.parametrize("packing", ["", "__gz", "__zst"])
def test_F24_huge_line_is_refused_in_bounded_memory(tmp_path: Path, packing: str) -> None:
    good = b"good\n" * 6_000
    data = good + b"x" * (40 << 20)
    packed = gzip.compress(data, 1, mtime=0) if packing == "__gz" else zst(data) if packing == "__zst" else data
    source, target = write(tmp_path, **{f"a__en{packing}": packed, "a__de": b"gut\n" * 6_001})
    tracemalloc.start()
    error = fails(source, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (error.code, error.exit_code) == ("LONG_LINE", BAD_DATA)
    assert f"{source} line 6001, which starts at byte 30000, is longer than 1048576 bytes" in str(error)
    assert peak < 20 << 20


def test_F24_the_longest_line_allowed(tmp_path: Path) -> None:
    longest = b"x" * corpus.MAX_LINE
    pairs, _ = read(*write(tmp_path, a__en=b"a\n" + longest + b"\nb\n", a__de=b"a\n\xc3\xa4\nb\n"))
    assert [len(pair.source) for pair in pairs] == [1, corpus.MAX_LINE, 1]
    error = fails(*write(tmp_path, a__en=b"a\n" + longest + b"y\nb\n", a__de=b"a\nb\nc\n"))
    assert "line 2, which starts at byte 2," in str(error)


def test_F24_sparse_file_is_binary(tmp_path: Path) -> None:
    source, target = write(tmp_path, a__en=b"", a__de=b"x\n")
    os.truncate(source, 1 << 30)
    error = fails(source, target)
    assert (error.code, error.exit_code) == ("NOT_TEXT", BAD_DATA)
    assert f"{source} looks binary: 4096 of its first 4096 bytes are NUL" in str(error)


@pytest.mark.parametrize(
    ("data", "kind", "advice"),
    [
        (gzip.compress(b"text\n", mtime=0), "gzip", "rename it to {path}.gz"),
        (zst(b"text\n"), "zstd", "rename it to {path}.zst"),
        (b"BZh91AY&SY", "bzip2", "bunzip2"),
        (b"\xfd7zXZ\x00\x00", "xz", "unxz"),
        (b"PK\x03\x04", "a zip or office file", "save it as plain text"),
        (b"%PDF-1.7\n", "PDF", "save it as plain text"),
        ("text\n".encode("utf-16"), "UTF-16", "iconv -f UTF-16"),
        ("text\n".encode("utf-16-be", "strict").join([b"\xfe\xff", b""]), "UTF-16", "iconv -f UTF-16"),
    ],
)
def test_F24_not_text(tmp_path: Path, data: bytes, kind: str, advice: str) -> None:
    source, target = write(tmp_path, a__en=b"text\n", a__de=data)
    error = fails(source, target)
    assert (error.code, error.exit_code) == ("NOT_TEXT", BAD_DATA)
    assert f"{target} looks like {kind}; expected UTF-8 text" in str(error)
    assert advice.format(path=target) in str(error)


def test_F24_gzip_within_gzip(tmp_path: Path) -> None:
    source, target = write(tmp_path, a__en__gz=gzip.compress(gzip.compress(b"text\n"), mtime=0), a__de=b"Text\n")
    assert f"{source} looks like gzip; expected UTF-8 text; unpack it once" in str(fails(source, target))


def test_F24_empty_file(tmp_path: Path) -> None:
    source, target = write(tmp_path, a__en=b"", a__de=b"Text\n")
    error = fails(source, target)
    assert (error.code, error.exit_code) == ("EMPTY_FILE", BAD_DATA)
    assert f"{source} is empty" in str(error)


# --------------------------------------------------------------------------------------- F25: paths


def test_F25_missing(tmp_path: Path) -> None:
    (source,) = write(tmp_path, a__en=b"text\n")
    for gone in (tmp_path / "a.de", source / "a.de"):
        error = fails(source, gone)
        assert (error.code, error.exit_code) == ("MISSING", MISSING)
        assert f"there is no file {gone};" in str(error)
        with pytest.raises(UserError, match="there is no file"):
            fingerprint([source, gone])
        with pytest.raises(UserError, match="there is no file"):
            count_lines(gone)


def test_F25_directory(tmp_path: Path) -> None:
    (source,) = write(tmp_path, a__en=b"text\n")
    error = fails(source, tmp_path)
    assert (error.code, error.exit_code) == ("DIRECTORY", USAGE)
    assert f"{tmp_path} is a folder; expected a text file" in str(error)


def test_F25_fifo_and_device(tmp_path: Path) -> None:
    (source,) = write(tmp_path, a__en=b"text\n")
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", Path("/dev/null")):
        error = fails(source, odd)
        assert (error.code, error.exit_code) == ("NOT_A_FILE", USAGE)
        assert f"{odd} is a pipe or device" in str(error)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that fails when it is read")
def test_F25_unreadable(tmp_path: Path) -> None:
    (source,) = write(tmp_path, a__en=b"text\n")
    broken = Path("/proc/self/mem")
    error = fails(source, broken)
    assert (error.code, error.exit_code) == ("UNREADABLE", DISK)
    assert f"cannot read {broken}: Input/output error" in str(error)
    with pytest.raises(UserError, match="cannot read /proc/self/mem: Input/output error"):
        fingerprint([broken])
    assert "cannot read" in str(fails(source, tmp_path / ("x" * 300)))


def test_F25_which_files(tmp_path: Path) -> None:
    source, target, table = write(tmp_path, a__en=b"x\n", a__de=b"y\n", a__tsv__gz=gzip.compress(b"x\ty\n", mtime=0))
    for paths, words in [
        ((), "found files: none; give two text files, or one .tsv or .jsonl file"),
        ((source,), f"found files: {source};"),
        ((source, target, target), f"found files: {source}, {target}, {target};"),
        ((table, target), f"{table} holds both sides, but a second file is given; give it alone"),
    ]:
        error = fails(*paths)
        assert (error.code, error.exit_code) == ("FILES", USAGE)
        assert words in str(error)


def test_F25_fingerprint_sees_every_change(tmp_path: Path) -> None:
    a, b = write(tmp_path, a__en=b"ab", a__de=b"c")
    first = fingerprint([a, b])
    assert first == fingerprint([a, b])
    assert len(first) == 64
    seen = {first, fingerprint([b, a]), fingerprint([a])}
    write(tmp_path, a__en=b"a", a__de=b"bc")
    assert len(seen | {fingerprint([a, b])}) == 4


# --------------------------------------------------------------------------------------- languages

EN, ZH = "The cat sleeps.", "猫在睡觉。"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["train.en", "train.de.gz"], ("en", "de")),
        (["x/train.EN.txt.zst", "train.zh.txt"], ("en", "zh")),
        (["train.eng", "train.deu"], ("en", "de")),
        (["corpus.en-de.tsv"], ("en", "de")),
        (["corpus.zh_en.jsonl.gz"], ("zh", "en")),
        (["corpus.tsv"], ("und", "und")),
        (["train.src", "train.tgt"], ("und", "und")),
        (["train.graph", "train.phon"], ("und", "und")),
        (["train", "en"], ("und", "und")),
    ],
)
def test_languages_from_endings(names: list[str], expected: tuple[str, str]) -> None:
    assert languages([Path(name) for name in names], DataOptions(), []) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ZH + " OK", "zh"),
        ("猫が寝ています。", "ja"),
        ("고양이가 잔다.", "ko"),
        ("Кошка спит.", "ru"),
        ("القطة نائمة.", "ar"),
        ("Η γάτα κοιμάται.", "el"),
        ("החתול ישן.", "he"),
        ("แมวนอน", "th"),
        ("बिल्ली सो रही है।", "hi"),
        (EN, "und"),
        ("კატას სძინავს.", "und"),
        ("12345 ...", "und"),
        ("abc где", "und"),
    ],
)
def test_languages_from_scripts(text: str, expected: str) -> None:
    assert languages([Path("a"), Path("b")], DataOptions(), [Pair(1, EN, text)]) == ("und", expected)
    assert languages([Path("a"), Path("b.fr")], DataOptions(source_language="xx"), [Pair(1, text, text)]) == (
        "xx",
        "fr",
    )


def test_swapped_files_are_noticed() -> None:
    straight, crossed = [Pair(1, EN, ZH)] * 3, [Pair(1, ZH, EN)] * 3
    paths = [Path("train.en"), Path("train.zh")]
    assert looks_swapped(paths, DataOptions(), straight) is None
    message = looks_swapped(paths, DataOptions(), crossed)
    assert message is not None
    assert "train.en should be en but is in Han script, and train.zh should be zh but is in Latin script" in message
    options = DataOptions(source_language="zh", target_language="en")
    message = looks_swapped([Path("pairs.tsv")], options, straight)
    assert message is not None
    assert "pairs.tsv left should be zh but is in Latin script" in message
    assert looks_swapped([Path("pairs.tsv")], options, crossed) is None


def test_swapped_names_are_noticed() -> None:
    paths, options = [Path("a.de"), Path("a.en")], DataOptions(source_language="en", target_language="de")
    message = looks_swapped(paths, options, [])
    assert message is not None
    assert "the options say en to de, but a.de comes first and a.en second" in message
    assert looks_swapped(paths[::-1], options, []) is None
    assert looks_swapped(paths, DataOptions(), [Pair(1, EN, EN)]) is None
    assert looks_swapped([Path("a.sr"), Path("a.en")], DataOptions(), [Pair(1, EN, ZH)]) is None


# --------------------------------------------------------------------------------------- other forms, by name


def test_csv_is_named(tmp_path: Path) -> None:
    (table,) = write(tmp_path, a__csv=b"x,y\n")
    error = fails(table)
    assert (error.code, error.exit_code) == ("CSV", BAD_DATA)
    assert f"{table} is CSV; expected two text files, a .tsv without quotation marks, or a .jsonl" in str(error)


@pytest.mark.parametrize("heading", ["", "source\ttarget\n", '"source"\t"target"\n'])
def test_quoted_tables_are_not_learned_with_their_marks(tmp_path: Path, heading: str) -> None:
    rows = '"A dog ""barks""."\t"Ein Hund bellt."\n"Two cats, here."\t"Zwei Katzen."\n"Rain."\t"Regen."\n'
    (table,) = write(tmp_path, a__tsv=(heading + rows).encode())
    error = fails(table)
    assert (error.code, error.exit_code) == ("QUOTED", BAD_DATA)
    assert f"{table} has quotation marks around every column" in str(error)


def test_marks_that_belong_to_the_text_stay(tmp_path: Path) -> None:
    rows = '"Come here."\t"Komm her."\nHe came.\tEr kam.\n"Yes."\t"Ja."\n'
    pairs, _ = read(*write(tmp_path, a__tsv=rows.encode()))
    assert [pair.source for pair in pairs] == ['"Come here."', "He came.", '"Yes."']


def test_nested_translations_are_named(tmp_path: Path) -> None:
    row = '{"translation": {"en": "a", "fr": "b"}}\n'
    (table,) = write(tmp_path, a__jsonl=(row * 2).encode())
    error = fails(table)
    assert (error.code, error.exit_code) == ("TRANSLATION", BAD_DATA)
    assert f'{table} has {{"translation": {{"en": …, "fr": …}}}} on its lines; expected {{"source"' in str(error)
    assert f"jq -c '{{source: .translation.en, target: .translation.fr}}' {table}" in str(error)


# --------------------------------------------------------------------------------------- language codes


@pytest.mark.parametrize("code", ["en", "EN", "zh-Hans", "pt-BR", "es-419", "de-DE-1996", "grc", "tlh", "x-sql", "und"])
def test_codes_of_languages(code: str) -> None:
    require_codes(DataOptions(source_language=code, target_language=code))


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        ("klingon", "tlh"), ("chinese", "zh"), ("German", "de"), ("germna", "de"), ("ger", "de"), ("cn", "zh"),
        ("en_US", "en-US"), ("zh_Hans", "zh-Hans"),
    ],
)  # fmt: skip
def test_names_of_languages_are_no_codes(code: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"data.target_language is '{code}'; .* did you mean {meant}\\?") as caught:
        require_codes(DataOptions(target_language=code))
    assert caught.value.exit_code == USAGE
    with pytest.raises(UserError, match="what has no code is x-…, such as x-sql"):
        require_codes(DataOptions(source_language="qq"))


def test_languages_that_are_not_known_can_be_named() -> None:
    assert how_to_name(("en", "de")) is None
    said = how_to_name(("und", "und"))
    assert said is not None
    assert "the language of the source and the target is not known (und)" in said
    assert "--set data.source_language=en --set data.target_language=de" in said
