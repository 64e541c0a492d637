"""Which encoding a text is in: by its mark or declaration, else stated, else UTF-8, else asked."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from pathlib import Path

import one_truth
import pytest
from every_pair import every_pair
from few_fast import every_nth_fast
from one_truth import Picture, Thing, Writer

from vlmeval_findit.benchmarks.findit import find_table, read_table
from vlmeval_findit.cli import main
from vlmeval_findit.data import ANNOTATION_FORMATS, AnnotationError, sections, text_of

pytestmark = pytest.mark.usefixtures("data_root")

BOX = (10.0, 20.0, 110.0, 220.0)
TEXTS: tuple[Writer, ...] = tuple(
    writer
    for writer in (*one_truth.OBJECTS, *one_truth.LINES, *one_truth.BARE)
    if writer is not one_truth.hf_parquet
)
# A label, and encodings that it is often saved in
LABELS = [
    ("Käfer", "cp1252"),
    ("Łódź", "cp1250"),
    ("собака", "cp1251"),
    ("猫狗", "gb18030"),
    ("犬が走る", "cp932"),
    ("고양이", "cp949"),
    ("Käfer", "mac-roman"),
]


def imports(path: Path, *flags: str) -> int:
    return main(["data", "import", str(path), "--name", "Mine", "--replace", *flags])


def labels() -> set[str]:
    return {row.label for row in read_table(find_table("Mine"))}


def write_in(writer: Writer, folder: Path, label: str, encoding: str, mark: bytes = b"") -> Path:
    """Write annotations of one object, in an encoding; JSON has its signs as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    one_truth.draw(folder, "a.png")
    path = writer(folder, [Picture("a.png", [Thing(label, BOX)])])
    for file in folder.rglob("*.*"):
        if file.suffix != ".png":
            text = file.read_text("utf-8")
            if file.suffix in (".json", ".jsonl", ".ndjson"):
                lines = [json.loads(line) for line in text.splitlines()]
                text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
            file.write_bytes(mark + text.encode(encoding))
    return path


def formats(*writers: Writer) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("writer", writers, ids=lambda writer: writer.__name__)


@every_pair(
    "writer, encoding, mark",
    TEXTS,
    [
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-16-le", b""),
        ("utf-16-be", b""),
    ],
)
def test_marks_and_zeros_say_what_a_text_is_in(
    tmp_path: Path, writer: Writer, encoding: str, mark: bytes
) -> None:
    assert imports(write_in(writer, tmp_path / "set", "Käfer", encoding, mark)) == 0
    assert labels() == {"Käfer"}


