"""A run says which models answered, if it was not just the one that was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vlmeval_findit.protocol import Answering, Identity, Reply, ReplyRecord
from vlmeval_findit.scoring import (
    answered_note,
    answered_note_of,
    as_values,
    count_models,
    models_in,
)

SERVED = Answering(checkpoint="gpt-x", endpoint="http://a/v1")


def note(models: Sequence[str], who: Answering = SERVED, model: str = "M") -> str | None:
    """Return the note on answers of these models, in their order."""
    replies = [Reply(at, "[]", ReplyRecord(model={"identifier": m})) for at, m in enumerate(models)]
    return answered_note_of(replies, Identity(model, "D", who))


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        (["gpt-x"] * 3, None),
        (["gpt-x-2026-01"] * 3, None),
        (["small-3b"] * 3, "answered by small-3b; asked was gpt-x"),
        (
            ["gpt-x-2026-01"] * 8 + ["gpt-x-2026-09"] * 12,
            "answered by 2 models: 8 rows by gpt-x-2026-01, 12 rows by gpt-x-2026-09",
        ),
        (
            ["gpt-x", "small-3b", "small-3b"],
            "answered by 2 models: 1 row by gpt-x, 2 rows by small-3b; asked was gpt-x",
        ),
        ([], None),
    ],
)
def test_other_models_are_named_with_their_rows(models: list[str], expected: str | None) -> None:
    assert note(models) == expected


def test_the_answering_model_may_have_the_rows_name() -> None:
    behind_alias = Answering(checkpoint="my-deployment", endpoint="http://a/v1", row="Qwen3-VL")
    assert note(["Qwen/Qwen3-VL-8B-Instruct"], behind_alias) is None
    assert note(["gpt-4o-2024-08-06"], behind_alias, model="GPT-4o") is None
    assert note(["gpt-4o-2024-08-06"], behind_alias) is not None


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("Qwen3-VL-8B", "Qwen/Qwen3-VL-8B-Instruct", True),
        ("Qwen3-VL-8B", "qwen3-vl-2b", False),
        ("Qwen3-VL-8B", "my-deployment", True),
        ("Qwen3-VL", "qwen3-vl-2b", True),
        ("Mine", "qwen3-vl-2b", True),
        ("Mine", "gpt-4o", False),
    ],
)
def test_another_size_behind_an_alias_is_named(asked: str, answered: str, same: bool) -> None:
    behind_alias = Answering(checkpoint="my-deployment", endpoint="http://a/v1", row="Qwen3-VL")
    assert (note([answered], behind_alias, model=asked) is None) is same


INSTRUCT, THINKING = "Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-8B-Thinking"


@pytest.mark.parametrize(
    ("model", "served", "answered", "same"),
    [
        # the name at the server decides, whatever the results are called
        ("Qwen3-VL-8B", INSTRUCT, THINKING, False),
        ("Qwen3-VL-8B-Instruct", INSTRUCT, "qwen3-vl-8b-thinking", False),
        ("Qwen3-VL", INSTRUCT, THINKING, False),
        ("Mine", INSTRUCT, THINKING, False),
        ("Qwen3-VL-8B", THINKING, THINKING, True),
        ("Qwen3-VL-8B", INSTRUCT, "Qwen3-VL-8B-Instruct-FP8", True),
        ("Qwen3-VL-8B", "Qwen3-VL-2B-Instruct", "Qwen3-VL-2B-Instruct", True),
        # behind an alias, what the row has checkpoints of
        ("Qwen3-VL-8B", "m", THINKING, False),
        ("Qwen3-VL", "m", THINKING, False),
        ("Mine", "m", THINKING, False),
        ("Qwen3-VL-8B", "m", INSTRUCT, True),
        ("Qwen3-VL-8B", "m", "m", True),
        ("Qwen3-VL-8B-Thinking", "m", THINKING, True),
        ("Qwen3-VL-8B-Thinking", "m", INSTRUCT, False),
        ("Qwen3-VL-8B", "m", "gpt-4o-mini", False),
    ],
)
def test_instructed_and_thinking_weights_are_two_models(
    model: str, served: str, answered: str, same: bool
) -> None:
    who = Answering(checkpoint=served, endpoint="http://a/v1", row="Qwen3-VL")
    assert (note([answered], who, model=model) is None) is same


def test_what_was_loaded_or_started_here_is_what_answers() -> None:
    for who in (
        Answering(checkpoint="/mine/a", runs_here=True),
        Answering(checkpoint="Qwen/Q", server="vllm"),
    ):
        assert note(["another name"], who) is None
        assert note(["another name", "and another"], who) is not None


def test_a_checkpoint_that_moved_is_the_same_model() -> None:
    values: list[dict[str, Any]] = [
        {"identifier": f"/{folder}/mine", "revision": "sha256:1", "rows": 3} for folder in "ab"
    ]
    (model,) = models_in(values)
    assert (model.name, model.rows) == ("/a/mine", 6)


def test_failed_calls_say_what_was_asked_and_not_who_answered() -> None:
    failed = ReplyRecord(model={"identifier": "gpt-x"}, call={"error": "HTTP 500"})
    other = ReplyRecord(model={"identifier": "small-3b"})
    counts = count_models([Reply(0, "", failed), Reply(1, "[]", other)])
    assert [model.name for model in models_in(as_values(counts))] == ["small-3b"]


def test_provenances_of_1_0_have_no_numbers_of_rows() -> None:
    models = models_in([{"identifier": "a"}, {"identifier": "b", "provider": "P"}, {"row": "R"}])
    assert answered_note(models, None) == "answered by 2 models: a, b"
