"""What ``reproduce --against`` prints."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stored_reproductions import RIGHT, stored, stored_run

from vlmeval_findit.cli import against_lines
from vlmeval_findit.reproduction import StoredReproduction, compare_reproductions

LONG = replace(stored_run().answering, checkpoint="a-group/" + "a-long-name-" * 9)


@pytest.mark.parametrize(
    ("there", "lines"),
    [
        (
            stored(),
            [
                "12 rows of 6 pictures in both: here 75.0, there 75.0",
                "difference +0.0 points (-53.3 to +53.3), which may be chance",
                "no condition that is known differs; the same in both: 19 conditions",
            ],
        ),
        (
            stored([stored_run(RIGHT[:4])], here={"engine": ""}),
            [
                "4 rows of 2 pictures in both: here 75.0, there 75.0",
                "difference +0.0 points; no interval: fewer than 4 images count",
                "differs                   here                        there",
                "engine                    sglang 0.5.15               not known",
                "rows                      12                          4",
                "the same in both: 17 conditions",
            ],
        ),
        (
            stored([stored_run([1.0], rows=[99])]),
            [
                "no row was asked in both: type the same --limit and --seed",
                "differs                   here                        there",
                "rows                      12                          1",
                "the same in both: 18 conditions",
            ],
        ),
    ],
)
def test_values_come_before_conditions(there: StoredReproduction, lines: list[str]) -> None:
    printed = against_lines(compare_reproductions(stored(), there, "theirs.json"))
    assert printed == lines


@pytest.mark.parametrize(
    ("hits", "verdict"), [(0.0, "is more than chance"), (1.0, "may be chance")]
)
def test_a_difference_is_told_from_chance(hits: float, verdict: str) -> None:
    images = tuple(f"{row}.jpg" for row in range(40))
    here = stored([stored_run([1.0] * 40, images=images)])
    there = stored([stored_run([hits] * 40, images=images)])
    lines = against_lines(compare_reproductions(here, there, "theirs.json"))
    assert lines[1].endswith(verdict)


def test_long_values_are_folded_and_whole() -> None:
    decoding = "temperature 0.7, top_p 0.8, top_k 20, presence_penalty 1.5"
    there = stored([stored_run(answering=LONG)], here={"decoding": decoding})
    lines = against_lines(compare_reproductions(stored(), there, "theirs.json"))
    assert max(map(len, lines)) <= 80
    cells = [line[54:] for line in lines]
    assert decoding in " ".join(cells)
    assert LONG.checkpoint in "".join(cells)
