"""What a score records of its scorer: code, versions and plug-ins."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugin_package import known_here
from scored_runs import World, saying

from vlmeval_findit.core import Plugin
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Settings
from vlmeval_findit.scoring import (
    is_present,
    load_run,
    other_parts,
    score_file,
    scored_with_now,
    scorer_now,
    scorer_parts,
    versions_now,
    write_score,
)
from vlmeval_findit.storage import RunFiles

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
PACKAGE = "a_plug_in_of_a_test"

SPACE = """
from vlmeval_findit.boxes.spaces import SpaceKind

SPACES = SpaceKind("tenths", "tenths", "tenths of width and height", lambda *_: ({edge}, {edge}))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Import a package of somebody else."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "metric.py").write_text("weight = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__(PACKAGE)
    yield folder
    del sys.modules[PACKAGE]


def test_the_code_of_a_package_may_change_under_one_version(package: Path) -> None:
    plugin = Plugin("plates", "1.0", "an entry point", PACKAGE)
    before = plugin.code
    assert before.startswith("1.0 sha256:")
    (package / "metric.py").write_text("weight = 2\n")
    assert plugin.code != before


def test_a_score_records_the_code_that_made_it(world: World) -> None:
    run = world.run("M", NAME, saying("[]"))
    assert run.provenance.scored_with == versions_now()
    assert {"vlmeval_findit", "code", "python", "numpy", "scipy"} == set(versions_now())
    assert is_present(run)


def test_a_score_records_the_plugins_that_decided(world: World, tmp_path: Path) -> None:
    """Two versions of a file with a space are two scorers, also where the run recorded neither."""
    path = world.predict("M", NAME, saying("[]"))
    RunFiles(path).identity.unlink()
    recorded = []
    for edge in (10.0, 11.0):
        file = tmp_path / "spaces.py"
        file.write_text(SPACE.format(edge=edge))
        with known_here(files=(file,)):
            settings = Settings(space={"kind": "tenths"})
            run = load_run(write_score(score_file(path, settings), path).provenance)
            assert is_present(run)
            recorded.append(run.provenance.scored_with)
            parts = scorer_parts(run.provenance.scored_with)
            assert parts == scorer_now(parts)
        assert not is_present(run)
    assert other_parts(*recorded) == ["plug-in spaces.py"]
    now = scored_with_now(load_dataset(NAME).variant, None, [])
    assert not other_parts(recorded[0], now), "a run without the plug-in"


def test_an_unreadable_code_is_another_scorer(world: World) -> None:
    """As of a release that recorded none."""
    path = world.predict("M", NAME, saying("[]"))
    provenance = RunFiles(path).provenance
    values = json.loads(provenance.read_text(encoding="utf-8"))
    del values["scored_with"]["code"]
    provenance.write_text(json.dumps(values), encoding="utf-8")
    assert not is_present(load_run(provenance))
