"""Agreement with the references' scorers, and the command's report of differences."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from conformance import refl4
from conformance.__main__ import main
from conformance.cases import tried
from few_fast import few_fast

Case = dict[str, Any]

PUBLIC = {  # files of the public cases, and how many there are
    "findit": ("scoring_cases.jsonl.gz", 5184),
    "ref-l4": ("ref_l4_public.jsonl.gz", 51),
    "self-retrieval": ("d3_public.jsonl.gz", 69),
    "vp-bench": ("vpbench_extract_public.jsonl", 158),
    "vp-bench-render": ("vpbench_render_public.jsonl.gz", 92),
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


def try_cases(folder: Path, protocol: str, *cases: Case) -> int:
    """Try cases by the command; return its exit status."""
    path = folder / "cases.jsonl"
    path.write_text("\n\n".join(map(json.dumps, cases)), encoding="utf-8")
    return main(["--protocol", protocol, "--cases", str(path)])


def public_cases(path: Path) -> list[Case]:
    with gzip.open(path, "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


@pytest.mark.shared
@pytest.mark.parametrize("protocol", few_fast(PUBLIC, 4))
def test_all_cases_agree(
    protocol: str, shared: Path, subsets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if protocol == "vp-bench-render":
        pytest.importorskip("cv2", reason="marks are drawn by opencv-python")
    file, count = PUBLIC[protocol]
    words = ["--cases", str(shared / "parity" / file), "--subsets", str(subsets)]
    assert main(["--protocol", protocol, *words]) == 0
    assert capsys.readouterr().out == f"{count}/{count} cases agree\n"


@pytest.mark.slow
@pytest.mark.shared
def test_the_coordinate_check_agrees(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With every sixth case, as they take a second each; all of them with the command."""
    cases = public_cases(shared / "parity" / "doctor_public.jsonl.gz")
    assert try_cases(tmp_path, "coords", *cases[::6]) == 0
    output = capsys.readouterr().out
    assert output.startswith("12/12 verdicts are allowed; 0 alarms where none is due;")


@pytest.mark.shared
def test_ref_l4_agrees_to_the_last_bit(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refl4, "TOLERANCE", 0.0)
    result = tried(shared / "parity" / PUBLIC["ref-l4"][0], refl4.difference)
    assert result[:3] == (51, 51, [])


@pytest.mark.shared
def test_marks_are_the_very_pixels(shared: Path) -> None:
    pytest.importorskip("cv2", reason="marks are drawn by opencv-python")
    from conformance.vpbench_render import compared

    cases = public_cases(shared / "parity" / PUBLIC["vp-bench-render"][0])
    ious = [compared(case)[0] for case in cases]
    assert ious.count(None) == 3
    assert {iou for iou in ious if iou is not None} == {1.0}


@pytest.mark.parametrize(
    ("protocol", "change", "says"),
    [
        ("ref-l4", {"better": {"figures": {"macc": 20.1}}}, "macc is 20.0, should be 20.1"),
        ("ref-l4", {"better": {"refuse": "no_id"}}, "scored, should be refused as no_id"),
        (
            "ref-l4",
            {"better": "same", "authors": {"figures": {}, "rounded": [1.0]}},
            "rounded is [100.0, 0.0, 0.0, 20.0, 100.0, 20.0, None, None, None, None, 100.0, 20.0]",
        ),
        ("vp-bench", {"authors": {"letter": "B"}}, "authors: letter is 'A', should be 'B'"),
        ("vp-bench", {"sensible": {"correct": False}}, "sensible: correct is True, should be"),
    ],
)
def test_a_difference(
    protocol: str, change: Case, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = {"ref-l4": REF_L4, "vp-bench": VP_BENCH}[protocol]
    assert try_cases(tmp_path, protocol, case, case | change) == 1
    output = "".join(capsys.readouterr())
    assert f"cases.jsonl, line 3, case {case['case']}: {says}" in output
    assert output.endswith("1/2 cases agree\n")
