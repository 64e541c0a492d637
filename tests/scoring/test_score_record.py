"""What a score rests on is one record: what is written is read, by every version's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from few_fast import few_fast
from random_folders import make_folder
from scored_runs import World, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import RunCosts, Scorer
from vlmeval_findit.scoring import Provenance, load_run, provenance_values, read_provenance
from vlmeval_findit.storage import PROVENANCE, RunFiles

JSON = "FindIt_Pascal_xyxy_json"

# Keys that versions before did not write, with what is known without them
LATER: dict[str, Any] = {
    "coords_doubt": None,
    "answered_by": (),
    "replies": {},
    "costs": RunCosts(),
    "reasons": {},
    "metrics": {},
    "dataset": "",
    "benchmark": "",
}


def files_below(folder: Path) -> Iterator[Path]:
    return folder.rglob(f"*{PROVENANCE}*")


def stored(path: Path) -> dict[str, Any]:
    values = json.loads(path.read_text("utf-8"))
    values.pop("seal", None)
    return dict(values)


@pytest.mark.parametrize("seed", few_fast([0, 2, 3], 1))
def test_what_is_written_is_read(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of runs of two benchmarks, with failed calls, costs and reviews."""
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    made = make_folder(tmp_path, seed, monkeypatch)
    main(["score", str(made.runs), "--reviews", str(made.reviews)])
    paths = list(files_below(made.runs))
    assert len(paths) > 2
    for path in paths:
        again = json.loads(json.dumps(provenance_values(read_provenance(path))))
        assert again == stored(path)
        assert list(again) == list(stored(path)), "in one order"


@pytest.fixture
def path(world: World) -> Path:
    return RunFiles(world.predict("A", JSON, speaking(JSON, 0.9))).provenance


@pytest.mark.parametrize("key", LATER)
def test_a_file_of_an_earlier_version_is_read(key: str, path: Path) -> None:
    values = stored(path)
    del values[key]
    path.write_text(json.dumps(values))
    assert getattr(read_provenance(path), key) == LATER[key]
    assert load_run(path).metric_values["F1@0.5"] is not None


def test_costs_that_were_not_added_up_are_those_of_details(path: Path) -> None:
    known = load_run(path).provenance.costs
    values = stored(path)
    del values["costs"]
    path.write_text(json.dumps(values))
    assert load_run(path).provenance.costs == known


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"scorer": Scorer("m", {"layer": "3"}, "given", {"m": "1"})}, "scorer"),
        ({"thought_marks": ("<a>", "</a>")}, "thought_marks"),
        ({"reads_like": "Qwen3-VL"}, "reads_like"),
        ({"plugins": {"mine": "1"}}, "plugins"),
    ],
)
def test_optional_keys_are_written_where_they_say_something(
    change: dict[str, Any], key: str, path: Path
) -> None:
    plain = read_provenance(path)
    assert key not in provenance_values(plain)
    more = replace(plain, **change)
    path.write_text(json.dumps(provenance_values(more)))
    read: Provenance = read_provenance(path)
    assert read == more


def test_settings_of_a_scorer_are_read_as_texts(path: Path) -> None:
    values = stored(path)
    values["scorer"] = {"name": "m", "settings": {"layer": 3}, "source": "s", "versions": {}}
    path.write_text(json.dumps(values))
    assert read_provenance(path).scored_under == frozenset({("layer", "3")})
