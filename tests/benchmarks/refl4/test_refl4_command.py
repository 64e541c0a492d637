"""``score --convert``, ``data get RefL4Full_…`` with and without files."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from refl4_stand_in import TEST, VAL, write_images, write_parquet
from web import Web, web_server

from vlmeval_findit.benchmarks.findit.annotation_tables import write_table
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.benchmarks.refl4 import refl4_annotations as known
from vlmeval_findit.boxes.records import Truth
from vlmeval_findit.cli import main
from vlmeval_findit.core.identity import Identity, write_identity
from vlmeval_findit.core.run_files import RunFiles
from vlmeval_findit.data.fetch import annotations as fetched

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def parquet(tmp_path: Path, lmu: Path) -> Path:
    """The stand-in's Parquet files."""
    return write_parquet(tmp_path / "parquet")


@pytest.fixture
def as_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in is what the authors published."""
    built = {
        **{"expressions of val": 8, "expressions of test": 12},
        **{"small boxes": 10, "medium boxes": 5, "large boxes": 5},
        **{f"instances of {source}": 10 for source in ("refcoco", "o365")},
        **{f"images of {source}": 5 for source in ("refcoco", "o365")},
    }
    monkeypatch.setattr(known, "RELEASE", built)
    monkeypatch.setattr(fetched, "RELEASE", built)


def items(form: str = "xywh") -> list[dict[str, Any]]:
    """A prediction of every expression, every second one right."""
    output = []
    for at, row in enumerate((*VAL, *TEST)):
        x, y, w, h = row["bbox"]
        share = 1.0 if at % 2 else 0.3
        box = [x, y, w * share, h] if form == "xywh" else [x, y, x + w * share, y + h]
        output.append({"id": row["id"], "pred_bbox": box, "format": form})
    return output


def written(path: Path, values: object) -> Path:
    path.write_text(json.dumps(values))
    return path


TABLES = ("RefL4Full_val", "RefL4Full_test", "RefL4Full_all")

# --- of files at hand -----------------------------------------------------------------------------


def test_files_of_other_annotations_are_refused_unless_forced(
    parquet: Path, tmp_path: Path, capsys: Capture
) -> None:
    command = ["data", "get", *TABLES, "--from", str(parquet), "--no-images"]
    assert main(command) == 2
    output = capsys.readouterr().err
    assert "ref-l4-val.parquet: 8 expressions of val, the release has 13420" in output
    assert "(unlike_release)" in output
    assert not list((tmp_path / "lmu").iterdir())
    assert main([*command, "--force"]) == 0
    assert "not the authors' annotations" in capsys.readouterr().out
    assert {path.stem for path in (tmp_path / "lmu").glob("*.tsv")} == set(TABLES)


# --- from the network -----------------------------------------------------------------------------


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


@pytest.mark.usefixtures("as_released")
def test_fetch_leaves_a_split_ready_and_the_second_run_asks_nothing(
    parquet: Path, tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.add(write_images(tmp_path / "pictures"), "images")
    web.serve("refl4/images.tar.gz", content.getvalue())
    web.serve("refl4/ref-l4-val.parquet", (parquet / "ref-l4-val.parquet").read_bytes())
    config = tmp_path / "datasets.yaml"
    config.write_text(f"sources:\n  refl4: {web.url}refl4\n")
    monkeypatch.setenv("FINDIT_CONFIG", str(config))
    assert main(["data", "get", "RefL4Full_val"]) == 0
    output = capsys.readouterr().out
    assert "Ref-L4 by its authors" in output
    assert re.search(r"RefL4Full_val +4 +0 +4 +0", output)
    assert len(list((tmp_path / "lmu" / "images" / "RefL4").glob("*.jpg"))) == 4
    before = web.requests
    assert main(["data", "check", "RefL4Full_val"]) == 0
    assert main(["data", "get", "RefL4Full_val"]) == 0
    assert web.requests == before
    assert main(["data", "get", "RefL4Full_vall"]) == 2


# --- files of others ------------------------------------------------------------------------------

ALL = "FindIt_RefL4Full_all_xyxy_json"


def convert(path: Path, name: str = ALL) -> int:
    return main(["score", "--convert", "--data", name, str(path)])


def figures_of(path: Path, name: str = ALL) -> dict[str, Any]:
    """The figures of the run that was made of a file."""
    result = path.with_name(f"{path.stem}_{name}_provenance.json")
    return json.loads(result.read_text())["metrics"]


@pytest.fixture
def prepared(parquet: Path) -> None:
    flags = ["--from", str(parquet), "--no-images", "--force"]
    assert main(["data", "get", *TABLES, *flags]) == 0


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("form", ["xywh", "xyxy"])
def test_a_converted_file_gets_the_twelve_metrics_and_the_corrected_metrics(
    form: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "theirs.json", items(form))
    for _ in range(2):
        assert convert(path) == 0
    left = figures_of(path)
    assert [left[name] for name in ("acc_0.5", "macc", "class_acc")] == [50, 50, 50]
    assert left["class_acc_corrected"] == pytest.approx(200 / 3), "bird is a bus in the authors'"


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda output: output.append(output[0]), "duplicate_id"),
        (
            lambda output: [each.update(id=str(each["id"])) for each in output],
            "no_prediction_id_matches",
        ),
    ],
)
def test_a_refusal_names_file_row_key_and_code(
    change: Callable[[list[dict[str, Any]]], object], code: str, tmp_path: Path, capsys: Capture
) -> None:
    output = items()
    change(output)
    assert convert(written(tmp_path / "bad.json", output)) == 2
    result = capsys.readouterr().err
    assert f"({code})" in result
    assert "bad.json" in result
    assert not list(tmp_path.glob("bad_*"))


@pytest.mark.usefixtures("prepared")
def test_a_conversion_never_overwrites_other_replies(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "theirs.json", items())
    run = tmp_path / f"theirs_{ALL}.json"
    run.write_text("[]")
    assert convert(path) == 2
    output = capsys.readouterr().err
    assert f"{run}: is there with other replies" in output
    assert f"run_findit.py score {run}" in output
    assert run.read_text() == "[]"
    run.unlink()
    assert convert(path) == 0


# --- runs of ours ---------------------------------------------------------------------------------


def answers(rows: list[dict[str, Any]], table: str = "RefL4Full_val") -> list[dict[str, Any]]:
    """Replies in pixels: a hit, a box beside it, no box, and a failed call, over and over."""
    output = []
    for at, row in enumerate(rows):
        x, y, w, h = row["bbox"]
        right = json.dumps([{"bbox": [x, y, x + w, y + h]}])
        reply = (right, '[{"bbox": [0, 0, 1, 1]}]', "no", "Failed to obtain answer")[at % 4]
        output.append({"index": row.get("index", row["id"]), "prediction": reply})
    return output


STRICT = "FindIt_RefL4Full_RefL4_xyxy_json"


@pytest.fixture
def run_over_a_subset(parquet: Path, tmp_path: Path) -> Path:
    """A run of FindIt over the same expressions, whose space only its identity has."""
    rows = [{**row, "index": at} for at, row in enumerate(VAL)]
    queries = []
    for row in rows:
        x, y, w, h = row["bbox"]
        truth = Truth(((x, y, x + w, y + h),), (0,))
        queries.append(
            FindItQuery(row["index"], row["caption"], 640, 480, (row["file_name"],), truth)
        )
    write_table(tmp_path / "lmu", "RefL4", queries, {})
    path = written(tmp_path / "m_FindIt_RefL4_xyxy_json.json", answers(rows))
    run = Identity("m", "FindIt_RefL4_xyxy_json", space={"kind": "pixels"})
    write_identity(RunFiles(path).identity, run)
    return path


def test_a_run_over_another_dataset_gets_them_without_classes(
    run_over_a_subset: Path, tmp_path: Path
) -> None:
    assert convert(run_over_a_subset, STRICT) == 0
    left = json.loads((tmp_path / f"m_{STRICT}_provenance.json").read_text())
    assert left["metrics"]["acc_0.5"] == pytest.approx(100 / 3)
    assert left["metrics"]["acc_0.5_failed_missed"] == 25.0
    assert left["metrics"]["class_acc"] is left["metrics"]["class_macc_corrected"] is None
    assert [space["kind"] for space in left["spaces"]] == ["pixels"]


@pytest.mark.parametrize(
    ("boxes", "says"),
    [
        ([], "RefL4.tsv, row 0, boxes: there are 0, Ref-L4 is about one"),
        ([(9, 1, 5, 7)], "RefL4.tsv, row 0, boxes: [9.0, 1.0, 5.0, 7.0] has a negative side"),
    ],
)
def test_a_table_with_another_count_of_boxes_a_row_is_refused(
    boxes: list[Any], says: str, parquet: Path, tmp_path: Path, capsys: Capture
) -> None:
    truth = Truth(tuple(boxes), (0,) * len(boxes))
    write_table(tmp_path / "lmu", "RefL4", [FindItQuery(0, "cat", 9, 9, ("a",), truth)], {})
    assert convert(written(tmp_path / "theirs.json", []), STRICT) == 2
    assert says in capsys.readouterr().err
