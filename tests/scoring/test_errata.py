"""Errata: which runs each row may affect, and what commands say of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from errata import PAGE, SECTIONS, errata_page
from scored_runs import World, saying, scored_outputs

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.boxes import SPACE_KINDS, FormatFailure
from vlmeval_findit.cli import main
from vlmeval_findit.protocol import Identity
from vlmeval_findit.scoring import Erratum, RunFacts, errata, errata_of, versions_now

NAME = "FindIt_Pascal_xyxy_json_bbox_2d"
RELEASED = {"vlmeval_findit": "1.0.0", "python": "3.12.1"}
CONDITIONAL = [row for row in errata() if row.when is not None]

RECORDED = Identity("M", NAME, versions={"vlmeval-findit": "1.0.0"})
PLAIN = RunFacts(
    path=Path("outputs/M_D.json"),
    variant=parse("SelfRetrieval_Scenes"),
    identity=RECORDED,
    spaces=("grid1000",),
    reasons=(),
    table={"ledger": []},
    scored_with=RELEASED,
)


def answered_by(run: RunFacts, **who: Any) -> RunFacts:
    identity = run.identity or RECORDED
    return replace(run, identity=replace(identity, answering=replace(identity.answering, **who)))


def imported(run: RunFacts, source: str) -> RunFacts:
    return replace(run, table={"imported as": "mine", "source": source})


def with_value(run: RunFacts, fact: str, value: str) -> RunFacts:
    """Change a run so that it has a value of a fact."""
    match fact, value:
        case "benchmark", "FindIt":
            return replace(run, variant=parse(NAME))
        case "benchmark", "FindIt-points":
            return replace(run, variant=parse("FindIt_Pascal_point_json"))
        case "benchmark", "VP-Bench":
            return replace(run, variant=parse("VPBench_Scenes"))
        case "benchmark", "Ref-L4":
            return replace(run, variant=parse("FindIt_RefL4Full_val_xyxy_json"))
        case "answered", "here":
            return answered_by(run, runs_here=True)
        case "answered", "server":
            return answered_by(run, endpoint="http://127.0.0.1/v1")
        case "answered", "provider":
            return answered_by(run, kind="provider OpenAI", endpoint="http://127.0.0.1/v1")
        case "answered", "not recorded":
            return replace(run, identity=None)
        case "checkpoint", "folder":
            return answered_by(run, revision="sha256:ab")
        case "space", "not the model table's":
            return answered_by(replace(run, spaces=("pixels",)), row="Qwen3-VL")
        case "space", kind:
            assert kind in SPACE_KINDS
            return replace(run, spaces=(kind,))
        case "stated", "reads_like":
            assert run.identity is not None
            return replace(run, identity=replace(run.identity, reads_like="Qwen3-VL"))
        case "reason", reason:
            return replace(run, reasons=frozenset({FormatFailure(reason).value}))
        case "file", suffix:
            return replace(run, path=run.path.with_suffix(suffix))
        case "imported", "folder":
            return imported(run, "VOC2007")
        case "imported", suffix:
            return imported(run, f"instances.{suffix}")
        case "setting", name:
            return answered_by(run, settings={name: {}})
    raise AssertionError(f"no run with {fact}: {value} is made up yet")


def affected(row: Erratum) -> RunFacts:
    """Return a run that a row affects, by the first value of each of its facts."""
    assert row.when is not None
    run = PLAIN
    for fact, values in row.when.items():
        run = with_value(run, fact, sorted(values)[0])
    return run


@pytest.mark.parametrize("row", CONDITIONAL, ids=lambda row: row.name)
def test_a_row_affects_the_runs_of_its_condition_only(row: Erratum) -> None:
    assert row.when is not None
    assert row in errata_of(affected(row))
    assert row not in errata_of(PLAIN)
    for left_out in row.when:
        run = PLAIN
        for fact, values in row.when.items():
            if fact != left_out:
                run = with_value(run, fact, sorted(values)[0])
        assert row not in errata_of(run), f"it holds without {left_out}"


VALUES = [
    pytest.param(row, fact, value, id=f"{row.name}: {value}")
    for row in CONDITIONAL
    for fact, values in (row.when or {}).items()
    for value in sorted(values)
]


@pytest.mark.parametrize(("row", "fact", "value"), VALUES)
def test_each_value_of_a_condition_is_one_that_runs_have(
    row: Erratum, fact: str, value: str
) -> None:
    """A misspelled value would never hold."""
    assert row in errata_of(with_value(affected(row), fact, value))


@pytest.mark.parametrize("row", CONDITIONAL, ids=lambda row: row.name)
def test_a_row_is_silent_once_a_right_version_made_it(row: Erratum) -> None:
    run = affected(row)
    identity = run.identity and replace(run.identity, versions={"vlmeval-findit": "1.1.0.dev0"})
    table = {**run.table, "ledger": []}
    now = replace(run, identity=identity, table=table, scored_with=versions_now())
    assert errata_of(now) == []


def test_code_after_a_release_is_not_the_release() -> None:
    """1.0.0 recorded no hash of its code; commits after it did, under its name."""
    row = next(row for row in CONDITIONAL if row.of == "score")
    later = replace(affected(row), scored_with={**RELEASED, "code": "ab" * 32})
    assert row not in errata_of(later)


def test_another_space_than_the_record_ends_the_remark(
    outputs: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who states the right space has done what the row asks for."""
    path = Path("outputs", f"Good_{NAME}.json")
    _edit(path.with_name(f"Good_{NAME}_identity.json"), _asked_earlier_by("Qwen2.5-VL"))
    main(["score", str(path)])
    assert "a space in place of the table's" in _said(capsys)
    main(["score", str(path), "--space", "pixels"])
    assert "a space in place" not in _said(capsys)


