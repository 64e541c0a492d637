"""Questions of one's own the whole way: imported, asked, scored, ranked, shown, exported."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from jsonl_data import FRAMES, LINES, import_lines
from perfect_answers import content, perfect_answers

from vlmeval_findit.benchmarks.findit.datasets import own_datasets
from vlmeval_findit.benchmarks.findit.grid import Axes, Table, Views, formats, variants
from vlmeval_findit.benchmarks.findit.names import forget_names, parse
from vlmeval_findit.benchmarks.findit.task import load_task
from vlmeval_findit.cli import main
from vlmeval_findit.models.http.payload import server_manner
from vlmeval_findit.models.table import find_model

MODEL = "Qwen3-VL"


@pytest.fixture(autouse=True)
def data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "lmu"
    root.mkdir()
    monkeypatch.setenv("LMUData", str(root))
    for name in ("FINDIT_TABLES", "FINDIT_IMAGES", "FINDIT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    forget_names()
    return root


def asked_right(names: list[str], *flags: str) -> None:
    """Ask a server that names every box of every query of the datasets in a sweep of them."""
    row = find_model(MODEL)
    assert row is not None
    answers: dict[str, str] = {}
    for name in names:
        manner = server_manner(MODEL, row.space(parse(name)))
        answers |= perfect_answers(MODEL, [name], manner)

    def script(asked: Asked, number: int) -> Answer:
        return completion(answers[content(asked.body)])

    with ChatServer(script) as server:
        address = server.url.replace("/api/v1", "/v1")
        assert main(["sweep", "sweep.yaml", "--endpoints", address, *flags]) == 0
        assert server.asked


@pytest.mark.parametrize("family", LINES)
def test_a_model_that_is_right_scores_100_in_every_variant(tmp_path: Path, family: str) -> None:
    assert import_lines(tmp_path, LINES[family]) == 0
    row = own_datasets()["Mine"]
    assert row.family.value == family
    tables = [Table("Mine"), *([Table("Mine", multilabel=True)] if row.has_multilabel else [])]
    views = Views((1, FRAMES) if row.frames > 1 else (), (False, True))
    axes = Axes(("xyxy", "cxcywh"), keys=("bbox", "bbox_2d"))
    names = [variant.name for variant in variants(tables, formats(axes), views)]
    Path("sweep.yaml").write_text(
        f"models: [{MODEL}]\ndatasets: [{', '.join(table.name for table in tables)}]\n"
        "representations: [xyxy, cxcywh]\noutputs: all\nkeys: [bbox, bbox_2d]\n"
        + (f"frames: [1, {FRAMES}]\n" if row.frames > 1 else "")
        + ("captions: [false, true]\n" if row.has_caption else "")
    )
    asked_right(names)
    scores = {path.name: score_of(path) for path in Path("outputs").rglob("*_score.csv")}
    assert scores.keys() == {f"{MODEL}_{name}_score.csv" for name in names}
    for score in scores.values():
        assert float(score["F1@0.5"]) == 100
        # Of frames the empty list is an answer, but not as the protocol asks for one.
        assert float(score["Adherence"]) == (50 if f"f{FRAMES}" in score["dataset"] and not "multilabel" in score["dataset"] and family == "objdet_video" else 100)
        assert float(score["Rejection accuracy"] or 100) == 100
    with_negative = any(float(score["Rejection accuracy"] or 0) for score in scores.values())
    assert with_negative is (row.has_negatives or row.frames > 1)


def score_of(path: Path) -> dict[str, str]:
    with path.open() as f:
        (figures,) = csv.DictReader(f)
    return figures
