"""Files of odd values: a board, or a line that names the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from boards import LABELS_JSON, world
from scored_runs import World, speaking

from vlmeval_findit.cli.leaderboard import print_remarks
from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.leaderboard.board_files import as_markdown
from vlmeval_findit.report.cards import choose_cards
from vlmeval_findit.report.differences import pair_values
from vlmeval_findit.report.gallery import gallery_data
from vlmeval_findit.report.lost_points import losses_of
from vlmeval_findit.report.pairs import pair_runs
from vlmeval_findit.report.transcripts import gather
from vlmeval_findit.runs.scored_run import RunError, load_runs

__all__ = ["world"]


ODD = ("NaN", "null", '"text"', "[null]", "-1")


def leaves(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Return the places of everything in a JSON value, itself included."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from leaves(value[0], (*path, 0))


def with_value(value: Any, path: tuple[Any, ...], odd: object) -> Any:
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_value(value[path[0]], path[1:], odd)
    return copy


def refusal(world: World) -> str | None:
    """Why the runs of a world cannot be shown; None where they can."""
    try:
        board = make_board(load_runs([world.runs]))
    except RunError as error:
        return str(error)
    assert as_markdown(board)
    print_remarks(board, "leaderboard.md")
    runs = [row.run for row in board.runs]
    transcripts, _ = gather(runs)
    data = gallery_data(choose_cards(transcripts, 3), runs)
    data |= {"pairs": pair_values(pair_runs(board), board.metrics, runs)}
    json.dumps(data, allow_nan=False)
    losses_of(board)
    return None


@pytest.mark.parametrize("odd", ODD)
def test_odd_values_in_a_runs_files_are_named_or_harmless(world: World, odd: str) -> None:
    """For any provenance or details file there is a board, or a line with the file's name."""
    path = world.predict("A", LABELS_JSON, speaking(LABELS_JSON, 0.8))
    world.predict("B", LABELS_JSON, speaking(LABELS_JSON, 0.3))
    refused = 0
    for ending in ("provenance.json", "details.jsonl"):
        file = path.with_name(f"{path.stem}_{ending}")
        whole = file.read_text(encoding="utf-8")
        first = whole if ending == "provenance.json" else whole.splitlines()[0]
        rest = whole.splitlines()[1:] if ending != "provenance.json" else []
        for place in leaves(json.loads(first)):
            changed = with_value(json.loads(first), place, json.loads(odd))
            file.write_text("\n".join([json.dumps(changed), *rest]), encoding="utf-8")
            why = refusal(world)
            refused += why is not None
            assert why is None or ("\n" not in why and str(path.with_name(path.stem)) in why), place
        file.write_text(whole, encoding="utf-8")
    assert refused > 10
    assert len(load_runs([world.runs])) == 2
