"""The tables of classes on a page: F1 of each, and which are taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..leaderboard import Column, Note, Table, count_column, plain_value_column, table_of
from ..protocol import ClassCounts

MOST_CLASSES = 100  # Rows of a table: the classes with most objects
MOST_CONFUSED = 40  # Rows of a table: the commonest confusions


def class_tables(dataset: str, by_model: Mapping[str, ClassCounts]) -> list[Table]:
    """Make the tables of a dataset: none where it has one class only."""
    objects: Counter[str] = Counter()
    for counts in by_model.values():
        for name, number in counts.objects.items():
            objects[name] = max(objects[name], number)
    if len(objects) < 2:
        return []
    tables = [_f1_table(dataset, objects, by_model)]
    if any(counts.confused for counts in by_model.values()):
        tables.append(_confusion_table(dataset, objects, by_model))
    return tables


def _f1_table(dataset: str, objects: Counter[str], by_model: Mapping[str, ClassCounts]) -> Table:
    def of_model(model: str) -> Column[str]:
        return plain_value_column(model, by_model[model].f1)

    columns: list[Column[str]] = [
        Column("class", str),
        count_column("objects", objects.__getitem__),
        *map(of_model, by_model),
    ]
    shown = sorted(objects, key=lambda name: (-objects[name], name))[:MOST_CLASSES]
    lines = ["Failed calls count as misses. Values of few objects are mostly chance."]
    if len(shown) < len(objects):
        lines.append(f"The {len(shown)} classes with most objects, of {len(objects)}.")
    return table_of(f"F1@0.5 by class of {dataset}", columns, shown, [Note("", lines)])


def _confusion_table(
    dataset: str, objects: Counter[str], by_model: Mapping[str, ClassCounts]
) -> Table:
    total: Counter[tuple[str, str]] = Counter()
    for counts in by_model.values():
        total.update(counts.confused)

    def of_model(model: str) -> Column[tuple[str, str]]:
        confused = by_model[model].confused
        return count_column(model, lambda pair: confused.get(pair, 0))

    columns: list[Column[tuple[str, str]]] = [
        Column("class", lambda pair: pair[0]),
        Column("called", lambda pair: pair[1]),
        count_column("objects of the class", lambda pair: objects[pair[0]]),
        *map(of_model, by_model),
    ]
    shown = sorted(total, key=lambda pair: (-total[pair], pair))[:MOST_CONFUSED]
    lines = ["Boxes that lie on an object (IoU 0.5 or more) and name another class than its own."]
    if len(shown) < len(total):
        lines.append(f"The {len(shown)} commonest confusions, of {len(total)}.")
    return table_of(f"Classes confused on {dataset}", columns, shown, [Note("", lines)])