@pytest.mark.sees("data import --encoding")
@every_pair("writer, label, encoding", TEXTS, LABELS, fast=7)
def test_other_encodings_are_asked_for_and_taken(
    tmp_path: Path, writer: Writer, label: str, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_in(writer, tmp_path / "set", label, encoding)
    assert imports(path) == 2
    error = capsys.readouterr().err
    assert "is not UTF-8. Which encoding is it in" in error
    assert "? Type --encoding NAME" in error
    is_offered = re.search(rf"{encoding}( or \w+)* for {label}", error) is not None
    assert is_offered is (encoding != "mac-roman")
    assert "or save the file as UTF-8" in error
    assert imports(path, "--encoding", encoding) == 0, capsys.readouterr().err
    assert labels() == {label}


@pytest.mark.parametrize(
    "declared", every_nth_fast(["GBK", "gb2312", "gb18030", "Big5", "Shift_JIS", "EUC-KR"], 3)
)
@formats(one_truth.voc, one_truth.cvat)
def test_xml_is_read_in_what_it_declares(tmp_path: Path, writer: Writer, declared: str) -> None:
    label = {"Shift_JIS": "犬が走る", "EUC-KR": "고양이"}.get(declared, "中文")
    declaration = f'<?xml version="1.0" encoding="{declared}"?>\n'.encode()
    path = write_in(writer, tmp_path / "set", label, declared, declaration)
    assert imports(path) == 0
    assert labels() == {label}
    # Also where other files are in what is stated
    assert imports(path, "--encoding", "cp1251") == 0
    assert labels() == {label}


@pytest.mark.parametrize(
    ("label", "declared", "written"),
    [
        ("镕", "gb2312", "gbk"),  # In the larger set only
        ("①", "Shift_JIS", "cp932"),
        ("Käfer", "ascii", "utf-8"),  # The text was saved anew, its declaration stayed
        ("Käfer", "x-unknown", "utf-8"),
    ],
)
def test_declarations_that_say_too_little(
    tmp_path: Path, label: str, declared: str, written: str
) -> None:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>'.encode()
    path = write_in(one_truth.voc, tmp_path / "set", label, written, declaration)
    assert imports(path) == 0
    assert labels() == {label}


def test_a_wrong_declaration_is_asked_about_and_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declaration = b'<?xml version="1.0" encoding="UTF-8"?>'
    path = write_in(one_truth.voc, tmp_path / "set", "猫狗", "gbk", declaration)
    assert imports(path) == 2
    assert "gb18030 for 猫狗" in capsys.readouterr().err
    assert imports(path, "--encoding", "gbk") == 0
    assert labels() == {"猫狗"}


def test_what_is_stated_is_not_overridden_by_utf_8(tmp_path: Path) -> None:
    """These bytes of GBK are UTF-8, too: è."""
    path = write_in(one_truth.csv_file, tmp_path / "set", "猫", "gbk")
    assert imports(path, "--encoding", "gbk") == 0
    assert labels() == {"猫"}


def test_lists_and_names_of_classes_are_in_it_too(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    path = write_in(one_truth.voc, folder, "Käfer", "cp1252")
    one_truth.draw(folder, "ö.png")
    text = (folder / "a.xml").read_text("cp1252").replace("a.png", "ö.png")
    (folder / "ö.xml").write_text(text, "cp1252")
    (folder / "val.txt").write_text("ö\n", "cp1252")
    (folder / "train.txt").write_text("a\n", "cp1252")
    names = tmp_path / "names.csv"
    names.write_text("Käfer,Hörnchen\n", "cp1252")
    renamed = ("--rename-class", f"@{names}")
    assert imports(path, "--encoding", "cp1252", *renamed) == 0
    assert labels() == {"Hörnchen"}
    (row,) = read_table(find_table("Mine"))
    assert row.images == ("ö.png",)


@pytest.mark.parametrize("encoding", ["ascii", "gb18030", "utf-8"])
def test_a_stated_encoding_that_does_not_fit_is_refused(
    tmp_path: Path, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_in(one_truth.coco, tmp_path / "set", "cat \xff", "latin-1")
    assert imports(path, "--encoding", encoding) == 2
    error = capsys.readouterr().err
    assert f"byte 0xff is not {encoding.upper()}" in error
    assert "Type --encoding with another name, or leave it out" in error


@pytest.mark.parametrize("name", ["latin9000", "hex", "", "a\0b", "undefined"])
def test_encodings_that_are_not_known_are_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_in(one_truth.coco, tmp_path / "set", "cat", "utf-8")
    assert imports(path, "--encoding", name) == 2
    assert "no encoding is called" in capsys.readouterr().err


def test_every_format_of_texts_takes_the_flag() -> None:
    without = [each.name for each in ANNOTATION_FORMATS if "encoding" not in each.flags]
    assert without == ["Parquet of Hugging Face's hub"]


@pytest.mark.parametrize("read", [text_of, lambda *given: list(sections(*given))])
@pytest.mark.parametrize("content", [b"{}\0\0\0\0", b"\0\0\0\0\0\0", b"\x89PNG\r\n\x1a\n\0\0\0"])
def test_what_is_no_text_is_refused(
    tmp_path: Path, read: Callable[[Path, str | None], object], content: bytes
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(AnnotationError, match="is no text: it has zeros"):
        read(path, None)
