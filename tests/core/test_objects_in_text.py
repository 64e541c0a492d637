"""Objects in texts as language models write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.core import objects_in

UGLY: list[tuple[str, list[dict[str, Any]]]] = [
    ("no object", []),
    ("{}", [{}]),
    ('```json\n{"a": "b"}\n```', [{"a": "b"}]),
    ('[{"a": "b"}, {"c": "d"}]', [{"a": "b"}, {"c": "d"}]),
    ('{"a": {"a": "inside"}}', [{"a": {"a": "inside"}}]),
    ('{"a": 1, "b": [true, null], "c": -2.5e3}', [{"a": 1.0, "b": [True, None], "c": -2500.0}]),
    ("{'a': None, 'b': True}", [{"a": None, "b": True}]),
    ('{"a": "b",}', [{"a": "b"}]),
    ('{"a": "one\ntwo"}', [{"a": "one\ntwo"}]),
    (r'{"a": "\"x\" \u00e9 \\ \/ \n"}', [{"a": '"x" é \\ / \n'}]),
    (r"{'a': 'it\'s'}", [{"a": "it's"}]),
    ("{'a': 'it isn't there'}", [{"a": "it isn't there"}]),
    ('{"a": "its "tail" is up"}', [{"a": 'its "tail" is up'}]),
    ('{"a": "1", "b": "2", "a": "3"}', [{"b": "2", "a": "3"}]),
    ('{"a": "cut of', []),
    ('{"a": "b"', []),
    ('{"a" "b"}', []),
    ('{"a": }', []),
    ("{,}", []),
    ("{a: 1}", []),
    ('{[1]: "b"}', []),
    ('Fill in {left}: {"a": "b"}', [{"a": "b"}]),
    ('{"all": [{"a": "b"}, {"c": "cu', [{"a": "b"}]),
    (r'{"a": "\ud83d\ude00"}', [{"a": "😀"}]),
    (r'{"a": "half \ud83d"}', [{"a": "half �"}]),
]


@pytest.mark.parametrize(("text", "expected"), UGLY, ids=[text[:30] for text, _ in UGLY])
def test_ugly(text: str, expected: list[dict[str, Any]]) -> None:
    result = objects_in(text)
    assert result == expected
    # Not only equal: {"a": ..} and the order of keys too.
    assert [list(each) for each in result] == [list(each) for each in expected]


@pytest.mark.parametrize("broken", ['{"a":' * 16, '{"a": ["b", ' * 8, "{'a': 'b c\", "])
def test_what_follows_broken_objects_is_read(broken: str) -> None:
    whole = [{"left": "a cat"}, {"right": "it's a dog"}]
    text = " then ".join(broken + str(each) for each in whole)
    assert objects_in(text) == whole
    # Deeper than anybody means: what can be read begins further in.
    assert len(objects_in('{"a":' * 100 + "1" + "}" * 100)) == 1


LEAVES = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.sampled_from([None, 1]))
def test_json_is_read_as_json(value: dict[str, Any], indent: int | None) -> None:
    for ascii_ in (True, False):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
        assert objects_in(f"So: {text} That is all.") == [value]
