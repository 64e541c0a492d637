"""Words that files use: flags that say what does not count, and names of splits."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmeval_findit.data import (
    CROWD,
    DIFFICULT,
    IGNORED,
    AnnotationError,
    SplitKind,
    chosen_split,
    kind_of_split,
    why_ignored,
)

# --- flags ----------------------------------------------------------------------------------------


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


# --- splits ---------------------------------------------------------------------------------------

_TRAINING = (
    "train",
    "Training",
    "trainset",
    "Training_set",
    "train_a",
    "cat_train",
    "train2017",
    "trainval2012",
    "train-images",
)
_VALIDATION = ("val", "VALID", "validation", "valset", "dev", "cat_val", "minival2014", "eval_1")
_TEST = ("test", "testing", "test2017", "test-dev", "Testset")
_NONE = ("cam1", "trains", "value", "valley", "device", "contest", "latest", "2017", "")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, SplitKind.TRAINING) for name in _TRAINING),
        *((name, SplitKind.VALIDATION) for name in _VALIDATION),
        *((name, SplitKind.TEST) for name in _TEST),
        *((name, None) for name in _NONE),
    ],
)
def test_a_split_is_known_by_its_first_or_last_word(name: str, kind: SplitKind | None) -> None:
    assert kind_of_split(name) is kind


@pytest.mark.parametrize(
    ("there", "stated", "read"),
    [
        (("trainset", "valset"), None, "valset"),
        (("trainset", "valset"), "train", "trainset"),
        (("Training", "Testing"), "test", "Testing"),
        (("train", "val", "valid"), "VALID", "valid"),
        (("mine",), None, "mine"),
    ],
)
def test_a_split_is_chosen_by_its_kind(
    there: tuple[str, ...], stated: str | None, read: str
) -> None:
    assert chosen_split(Path("f"), there, stated) == read


@pytest.mark.parametrize(
    ("there", "stated", "why"),
    [
        (("train_a", "train_b"), None, "Type --split train_a or --split train_b"),
        (("Trainset",), None, "type --split Trainset"),
        (("train", "val", "valid"), "dev", "unknown split 'dev'"),
        (("train", "val"), "test", "unknown split 'test'"),
    ],
)
def test_a_split_that_is_not_clear_is_asked_for(
    there: tuple[str, ...], stated: str | None, why: str
) -> None:
    with pytest.raises(AnnotationError, match=why):
        chosen_split(Path("f"), there, stated)
