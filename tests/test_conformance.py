"""Agreement with the release's own scorer, and what the command says where there is none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from vlmeval_findit.conformance import main

pytestmark = pytest.mark.shared


def lines(cases: Path) -> list[str]:
    with gzip.open(cases, "rt", encoding="utf-8") as f:
        return f.read().splitlines()


def run(cases: Path, subsets: Path) -> int:
    return main(["--cases", str(cases), "--subsets", str(subsets)])


def test_all_cases_agree(cases: Path, subsets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cases, subsets) == 0
    assert capsys.readouterr().out == "5184/5184 cases agree\n"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"tp": 7}, "tp is 1, should be 7", id="count"),
        pytest.param({"format_ok": False}, "format_ok is True, should be False", id="adherence"),
        pytest.param({"ious": [0.9534]}, "IoU of box 0 is 0.953468", id="IoU beyond 1e-5"),
        pytest.param(
            {"boxes": [[446.08, 236.985, 640.0, 417.181]]}, "boxes are", id="box beyond 1e-3 pixels"
        ),
    ],
)
def test_one_difference_is_found_and_shown(
    change: dict[str, object],
    says: str,
    cases: Path,
    subsets: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = next(
        line
        for line in lines(cases)
        if '"expected": {"format_ok": true, "ious": [0.9534680843353271]' in line
    )
    case = json.loads(found)
    case["expected"] |= change
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{found}\n\n{json.dumps(case)}\n")
    assert run(path, subsets) == 1
    out = capsys.readouterr().out
    assert f"cases.jsonl, line 3: {says}" in out
    assert out.endswith("1/2 cases agree\n")


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        pytest.param(
            lambda c: c.pop("response"), "line 1: 'response' is missing", id="no response"
        ),
        pytest.param(
            lambda c: c.update(dataset="pascale"),
            "line 1: no subset 'pascale': did you mean pascal?",
            id="unknown subset",
        ),
        pytest.param(lambda c: c.update(row=1000), "has no row 1000", id="unknown row"),
        pytest.param(
            lambda c: c["kwargs"].update(rescale_mode="standart"),
            "line 1: no coordinate space 'standart'",
            id="unknown space",
        ),
    ],
)
def test_a_line_that_is_no_case_is_named(
    edit: object,
    says: str,
    cases: Path,
    subsets: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = json.loads(lines(cases)[0])
    edit(case)
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(case))
    assert run(path, subsets) == 1
    assert says in capsys.readouterr().err


def test_a_torn_file_and_an_empty_one_are_no_agreement(
    subsets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"dataset": "pas')
    assert run(path, subsets) == 1
    assert "cases.jsonl, line 1" in capsys.readouterr().err
    path.write_text("")
    assert run(path, subsets) == 1
    assert run(tmp_path / "none.jsonl", subsets) == 1


# --- which protocol -------------------------------------------------------------------------------


def test_ref_l4_agrees(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared / "parity" / "ref_l4_public.jsonl.gz"
    assert main(["--protocol", "ref-l4", "--cases", str(path)]) == 0
    assert capsys.readouterr().out == "51/51 cases agree\n"


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        ("ref-l5", "no protocol 'ref-l5': did you mean ref-l4?"),
        ("findit", "--subsets DIR says where"),
    ],
)
def test_what_is_missing_is_said(
    protocol: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.jsonl").write_text("")
    assert main(["--protocol", protocol, "--cases", str(tmp_path / "cases.jsonl")]) == 1
    assert says in capsys.readouterr().err
