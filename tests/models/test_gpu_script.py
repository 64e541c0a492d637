"""``benchmarks/gpu.py``: on the CPU with small numbers, so that it is ready where a GPU is."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from paths import ROOT
from warm_process import WarmProcess

BENCHMARKS = ROOT / "benchmarks"
FAMILIES = {"Qwen3-VL", "Qwen2.5-VL", "Qwen3.5-nothink", "GLM-4.6V", "Gemma 4", "InternVL3"}

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""By section."""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import gpu

    return gpu


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Return the rows of all sections, which are forked from a warm process."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("sentencepiece")
    out = tmp_path_factory.mktemp("out")
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.syspath_prepend(BENCHMARKS)
        import gpu

        patch.setenv("OUT", str(out))
        patch.setenv("OMP_NUM_THREADS", "1")
        with closing(WarmProcess(gpu.environment(out, small=True))) as warm:
            programs = warm.programs(tmp_path_factory.mktemp("bin"))
            patch.setattr(sys, "executable", str(programs / "python"))
            status = gpu.main(["--small", "--minutes=60"])
    told = printed.getvalue()
    assert status == 0, told[-6000:]
    assert told.endswith("nothing failed\n")
    assert "not reached" not in told
    return json.loads((out / "gpu.json").read_text())["sections"]


def rates(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {row["case"]: row["rate"] for row in rows if row["rate"] is not None}


def notes(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {row["case"]: row["note"] for row in rows}


# --- what it measures -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_batch_answers_as_single_queries_do(measured: Rows, gpu: ModuleType) -> None:
    assert [*measured] == [*gpu.SECTIONS]
    compared = 0
    for rows in measured.values():
        for row in rows:
            for same in filter(None, (row["like_single"], row["like_cpu"])):
                count, of = same.split("/")
                assert count == of, row
                compared += 1
    assert compared >= 2 * 7 + 7 * 2


@pytest.mark.slow
def test_replies_are_those_of_a_plain_loop(measured: Rows) -> None:
    ratios = {
        row["case"]: row["note"]
        for name in ("shape", "nano")
        for row in measured[name]
        if "FindIt/loop" in row["case"]
    }
    assert ratios == {
        "  FindIt/loop, 96x64": "equal 2/2, 2 distinct",
        "  FindIt/loop, scenes": "equal 4/4, 4 distinct",
    }
    assert rates(measured["shape"])["2B, 96x64: on"] > 0


@pytest.mark.slow
def test_what_is_measured_by_turns_has_a_spread(measured: Rows) -> None:
    rows = [*measured["turns"], *measured["family_turns"]]
    timed = [row for row in rows if "/" in row["case"]]
    assert all(" in 2 turns, " in row["note"] for row in timed)
    cases = {row["case"] for row in timed}
    assert {"FindIt/loop, 96x64", "FindIt/loop, 2 formats", "constrained/free, 96x64"} < cases
    for family in FAMILIES:
        assert {f"FindIt/loop, {family}", f"constrained/free, {family}"} < cases
        assert f"FindIt/loop, {family}, 2 formats" in cases
    equal = [row["note"].rpartition(" ")[2] for row in timed if "loop, 96x64" in row["case"]]
    assert equal == ["2/2", "4/4"]


@pytest.mark.slow
def test_all_families_are_measured_with_one_prefill_and_without(measured: Rows) -> None:
    assert {*rates(measured["families"])} == FAMILIES
    with_and_without = {f"{each}: {how}" for each in FAMILIES for how in ("on", "off")}
    assert with_and_without < {*rates(measured["prefix"])}


@pytest.mark.slow
def test_a_batch_is_halved_until_it_fits(measured: Rows) -> None:
    note = notes(measured["oom"])["simulated"]
    assert note == "halved 2 times, going on with 1; as with enough 4/4"


@pytest.mark.slow
def test_a_stopped_run_goes_on(measured: Rows) -> None:
    said = notes(measured["sigterm"])
    assert said["stopped"].startswith("exit status 130 after ")
    assert said["run again"] == "exit status 0, 24 of 24 stored, none asked twice"
    assert "as alone 24/24" in notes(measured["two"])["one of two"]
    assert "at most 0.0e+00" in notes(measured["dual"])["FindIt-Nano-SigLIP: texts"]


# --- what a section cannot do to others -----------------------------------------------------------

SECTION = """
import json, sys, time
row = {"case": sys.argv[1], "failed": sys.argv[1] == "nano"}
print(json.dumps(row), flush=True)
print("why it died", file=sys.stderr)
if sys.argv[1] == "smoke":
    sys.exit(3)
while sys.argv[1] == "shape":
    time.sleep(60)
"""


def test_a_section_that_dies_or_hangs_leaves_the_others_alone(
    gpu: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    script = tmp_path / "sections.py"
    script.write_text(SECTION)
    monkeypatch.setattr(gpu, "SCRIPT", script)
    monkeypatch.setattr(gpu, "GRACE", 0.1)
    monkeypatch.setattr(gpu, "SECTIONS", {**gpu.SECTIONS, "shape": (0.1, "hangs")})
    monkeypatch.setattr(gpu, "head", lambda small: "a card")
    monkeypatch.setenv("OUT", str(tmp_path))
    assert gpu.main(["--section", "smoke", "shape", "nano", "dual"]) == 1
    told = capfd.readouterr().out
    table = told.rpartition("a card")[2]
    lines = [" ".join(line.split()) for line in table.splitlines() if "whole" not in line]
    assert lines[-1] == "2 failed"
    assert "smoke failed: exit status 3, see the log" in lines
    assert "shape not reached: stopped after 0 s" in lines
    assert lines.index("dual") < lines.index("nano"), "the most important comes last"
    assert "why it died" in told.partition("a card")[2]
    assert (tmp_path / "gpu.log").read_text().count("why it died") >= 3
    kept = json.loads((tmp_path / "gpu.json").read_text())["sections"]
    assert [*kept] == ["smoke", "shape", "nano", "dual"]


def test_sections_without_time_are_named(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "head", lambda small: "a card")
    monkeypatch.delenv("OUT", raising=False)
    assert gpu.main(["--minutes", "0", "--section", "oom"]) == 0
    assert "not reached: no time is left" in capfd.readouterr().out


@pytest.mark.slow
def test_without_a_gpu_it_says_how_it_runs_here(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("OUT", raising=False)
    assert gpu.main(["--section", "smoke"]) == 1
    assert "failed: no CUDA device; --small runs here" in capfd.readouterr().out
