"""Tables of the package: the room ``data`` makes them, a benchmark needs them to be there."""

from __future__ import annotations

import pytest
from few_fast import few_fast

from vlmeval_findit import benchmarks
from vlmeval_findit.benchmarks.findit import BENCHMARK_DATASETS
from vlmeval_findit.benchmarks.selfretrieval import image_pairs
from vlmeval_findit.benchmarks.vpbench import question_tables
from vlmeval_findit.data import MAKERS, load_dataset

MADE = (
    "FindIt_Scenes_mini_multilabel_xyxy_json",
    "SelfRetrieval_Scenes_mini",
    "FindIt_Probe_xyxy_json",
)


def test_every_table_that_the_package_makes_has_a_maker() -> None:
    made = [table for row in BENCHMARK_DATASETS.values() if row.is_made for table in row.tables]
    assert {*MAKERS} == {*made, *image_pairs.RENDERED, *question_tables.RENDERED}


@pytest.mark.parametrize("name", few_fast(MADE, 2))
def test_a_benchmark_loads_only_a_table_that_is_there(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no table .*\.tsv: any command .* makes it"):
        benchmarks.load(name)
    made = load_dataset(name)
    assert benchmarks.load(name) == made
    assert made.table.parent == tmp_path
