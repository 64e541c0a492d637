"""The sums next to a score's details: they say what the details say, or are not read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from boards import NOW
from hypothesis import given, settings
from hypothesis import strategies as st
from scored_runs import World, failing, speaking

from vlmeval_findit.leaderboard import make_board, write_board
from vlmeval_findit.protocol import RowTable, ScoredRow, Settings
from vlmeval_findit.scoring import (
    RowData,
    Run,
    RunError,
    SumsOfRows,
    details_line,
    load_run,
    load_runs,
    read_sums,
    score_file,
    stored_sums,
    sums_in_details,
    write_score,
    write_sums,
)
from vlmeval_findit.storage import SHOWN_COLUMN, RunFiles

JSON = "FindIt_Pascal_xyxy_json"

numbers = st.one_of(
    st.integers(-3, 300),
    st.sampled_from([-(2**63), -(2**15), 2**16, 2**53 + 1, 2**64 - 1, 2**64, 0.0, -0.0, 1e300]),
    st.floats(-1, 1),
)
words = st.text("ab é", min_size=1, max_size=2)
rows_of_a_run = st.lists(
    st.builds(
        ScoredRow,
        index=st.integers(0, 2**60),
        source=words,
        sums=st.dictionaries(words, numbers, max_size=3),
        failed=st.booleans(),
        reason=st.none() | words,
        slices=st.dictionaries(words, words, max_size=2),
        details=st.sampled_from(
            [{}, {SHOWN_COLUMN: {"1.png": "aaaaaaaaaaaaaaaa"}}, {SHOWN_COLUMN: "no JSON"}]
        ),
    ),
    max_size=6,
)


def as_texts(sums: SumsOfRows | None) -> Any:
    """Return all that sums hold, with their types: 1 is not 1.0 here, nor is -0.0 what 0.0 is."""
    if sums is None:
        return None
    rows = sums.rows
    columns: dict[str, Any] = {"indices": rows.indices, "failed": rows.failed, **rows.sums}
    texts = {"source": rows.source, "reason": rows.reason, **rows.slices}
    numbers = {
        name: (column.dtype, type(column), repr(column.tolist()))
        for name, column in columns.items()
    }
    places = {name: (text.values, text.place.dtype) for name, text in texts.items()}
    return [*numbers.items()], [*places.items()], repr([*rows]), repr(sums.shown)


def files_of(folder: Path, rows: list[ScoredRow]) -> RunFiles:
    files = RunFiles(folder / "m_FindIt_Pascal_xyxy_json.json")
    files.details.write_text("".join(map(details_line, rows)), "utf-8")
    return files


@settings(deadline=None)
@given(rows_of_a_run)
def test_stored_sums_are_those_of_the_details(
    tmp_path_factory: pytest.TempPathFactory, rows: list[ScoredRow]
) -> None:
    files = files_of(tmp_path_factory.mktemp("sums"), rows)
    write_sums(files)
    expected = sums_in_details(files.details.read_bytes())
    stored = read_sums(files)
    if stored is not None:
        assert as_texts(stored) == as_texts(expected)
    if rows and expected is not None:
        of_python = [column.dtype == object for column in expected.rows.sums.values()]
        assert (stored is None) == any(of_python)


@pytest.fixture
def files(world: World) -> RunFiles:
    return RunFiles(world.predict("A", JSON, speaking(JSON, 0.6, 20)))


def everything(run: Run) -> Any:
    assert isinstance(run.rows, RowTable)
    rows = SumsOfRows(run.rows, run.provenance.shown)
    return as_texts(rows), run.provenance, repr(run.sums)


def encoded(content: Mapping[str, Any]) -> bytes:
    """Return a file of sums of a content, with its hash."""
    from msgspec.msgpack import encode

    packed = encode(content)
    return hashlib.sha256(packed).digest() + packed


def with_values(data: bytes, **values: Any) -> bytes:
    from msgspec.msgpack import decode

    content: dict[str, Any] = decode(data[stored_sums._DIGEST :])
    return encoded({**content, **values})


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


WORD = {"values": ["a.jpg"], "place": {"kind": "|i1", "values": b"\1" * 12, "missing": None}}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "no content": lambda data: data[:32],
    "cut off": lambda data: data[:-1],
    "half": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"\0",
    "a bit of its hash": lambda data: flipped(data, 3),
    "a bit of its middle": lambda data: flipped(data, len(data) // 2),
    "its last bit": lambda data: flipped(data, len(data) - 1),
    "a text": lambda data: b"sums\n",
    "another layout": lambda data: with_values(data, layout=stored_sums.LAYOUT + 1),
    "no layout": lambda data: encoded({}),
    "a list": lambda data: encoded([]),  # type: ignore[arg-type]
    "of other details": lambda data: with_values(data, details=64 * "0"),
    "more rows": lambda data: with_values(data, rows=13),
    "no number of rows": lambda data: with_values(data, rows="12"),
    "a kind of Python's": lambda data: with_values(
        data, failed={"kind": "|O", "values": bytes(96), "missing": None}
    ),
    "a kind of another machine": lambda data: with_values(
        data, indices={"kind": ">f8", "values": bytes(96), "missing": None}
    ),
    "no kind": lambda data: with_values(data, failed={"kind": "", "values": b"", "missing": None}),
    "too few missing": lambda data: with_values(
        data, indices={"kind": "|u1", "values": bytes(12), "missing": b"\0"}
    ),
    "a text that is none": lambda data: with_values(data, source=WORD),
    "shown by name": lambda data: with_values(data, shown=b"\x81\xa1a\x80"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_sums_are_passed_over(files: RunFiles, damage: str) -> None:
    whole = files.sums.read_bytes()
    expected = everything(load_run(files.provenance, RowData.SUMS))
    assert read_sums(files) is not None
    files.sums.write_bytes(DAMAGES[damage](whole))
    assert read_sums(files) is None
    assert everything(load_run(files.provenance, RowData.SUMS)) == expected


def test_a_folder_in_the_place_of_sums_is_passed_over(files: RunFiles) -> None:
    files.sums.unlink()
    expected = everything(load_run(files.provenance, RowData.SUMS))
    files.sums.mkdir()
    assert everything(load_run(files.provenance, RowData.SUMS)) == expected


def edited(line: str, **values: Any) -> str:
    return json.dumps({**json.loads(line), **values}) + "\n"


# Their totals are those of the provenance: nothing else would notice
EDITS: dict[str, Callable[[list[str]], list[str]]] = {
    "another slice": lambda lines: [edited(lines[0], slices={"time": "day"}), *lines[1:]],
    "another image": lambda lines: [edited(lines[0], source="9.jpg"), *lines[1:]],
    "another row": lambda lines: [edited(lines[0], index=99), *lines[1:]],
    "another order": lambda lines: lines[::-1],
    "another reason": lambda lines: [edited(lines[0], reason="empty"), *lines[1:]],
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_details_are_read_themselves(files: RunFiles, edit: str) -> None:
    before = files.details.read_text("utf-8")
    state = files.details.stat()
    changed = "".join(EDITS[edit](before.splitlines(True)))
    assert changed != before
    files.details.write_text(changed, "utf-8")
    # No clock tells the two apart; two of the edits keep the size, too
    os.utime(files.details, ns=(state.st_atime_ns, state.st_mtime_ns))
    run = load_run(files.provenance, RowData.SUMS)
    files.sums.unlink()
    assert everything(run) == everything(load_run(files.provenance, RowData.SUMS))


def test_sums_without_details_are_no_score(files: RunFiles) -> None:
    files.details.unlink()
    with pytest.raises(RunError, match=r"details\.jsonl is missing; score it again"):
        load_run(files.provenance, RowData.SUMS)


def test_sums_of_a_killed_score_are_passed_over(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another score is killed behind its details: they are refused with the old sums, too."""

    def killed(files: RunFiles) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vlmeval_findit.scoring.score_writing.write_sums", killed)
    other = score_file(files.predictions, Settings(space="unit", force=True))
    with pytest.raises(KeyboardInterrupt):
        write_score(other, files.predictions)
    assert files.sums.is_file()
    for _ in range(2):
        with pytest.raises(RunError, match="but the details next to it add up to"):
            load_run(files.provenance, RowData.SUMS)
        files.sums.unlink(missing_ok=True)


