"""Break the code on purpose and count how often the tests notice.

``python benchmarks/mutations.py --most 12 --seed 0`` makes at most 12 random faults in each area
below, one at a time, in a copy of the repository, and runs the tests of that area.  A fault that
no test notices is printed with its place.  Areas are the modules that decide numbers and money.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 600
"""A fault that makes tests compute for longer counts as noticed, however busy the machine is."""
LONGEST_WAIT = 3600
"""And so does one that makes them wait for longer, in seconds by the clock."""

AREAS = {
    "reading": (
        [
            "boxes/reading.py",
            "boxes/lenient/repaired_values.py",
            "boxes/lenient/boxes_in_values.py",
        ],
        ["boxes", "benchmarks/findit/test_scoring.py", "scoring/test_lenient_scores.py"],
    ),
    "spaces": (
        ["boxes/spaces.py"],
        [
            "boxes",
            "benchmarks/findit/test_scoring.py",
            "benchmarks/findit/test_processed_sizes.py",
            "repository/test_add_a_space.py",
            "core/test_broken_plugins.py",
        ],
    ),
    "matching": (
        ["boxes/matching.py", "boxes/hungarian.py"],
        ["boxes", "benchmarks/findit/test_scoring.py", "benchmarks/findit/test_ignored.py"],
    ),
    "statistics": (
        [
            "statistics/intervals.py",
            "statistics/influences.py",
            "statistics/share_intervals.py",
        ],
        [
            "statistics",
            "protocol/test_sliced_metrics.py",
            "protocol/test_row_table.py",
            "analysis/test_statistics.py",
            "leaderboard",
        ],
    ),
    "identity": (
        ["protocol/identity.py", "protocol/contradictions.py", "storage/identity_file.py"],
        [
            "storage/test_identity.py",
            "storage/test_sheet_cells.py",
            "scoring",
            "benchmarks/findit/test_scoring.py",
            "engine/test_plan.py",
            "sweeps/test_sweep.py",
            "sweeps/test_answers_of_another.py",
            "leaderboard/test_comparable.py",
            "core/test_plugins.py",
        ],
    ),
    "scheduler": (
        ["engine/retry_scheduler.py", "engine/server_state.py"],
        [
            "engine/test_retry_scheduler.py",
            "engine/test_server_state.py",
            "engine/test_http_backend.py",
        ],
    ),
    "journal": (
        ["engine/journal/view.py", "engine/journal/writer.py"],
        [
            "engine/test_journal.py",
            "engine/test_journal_view.py",
            "engine/test_answers_in_another_space.py",
        ],
    ),
    "spending": (
        ["models/http/spending.py"],
        [
            "models/http/test_api_spending.py",
            "models/http/test_charges.py",
            "models/http/test_api_dry_run.py",
            "engine/test_http_backend.py",
            "engine/test_dry_run.py",
        ],
    ),
    "costs": (
        [
            "protocol/costs.py",
            "analysis/cost_differences.py",
            "leaderboard/cost_tables.py",
            "leaderboard/format_costs.py",
            "leaderboard/format_spread.py",
            "analysis/pareto_front.py",
            "models/model_client.py",
        ],
        [
            "protocol/test_costs.py",
            "analysis/test_pareto_front.py",
            "models/test_model_client.py",
            "leaderboard/test_format_spread.py",
            "engine/test_call_times.py",
            "analysis/test_compare_costs.py",
            "leaderboard/test_cost_tables.py",
            "leaderboard/test_format_costs.py",
        ],
    ),
    "verdicts": (
        [
            "models/http/response_verdict.py",
            "models/http/service_errors.py",
            "models/http/call_errors.py",
        ],
        [
            "models/http/test_response_verdict.py",
            "models/http/test_call_errors.py",
            "models/http/test_refused_calls.py",
            "models/http/test_charges.py",
            "models/http/test_wrong_types.py",
            "benchmarks/test_thinking.py",
        ],
    ),
    "reproduction": (
        [
            "reproduction/verdict.py",
            "reproduction/asked_causes.py",
            "reproduction/cause_evidence.py",
            "reproduction/figure_choice.py",
            "reproduction/figure_metric.py",
            "reproduction/reply_causes.py",
            "reproduction/engine_cause.py",
            "reproduction/checkpoint_cause.py",
            "reproduction/stated_causes.py",
            "reproduction/other_requests.py",
            "reproduction/picture_groups.py",
            "models/http/server_program.py",
        ],
        [
            "reproduction/test_verdict.py",
            "reproduction/test_asked_causes.py",
            "reproduction/test_figure_choice.py",
            "reproduction/test_figure_metric.py",
            "reproduction/test_causes.py",
            "reproduction/test_engine_faults.py",
            "reproduction/test_engine_cause.py",
            "reproduction/test_checkpoint_cause.py",
            "reproduction/test_picture_groups.py",
            "reproduction/test_picture_size_causes.py",
            "reproduction/test_unlisted_setups.py",
            "reproduction/test_wrong_setups.py",
            "models/http/test_server_program.py",
        ],
    ),
    "audit": (
        [
            "statistics/label_doubts.py",
            "analysis/label_audit.py",
            "analysis/label_votes.py",
            "analysis/label_proposals.py",
        ],
        [
            "statistics/test_label_doubts.py",
            "analysis/test_label_votes.py",
            "analysis/test_label_audit.py",
            "analysis/test_label_proposals.py",
            "cli/test_audit_command.py",
        ],
    ),
    "reviews": (
        [
            "protocol/reviews.py",
            "scoring/reviewed_score.py",
            "scoring/reviewed_runs.py",
            "statistics/reviewed_estimates.py",
            "analysis/review_summary.py",
        ],
        [
            "protocol/test_reviews.py",
            "scoring/test_reviewed_score.py",
            "statistics/test_reviewed_estimates.py",
            "analysis/test_review_summary.py",
            "cli/test_reviews_option.py",
            "cli/test_data_reviews.py",
        ],
    ),
    "imports": (
        ["data/ledger.py", "data/custom/checks.py", "data/custom/coco.py"],
        ["data/custom", "data/test_ledger.py"],
    ),
}
"""Area -> modules below ``vlmeval_findit``, test files or folders below ``tests``."""

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}


class Fault(NamedTuple):
    """A change at one place of a module."""

    line: int
    what: str
    apply: Callable[[], object]


def faults(tree: ast.Module) -> Iterator[Fault]:
    """Yield every fault that can be made in a module; each changes ``tree`` itself."""
    skipped = {id(child) for node in ast.walk(tree) for child in _skipped(node)}
    for node in ast.walk(tree):
        if id(node) not in skipped:
            yield from _of_node(node)
            for name in ("body", "orelse"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    yield from _of_block(block)


def _skipped(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what has no effect when it runs: docstrings and annotations."""
    for name in ("annotation", "returns"):
        if isinstance(value := getattr(node, name, None), ast.AST):
            yield from ast.walk(value)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node
        yield node.value
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        yield from ast.walk(node)


