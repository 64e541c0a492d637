"""Files that others wrote: regular ones, as text, JSON or YAML, whatever is in them."""

from __future__ import annotations

import os
import signal
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from few_fast import every_nth_fast
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.analysis import BestFormats
from vlmeval_findit.core import (
    ConfigError,
    NotRegularError,
    TextError,
    YamlLoader,
    YamlText,
    YamlTexts,
    open_text,
    parse_json,
    parse_yaml,
    plain_value,
    printable,
    quoted_value,
    read_json,
    read_text,
)
from vlmeval_findit.data import text_of
from vlmeval_findit.engine import JournalView
from vlmeval_findit.models import AddressFile, read_header
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.storage import (
    DatasetFileError,
    ImageFileError,
    check_image,
    custom_datasets,
    image_bytes,
    read_config,
    read_identity,
    read_image_header,
    read_predictions,
)
from vlmeval_findit.sweeps import read_sweep

MANY = 200 << 20  # Bytes of a sparse file: reading it whole shows


MOST_CALLS = 1_000_000  # Of Python functions: a text of 9,000 letters takes 300,000
HANGS = 900  # Seconds: only a hanging test is so late


@contextmanager
def bounded(most: int = 20 << 20) -> Iterator[None]:
    """Fail if the block works without end, or holds the content of a large file in memory."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"
        if calls > MOST_CALLS:
            raise AssertionError("it works without end")

    def late(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(HANGS)
    tracemalloc.start()
    sys.setprofile(count)
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        sys.setprofile(None)
        tracemalloc.stop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def opened(path: Path) -> None:
    with open_text(path) as lines:
        list(lines)


def of_run(path: Path) -> None:
    load_runs([path.parent])


Reader = Callable[[Path], object]

READERS: dict[str, tuple[str, Reader]] = {
    "text": ("a.txt", read_text),
    "lines": ("a.txt", opened),
    "JSON": ("a.json", read_json),
    "annotations": ("a.csv", lambda path: text_of(path, None)),
    "predictions": ("m_FindIt_Demo_xyxy_json.json", read_predictions),
    "predictions as TSV": ("m_FindIt_Demo_xyxy_json.tsv", read_predictions),
    "predictions as a sheet": ("m_FindIt_Demo_xyxy_json.xlsx", read_predictions),
    "a provenance": ("m_FindIt_Demo_xyxy_json_provenance.json", of_run),
    "a sweep": ("sweep.yaml", read_sweep),
    "folders": ("datasets.yaml", read_config),
    "best formats": ("best_formats.yaml", BestFormats),
    "weights": ("model.safetensors", read_header),
    "a journal": ("calls.jsonl", JournalView),
    "addresses": ("hosts.txt", lambda path: AddressFile(path, lambda url: url)),  # type: ignore[arg-type,return-value]
    "an image": ("a.png", read_image_header),
    "an image to its end": ("a.png", check_image),
    "an image to send": ("a.png", image_bytes),
}


@pytest.mark.parametrize(("name", "read"), every_nth_fast(READERS.values(), 3), ids=READERS)
@pytest.mark.parametrize("kind", ["fifo", "device", "sparse"])
def test_only_regular_files_of_the_right_kind_are_read(
    kind: str, name: str, read: Reader, tmp_path: Path
) -> None:
    path = tmp_path / name
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, MANY)
    with bounded(), pytest.raises((ValueError, OSError)) as refused:
        read(path)
    text = str(refused.value)
    if kind != "sparse":
        assert "regular file" in text
        assert len(text) < 600


def test_a_fifo_in_the_dataset_folder_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    (tmp_path / "findit_datasets.json").write_text("[" * 100_000)
    with pytest.raises(DatasetFileError, match="nested too deeply"):
        custom_datasets()


def test_what_is_no_image_is_looked_at_with_512_bytes(tmp_path: Path) -> None:
    for name, begin, why in (
        ("a.png", b"", "is not an image that can be read"),
        ("b.jpg", b"  <!DOCTYPE html>", "is a web page, not an image"),
        ("c.webp", b"\x1f\x8b\x08\x00", "is not an image that can be read"),
        ("d.gif", b"ustar\0", "is not an image that can be read"),
    ):
        path = tmp_path / name
        path.write_bytes(begin)
        os.truncate(path, 20 << 30)
        for read in (read_image_header, check_image, image_bytes):
            with bounded(), pytest.raises(ImageFileError, match=why):
                read(path)


def test_a_file_larger_than_any_image_is_not_read(tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "a.png"
    Image.new("RGB", (9, 9)).save(path)
    os.truncate(path, 20 << 30)
    with bounded(), pytest.raises(ImageFileError, match="is larger than 4 GiB"):
        image_bytes(path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfea\0b\0", "line 1: byte 0xff is not UTF-8"),
        (b"\0\0\0\0", "line 1: byte 0x00 is not UTF-8"),
        (b"a\nb\n\xe9t\xe9", "line 3: byte 0xe9 is not UTF-8"),
        (b"a\n" * 50_000 + b"\xc0", "line 50001: byte 0xc0 is not UTF-8"),
        ("ä".encode() * 100_000 + b"\xc3", "line 1: byte 0xc3 is not UTF-8"),
        (b"\xef\xbb\xbf" + b"ab\n" * 50_000 + b"\xc0a", "line 50001: byte 0xc0 is not UTF-8"),
    ],
)
def test_what_is_no_text_is_named_with_its_line(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(TextError) as refused:
        read_text(path)
    assert refused.value.message_for("a").startswith(f"a, {why}")


@given(st.text())
def test_text_is_read_as_it_was_written(text: str) -> None:
    path = Path(f"/tmp/findit-text-{os.getpid()}")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode("utf-8", "replace"))
    try:
        if "\0" in text[:4]:
            return
        assert read_text(path) == text.encode("utf-8", "replace").decode()
    finally:
        path.unlink()


# --- YAML -----------------------------------------------------------------------------------------

BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
)
CHAIN = "[&a0 [x], " + ", ".join(f"&a{n} [*a{n - 1}]" for n in range(1, 1100)) + "]"

NO_YAML = {
    "[" * 600: "line 1: it is nested too deeply",
    "{a: " * 600: "line 1: it is nested too deeply",
    "- " * 600: "line 1: it is nested too deeply",
    "a: 1\nb: \0": "line 2: not YAML: it contains the character U+0000",
    "a: \x1b[31m": "line 1: not YAML: it contains the character U+001B",
    BOMB: "aliases expand to more than 1,000,000 values",
    CHAIN: "it is nested too deeply",
    "a: &a [*a]": "line 1: an alias refers to a value that contains it",
    "&a {b: {c: *a}}": "an alias refers to a value that contains it",
    "a: 1\na: 2": "line 2: duplicate key a",
    "a: 2026-13-40": "line 1: '2026-13-40' is not a valid timestamp",
    "a:\n  !!float x": "line 2: 'x' is not a valid float",
    "a: !!int ''": "line 1: '' is not a valid int",
    "a: 0b_": "line 1: '0b_' is not a valid int",
    "a: !!timestamp x": "line 1: 'x' is not a valid timestamp",
    "a: !!python/object:os.system x": "could not determine a constructor",
    "a: *nobody": "line 1: not YAML: found undefined alias",
    "a: [1": "not YAML: expected",
    "? [a]\n: b": "found unhashable key",
}


@pytest.mark.parametrize(
    ("text", "why"), every_nth_fast(NO_YAML.items(), 4), ids=[each[:20] for each in NO_YAML]
)
def test_yaml_that_is_none_is_refused_with_its_line(text: str, why: str) -> None:
    with bounded(), pytest.raises(TextError) as refused:
        parse_yaml(text)
    assert why in str(refused.value)
    with pytest.raises(ConfigError, match=r"^sweep\.yaml[,:] "):
        YamlText(text, "sweep.yaml")


def test_yaml_of_people_is_read(tmp_path: Path) -> None:
    assert parse_yaml("a: &x {b: 1}\nc: {<<: *x, d: 2}")[0] == {
        "a": {"b": 1},
        "c": {"b": 1, "d": 2},
    }
    assert parse_yaml("a: [no, 007, 1e3]", YamlTexts)[0] == {"a": ["no", "007", "1e3"]}
    assert parse_yaml("")[0] is None
    assert parse_yaml("[" * 90 + "]" * 90)[0]


@given(st.text(st.sampled_from("[]{}:,&*!-? ab0\n\"'\0\x1b|>%@"), max_size=60))
def test_any_text_is_a_value_or_refused_as_no_yaml(text: str) -> None:
    for kind in (YamlLoader, YamlTexts):
        with suppress(TextError):
            parse_yaml(text, kind)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[1,", "", "\0", "NaN}", "1" * 5000]
)
def test_json_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TextError, match="not JSON: "):
        parse_json(text)


# --- what messages show ---------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner)
    ),
)


@given(VALUES, st.integers(min_value=5, max_value=100))
def test_a_shown_value_is_one_short_printable_line(value: Any, most: int) -> None:
    for text in (quoted_value(value, most), plain_value(value, most)):
        assert len(text) <= most
        assert printable(text) == text


def test_a_shown_value_is_never_written_out_whole() -> None:
    bomb: list[Any] = ["x"]
    for _ in range(40):
        bomb = [bomb] * 9
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    ring: list[Any] = []
    ring.append(ring)
    with bounded():
        for value in (bomb, deep, ring, 10**100_000, "x" * 10**7, {1: "a", "b": 2, None: bomb}):
            assert 0 < len(quoted_value(value)) <= 60
    while deep:
        deep = deep[0]


def test_an_identity_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m_FindIt_Demo_xyxy_json_identity.json"
    path.write_text('{"answering": ' + "[" * 200_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_identity(tmp_path / "m_FindIt_Demo_xyxy_json.json")


def test_a_name_of_a_special_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegularError) as refused:
        read_text(tmp_path / "pipe")
    assert (refused.value.filename, refused.value.strerror) == (
        str(tmp_path / "pipe"),
        "not a regular file",
    )
