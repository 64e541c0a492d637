"""``run_findit.py samples``: mean, pass@k and consensus of several replies to each query."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..coords.run_check import NotBoxesError
from ..core.formatting import printable
from ..core.scored_row import sources
from ..leaderboard.run_tables import passes_table, samples_legend, samples_table
from ..leaderboard.table_output import to_json
from ..runs.consensus import fusion, write_consensus
from ..runs.prediction_names import prediction_files
from ..runs.sample_scores import load_samples, sample_files, score_samples
from .options import Command, json_option, runs_argument
from .printing import print_folded, print_lines, print_table, write_json


@click.command(cls=Command, examples=["python run_findit.py samples outputs/FindIt-Nano"])
@runs_argument
@json_option
def command(runs: tuple[Path, ...], json_file: Path | None) -> int:
    """Print the scores of several replies to each query (--samples) together; no model is needed.

    The mean over samples, pass@k, the best sample by the truth, and the consensus: boxes that most
    samples agree on. It is written next to the samples as a run, and scored like any other reply.
    """
    fusion()
    paths = prediction_files(runs)
    several = [path for path in paths if len(sample_files(path)) > 1]
    written: list[dict[str, Any]] = []
    legends: dict[str, None] = {}
    for path in several or paths[:1]:
        samples = load_samples(path)
        first, consensus = samples[0], None
        score = score_samples(samples)
        name = f"{printable(first.model)} on {first.question.name}"
        try:
            consensus = write_consensus(samples)
        except NotBoxesError as error:
            print(f"{name}: no consensus: {error}", file=sys.stderr)
        identity = first.provenance.identity
        sampling = (identity and identity.answering.sampled) or "greedy replies"
        print_folded(f"{name}: {len(first.rows)} queries, {sources(first.rows)} images; {sampling}")
        tables = [samples_table(score, consensus)]
        tables += [passes_table(score)] if score.passes is not None else []
        for table in tables:
            print()
            print_table(table, "--json FILE")
        print()
        if score.failed:
            calls = len(samples) * len(first.rows)
            print_folded(
                f"{score.failed} of {calls} calls failed and count as misses; the same run again "
                "asks them again"
            )
        if consensus is not None:
            print_folded(f"consensus: {consensus.path}")
            print()
        legends |= dict.fromkeys(samples_legend(score, consensus).lines)
        names = {"run": str(path), "model": first.model, "dataset": first.question.name}
        written.append({**names, "tables": [to_json(table) for table in tables]})
    print_lines([*legends], "docs/design/statistics.md")
    if left := len(paths) - len(several):
        print(f"{left} runs with one reply to each query were left out", file=sys.stderr)
    if json_file is not None:
        write_json(json_file, written)
    return 0
