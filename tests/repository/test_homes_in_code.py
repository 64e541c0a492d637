"""A fact of the code has one home: what only a home may write is found nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pytest
from paths import ROOT
from syntax_trees import nodes_of

from vlmeval_findit.protocol import COSTS, CallTime, QueryCost

PACKAGE = ROOT / "vlmeval_findit"


class Home(NamedTuple):
    """What stands in one module only, and what to do instead."""

    path: str
    is_fact: Callable[[ast.AST], bool]
    instead: str
    example: str  # What would be found


def _makes_table(node: ast.AST) -> bool:
    """Tell whether a table is made of a list of fields and rows that position joins."""
    match node:
        case ast.Call(func=ast.Name(id="Table")) | ast.Call(func=ast.Attribute(attr="Table")):
            return True
    return False


_BOX_KEYS = {
    "boxes", "labels", "frames", "assigned", "hits", "ious", "ignored", "labels_agree",
    "confidences", "lenient", "recoverable", "repairs",
}  # fmt: skip
_DETAILS = {"details", "lenient"}


def _reads_box_details(node: ast.AST) -> bool:
    """Tell whether a key that boxes have in details is read there by hand."""
    match node:
        case ast.Subscript(value=values, slice=ast.Constant(value=key), ctx=ast.Load()):
            pass
        case ast.Call(func=ast.Attribute(value=values, attr="get"), args=[ast.Constant(key), *_]):
            pass
        case ast.Compare(left=ast.Constant(value=key), ops=[ast.In()], comparators=[values]):
            pass
        case _:
            return False
    name = values.attr if isinstance(values, ast.Attribute) else getattr(values, "id", "")
    return key in _BOX_KEYS and name in _DETAILS


_COST_KEYS = {cost.known_key for cost in COSTS}
_COST_KEYS |= {summary.key for cost in COSTS for summary in cost.summaries}
_COST_KEYS -= {*dir(QueryCost), *dir(CallTime)}  # Names that costs of a query have, too


def _names_a_cost(node: ast.AST) -> bool:
    """Tell whether a cost of a run is named, rather than taken from the rows of all costs."""
    match node:
        case ast.Attribute(attr=name) | ast.Constant(value=name) | ast.keyword(arg=name):
            return isinstance(name, str) and name in _COST_KEYS
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name in _COST_KEYS
    return False


_SCORE_KEYS = {"rows_missing", "scored_at", "coords_doubt", "answered_by", "totals", "scored_with"}


def _names_a_key_of_scores(node: ast.AST) -> bool:
    """Tell whether a key of a score's file is read or written as text."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=key)):
            return key in _SCORE_KEYS
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=key), *_]):
            return key in _SCORE_KEYS
        case ast.Dict(keys=keys):
            return any(isinstance(key, ast.Constant) and key.value in _SCORE_KEYS for key in keys)
        case ast.ClassDef(body=body):
            names = {each.target.id for each in body if _is_field(each)}
            return len(names & _SCORE_KEYS) > 2
    return False


def _is_field(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def _turns_by_hand(node: ast.AST) -> bool:
    """Tell whether the sign of a value is turned where lower, or higher, values are better."""
    match node:
        case ast.IfExp(test=ast.Compare(comparators=[ast.Attribute(attr="LOWER" | "HIGHER")])):
            return any(isinstance(each, ast.UnaryOp) for each in (node.body, node.orelse))
    return False


HOMES = {
    "which values are better is one order": Home(
        "protocol/metric.py",
        _turns_by_hand,
        "metric.better.order(value): sorted, the best first",
        "sign = -1 if metric.better is Better.LOWER else 1",
    ),
    "a score on disk is one record": Home(
        "scoring/provenance.py",
        _names_a_key_of_scores,
        "read_provenance(path), provenance_values(record)",
        'values["answered_by"]',
    ),
    "a cost is one row": Home(
        "protocol/costs.py",
        _names_a_cost,
        "for cost in COSTS: cost.of_run(costs), cost.known(costs)",
        "costs.usd_per_1000",
    ),
    "a box answer is a record": Home(
        "boxes/box_answer.py",
        _reads_box_details,
        "BoxAnswer.of(row): boxes, labels, frames, confidences and what they were matched with",
        'boxes = row.details.get("boxes", ())',
    ),
    "a table is columns": Home(
        "leaderboard/columns.py",
        _makes_table,
        "table_of(title, columns, items): a Column has its name and its value",
        'Table("Runs", [Field("model")], [[run.model]])',
    ),
}


def found_in(nodes: Iterable[ast.AST], home: Home) -> list[ast.AST]:
    """List the nodes that state the fact of a home."""
    return [node for node in nodes if home.is_fact(node)]


def _others(home: Home) -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name != home.path and found_in(nodes_of(path), home):
            yield name


@pytest.mark.parametrize("fact", HOMES)
def test_a_fact_is_stated_in_its_home_only(fact: str) -> None:
    home = HOMES[fact]
    assert list(_others(home)) == [], home.instead
    assert found_in(nodes_of(PACKAGE / home.path), home), "the home has moved"
    assert found_in(ast.walk(ast.parse(home.example)), home), "nothing would be found"