def _of_block(block: list[ast.stmt]) -> Iterator[Fault]:
    """Yield the statements that can be left out: without them no name is missing."""
    for at, statement in enumerate(block):
        match statement:
            case ast.AugAssign() | ast.Assign(targets=[ast.Subscript() | ast.Attribute(), *_]):
                yield Fault(
                    statement.lineno,
                    f"left out: {ast.unparse(statement)}",
                    partial(block.__setitem__, at, ast.Pass()),
                )


def _of_node(node: ast.AST) -> Iterator[Fault]:
    line = getattr(node, "lineno", 0)
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in COMPARED:
            other = COMPARED[type(operator)]
            yield Fault(
                line,
                f"{type(operator).__name__} -> {other.__name__}",
                lambda: node.ops.__setitem__(0, other()),
            )
        case ast.BinOp(op=operator) if type(operator) in COMPUTED:
            if not isinstance(node.left, ast.Constant | ast.JoinedStr) or isinstance(
                getattr(node.left, "value", None), int | float
            ):
                changed = COMPUTED[type(operator)]
                yield Fault(
                    line,
                    f"{type(operator).__name__} -> {changed.__name__}",
                    lambda: setattr(node, "op", changed()),
                )
        case ast.BoolOp():
            swapped = ast.Or if isinstance(node.op, ast.And) else ast.And
            yield Fault(line, f"-> {swapped.__name__}", lambda: setattr(node, "op", swapped()))
            for at, operand in enumerate(node.values):
                yield Fault(
                    line,
                    f"without operand {ast.unparse(operand)}",
                    partial(node.values.pop, at),
                )
        case ast.If() | ast.While() | ast.IfExp():
            yield Fault(
                line,
                "condition negated",
                lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test)),
            )
        case ast.Constant(value=bool() as value):
            yield Fault(line, f"{value} -> {not value}", lambda: setattr(node, "value", not value))
        case ast.Constant(value=int() | float() as value):
            yield Fault(line, f"{value} -> {value + 1}", lambda: setattr(node, "value", value + 1))
        case ast.Return(value=ast.AST() as value) if not isinstance(value, ast.Constant):
            yield Fault(line, "returns None", lambda: setattr(node, "value", ast.Constant(None)))
        case ast.Expr(value=ast.Call()):
            yield Fault(line, "call left out", lambda: setattr(node, "value", ast.Constant(None)))
        case ast.Lambda(body=ast.Tuple(elts=elements)) if len(elements) > 1:
            for at, element in enumerate(elements):
                yield Fault(
                    line,
                    f"key without {ast.unparse(element)}",
                    partial(elements.pop, at),
                )
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=[_, _, *_] as values):
            for at, operand in enumerate(values):
                yield Fault(
                    line,
                    f"{name} without {ast.unparse(operand)}",
                    partial(_leave_operand, node, at),
                )


