"""Names of splits: what they say, and which split is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmeval_findit.data import (
    AnnotationError,
    SplitKind,
    chosen_split,
    kind_of_split,
)

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
