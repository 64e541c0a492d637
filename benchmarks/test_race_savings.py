"""What a race of formats saves, and how often its winner is that of the search over everything.

    python -m pytest benchmarks/test_race_savings.py --benchmark-enable -s

races simulated models, whose figures are known, and prints a table.  It searches FindIt-Nano's best
format over Scenes_mini in full (950 calls), then by races with ten orders of the pictures, and
prints a line each.  $FINDIT_RACES names a folder for the replies, so that a second run asks
nothing.  Races that lead to keys of another representation ask a few more.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import fmean

import pytest
from engine_fakes import go
from simulated_races import RATES, races

from vlmeval_findit.core.run_files import RunFiles
from vlmeval_findit.core.statistics import ALPHA
from vlmeval_findit.models.entry import ModelEntry
from vlmeval_findit.runs.format_file import averages, race_calls
from vlmeval_findit.runs.run_score import CellResult
from vlmeval_findit.runs.run_statistics import compare
from vlmeval_findit.runs.scored_run import Run, load_run
from vlmeval_findit.sweeps.format_search import search_sweep
from vlmeval_findit.sweeps.sweep_file import Race, grid_tables

SEEDS = range(10)
QUERIES = 50
TIMES = 100


@pytest.fixture
def replies(measures: bool, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The folder of the journal."""
    if not measures:
        pytest.skip("asks FindIt-Nano a thousand times: --benchmark-enable")
    request.getfixturevalue("one_thread")
    folder = Path(os.environ.get("FINDIT_RACES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def searched(work_dir: Path, replies: Path, race: Race | None) -> list[CellResult]:
    """A search over recorded replies; what is not recorded is asked, and then is."""
    from vlmeval_findit.engine.backend import CallOptions
    from vlmeval_findit.host.vlmevalkit_backends import VLMEvalKitBackends

    table, places = grid_tables()["Scenes_mini"], (work_dir, replies / "calls.jsonl")
    sweep = search_sweep(ModelEntry("FindIt-Nano"), table, QUERIES, places, race=race)
    return go(sweep, VLMEvalKitBackends(CallOptions()))


def winner(results: list[CellResult]) -> Run:
    best = averages(results)[0].question
    path = next(result.path for result in results if result.question == best)
    return load_run(RunFiles(path).provenance)


def test_a_race_saves_half_and_its_winner_is_as_good(replies: Path, tmp_path: Path) -> None:
    whole = winner(searched(tmp_path / "whole", replies, None))
    figure = whole.benchmark.metrics[0].name
    print(
        f"\nall {QUERIES} queries: {whole.question.format}, "
        f"{figure} {whole.metric_values[figure]:.1f}"
    )
    print("| seed | calls | saved | winner | points to the full search's | p |")
    print("|---|---|---|---|---|---|")
    saved, same, within = [], 0, 0
    for seed in SEEDS:
        results = searched(tmp_path / f"{seed}", replies, Race(seed))
        asked, of = race_calls(results)
        raced = winner(results)
        apart = compare(raced, whole)[figure]
        saved.append(100 * (of - asked) / of)
        same += raced.question == whole.question
        agrees = apart.p_value is None or apart.value >= 0 or apart.p_value >= ALPHA
        within += agrees
        cells = f"{raced.question.format} | {apart.value:+.1f} | {apart.p_value:.2f}"
        print(f"| {seed} | {asked} of {of} | {saved[-1]:.0f} % | {cells} |", flush=True)
    print(
        f"saved {fmean(saved):.0f} % ({min(saved):.0f} to {max(saved):.0f}); the same winner {same}"
        f" of {len(SEEDS)} times, within its interval {within} of {len(SEEDS)}"
    )
    assert fmean(saved) >= 50
    assert within == len(SEEDS)


def test_races_of_simulated_models(measures: bool) -> None:
    if not measures:
        pytest.skip("takes minutes: --benchmark-enable")
    print("\n| finds a box | pictures | saved | the same winner | a worse one |")
    print("|---|---|---|---|---|")
    for name, rates in RATES.items():
        for pictures in (50, 200):
            found = races(rates, TIMES, pictures)
            cells = " | ".join(
                f"{100 * x:.1f} %" for x in (1 - found.asked, found.same, found.wrong)
            )
            print(f"| {name} | {pictures} | {cells} |", flush=True)
            assert found.wrong <= ALPHA
