"""Cases of drawn marks: agreement with the authors' code, and what is said where there is none."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cv2", reason="marks are drawn by opencv-python")

from vlmeval_findit.benchmarks.vpbench.render_cases import compared
from vlmeval_findit.conformance import main

Case = dict[str, Any]

LINE: Case = {
    "case": "line",
    "shape": "box",
    "variant": "none",
    "line_width": 1,
    "colours": ["contrast"],
    "width": 6,
    "height": 4,
    "background": [[0, 0, 6, 4, [128, 128, 128]]],
    "marks": [{"bbox": [1.9, 1.2, 3.5, 0.4], "polygons": []}],
    "authors": {
        # Columns 1 to 4 of row 1.
        "changed": {"size": [4, 6], "counts": [5, 1, 3, 1, 3, 1, 3, 1, 6]},
        "extent": [1, 1, 4, 1],
        "frequent": [[[255, 0, 0], 4]],
        "colours_used": ["red"],
        "colours_true_lab": ["blue"],
    },
}


def run(cases: list[Case], folder: Path) -> int:
    path = folder / "cases.jsonl"
    path.write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    return main(["--protocol", "vp-bench-render", "--cases", str(path)])


def test_a_case_that_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([LINE], tmp_path) == 0
    assert capsys.readouterr().out == "1/1 cases agree\n"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(
            lambda c: c["authors"]["changed"].update(counts=[5, 1, 3, 1, 14]),
            "the pixels overlap by 0.500, should be 0.9 or more",
            id="pixels",
        ),
        pytest.param(
            lambda c: c["authors"].update(extent=[1, 1, 8, 1]),
            "the extent is [1, 1, 4, 1], should be [1, 1, 8, 1]",
            id="extent",
        ),
        pytest.param(
            lambda c: c["authors"].update(colours_used=["blue"]),
            "colours as published are ['red'], should be ['blue']",
            id="colour as published",
        ),
        pytest.param(
            lambda c: c["authors"].update(colours_true_lab=["red"]),
            "colours by true Lab are ['blue'], should be ['red']",
            id="colour by true Lab",
        ),
        pytest.param(
            lambda c: c["authors"].update(frequent=[[[254, 0, 0], 4]]),
            "0 pixels are [254, 0, 0], should be 4",
            id="another colour",
        ),
    ],
)
def test_a_difference_is_found_and_said(
    change: Callable[[Case], None],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = json.loads(json.dumps(LINE))
    change(case)
    assert run([LINE, case], tmp_path) == 1
    assert f"cases.jsonl, line 2, case line: {says}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"shape": "bocks"}, "no shape 'bocks': did you mean box?"),
        ({"variant": "rund"}, "a box has no variant 'rund': did you mean round?"),
        ({"marks": [{"polygons": []}]}, "'bbox' is missing"),
        ({"colours": ["red", "red"]}, "2 colours for 1 regions"),
        ({"colours": 3}, "line 1: "),
        ({"background": [[1, 2]]}, "line 1: "),
    ],
)
def test_what_is_no_case_is_refused(
    change: Case, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([LINE | change], tmp_path) == 1
    assert says in capsys.readouterr().err


def test_where_the_published_code_raises_ours_draws() -> None:
    case = LINE | {"authors": {"raises": {"type": "IndexError", "why": "fifth contrast mark"}}}
    assert compared(case) == (None, None)


@pytest.mark.shared
def test_the_public_cases_agree(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared / "parity" / "vpbench_render_public.jsonl.gz"
    assert main(["--protocol", "vp-bench-render", "--cases", str(path)]) == 0
    assert capsys.readouterr().out == "92/92 cases agree\n"
    with gzip.open(path, "rt", encoding="utf-8") as f:
        ious = [compared(json.loads(line)).iou for line in f]
    assert ious.count(None) == 3
    assert {iou for iou in ious if iou is not None} == {1.0}
