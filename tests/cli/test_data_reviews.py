"""``data reviews`` from end to end: what it prints, joins, estimates and turns into reviews."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from published_lists import entries_of, write_list

from vlmeval_findit.benchmarks import benchmark_of
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Answer, AuditRecord, Review, Reviews, ReviewVerdict, RowChoice
from vlmeval_findit.storage import read_reviews, table_hash, write_reviews

NAME = "FindIt_Scenes_mini_refexp_xyxy_json"
OTHER = Answer(((1.0, 2.0, 30.0, 40.0),))


class Reviewing:
    """Reviews rows of a table, and writes files of them."""

    def __init__(self) -> None:
        self.dataset: Any = load_dataset(NAME)
        benchmark = benchmark_of(NAME)
        self.rows = benchmark.row_hashes(self.dataset)
        self.table = table_hash(self.dataset.table)
        self.audit = AuditRecord(self.table, len(self.rows), (0, 1, 2), len(self.rows) - 3, 0, ())

    def review(self, index: int, verdict: str, reviewer: str = "ab", **others: Any) -> Review:
        query = self.dataset.queries[index]
        label = Answer(query.truth.boxes)
        accept = {"label": (label,), "model": (OTHER,), "both": (label, OTHER), "edited": (OTHER,)}
        fields: dict[str, Any] = {
            "table": self.table,
            "row": self.rows[index],
            "kind": "wrong object" if index < 3 else "",
            "date": "2026-01-31",
            "drawn": RowChoice.LISTED if index < 3 else RowChoice.RANDOM,
        }
        return Review(
            index=index,
            verdict=ReviewVerdict(verdict),
            accept=accept.get(verdict, ()),
            reviewer=reviewer,
            **(fields | others),
        )

    def write(self, name: str, *reviews: Review) -> str:
        write_reviews(Path(name), Reviews(reviews, (self.audit,)))
        return name


@pytest.fixture
def reviewing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reviewing:
    monkeypatch.chdir(tmp_path)
    return Reviewing()


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["data", "reviews", *words]) == status
    out = capsys.readouterr()
    return out.err if status else out.out


def two_reviewers(reviewing: Reviewing) -> tuple[str, str]:
    review = reviewing.review
    ab = [review(0, "model"), review(1, "label"), review(2, "exclude"), review(2, "model")]
    ab += [review(10, "label"), review(11, "model"), review(12, "unsure")]
    cd = [review(0, "model", "cd"), review(1, "both", "cd"), review(10, "label", "cd")]
    return reviewing.write("ab.jsonl", *ab), reviewing.write("cd.jsonl", *cd)


def test_what_is_in_two_files_and_where_they_disagree(
    reviewing: Reviewing, capsys: pytest.CaptureFixture[str]
) -> None:
    files = two_reviewers(reviewing)
    words = [*files, "--data", NAME, "--out", "both.jsonl", "--json", "both.json"]
    lines = printed(capsys, *words).splitlines()
    digest = read_reviews([Path(name) for name in files]).digest
    asked = reviewing.dataset.queries[1].label
    assert lines == [
        f"6 rows of Scenes_mini_refexp reviewed, in 10 lines; hash {digest}",
        "1 line replaced by later ones",
        "",
        "what                    rows",
        "verdict   label            1",
        "verdict   model            3",
        "verdict   unsure           2",
        "drawn     listed           3",
        "drawn     random           3",
        "kind      wrong object     3",
        "reviewer  ab               6",
        "reviewer  cd               3",
        "",
        "ab and cd agree in 2 of 3 rows that both reviewed; Cohen's kappa 0.50",
        "They disagree in 1 row: labels stay there",
        "",
        "index  ab     cd    kind          asked",
        f"    1  label  both  wrong object  {asked}",
        "",
        "1 of 2 random rows has a wrong label: 50.0% (1.3% to 98.7%) of the rows not listed",
        "1 random row not counted: nobody is sure of them",
        "With 2 of 2 listed rows: about 26 of 50 labels are wrong (3 to 48)",
        "1 listed row not judged, so there may be more",
        "",
        "both.jsonl: 10 reviews",
    ]
    (written,) = json.loads(Path("both.json").read_text(encoding="utf-8"))
    assert (written["digest"], written["superseded"]) == (digest, 1)
    assert written["agreements"] == [
        {"one": "ab", "other": "cd", "rows": 3, "agreed": 2, "kappa": 0.5}
    ]
    verdicts = {"ab": "label", "cd": "both"}
    assert written["disputed"] == [{"index": 1, "kind": "wrong object", "verdicts": verdicts}]
    assert written["wrong"]["total"] == {"value": 25.5, "low": 3, "high": 48}


def test_joining_again_and_in_another_order_changes_nothing(
    reviewing: Reviewing, capsys: pytest.CaptureFixture[str]
) -> None:
    ab, cd = two_reviewers(reviewing)
    printed(capsys, ab, cd, "--out", "both.jsonl")
    before = Path("both.jsonl").read_bytes()
    printed(capsys, ab, cd, "--out", "both.jsonl")
    printed(capsys, "both.jsonl", cd, ab, "--out", "both.jsonl")
    assert Path("both.jsonl").read_bytes() == before
    printed(capsys, cd, ab, "--out", "turned.jsonl")
    one, other = read_reviews([Path("both.jsonl")]), read_reviews([Path("turned.jsonl")])
    assert one.digest == other.digest
    error = printed(capsys, ab, "--out", "both.jsonl", status=2)
    assert "both.jsonl has 3 reviews that these files do not have" in error
    assert Path("both.jsonl").read_bytes() == before


def test_an_interrupted_save_is_named_and_gone_over(
    reviewing: Reviewing, capsys: pytest.CaptureFixture[str]
) -> None:
    ab, _ = two_reviewers(reviewing)
    whole = Path(ab).read_bytes()
    Path(ab).write_bytes(whole[:-20])
    assert main(["data", "reviews", ab, "--out", "whole.jsonl"]) == 0
    out = capsys.readouterr()
    assert out.err == "ab.jsonl, line 8: cut off, as by a save that was interrupted: left out\n"
    assert Path("whole.jsonl").read_bytes() == whole[: whole[:-1].rindex(b"\n") + 1]


def test_rows_that_are_others_now_are_named_by_line(
    reviewing: Reviewing, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = reviewing.review(1, "label", row=reviewing.rows[2])
    absent = replace(reviewing.review(3, "label"), index=99)
    elsewhere = reviewing.review(2, "label", table=f"sha256:{64 * '0'}", row=f"sha256:{64 * '1'}")
    path = reviewing.write("r.jsonl", reviewing.review(0, "label"), changed, absent, elsewhere)
    lines = printed(capsys, path, "--data", NAME).splitlines()
    assert lines[:4] == [
        "r.jsonl, line 3: row 1 of Scenes_mini_refexp has another image, expression or box than "
        "the row that was reviewed: review it again",
        "1 review of rows that Scenes_mini_refexp lacks, by index: 99",
        "1 review of other tables than Scenes_mini_refexp, by index: 2",
        f"1 row of Scenes_mini_refexp reviewed, in 1 line; hash {lines[3][-8:]}",
    ]


def test_a_published_list_becomes_reviews(
    reviewing: Reviewing, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = entries_of(reviewing.dataset.queries, errors=range(7))[:-2]
    entries.append({**entries[0], "caption": "nobody asked"})
    path = str(write_list(Path("refcoco_testA_reviewed.json"), entries))
    lines = printed(capsys, path, "--data", NAME, "--out", "reviews.jsonl").splitlines()
    assert lines[:5] == [
        "48 of 50 rows of Scenes_mini_refexp are in the list, identified by their expressions: "
        "48 by image and box",
        "2 rows without an entry",
        "Scenes_mini_refexp has no row of 1 expression, for example",
        "  refcoco_testA_reviewed.json, entry 48: nobody asked",
        "",
    ]
    reviews = read_reviews([Path("reviews.jsonl")])
    verdicts = [review.verdict for review in reviews.reviews]
    assert verdicts == [ReviewVerdict.EXCLUDE] * 7 + [ReviewVerdict.LABEL] * 41
    before = Path("reviews.jsonl").read_bytes()
    again = ["reviews.jsonl", path, "--data", "Scenes_mini_refexp", "--out", "reviews.jsonl"]
    printed(capsys, *again)
    assert Path("reviews.jsonl").read_bytes() == before
