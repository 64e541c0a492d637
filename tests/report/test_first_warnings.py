"""What makes scores worthless is said alike in the terminal, in notes and on the first screen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from boards import many
from every_pair import every_pair
from few_fast import few_fast
from scored_runs import World, saying, speaking, with_facts

from vlmeval_findit.analysis import adherence_note
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import Board, make_board, remarks
from vlmeval_findit.protocol import CHAT_KIND, PROVIDER_KIND, Answering
from vlmeval_findit.report import headlines_of, losses_of, panels_of
from vlmeval_findit.scoring import Run

__all__ = ["many"]

JSON = "FindIt_Pascal_xyxy_json"
IN_PROSE = "The cat is at x1=100, y1=100, x2=300, y2=600."
UNSEEN = (
    "12 of 12 replies count fewer tokens than the text alone: the server may not see the images"
)
A_BOX = '[{"bbox": [0, 0, 9, 9]}]'
OTHER = "declared grid1000, but the answers follow pixels"

# By the answer of the card, a run, and how its warning begins
KINDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "Format not followed": (IN_PROSE, {}, "0 of 12 replies are in the format"),
    "Nothing found": ("[]", {}, "12 of 12 answers say that there is no object"),
    "Odd replies": (A_BOX, {"replies": {"replies": 12, "fewer tokens than the text": 12}}, UNSEEN),
    "Coordinate space in doubt": (A_BOX, {"coords_doubt": OTHER}, OTHER),
}


def cards(board: Board) -> dict[str, str]:
    lines = headlines_of(board, panels_of(board), losses_of(board))
    # The costliest error may have the same name: its card is the last
    return {line.answer: line.because for line in reversed(lines)}


@every_pair("kind, models", KINDS, [1, 2])
def test_a_warning_has_a_card_and_a_note(kind: str, models: int, world: World) -> None:
    reply, facts, warning = KINDS[kind]
    runs = [with_facts(world.run("M", JSON, saying(reply)), **facts)]
    if models > 1:
        runs.append(world.run("Good", JSON, speaking(JSON, 1.0)))
    board = make_board(runs)
    (line,) = dict(remarks(board))[kind]
    assert line.startswith(f"M on {JSON}: {warning}")
    assert cards(board)[kind] == line
    assert {answer for answer in KINDS if answer in cards(board)} == {kind}


@pytest.mark.parametrize("kind", few_fast(["Format not followed", "Nothing found"], 2))
@pytest.mark.parametrize("command", few_fast(["errors", "score"], 1))
def test_a_warning_is_printed(
    kind: str, command: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    reply, _, warning = KINDS[kind]
    path = world.predict("M", JSON, saying(reply))
    assert main([command, str(path)]) == 0
    assert warning in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("reply", [IN_PROSE, "[]"])
def test_one_good_answer_of_few_ends_a_warning(reply: str, world: World) -> None:
    good = speaking(JSON, 1.0)

    def answer(query: Any, generator: Any) -> str:
        return good(query, generator) if query.index < 2 else reply

    board = make_board([world.run("M", JSON, answer)])
    assert not {"Format not followed", "Nothing found"} & dict(remarks(board)).keys()


# --- is that certain? -----------------------------------------------------------------------------


def doubted(run: Run, is_in_doubt: bool) -> Run:
    provenance = replace(run.provenance, coords_doubt=OTHER if is_in_doubt else None)
    return replace(run, provenance=provenance)


@pytest.mark.parametrize("in_doubt", ["", "A", "B", "C", "AB"])
@pytest.mark.parametrize("chance", few_fast([0.2, 0.9], 2))
def test_no_order_is_certain_where_boxes_may_be_misread(
    in_doubt: str, chance: float, many: Board
) -> None:
    """Of the winner, of the next, of another: certain or not, it is said of whom."""
    named = {model: model in in_doubt for model in many.models}
    runs = [row.run for row in many.runs if row.run.model in ("A", "E" if chance < 0.5 else "B")]
    runs += [row.run for row in many.runs if row.run.model == "C"]
    board = make_board([doubted(run, named[run.model]) for run in runs])
    lines = headlines_of(board, panels_of(board), losses_of(board))
    (certain,) = [line for line in lines if line.question == "Is that certain?"]
    whose = [model for model in board.models if named[model]]
    assert ("coordinate space in doubt of" in certain.because) == bool(whose)
    assert certain.because.endswith(", ".join(whose))
    assert not (whose and certain.answer == "Yes")


def test_comparing_names_runs_whose_boxes_may_be_misread(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [world.predict(model, JSON, speaking(JSON, 0.9)) for model in ("A", "B")]
    file = paths[1].with_name(f"{paths[1].stem}_provenance.json")
    text = file.read_text(encoding="utf-8")
    assert '"coords_doubt": null' in text
    file.write_text(text.replace('"coords_doubt": null', f'"coords_doubt": "{OTHER}"'))
    assert main(["compare", *map(str, paths)]) == 0
    first, second = capsys.readouterr().out.split("\n")[:2]
    assert OTHER not in first
    assert second.endswith(OTHER)


# --- what a note says to type ---------------------------------------------------------------------

SERVER = "http://localhost:8000/v1"
BY_SERVER = Answering(kind=CHAT_KIND, row="Qwen3-VL", checkpoint="org/served", endpoint=SERVER)
ASKED_BY = {
    "a known model": (replace(BY_SERVER, row="M"), f"M=org/served --base-url {SERVER}"),
    "another name": (BY_SERVER, f"M=org/served --like Qwen3-VL --base-url {SERVER}"),
    "two servers": (
        replace(BY_SERVER, row="M", endpoint=f"{SERVER}, http://b:1/v1"),
        f"M=org/served --base-url {SERVER},http://b:1/v1",
    ),
    "what relays": (replace(BY_SERVER, endpoint="https://openrouter.ai/api/v1"), "M"),
    "a provider": (
        Answering(
            kind=f"{PROVIDER_KIND}openai", row="M", checkpoint="m-1", endpoint="https://a/v1"
        ),
        "M --provider openai",
    ),
    "a known model served here": (
        Answering(kind=CHAT_KIND, row="M", checkpoint="org/m", server="vllm 0.33.0"),
        "M --serve vllm",
    ),
    "a checkpoint served here": (
        Answering(kind=CHAT_KIND, row="Qwen3-VL", checkpoint="/p", server="vllm 0.33.0"),
        "M=/p --like Qwen3-VL --serve vllm",
    ),
    "a checkpoint here": (
        Answering(row="Qwen3-VL", checkpoint="/my ft", runs_here=True),
        "'M=/my ft' --like Qwen3-VL",
    ),
    "a known model here": (Answering(row="M", checkpoint="org/m", runs_here=True), "M"),
}


@pytest.mark.parametrize("who", ASKED_BY)
def test_a_note_asks_whom_the_run_asked(who: str, world: World) -> None:
    answering, words = ASKED_BY[who]
    run = world.run(
        "M", JSON, saying(IN_PROSE), change=lambda each: replace(each, answering=answering)
    )
    note = adherence_note(run) or ""
    assert note.endswith(f" search --model {words} --data Pascal")
