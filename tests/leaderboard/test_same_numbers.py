"""Every number with one name is equal everywhere: in random folders, in every output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from random_folders import make_folder
from stated_numbers import READERS, Outputs, Stated, formats_csv, leaderboard_csv

from vlmeval_findit.report import panels_of

Key = tuple[str, str, str, str]

OF_SOME = {"curves", "compare_command", "compare_in_python"}
"""Readers that say nothing of a folder without a training, or without two runs of a column."""


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 23))]
)
def test_numbers_of_one_name_are_equal(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_folder(tmp_path, seed, monkeypatch)
    outputs = Outputs(made.runs, made.reviews, tmp_path / "out")
    expected: dict[Key, float] = {}
    reported: dict[tuple[str, str], str] = {}
    for each in formats_csv(outputs):
        expected[each[:4]] = each.value
    for each in leaderboard_csv(outputs):
        if each.format:
            reported[each.column, each.model] = each.format
        else:
            expected[each[:4]] = each.value
    wrong = []
    for reader in READERS:
        seen = 0
        for each in reader(outputs):
            known = _known(each, expected, reported)
            if known is not None:
                seen += 1
                most = 0.5 * 10.0**-each.digits + 0.5e-4 + 1e-9
                if abs(known - each.value) > most:
                    wrong.append(f"{reader.__name__}: {each}, but formats.csv has {known}")
        assert seen or reader.__name__ in OF_SOME, f"{reader.__name__} states no known number"
    assert not wrong


def _known(
    each: Stated, expected: Mapping[Key, float], reported: Mapping[tuple[str, str], str]
) -> float | None:
    """Return what the first file says of the same; None if it does not have it."""
    format_ = each.format or reported.get((each.column, each.model), "")
    return expected.get((each.column, each.model, format_, each.name))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_two_models_have_one_verdict(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of a panel is tested against the best, and against the one a rank above."""
    made = make_folder(tmp_path, seed, monkeypatch)
    seen = 0
    for board in Outputs(made.runs, made.reviews, tmp_path / "out").boards:
        for panel in panels_of(board):
            best, *others = panel.dots
            for dot in others[:1]:
                seen += 1
                assert dot.to_best == dot.entry.to_above, f"{dot.model} and {best.model}"
    assert seen
