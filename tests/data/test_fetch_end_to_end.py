"""A local mirror, ``data get``, a run through VLMEvalKit to a score; import, run, export."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_data import make_images, write_coco
from paths import ROOT
from web import Web, web_server

pytest.importorskip("vlmeval", reason="VLMEvalKit is not installed")
pytestmark = pytest.mark.host

SHARED = Path(os.environ.get("FINDIT_SHARED", ROOT.parent / "shared"))


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FINDIT_")}
    environment = {**kept, "PYTHONPATH": str(ROOT), "LMUData": str(folder / "lmu"), **variables}
    (folder / "lmu").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, str(ROOT / "run_findit.py"), *arguments],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )


def score_of(folder: Path, dataset: str) -> dict[str, str]:
    path = folder / "outputs" / "FullImage" / f"FullImage_{dataset}_score.csv"
    with path.open(newline="") as f:
        return next(csv.DictReader(f))


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "images" / "pascal").is_dir(), reason=f"no {SHARED}")
def test_fetch_pascal_and_run_it(tmp_path: Path, web: Web) -> None:
    photographs = sorted((SHARED / "images" / "pascal").glob("*.jpg"))
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    for name, part in (("test", photographs[::2]), ("trainval", photographs[1::2])):
        with tarfile.open(mirror / f"VOC{name}_06-Nov-2007.tar", "w") as archive:
            for path in part:
                archive.add(path, f"VOCdevkit/VOC2007/JPEGImages/{path.name}")
    web.folders = {"/subsets/": SHARED / "findit-subsets", "/voc/": mirror}
    config = tmp_path / "mirror.yaml"
    config.write_text(f"sources: {{findit: '{web.url}subsets', voc2007: '{web.url}voc'}}\n")
    fetched = run(tmp_path, "data", "get", "Pascal", FINDIT_CONFIG=str(config))
    assert fetched.returncode == 1, fetched.stderr  # the mirror has 13 photographs of 1,740
    assert "in none of VOCtest_06-Nov-2007.tar" in fetched.stdout
    assert len(list((tmp_path / "lmu" / "images" / "Pascal").glob("*.jpg"))) == len(photographs)
    name = "FindIt_Pascal_xyxy_json"
    model = ["--model", "FullImage", "--skip-missing-images", "--work-dir", "outputs"]
    done = run(tmp_path, "--data", name, *model)
    assert done.returncode == 0, done.stderr[-2000:]
    row = score_of(tmp_path, name)
    assert (row["scored"], row["left out"], row["rows"]) == ("9", "991", "1000")


def test_import_run_export(tmp_path: Path) -> None:
    images, instances = make_images(tmp_path / "pictures"), write_coco(tmp_path)
    given = [str(instances), "--image-root", str(images), "--name", "MyData"]
    assert run(tmp_path, "data", "import", *given).returncode == 0
    name = "FindIt_MyData_multilabel_xyxy_json"
    done = run(tmp_path, "--data", name, "--model", "FullImage", "--work-dir", "outputs")
    assert done.returncode == 0, done.stderr[-2000:]
    assert score_of(tmp_path, name)["scored"] == "2"
    answers = tmp_path / "outputs" / "FullImage" / f"FullImage_{name}.json"
    exported = run(tmp_path, "export", str(answers), "--to", "coco", "--out", "coco")
    assert exported.returncode == 0, exported.stderr
    assert "score 1" in exported.stdout
    truth = json.loads((tmp_path / "coco" / f"{answers.stem}_coco_truth.json").read_text())
    source = json.loads(instances.read_text())
    plain = [
        sorted((row["image_id"], row["category_id"], row["bbox"]) for row in part["annotations"])
        for part in (truth, source)
    ]
    assert plain[0] == plain[1]
