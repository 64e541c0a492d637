"""JSON that is read an element at a time is the JSON that Python reads at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.data import AnnotationError, sections
from vlmeval_findit.data.custom import json_sections

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def joined(path: Path) -> dict[str, Any]:
    """Return the object of a file, put together again."""
    values: dict[str, Any] = {}
    for key, place, value in sections(path, None):
        if place is None:
            values[key] = value
        else:
            values.setdefault(key, []).append(value)
    return values


@given(
    st.dictionaries(st.text(max_size=5), PLAIN, max_size=4),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.integers(1, 9),
)
def test_elements_come_out_as_they_stand(
    tmp_path_factory, values: dict[str, Any], indent: int | None, ascii_only: bool, chunk: int
) -> None:
    """Wherever the parts end in which the file is read."""
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(values, indent=indent, ensure_ascii=ascii_only), "utf-8-sig")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_sections, "_CHUNK", chunk)
        assert joined(path) == values


OBJECTS = st.lists(
    st.dictionaries(st.sampled_from(["id", "a", 'a"b', "}, {"]), PLAIN | st.just('}, {"id": 1'))
)


@given(OBJECTS, st.lists(OBJECTS, max_size=3), st.sampled_from([None, 1]), st.integers(1, 99))
def test_objects_that_are_alike_come_out_as_they_stand(
    tmp_path_factory, objects: list[Any], nested: list[Any], indent: int | None, chunk: int
) -> None:
    """Also where texts and lists inside look like the borders between objects."""
    values = {"a": objects, "b": [{"id": 1, "inside": each} for each in nested]}
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(values, indent=indent), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_sections, "_CHUNK", chunk)
        assert joined(path) == values


@given(OBJECTS.filter(any), st.data())
def test_a_key_twice_in_any_object_is_refused(
    tmp_path_factory, objects: list[dict[str, Any]], data: st.DataObject
) -> None:
    """In any of the objects, those inside of others too, beside texts that look like keys."""
    path = tmp_path_factory.mktemp("json") / "a.json"
    at = data.draw(st.sampled_from([at for at, each in enumerate(objects) if each]))
    key = data.draw(st.sampled_from([*objects[at]]))
    texts = [json.dumps(each) for each in objects]
    texts[at] = f"{texts[at][:-1]}, {json.dumps(key)}: {data.draw(st.sampled_from(['1', '[]']))}}}"
    if data.draw(st.booleans()):
        texts[at] = f'{{"id": {texts[at]}}}'
    path.write_text(f'{{"a": [{{"id": 1}}, {", ".join(texts)}, {{"id": 2}}]}}', "utf-8")
    with pytest.raises(AnnotationError, match="line 1: duplicate key"):
        joined(path)


@pytest.mark.parametrize(
    ("key", "again"),
    [("é", "\\u00e9"), ("é", "é"), ("id", "\\u0069d"), ("a/b", "a\\/b"), ("\\n", "\\u000a")],
)
def test_a_key_that_is_escaped_once_is_the_same(tmp_path, key: str, again: str) -> None:
    path = tmp_path / "a.json"
    twice = f'{{"id": 2, "{key}": 3, "{again}": 4}}'
    path.write_text(f'{{"a": [{{"id": 1}}, {twice}, {{"id": 5}}]}}', "utf-8")
    with pytest.raises(AnnotationError, match="line 1: duplicate key"):
        joined(path)


@pytest.mark.parametrize("odd", ["NaN", "1e999", '"\\ud800"', '{"b": [{"a": 1}, {"a": 2}]}'])
def test_one_odd_object_among_those_alike_changes_nothing(tmp_path, odd: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(f'{{"x": [{{"a": 1}}, {{"a": {odd}}}, {{"a": 2}}, {{"a": 3}}]}}')
    assert repr(joined(path)) == repr(json.loads(path.read_text()))


@pytest.mark.parametrize(
    "fault", ['{"a": 3,}', '{"a": 3}\u00a0', '\u00a0{"a": 3}', '{"a": 3}}', ""]
)
def test_a_fault_among_objects_alike_is_named_with_its_line(tmp_path, fault: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        f'{{"x": [{{"a": 1}},\n{{"a": 2}},\n{fault},\n{{"a": 4}}, {{"a": 5}}]}}', "utf-8"
    )
    with pytest.raises(AnnotationError, match="line 3: not JSON"):
        joined(path)


def test_a_file_that_holds_a_list_has_no_keys(tmp_path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"a": 1}, [2]]')
    assert list(sections(path, None)) == [("", 0, {"a": 1}), ("", 1, [2])]
    path.write_text("[]")
    assert list(sections(path, None)) == [("", None, [])]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "line 1: not JSON: expected {"),
        (b"[1, 2", "line 1: not JSON: expected ]"),
        (b'{"a":\n ' + b"[" * 100_000, "line 2: not JSON: nested too deeply"),
        (b"[1]\n[2]", "line 2: not JSON: text after the end"),
        (b'{"a": 1', "line 1: not JSON: expected }"),
        (b'{"a": [1, 2', "line 1: not JSON: expected ]"),
        (b'{"a": [{"b": 1},\n {"b": }]}', "line 2: not JSON: Expecting value"),
        (b'{"a": [1,\n ' + b"9" * 5000 + b"]}", "line 2: not JSON: a number of thousands of"),
        (b'{"a": 1}\n\n{}', "line 3: not JSON: text after the end"),
        (b"{1: 2}", "a key should be a text"),
        (b'{"a" 2}', "expected :"),
        (b'{"a":\n\n "\xe4"}', "line 3: byte 0xe4 is not UTF-8"),
        (b'{"a": "\xc3', "is not UTF-8"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 5, 1 << 20])
def test_what_is_no_json_is_refused_with_its_line(
    tmp_path, monkeypatch, text: bytes, why: str, chunk: int
) -> None:
    monkeypatch.setattr(json_sections, "_CHUNK", chunk)
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(AnnotationError) as error:
        joined(path)
    assert why in str(error.value)
    assert str(error.value).startswith(str(path))


def test_nan_is_read_as_python_does(tmp_path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": [NaN, -Infinity]}')
    assert [str(element.value) for element in sections(path, None)] == ["nan", "-inf"]
