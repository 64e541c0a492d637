"""Captions of self-retrieval out of replies and out of files of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vlmeval_findit.benchmarks.selfretrieval.caption_files import (
    CaptionFileError,
    found_in,
    read_values,
    refuse_foreign,
)
from vlmeval_findit.benchmarks.selfretrieval.captions import (
    Why,
    read,
    read_unrecorded,
    side_of,
    why_of,
)
from vlmeval_findit.benchmarks.selfretrieval.pairs import Side
from vlmeval_findit.benchmarks.selfretrieval.scoring import read_reply
from vlmeval_findit.core.replies import FAILED, Recorded, Reply
from vlmeval_findit.core.thinking import split_thought

L, R = "a cat", "a dog"
BOTH = json.dumps({"left_image": L, "right_image": R})

REPLIES: list[tuple[str | None, str | None, str | None, Why | None]] = [
    (BOTH, L, R, None),
    (f"```json\n{BOTH}\n```", L, R, None),
    (f"[{BOTH}]", L, R, None),
    (f"Sure! {BOTH} Anything else?", L, R, None),
    (str({"left_image": L, "right_image": R}), L, R, None),
    ("{'LEFT IMAGE': 'a cat', 'Right': 'a dog',}", L, R, None),
    ('{"left  image": "a cat", " right ": "a dog"}', L, R, None),
    ('{"left_image": "  a cat\\n", "right_image": "a dog"}', L, R, None),
    ('{"left_image": "a cat\nand more", "right_image": "a dog"}', "a cat\nand more", R, None),
    ('{"left": "a cat"}\n{"right": "a dog"}', L, R, None),
    ('{"left": "no"} {"left_image": "a cat", "right": "a dog"}', L, R, None),
    ('{"left_image": "no", "left": "a cat", "right": "a dog"}', L, R, None),
    ('{"left": "a cat", "right": "a dog"} {"left": null}', None, R, Why.NOT_TEXT),
    (f"<think>{{'left': 'no'}}</think>{BOTH}", L, R, None),
    (f"no thought was opened</think> {BOTH}", L, R, None),
    (f"<think>{BOTH}</think>", None, None, Why.NO_JSON),
    (f"<think>hm {BOTH}", None, None, Why.TRUNCATED),
    (f"{BOTH} <think>or rather", None, None, Why.TRUNCATED),
    (f"<think>a</think>{BOTH}<think>", None, None, Why.TRUNCATED),
    (None, None, None, Why.FAILED),
    ("Failed to obtain answer via API.", None, None, Why.FAILED),
    (f"Failed to obtain answer {BOTH}", L, R, None),
    ("", None, None, Why.EMPTY),
    (" \n\t", None, None, Why.EMPTY),
    ("Left: a cat. Right: a dog.", None, None, Why.NO_JSON),
    ('{"left_image": "a cat", "right_im', None, None, Why.NO_JSON),
    ('["a cat", "a dog"]', None, None, Why.NO_JSON),
    ("{}", None, None, Why.MISSING_KEY),
    ('{"image_1": "a cat", "image_2": "a dog"}', None, None, Why.MISSING_KEY),
    ('{"captions": {"left": "a cat", "right": "a dog"}}', None, None, Why.MISSING_KEY),
    ('{"left_image": "a cat"}', L, None, Why.MISSING_KEY),
    ('{"right_image": "a dog"}', None, R, Why.MISSING_KEY),
    ('{"left": "a cat", "right": " "}', L, None, Why.EMPTY_CAPTION),
    ('{"left": 3, "right": "a dog"}', None, R, Why.NOT_TEXT),
    ('{"left": ["a cat"], "right": "a dog"}', None, R, Why.NOT_TEXT),
    ('{"left": {"left": "a cat"}, "right": "a dog"}', None, R, Why.NOT_TEXT),
    ('{"left": null, "right": ""}', None, None, Why.NOT_TEXT),
]


@pytest.mark.parametrize(
    ("reply", "left", "right", "why"), REPLIES, ids=[str(r[0]) for r in REPLIES]
)
def test_replies(reply: str | None, left: str | None, right: str | None, why: Why | None) -> None:
    found = read_unrecorded(reply)
    assert (found.left.caption, found.right.caption, why_of(found)) == (left, right, why)
    for said in found:
        assert (said.caption is None) == (said.why is not None)


CAPTIONS = st.text(min_size=1).filter(str.strip)


@given(CAPTIONS, CAPTIONS)
def test_what_is_written_as_asked_is_read(left: str, right: str) -> None:
    reply = json.dumps({"left_image": left, "right_image": right})
    assume(split_thought(reply).answer == reply)
    found = read(reply)
    assert (found.left.caption, found.right.caption) == (left.strip(), right.strip())


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(0, "", Recorded(ends_in_thought=True)), Why.TRUNCATED),
        (Reply(0, BOTH, Recorded(call={"error": "503"})), Why.FAILED),
        (Reply(0, BOTH, Recorded(finish_reason="length")), None),
        (Reply(0, "", Recorded(finish_reason="stop")), Why.EMPTY),
        (Reply(0, f"Failed to obtain answer: {BOTH}", Recorded(finish_reason="stop")), None),
        (Reply(0, FAILED, Recorded(finish_reason="stop")), Why.NO_JSON),
        (Reply(0, f"{FAILED} via API."), Why.FAILED),
    ],
    ids=[
        *("only thought", "failed call", "cut behind the object", "empty"),
        *("quoted", "said", "nothing recorded"),
    ],
)
def test_what_a_run_recorded_counts(reply: Reply, why: Why | None) -> None:
    assert why_of(read_reply(reply)) is why


def test_keys_that_are_no_texts_are_of_no_picture() -> None:
    assert side_of(7) is None
    assert side_of("LEFT_image") is Side.LEFT


# --- caption files --------------------------------------------------------------------------------

LEFT, RIGHT = Side


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        ({"left": L, "right": R}, []),
        ({"left_image": L, "RIGHT image": R}, []),
        (BOTH, []),
        ({"left": L}, [RIGHT]),
        ({"left": None, "right": R}, [LEFT]),
        ({"left": 3, "right": ""}, [LEFT, RIGHT]),
        ("no caption", [LEFT, RIGHT]),
        (None, [LEFT, RIGHT]),
        ([L, R], [LEFT, RIGHT]),
        ({}, [LEFT, RIGHT]),
    ],
    ids=str,
)
def test_a_pair_of_a_file(value: Any, missing: list[Side]) -> None:
    found = found_in({"7": value, "x": {}}, ["7", "8"])
    assert found.missing == (*(("7", side) for side in missing), ("8", LEFT), ("8", RIGHT))
    assert found.unknown == ("x",)


def test_files_that_hold_no_captions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "captions.json"
    for content, says in (
        ("[]", "is no object"),
        ("{", "no JSON"),
        ("\xff", "no JSON"),
        ("[" * 100_000, "no JSON"),
    ):
        path.write_text(content, encoding="latin-1")
        with pytest.raises(CaptionFileError, match=says):
            read_values(path)
    path.write_text('\ufeff{"9": {}}', encoding="utf-8")
    values = read_values(path)
    with pytest.raises(CaptionFileError, match=r"none of its 1 uids is of a pair: '9' is not like"):
        refuse_foreign(path, values, found_in(values, ["0"]))
    refuse_foreign(path, {}, found_in({}, ["0"]))
