"""``score --convert``, ``data get RefL4Full_…`` with and without files."""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from refl4_stand_in import TEST, VAL, write_images, write_parquet
from web import web_server

from vlmeval_findit.benchmarks.refl4 import refl4_annotations as known
from vlmeval_findit.cli import main
from vlmeval_findit.data.fetch import annotations as fetched

Capture = pytest.CaptureFixture[str]
TABLES = ("RefL4Full_val", "RefL4Full_test", "RefL4Full_all")
ALL = "FindIt_RefL4Full_all_xyxy_json"


@pytest.fixture
def parquet(tmp_path: Path, lmu: Path) -> Path:
    """The stand-in's Parquet files."""
    return write_parquet(tmp_path / "parquet")


def test_files_of_other_annotations_are_refused_unless_forced(
    parquet: Path, lmu: Path, capsys: Capture
) -> None:
    command = ["data", "get", *TABLES, "--from", str(parquet), "--no-images"]
    assert main(command) == 2
    output = capsys.readouterr().err
    assert "ref-l4-val.parquet: 8 expressions of val, the release has 13420" in output
    assert "(unlike_release)" in output
    assert not list(lmu.iterdir())
    assert main([*command, "--force"]) == 0
    assert "not the authors' annotations" in capsys.readouterr().out
    assert {path.stem for path in lmu.glob("*.tsv")} == set(TABLES)


def test_a_second_fetch_downloads_nothing(
    parquet: Path, tmp_path: Path, lmu: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for module in (known, fetched):  # as if the authors had published the stand-in
        monkeypatch.setattr(module, "RELEASE_COUNTS", {"expressions of val": 8})
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.add(write_images(tmp_path / "images"), "images")
    with web_server() as web:
        web.serve("refl4/images.tar.gz", content.getvalue())
        web.serve("refl4/ref-l4-val.parquet", (parquet / "ref-l4-val.parquet").read_bytes())
        config = tmp_path / "datasets.yaml"
        config.write_text(f"sources:\n  refl4: {web.url}refl4\n")
        monkeypatch.setenv("FINDIT_CONFIG", str(config))
        assert main(["data", "get", "RefL4Full_val"]) == 0
        output = capsys.readouterr().out
        assert "Ref-L4 by its authors" in output
        assert re.search(r"RefL4Full_val +4 +0 +4 +0", output)
        assert len(list((lmu / "images" / "RefL4").glob("*.jpg"))) == 4
        before = web.requests
        assert main(["data", "check", "RefL4Full_val"]) == 0
        assert main(["data", "get", "RefL4Full_val"]) == 0
        assert web.requests == before
    assert main(["data", "get", "RefL4Full_vall"]) == 2


# --- files of others ------------------------------------------------------------------------------


@pytest.fixture
def prepared(parquet: Path) -> None:
    flags = ["--from", str(parquet), "--no-images", "--force"]
    assert main(["data", "get", *TABLES, *flags]) == 0


def items(form: str = "xywh") -> list[dict[str, Any]]:
    """A prediction of every expression, every second right."""
    output = []
    for at, row in enumerate((*VAL, *TEST)):
        x, y, w, h = row["bbox"]
        share = 1.0 if at % 2 else 0.3
        box = [x, y, w * share, h] if form == "xywh" else [x, y, x + w * share, y + h]
        output.append({"id": row["id"], "pred_bbox": box, "format": form})
    return output


def convert(path: Path, values: object) -> int:
    path.write_text(json.dumps(values))
    return main(["score", "--convert", "--data", ALL, str(path)])


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("form", ["xywh", "xyxy"])
def test_a_converted_file_gets_published_and_corrected_metrics(form: str, tmp_path: Path) -> None:
    for _ in range(2):
        assert convert(tmp_path / "theirs.json", items(form)) == 0
    metrics = json.loads((tmp_path / f"theirs_{ALL}_provenance.json").read_text())["metrics"]
    assert [metrics[name] for name in ("acc_0.5", "macc", "class_acc")] == [50, 50, 50]
    assert metrics["class_acc_corrected"] == pytest.approx(200 / 3), "bird is a bus in the authors'"


@pytest.mark.usefixtures("prepared")
def test_files_that_are_refused(tmp_path: Path, capsys: Capture) -> None:
    unknown = [{**each, "id": str(each["id"])} for each in items()]
    for values, code in (
        ([*items(), items()[0]], "duplicate_id"),
        (unknown, "no_prediction_id_matches"),
    ):
        assert convert(tmp_path / "bad.json", values) == 2
        result = capsys.readouterr().err
        assert f"({code})" in result
        assert "bad.json" in result
    assert not list(tmp_path.glob("bad_*"))

    run = tmp_path / f"theirs_{ALL}.json"
    run.write_text("[]")
    assert convert(tmp_path / "theirs.json", items()) == 2
    output = capsys.readouterr().err
    assert f"{run}: is there with other replies" in output
    assert f"run_findit.py score {run}" in output
    assert run.read_text() == "[]"