# --- what commands say ----------------------------------------------------------------------------


def _said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def _edit(path: Path, changes: Mapping[str, Any]) -> None:
    """Change entries of a JSON file; those of mappings are joined."""
    values = json.loads(path.read_text(encoding="utf-8"))
    for key, change in changes.items():
        values[key] = {**values[key], **change} if isinstance(change, dict) else change
    path.write_text(json.dumps(values), encoding="utf-8")


def _asked_earlier_by(row: str) -> dict[str, Any]:
    return {"versions": {"vlmeval-findit": "1.0.0"}, "answering": {"row": row}}


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Score two models, of which one leaves its replies broken."""
    return scored_outputs(tmp_path, monkeypatch, Broken=saying("[[1, 2, 3"))


@pytest.fixture
def released(outputs: World) -> World:
    """Let all runs be scored by 1.0.0."""
    for path in Path("outputs").glob("*_provenance.json"):
        values = json.loads(path.read_text(encoding="utf-8"))
        values["scored_with"] = RELEASED
        path.write_text(json.dumps(values), encoding="utf-8")
    _edit(Path("outputs", f"Good_{NAME}_provenance.json"), {"reasons": {"empty": 1}})
    return outputs


REMARK = (
    f"1 of 3 runs (first: outputs/Good_{NAME}.json) may be affected by errors of vlmeval_findit "
    "1.0.0: answers before a stray mark. Score again: python run_findit.py score outputs"
)


@pytest.mark.parametrize("command", ["leaderboard", "report"])
def test_boards_say_it_once_until_runs_are_scored_again(
    released: World, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    main([command, "outputs"])
    assert _said(capsys).count(REMARK) == 1
    main(["score", "outputs"])
    assert "may be affected" not in _said(capsys)
    main([command, "outputs"])
    assert "may be affected" not in _said(capsys)


def test_the_files_of_a_board_say_it(released: World) -> None:
    main(["leaderboard", "outputs"])
    main(["report", "outputs"])
    files = ("leaderboard/leaderboard.md", "leaderboard/leaderboard.tex", "report.html")
    for name in files:
        text = Path("outputs", name).read_text(encoding="utf-8")
        assert "answers before a stray mark" in text, name


def test_compare_says_it_once_and_json_names_each_side(
    released: World, capsys: pytest.CaptureFixture[str]
) -> None:
    good, poor = (f"outputs/{model}_{NAME}.json" for model in ("Good", "Poor"))
    main(["compare", good, poor, "--json", "differences.json"])
    assert _said(capsys).count("1 of 2 runs") == 1
    (pair,) = json.loads(Path("differences.json").read_text(encoding="utf-8"))
    assert pair["a"]["errata"] == ["answers before a stray mark"]
    assert pair["b"]["errata"] == []


def test_score_names_what_it_cannot_mend(
    outputs: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs that 1.0.0 asked wrongly stay so."""
    for model in ("Good", "Poor"):
        path = Path("outputs", f"{model}_{NAME}_identity.json")
        _edit(path, _asked_earlier_by("Qwen2.5-VL"))
    main(["score", "outputs"])
    said = _said(capsys)
    assert said.count("2 of 3 runs (first: ") == 1
    assert (
        "errors of vlmeval_findit 1.0.0: a space in place of the table's. How to tell, and what "
        "to ask again: docs/reference/errata.md" in said
    )


# --- the page -------------------------------------------------------------------------------------


def test_the_page_is_made_of_the_table() -> None:
    """Write it again: ``python docs/errata.py``."""
    assert PAGE.read_text(encoding="utf-8") == errata_page()
    assert {row.of for row in errata()} <= SECTIONS.keys()


def test_names_are_unique() -> None:
    names = [row.name for row in errata()]
    assert len(set(names)) == len(names)
