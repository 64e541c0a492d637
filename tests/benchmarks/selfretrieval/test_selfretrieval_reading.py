"""Captions of self-retrieval out of replies and out of files of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.selfretrieval import (
    BENCHMARK,
    ImagePair,
    PairSide,
    as_replies,
    missing_reason,
    read_captions,
    replies_of,
)
from vlmeval_findit.protocol import Reply

L, R = "a cat", "a dog"
BOTH = json.dumps({"left_image": L, "right_image": R})

REPLIES: list[tuple[str, str | None, str | None, str | None]] = [
    (BOTH, L, R, None),
    (f"```json\n{BOTH}\n```", L, R, None),
    (f"Sure! {BOTH} Anything else?", L, R, None),
    (str({"left_image": L, "right_image": R}), L, R, None),
    ("{'LEFT IMAGE': 'a cat', 'Right': 'a dog',}", L, R, None),
    ('{"left_image": "  a cat\\n", "right_image": "a dog"}', L, R, None),
    ('{"left_image": "a cat\nand more", "right_image": "a dog"}', "a cat\nand more", R, None),
    ('{"left": "a cat"}\n{"right": "a dog"}', L, R, None),
    ('{"left": "no"} {"left_image": "a cat", "right": "a dog"}', L, R, None),
    ('{"left_image": "no", "left": "a cat", "right": "a dog"}', L, R, None),
    ('{"left": "a cat", "right": "a dog"} {"left": null}', None, R, "not_text"),
    (f"<think>{{'left': 'no'}}</think>{BOTH}", L, R, None),
    (f"<think>a</think>{BOTH}<think>", L, R, None),
    ("Failed to obtain answer via API.", None, None, "failed call"),
    (f"Failed to obtain answer {BOTH}", L, R, None),
    ("", None, None, "empty"),
    ("Left: a cat. Right: a dog.", None, None, "no_json"),
    ('{"left_image": "a cat", "right_im', None, None, "no_json"),
    ('["a cat", "a dog"]', None, None, "no_json"),
    ('{"image_1": "a cat", "image_2": "a dog"}', None, None, "missing_key"),
    ('{"captions": {"left": "a cat", "right": "a dog"}}', None, None, "missing_key"),
    ('{"left_image": "a cat"}', L, None, "missing_key"),
    ('{"right_image": "a dog"}', None, R, "missing_key"),
    ('{"left": "a cat", "right": " "}', L, None, "empty_caption"),
    ('{"left": 3, "right": "a dog"}', None, R, "not_text"),
    ('{"left": ["a cat"], "right": "a dog"}', None, R, "not_text"),
    ('{"left": null, "right": ""}', None, None, "not_text"),
]


@pytest.mark.parametrize(
    ("reply", "left", "right", "why"), REPLIES, ids=[str(r[0]) for r in REPLIES]
)
def test_replies(reply: str, left: str | None, right: str | None, why: str | None) -> None:
    result = read_captions(Reply(0, reply))
    assert why in (None, "failed call", *BENCHMARK.reasons)
    assert (result.left.caption, result.right.caption, missing_reason(result)) == (left, right, why)
    for text in result:
        assert (text.caption is None) == (text.why is not None)


LEFT, RIGHT = PairSide
PAIRS = [ImagePair(at, uid, ("l.png", "r.png")) for at, uid in enumerate(("7", "8"))]


def test_pairs_of_a_file(tmp_path: Path) -> None:
    for value, missing in (
        ({"left": L, "right": R}, []),
        ({"left_image": L, "RIGHT image": R}, []),
        (BOTH, []),
        ({"left": L}, [RIGHT]),
        ("no caption", [LEFT, RIGHT]),
        ([L, R], [LEFT, RIGHT]),
    ):
        (first, second), unknown = as_replies({"7": value, "x": {}}, PAIRS)
        assert [
            side for side in PairSide if read_captions(first).value(side).caption is None
        ] == missing
        assert missing_reason(read_captions(second)) == "missing_key"
        assert unknown == ("x",)
    path = tmp_path / "captions.json"
    for content, says in (
        ("[]", "should be an object"),
        ("{", "not JSON"),
        ('{"9": {}}', "none of its 1 uids belongs to a pair; the first is '9'"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=says):
            replies_of(path, PAIRS)
