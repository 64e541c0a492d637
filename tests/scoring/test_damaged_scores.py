"""Damage in the files of a score is refused with file, line and key, never with a traceback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT  # noqa: F401
from scored_runs import World, speaking

from vlmeval_findit.protocol import Settings
from vlmeval_findit.scoring import (
    Provenance,
    RowData,
    Run,
    RunError,
    ScoreFileError,
    lines_of_sums,
    load_run,
    open_score,
    read_details,
    settings_of_score,
)
from vlmeval_findit.storage import SHOWN_COLUMN, RunFiles

JSON = "FindIt_Pascal_xyxy_json"

DEEP = 900
NESTED: Any = []
for _ in range(DEEP):
    NESTED = [NESTED]

# Every kind of value, and those that look like others
ODD: tuple[Any, ...] = (
    None,
    True,
    7,
    10**400,
    7.5,
    float("nan"),
    "",
    "7",
    "../7",
    [7],
    [[]],
    {"a": 7},
    {"a": {"b": None}},
    NESTED,
)


def places(value: Any, *at: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to every value in a JSON object, at most three steps."""
    if at:
        yield at
    parts: Any = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value[:1])
    for key, part in parts:
        if len(at) < 3:
            yield from places(part, *at, key)


def changed(value: Any, at: tuple[str | int, ...], new: Any) -> Any:
    copy = json.loads(json.dumps(value))
    part = copy
    for step in at[:-1]:
        part = part[step]
    part[at[-1]] = new
    return copy


def without(value: Any, at: tuple[str | int, ...]) -> Any:
    copy = json.loads(json.dumps(value))
    part = copy
    for step in at[:-1]:
        part = part[step]
    del part[at[-1]]
    return copy


def read_all(files: RunFiles) -> Run:
    """Read a score in every way in which it is read."""
    run = load_run(files.provenance, RowData.SUMS)
    read_details(run)
    _ = run.sums, run.metric_values, run.query_scores, run.other_space
    known = run.provenance
    _ = known.answered_note, known.custom_words, known.scored_under
    return run


def check(files: RunFiles, names: tuple[Path, ...]) -> str | None:
    """Read a score; return the message of its refusal, which begins with one of the files."""
    try:
        read_all(files)
    except RunError as error:
        message = str(error)
        assert message.startswith(tuple(map(str, names)))
        assert len(message) < 1000
        return message
    return None


def check_columns(files: RunFiles, message: str | None) -> None:
    """Read a score into columns: it is the same, or refused with the same message."""
    if message is not None:
        with pytest.raises(RunError, match=f"^{re.escape(message)}$"):
            load_run(files.provenance, RowData.SUMS)
        return
    columns = load_run(files.provenance, RowData.SUMS)
    rows = load_run(files.provenance)
    assert list(columns.rows) == [replace(row, details={}) for row in rows.rows]
    assert columns.provenance == rows.provenance
    assert columns.sums == rows.sums


@pytest.fixture
def files(world: World) -> RunFiles:
    return RunFiles(world.predict("A", JSON, speaking(JSON, 0.6, 20)))


def test_lines_without_parts_are_read_as_columns(files: RunFiles) -> None:
    lines = lines_of_sums(files.details.read_bytes())
    assert lines is not None
    assert [line.index for line in lines] == [row.index for row in load_run(files.provenance).rows]


def test_odd_values_in_a_provenance_are_read_or_refused(files: RunFiles) -> None:
    values = json.loads(files.provenance.read_text())
    refused = set()
    read = {field.name for field in fields(Provenance)}
    for at in places({name: values[name] for name in read & values.keys()}):
        for odd in ODD:
            files.provenance.write_text(json.dumps(changed(values, at, odd)))
            if check(files, (files.provenance, files.predictions)) is not None:
                refused.add(at)
        files.provenance.write_text(json.dumps(without(values, at)))
        check(files, (files.provenance, files.predictions))
    for needed in ("identity", "digest", "forced", "spaces", "totals", "scored_with", "model"):
        assert (needed,) in refused
    assert {("table", "file"), ("predictions", "rows_missing"), ("identity", "rows")} <= refused