def test_sums_of_another_writer_are_passed_over(files: RunFiles, world: World) -> None:
    """Of two that score at once, one writes the details last, and the other the sums."""
    other = RunFiles(world.predict("B", JSON, speaking(JSON, 0.1, 20)))
    expected = everything(load_run(files.provenance, RowData.SUMS))
    files.sums.write_bytes(other.sums.read_bytes())
    assert read_sums(files) is None
    assert everything(load_run(files.provenance, RowData.SUMS)) == expected


def test_boards_are_the_same_without_sums(world: World, tmp_path: Path) -> None:
    names = JSON, "FindIt_Pascal_xyxy_text", "FindIt_Pascal_multilabel_xyxy_json"
    runs = []
    for name in names:
        runs.append(RunFiles(world.predict("A", name, speaking(name, 0.6, 20))))
        runs.append(RunFiles(world.predict("B", name, failing)))
    written = []
    for out in ("with", "without"):
        board = make_board(load_runs([world.runs], keep=RowData.SUMS))
        files = write_board(board, tmp_path / out, NOW)
        written.append({path.name: path.read_bytes() for path in files if path.suffix != ".xlsx"})
        for files_of_run in runs:
            assert files_of_run.sums.is_file() == (out == "with")
            files_of_run.sums.unlink(missing_ok=True)
    assert written[0] == written[1]


def test_details_that_boards_read_otherwise_have_no_sums(files: RunFiles) -> None:
    first, *others = files.details.read_text("utf-8").splitlines(True)
    parts = [["class", "cat", {"asked": 1}]]
    files.details.write_text("".join([edited(first, parts=parts), *others]), "utf-8")
    write_sums(files)
    assert not files.sums.exists()


def test_the_layout_is_the_one_that_is_known(tmp_path: Path) -> None:
    """Another content of the same rows is another layout: raise ``LAYOUT``, and write this hash."""
    sums = {"responses": 1, "iou_sum": 0.5}
    row = ScoredRow(0, "0.jpg", sums, slices={"size": "small"}, details={"label": "cat"})
    shown = {SHOWN_COLUMN: {"1.png": "aaaaaaaaaaaaaaaa"}}
    failed = ScoredRow(300, "1.jpg", {"responses": -1}, True, "failed call", details=shown)
    files = files_of(tmp_path, [row, failed])
    write_sums(files)
    known = 1, "ea27d3007af4c03c"
    assert (stored_sums.LAYOUT, hashlib.sha256(files.sums.read_bytes()).hexdigest()[:16]) == known
