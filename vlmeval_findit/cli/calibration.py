"""``calibration`` and ``samples``: confidences of boxes, and several replies to each query."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path

import click

from ..analysis import (
    CalibrationResult,
    NoConfidenceError,
    add_agreement,
    load_samples,
    measure_calibration,
    sample_files,
    score_samples,
    write_consensus,
)
from ..coords import NotBoxesError
from ..core import EXIT_SOME_FAILED, agreeing, counted, first_few, printable
from ..leaderboard import (
    calibration_table,
    explain_tables,
    passes_table,
    ranking_table,
    samples_legend,
    samples_table,
)
from ..models import check_stated
from ..protocol import count_images, settings_from
from ..scoring import UNANSWERED, prediction_files, score_file, settings_of_score
from .command_base import (
    Command,
    data_name_option,
    force_option,
    json_option,
    results_argument,
    say,
    space_option,
)
from .printing import WHOLE_OUTPUT, print_folded, print_lines, print_table, write_json


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano "
        "--limit 10 --logprobs --work-dir sure",
        "python run_findit.py calibration sure",
    ],
)
@results_argument
@data_name_option
@space_option
@force_option
@json_option
def command(
    runs: tuple[Path, ...],
    dataset: str | None,
    space: str | None,
    force: bool,
    json_file: Path | None,
) -> int:
    """Print average precision and calibration of boxes by the probabilities of their tokens.

    Boxes are ranked by each definition of confidence and in the order of the replies. With several
    samples of a query, their agreement is a confidence of the boxes in the first.
    Needs no model. Of several runs those without --logprobs and --samples are left out.
    """
    settings = settings_from({"space": space, "force": force})
    check_stated(settings)
    results: list[CalibrationResult] = []
    paths = prediction_files(runs)
    without: list[Path] = []
    for path in paths:
        try:
            run, *others = (
                score_file(each, settings_of_score(each, settings), dataset)
                for each in sample_files(path)
            )
            if run.is_unanswered:
                say(f"{path}: left out: {UNANSWERED}", file=sys.stderr)
                continue
            if others:
                rows = add_agreement(run.rows, [other.rows for other in others])
                run = replace(run, rows=rows)
            result = measure_calibration(run, path)
        except NotBoxesError as error:
            say(f"{path}: left out: {error}", file=sys.stderr)
            continue
        except NoConfidenceError:
            if len(paths) == 1:
                raise
            without.append(path)
            continue
        results.append(result)
        say(f"{printable(result.model)} on {result.dataset}")
        say(
            f"{counted(result.boxes, 'box')} in {counted(result.queries, 'reply', 'replies')} "
            f"about {counted(result.images, 'image')}"
        )
        for table in (ranking_table(result), calibration_table(result)):
            say()
            print_table(table, "--json FILE")
        say()
    if without:
        what = f"{counted(len(without), 'run')} left out: not asked with --logprobs or --samples"
        say(f"{what} ({first_few([*map(str, without)])})", file=sys.stderr)
    if not results:
        if json_file is not None:
            say(f"{json_file} is not written: no run is left", file=sys.stderr)
        return EXIT_SOME_FAILED
    print_lines(explain_tables(results).lines, "docs/design/statistics.md")
    if json_file is not None:
        write_json(json_file, [asdict(result) for result in results])
    return 0


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano "
        "--limit 10 --samples 3 --temperature 0.7 --work-dir sampled",
        "python run_findit.py samples sampled",
    ],
)
@results_argument
def samples(runs: tuple[Path, ...]) -> int:
    """Print the scores of several replies to each query (--samples) together; no model is needed.

    The mean over samples, pass@k, the best sample by the truth, and the consensus: boxes that most
    samples agree on. It is written next to the samples as a run, and scored like any other reply.
    """
    paths = prediction_files(runs)
    several = [path for path in paths if len(sample_files(path)) > 1]
    legends: dict[str, None] = {}
    for path in several or paths[:1]:
        samples = load_samples(path)
        first = samples[0]
        consensus = None
        score = score_samples(samples)
        name = f"{printable(first.model)} on {first.variant.name}"
        try:
            consensus = write_consensus(samples)
        except NotBoxesError as error:
            say(f"{name}: no consensus: {error}", file=sys.stderr)
        identity = first.provenance.identity
        sampling = (identity and identity.answering.sampling_note) or "greedy replies"
        print_folded(
            f"{name}: {counted(len(first.rows), 'query', 'queries')}, "
            f"{counted(count_images(first.rows), 'image')}; {sampling}"
        )
        tables = [samples_table(score, consensus)]
        tables += [passes_table(score)] if score.passes is not None else []
        for table in tables:
            say()
            print_table(table, WHOLE_OUTPUT)
        say()
        if score.failed:
            calls = len(samples) * len(first.rows)
            print_folded(
                f"{score.failed} of {calls} calls failed and count as misses; the same run again "
                "asks them again"
            )
        if consensus is not None:
            print_folded(f"consensus: {consensus.path}")
            say()
        legends |= dict.fromkeys(samples_legend(score, consensus).lines)
    print_lines([*legends], "docs/design/statistics.md")
    if left := len(paths) - len(several):
        were = agreeing(left, "was", "were")
        say(
            f"{counted(left, 'run')} with one reply to each query {were} left out",
            file=sys.stderr,
        )
    return 0