def test_odd_values_in_details_are_read_or_refused(files: RunFiles) -> None:
    first, *others = files.details.read_text().splitlines(keepends=True)
    values = json.loads(first)
    values |= {"slices": {"size": "small"}, SHOWN_COLUMN: '{"0.jpg": "aaaaaaaaaaaaaaaa"}'}
    parts = {"parts": [["class", "cat", {"asked": 1}]]}
    keys = ("index", "source", "failed", "reason", "sums", "slices", "parts", SHOWN_COLUMN)
    refused = set()
    for at in places(values | parts):
        if at[0] not in keys:
            continue
        # Rows with parts are not read into columns at once.
        whole = values | parts if at[0] == "parts" else values
        for odd in ODD:
            line = json.dumps(changed(whole, at, odd))
            files.details.write_text("".join([f"{line}\n", *others]))
            message = check(files, (files.details, files.provenance))
            check_columns(files, message)
            if message is not None and message.startswith(f"{files.details}, line 1: "):
                refused.add(at)
    for needed in ("index", "source", "failed", "reason", "sums", "slices", "parts"):
        assert (needed,) in refused


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[]", "should be a mapping of names to values"),
        ("{", "not JSON: "),
        ("7", "should be a mapping of names to values"),
        ("[" * 100_000, "not JSON: it is nested too deeply"),
        ('{"index": true}', "index: True should be a whole number"),
        ('{"index": 0, "source": 7}', "source: 7 should be a text"),
        ('{"index": 0, "source": "a", "failed": 0}', "failed: 0 should be true or false"),
        ('{"index": 0}', "source is missing"),
    ],
)
def test_a_damaged_line_of_details_is_named(files: RunFiles, line: str, why: str) -> None:
    lines = files.details.read_text().splitlines(keepends=True)
    files.details.write_text("".join([lines[0], f"{line}\n", *lines[2:]]))
    with pytest.raises(RunError) as refused:
        load_run(files.provenance)
    assert str(refused.value).startswith(f"{files.details}, line 2: {why}")
    assert "score it again: " in str(refused.value)
    check_columns(files, str(refused.value))


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        (("predictions", "file"), "../a", "predictions.file: '../a' climbs out of its folder"),
        (("totals",), [], "totals: should be a mapping of names to values"),
        (("totals",), {"tp": True}, "totals.tp: True should be a finite number"),
        (("spaces",), [{"kind": "unit"}], "spaces.0: source is missing"),
        (("identity", "answering", "kind"), 7, "identity.answering.kind: 7 should be a text"),
        (("identity", "rows"), "0-x", "identity.rows: '0-x' should be rows and ranges of rows"),
        (("identity", "promts"), "x", "identity: unknown key 'promts': did you mean prompts?"),
    ],
)
def test_a_damaged_key_of_a_provenance_is_named(
    files: RunFiles, at: tuple[str, ...], value: Any, why: str
) -> None:
    values = json.loads(files.provenance.read_text())
    files.provenance.write_text(json.dumps(changed(values, at, value)))
    with pytest.raises(RunError) as refused:
        load_run(files.provenance)
    assert str(refused.value).startswith(f"{files.provenance}: {why}")


def test_an_earlier_score_that_is_damaged_is_named(files: RunFiles) -> None:
    files.provenance.write_text('{"spaces": 7}')
    with pytest.raises(ScoreFileError) as refused:
        settings_of_score(files.predictions, Settings())
    assert str(refused.value).startswith(f"{files.provenance}: ")
    assert str(refused.value).endswith("; delete it to score without it")
    other = RunFiles(files.predictions, ".space-unit").provenance
    other.write_text("7")
    with pytest.raises(ScoreFileError):
        open_score(other, Settings())
