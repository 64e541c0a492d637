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

from vlmeval_findit.benchmarks.refl4 import refl4_annotations as known
from vlmeval_findit.cli import main
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
    """A prediction of every expression, every second right."""
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
        archive.add(write_images(tmp_path / "images"), "images")
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


def metrics_of(path: Path, name: str = ALL) -> dict[str, Any]:
    """The metrics of the run that was converted from a file."""
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
    left = metrics_of(path)
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
