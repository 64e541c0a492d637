"""Another checkpoint than the published one: by what a server says, and by what replies name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reproductions import attempt, dataset_of, figure, predictions, query, reply_with

from vlmeval_findit.models import ModelEntry, RunningProgram
from vlmeval_findit.protocol import ReplyRecord
from vlmeval_findit.reproduction import (
    Attempt,
    CauseLook,
    Evidence,
    check_checkpoint,
    judge_attempt,
)

RECORDS = [ReplyRecord(model={"identifier": "mine"})] * 12


def tried(records: list[ReplyRecord] = RECORDS) -> Attempt:
    """Return an attempt at a figure of Qwen3-VL-8B-Instruct."""
    rows = range(len(records))
    dataset = dataset_of([query(row, (0, 0, 100, 50)) for row in rows])
    replies = [reply_with(row, (0, 0, 500, 500), record=records[row]) for row in rows]
    return attempt(figure(92.2), predictions(dataset, replies))


def checked(of: Attempt) -> CauseLook:
    return check_checkpoint(Evidence(of, judge_attempt(of)))


@pytest.mark.parametrize(
    ("checkpoint", "finding"),
    [
        ("Qwen/Qwen3-VL-8B-Instruct", ""),
        ("Qwen3-VL-8B-Instruct-BF16.gguf", ""),
        ("Qwen/Qwen3-VL-8B-Instruct-AWQ", "is quantised (AWQ)"),
        ("Qwen3VL-8B-Instruct-Q4_K_M.gguf", "is quantised (Q4_K_M)"),
        ("qwen/qwen3-vl-8b 4bit", "is quantised (4bit)"),
        ("Qwen/Qwen3-VL-8B-Instruct-FP8", "is quantised (FP8)"),
        ("Qwen/Qwen3-VL-8B-Thinking", "the figure is of Qwen3-VL-8B-Instruct"),
        ("Qwen/Qwen3-VL-4B-Instruct", "the figure is of Qwen3-VL-8B-Instruct"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "the figure is of Qwen3-VL-8B-Instruct"),
    ],
)
def test_what_a_server_says_that_it_serves(checkpoint: str, finding: str) -> None:
    whole = tried()
    program = RunningProgram("vllm", "0.13.0", checkpoint)
    noticed = checked(replace(whole, setup=replace(whole.setup, program=program)))
    if not finding:
        assert noticed.cause is None
        assert noticed.result == f"{checkpoint}, as published"
        return
    assert noticed.cause is not None
    assert noticed.cause.finding.startswith(f"{checkpoint} answers")
    assert finding in noticed.cause.finding
    assert not noticed.cause.sure


def test_what_is_loaded_here() -> None:
    whole = tried()
    entry = ModelEntry("Qwen3-VL-8B-Instruct", checkpoint="/data/Qwen3-VL-2B-Instruct/")
    noticed = checked(replace(whole, setup=replace(whole.setup, entry=entry)))
    assert noticed.cause is not None
    assert noticed.cause.finding.startswith("Qwen3-VL-2B-Instruct answers; the figure is of")


def test_replies_that_name_several_models() -> None:
    fallback = [ReplyRecord(model={"identifier": "small-3b"})] * 5
    noticed = checked(tried([*RECORDS, *fallback]))
    assert noticed.cause is not None
    assert "answered by 2 models: 12 rows by mine, 5 rows by small-3b" in noticed.cause.finding
    assert "gateway" in noticed.cause.advice


def test_a_weaker_model_among_several_says_who_answered() -> None:
    rows = range(80)
    dataset = dataset_of([query(row, (0, 0, 100, 50)) for row in rows])
    weak = ReplyRecord(model={"identifier": "small-3b"})
    replies = [
        reply_with(row, (700, 700, 900, 900), record=weak)
        if row % 2
        else reply_with(row, (0, 0, 500, 500), record=RECORDS[0])
        for row in rows
    ]
    noticed = checked(attempt(figure(92.2), predictions(dataset, replies)))
    assert noticed.cause is not None
    assert noticed.cause.sure
    assert "40 rows by mine, 40 rows by small-3b" in noticed.result


def test_nothing_is_told() -> None:
    noticed = checked(tried())
    assert noticed.cause is None
    assert noticed.result == "not told which checkpoint answers"
