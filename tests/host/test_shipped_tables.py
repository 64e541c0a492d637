"""VLMEvalKit's own loader reads the tables that ship."""

from __future__ import annotations

import csv
import json

import pytest
from host_runs import require_host

from vlmeval_findit.data import MAKERS
from vlmeval_findit.storage import shipped_table

TABLES = [table for table in MAKERS if table != "Probe"]  # drawn, not shipped

# Columns whose cells are JSON, and are filled in every row
LISTS = ("boxes", "image_path", "images", "options", "captions")


@pytest.fixture(scope="module", autouse=True)
def _host() -> None:
    require_host()


@pytest.mark.parametrize("table", TABLES)
def test_the_loader_of_vlmevalkit_reads_what_ships(table: str) -> None:
    from vlmeval.smp import load

    with shipped_table(table).open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    loaded = load(str(shipped_table(table)))
    assert list(loaded.columns) == header
    assert [str(index) for index in loaded["index"]] == [row[0] for row in rows]
    for name in set(LISTS) & set(header):
        column = header.index(name)
        cells = [json.loads(cell) for cell in loaded[name]]
        assert cells == [json.loads(row[column]) for row in rows]
