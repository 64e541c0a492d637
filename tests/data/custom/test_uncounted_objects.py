"""Flags that say that an object does not count."""

from __future__ import annotations

import pytest

from vlmeval_findit.data import CROWD, DIFFICULT, IGNORED, AnnotationError, why_ignored


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, CROWD) for name in ("iscrowd", "is_crowd", "isCrowd", "Crowd", "IsGroupOf")),
        *((name, CROWD) for name in ("group_of", "is group", "GROUP")),
        *((name, DIFFICULT) for name in ("difficult", "Hard", "is_difficult")),
        *(
            (name, IGNORED)
            for name in ("ignore", "isIgnored", "INVALID", "dont_care", "is-invalid")
        ),
        *((name, "") for name in ("occluded", "truncated", "island", "groups", "crowded", "")),
    ],
)
@pytest.mark.parametrize("value", [1, True, 1.0, "1", " True ", "yes", {"yes": True, "no": False}])
def test_a_flag_is_known_by_its_plain_name(name: str, why: str, value: object) -> None:
    assert why_ignored({name: value}, "here") == why
    for no in (0, False, None, "", "0", "0.0", "false", "No", -1, "-1", "Unspecified", {}):
        assert why_ignored({name: no}, "here") == ""


def test_a_flag_that_says_neither_is_refused() -> None:
    for value in ("perhaps", 2, 0.5, [1], {"maybe": True}):
        with pytest.raises(AnnotationError, match=r"here, isHard: .* should be 0 or 1"):
            why_ignored({"isHard": value}, "here")


def test_of_several_flags_the_crowd_decides() -> None:
    assert why_ignored({"ignore": 1, "difficult": 1, "iscrowd": 1}, "here") == CROWD
    assert why_ignored({"ignore": 1, "difficult": "true", "iscrowd": 0}, "here") == DIFFICULT