def _leave_operand(call: ast.Call, at: int) -> None:
    """Leave out an argument of ``min`` or ``max``."""
    del call.args[at]
    if len(call.args) == 1:
        call.args = [ast.List(call.args, ast.Load())]


def mutants(path: Path, most: int, random_: random.Random) -> Iterator[tuple[Fault, str]]:
    """Yield at most ``most`` faults of a module, each with the module's changed text."""
    source = ast.parse(path.read_text(encoding="utf-8"))
    count = len(list(faults(source)))
    for number in sorted(random_.sample(range(count), min(most, count))):
        tree = copy.deepcopy(source)
        fault = list(faults(tree))[number]
        fault.apply()
        yield fault, ast.unparse(ast.fix_missing_locations(tree))


def _limit_seconds() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def notices(clone: Path, tests: list[str]) -> bool:
    """Return whether a test fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    # The start-up hook imports the package before the working directory is on the path: without
    # PYTHONPATH that is the installed package, in which there is no fault.
    environment = {**os.environ, "PYTHONPATH": str(clone)}
    try:
        done = subprocess.run(
            [*command, "-m", "not slow", *(f"tests/{name}" for name in tests)],
            cwd=clone, env=environment, capture_output=True, check=False, timeout=LONGEST_WAIT,
            preexec_fn=_limit_seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> int:
    """Print a line an area; returns 1 if the tests fail without a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", default=list(AREAS))
    parser.add_argument("--most", type=int, default=12, help="faults an area")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        ignored = shutil.ignore_patterns(".git", ".venv*", "outputs", "__pycache__", "_build")
        shutil.copytree(ROOT, clone, ignore=ignored)
        for area in chosen.areas:
            modules, tests = AREAS[area]
            if notices(clone, tests):
                print(f"{area}: tests fail without a fault", flush=True)
                return 1
            paths = [clone / "vlmeval_findit" / module for module in modules]
            share = -(-chosen.most // len(paths))
            made = noticed = 0
            for path in paths:
                text = path.read_text(encoding="utf-8")
                for fault, changed in mutants(path, share, random.Random(chosen.seed)):
                    path.write_text(changed, encoding="utf-8")
                    made += 1
                    if notices(clone, tests):
                        noticed += 1
                    else:
                        place = f"{path.relative_to(clone)}:{fault.line}"
                        print(f"  not noticed: {place}: {fault.what}", flush=True)
                path.write_text(text, encoding="utf-8")
            print(f"{area}: {noticed} of {made} faults noticed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
