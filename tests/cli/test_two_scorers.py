"""Scores of two scorers: every reader of several runs tells them apart, and says what to type."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from every_pair import every_pair
from few_fast import every_nth_fast
from paths import ROOT
from run_readers import READERS, Reader, all_said, watch
from scored_runs import World, saying, small_world, speaking

import vlmeval_findit as findit
from vlmeval_findit.cli import main
from vlmeval_findit.core import command
from vlmeval_findit.leaderboard import group_comparable, of_one_scorer
from vlmeval_findit.scoring import Run, load_runs, versions_now
from vlmeval_findit.storage import RunFiles

DATA = "FindIt_Pascal_xyxy_json_bbox_2d"

# What is recorded of the scorers of two runs
Recorded = tuple[Mapping[str, str], Mapping[str, str]]

NOW = versions_now()
RELEASED = {"vlmeval_findit": "1.0.0", "python": "3.12.1", "numpy": "1.26.4"}
TWO_SCORERS: Mapping[str, Recorded] = {
    "other code": (NOW, {**NOW, "code": "ab" * 32}),
    "other code of the same version, both older": (
        {**NOW, "code": "cd" * 32},
        {**NOW, "code": "ab" * 32},
    ),
    "a release that recorded no code": (NOW, RELEASED),
    "two releases that recorded no code": ({**RELEASED, "vlmeval_findit": "0.9"}, RELEASED),
    "a plug-in of another version": (
        {**NOW, "plug-in plates": "1 sha256:ab"},
        {**NOW, "plug-in plates": "2 sha256:ab"},
    ),
    "a plug-in whose code changed under one version": (
        {**NOW, "plug-in plates": "1 sha256:ab"},
        {**NOW, "plug-in plates": "1 sha256:cd"},
    ),
}
ONE_SCORER: Mapping[str, Recorded] = {
    "now": (NOW, NOW),
    "one old scorer": (RELEASED, RELEASED),
    "libraries that decide no row": (NOW, {**NOW, "python": "3.99", "numpy": "9", "scipy": "9"}),
    "the same code under another version": (NOW, {**NOW, "vlmeval_findit": "9.9"}),
    "a plug-in that one did not use": (NOW, {**NOW, "plug-in plates": "1 sha256:ab"}),
}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Score two checkpoints of a training."""
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(tmp_path_factory.mktemp("world"), patch)
        for step, answer in ((1, speaking(DATA, 0.9)), (2, saying("[]"))):
            world.predict(f"M-step-{step}", DATA, answer, folder=f"M-step-{step}")
    return world


@pytest.fixture
def outputs(scored: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Copy the scores to ``outputs``, and return their prediction files."""
    scored.at_hand(monkeypatch)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(scored.runs, "outputs")
    first, second = (Path("outputs", f"M-step-{n}", f"M-step-{n}_{DATA}.json") for n in (1, 2))
    return first, second


def record(paths: Sequence[Path], scorers: Recorded) -> None:
    """Write into the provenances of scores what scored them."""
    for path, scored_with in zip(paths, scorers, strict=True):
        provenance = RunFiles(path).provenance
        values = json.loads(provenance.read_text(encoding="utf-8"))
        values["scored_with"] = dict(scored_with)
        provenance.write_text(json.dumps(values), encoding="utf-8")


# --- who reads several runs -----------------------------------------------------------------------

NAMES = {name: read for reads in READERS.values() for name, read in reads.items()}
# All exports ask in one place, and some take seconds
QUICK = [name for name in NAMES if not name.startswith("export") or name == "export coco"]


def _said(read: Reader, paths: tuple[Path, Path], capsys: Any) -> str:
    return " ".join(all_said(read, paths, capsys).split())


@every_pair("reader, scorers", NAMES, TWO_SCORERS)
def test_scores_of_two_scorers_are_told_apart(
    reader: str, scorers: str, outputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    record(outputs, TWO_SCORERS[scorers])
    said = _said(NAMES[reader], outputs, capsys)
    command = "reproduce" if reader == "reproduce --against" else "score outputs"
    assert f"run_findit.py {command}" in said
    assert "two scorers" in said or "the rest by" in said
    part = "plug-in plates" if "plug-in" in scorers else "vlmeval_findit"
    assert f"{part} " in said
    assert "significant" not in said.replace("rank above is not significant", "")


@pytest.mark.parametrize("reader", every_nth_fast(QUICK, 3))
def test_what_to_type_names_the_program_as_it_was_called(
    reader: str,
    outputs: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the terminal, in warnings and in files that are written."""
    monkeypatch.setattr(command, "program", lambda: "findit")
    record(outputs, TWO_SCORERS["other code"])
    before = set(Path().rglob("*"))
    said = _said(NAMES[reader], outputs, capsys)
    assert "findit score outputs" in said or reader == "reproduce --against"
    written = [path for path in set(Path().rglob("*")) - before if path.is_file()]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in written]
    for text in (said, *texts):
        assert "run_findit.py" not in text


