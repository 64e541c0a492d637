"""Agreement with the references' scorers, and the command's report of differences."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conformance import refl4
from conformance.__main__ import main
from conformance.cases import tried

Case = dict[str, Any]
Run = Callable[..., tuple[int, str]]

FILES = {
    "findit": "scoring_cases.jsonl.gz",
    "ref-l4": "ref_l4_public.jsonl.gz",
    "self-retrieval": "d3_public.jsonl.gz",
    "vp-bench": "vpbench_extract_public.jsonl",
    "vp-bench-render": "vpbench_render_public.jsonl.gz",
    "coords": "doctor_public.jsonl.gz",
}

REF_L4: Case = {
    "case": "one",
    "split": "all",
    "annotations": [{"id": 1, "bbox": [0, 0, 10, 10], "ori_category_id": "o365_1", "split": "val"}],
    "predictions": [{"id": 1.0, "pred_bbox": [0, 0, 10, 6], "format": "xywh"}],
    "authors": {"raises": {"type": "ZeroDivisionError", "why": "no_medium"}},
    "better": {"figures": {"acc_0.5": 100.0, "macc": 20.0, "medium_acc": None}},
}
VP_BENCH: Case = {
    "case": "x",
    "reply": "Answer: D",
    "options": {"D": "cow"},
    "answer": "D",
    "authors": {"letter": "A"},
    "sensible": {"letter": "D", "why": None},
}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Try cases; the exit status and what was printed."""

    def run_(protocol: str, *cases: Case, subsets: Path | None = None) -> tuple[int, str]:
        path = tmp_path / "cases.jsonl"
        path.write_text("\n\n".join(map(json.dumps, cases)), encoding="utf-8")
        more = [] if subsets is None else ["--subsets", str(subsets)]
        status = main(["--protocol", protocol, "--cases", str(path), *more])
        return status, "".join(capsys.readouterr())

    return run_


@pytest.fixture(scope="module")
def public(shared: Path) -> Callable[[str], list[Case]]:
    """Reads the public cases of a protocol, once."""

    @cache
    def cases(protocol: str) -> list[Case]:
        path = shared / "parity" / FILES[protocol]
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    return cases


# --- the public cases -----------------------------------------------------------------------------


@pytest.mark.shared
@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        ("findit", "5184/5184 cases agree\n"),
        ("ref-l4", "51/51 cases agree\n"),
        ("self-retrieval", "69/69 cases agree\n"),
        ("vp-bench", "158/158 cases agree\n"),
        ("vp-bench-render", "92/92 cases agree\n"),
    ],
)
def test_all_cases_agree(
    protocol: str, says: str, shared: Path, subsets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if protocol == "vp-bench-render":
        pytest.importorskip("cv2", reason="marks are drawn by opencv-python")
    path = shared / "parity" / FILES[protocol]
    status = main(["--protocol", protocol, "--cases", str(path), "--subsets", str(subsets)])
    assert (status, capsys.readouterr().out) == (0, says)


@pytest.mark.slow
@pytest.mark.shared
def test_the_coordinate_check_agrees(public: Callable[[str], list[Case]], run: Run) -> None:
    """With every sixth case, as they take a second each; all of them with the command."""
    status, output = run("coords", *public("coords")[::6])
    assert status == 0
    assert output.startswith("12/12 verdicts are allowed; 0 alarms where none is due;")


@pytest.mark.shared
def test_ref_l4_agrees_but_for_rounding(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refl4, "TOLERANCE", 1e-12)
    result = tried(shared / "parity" / FILES["ref-l4"], refl4.difference)
    assert result[:3] == (51, 51, [])


@pytest.mark.shared
def test_marks_are_the_very_pixels(public: Callable[[str], list[Case]]) -> None:
    pytest.importorskip("cv2", reason="marks are drawn by opencv-python")
    from conformance.vpbench_render import compared

    ious = [compared(case)[0] for case in public("vp-bench-render")]
    assert ious.count(None) == 3
    assert {iou for iou in ious if iou is not None} == {1.0}


# --- differences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "change", "says"),
    [
        ("ref-l4", {"better": {"figures": {"macc": 20.1}}}, "macc is 20.0, should be 20.1"),
        ("ref-l4", {"better": {"refuse": "no_id"}}, "scored, should be refused as no_id"),
        (
            "ref-l4",
            {"split": "test", "better": {"refuse": "no_id"}},
            "refused (annotations: none of 1 annotations is of the split test (empty_split)), "
            "should be refused as no_id",
        ),
        (
            "ref-l4",
            {"better": "same", "authors": {"figures": {}, "rounded": [1.0]}},
            "rounded is [100.0, 0.0, 0.0, 20.0, 100.0, 20.0, None, None, None, None, 100.0, 20.0]",
        ),
        ("vp-bench", {"authors": {"letter": "B"}}, "authors: letter is 'A', should be 'B'"),
        ("vp-bench", {"sensible": {"correct": False}}, "sensible: correct is True, should be"),
    ],
)
def test_a_difference(protocol: str, change: Case, says: str, run: Run) -> None:
    case = {"ref-l4": REF_L4, "vp-bench": VP_BENCH}[protocol]
    status, output = run(protocol, case, case | change)
    assert status == 1
    assert f"cases.jsonl, line 3, case {case['case']}: {says}" in output
    assert output.endswith("1/2 cases agree\n")