@every_pair("reader, scorers", QUICK, ONE_SCORER)
def test_scores_of_one_scorer_are_compared(
    reader: str, scorers: str, outputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    record(outputs, ONE_SCORER[scorers])
    said = _said(NAMES[reader], outputs, capsys)
    assert "two scorers" not in said
    assert "the rest by" not in said


def test_whoever_loads_several_runs_is_tried_above() -> None:
    package = ROOT / "vlmeval_findit"
    several = re.compile(r"(?<!def )\b(load_runs|compare_reproductions)\((?!…)")
    loads = {
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in package.rglob("*.py")
        if any(several.search(line) and ">>>" not in line for line in path.open(encoding="utf-8"))
    }
    assert loads == set(READERS)


# --- what stays on a board ------------------------------------------------------------------------


@pytest.fixture
def runs(outputs: tuple[Path, Path]) -> list[Run]:
    return load_runs(outputs)


def scored_by(run: Run, scored_with: Mapping[str, str], model: str) -> Run:
    return replace(run, model=model, provenance=replace(run.provenance, scored_with=scored_with))


def models(some: Sequence[Any]) -> list[str]:
    return sorted(getattr(each, "run", each).model for each in some)


def test_the_runs_of_the_present_scorer_stay_however_few(runs: list[Run]) -> None:
    older = [scored_by(runs[0], RELEASED, f"old-{at}") for at in range(3)]
    board, excluded = group_comparable([*older, scored_by(runs[0], NOW, "new")])
    assert models(board[0].runs) == ["new"]
    assert models(excluded) == ["old-0", "old-1", "old-2"]
    assert {each.reason for each in excluded} == {
        "scored by vlmeval_findit 1.0.0 (code not recorded), the rest by vlmeval_findit "
        f"{findit.__version__} (code {NOW['code'][:12]}); score again: python run_findit.py score "
        f"{runs[0].path.parent}"
    }


def test_of_old_scorers_the_larger_group_stays(runs: list[Run]) -> None:
    older = [scored_by(runs[0], RELEASED, f"old-{at}") for at in range(2)]
    other = scored_by(runs[0], {**NOW, "code": "ab" * 32}, "other")
    board, excluded = group_comparable([other, *older])
    assert models(board[0].runs) == ["old-0", "old-1"]
    assert models(excluded) == ["other"]


def test_plugins_are_told_apart_among_their_users(runs: list[Run]) -> None:
    """A model of a plug-in and one without stay; of two versions of the plug-in one does."""
    versions = [
        scored_by(runs[0], {**NOW, "plug-in plates": version}, name)
        for name, version in (("a", "1"), ("b", "1"), ("c", "2"))
    ]
    kept, excluded = of_one_scorer([scored_by(runs[0], NOW, "plain"), *versions])
    assert models(kept) == ["a", "b", "plain"]
    assert models(excluded) == ["c"]


def test_each_dataset_may_have_another_scorer(outputs: tuple[Path, Path], scored: World) -> None:
    """Its models are compared with each other only."""
    name = "FindIt_Pascal_multilabel_xyxy_json_bbox_2d"
    path = scored.predict("M-step-1", name, saying("[]"), folder="../multilabel")
    loaded = load_runs([*outputs, path])
    mixed = [
        scored_by(run, RELEASED if "multilabel" in run.variant.name else NOW, run.model)
        for run in loaded
    ]
    kept, excluded = of_one_scorer(mixed)
    assert len(kept) == 3
    assert not excluded


def test_a_board_of_an_old_scorer_ranks_and_says_so(
    outputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    record(outputs, (RELEASED, RELEASED))
    assert main(["leaderboard", "outputs"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 M-step-1" in said
    assert "2 M-step-2" in said
    assert "Not compared" not in said
    assert (
        "Scored earlier: Pascal: 2 runs by vlmeval_findit 1.0.0 (code not recorded), not by the "
        "present scorer; score again: python run_findit.py score outputs" in said
    )


def test_a_training_goes_on_after_an_upgrade(
    outputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Checkpoints of the earlier scorer are named, and are on the curve once they are scored."""
    record(outputs, (NOW, RELEASED))
    watch()
    said = capsys.readouterr().out
    assert "not on the curve: outputs/M-step-2/" in said
    assert "best: step 1" in said
    assert main(["score", "outputs"]) == 0
    capsys.readouterr()
    watch()
    said = capsys.readouterr().out
    assert "not on the curve" not in said
    assert "step 2" in said


def test_what_is_said_to_type_makes_the_runs_comparable(
    outputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    record(outputs, (NOW, RELEASED))
    assert main(["compare", *map(str, outputs)]) == 2
    assert main(["score", "outputs"]) == 0
    assert main(["compare", *map(str, outputs)]) == 0
