"""Commands of other tools that refusals advise: run on sets as they are laid out, and imported."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from one_truth import draw
from real_servers import datumaro

from vlmeval_findit.benchmarks.findit import find_table, read_table
from vlmeval_findit.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("data_root")]


def mot(folder: Path) -> Path:
    """Write MOT17's layout; the second person is not considered."""
    place = folder / "MOT17-02"
    draw(place / "img1", "000001.jpg")
    (place / "gt").mkdir()
    (place / "gt" / "gt.txt").write_text("1,1,10,20,100,200,1,1,1\n1,2,300,20,50,60,0,1,0.5\n")
    (place / "seqinfo.ini").write_text(
        "[Sequence]\nname=MOT17-02\nimDir=img1\nframeRate=30\nseqLength=1\n"
        "imWidth=640\nimHeight=480\nimExt=.jpg\n"
    )
    return place


def datumaros_json(folder: Path) -> Path:
    draw(folder / "images" / "default", "a.png")
    box = {"id": 0, "type": "bbox", "attributes": {}, "group": 0, "label_id": 0, "z_order": 0}
    item = {"id": "a", "annotations": [{**box, "bbox": [10, 20, 100, 200]}]}
    item |= {"attr": {}, "image": {"path": "a.png", "size": [480, 640]}}
    labels = [{"name": "person", "parent": "", "attributes": []}]
    value = {"info": {}, "categories": {"label": {"labels": labels, "attributes": []}}}
    (folder / "annotations").mkdir()
    (folder / "annotations" / "default.json").write_text(json.dumps({**value, "items": [item]}))
    return folder


def label_me(folder: Path) -> Path:
    """Write LabelMe's XML of MIT, and return the file."""
    draw(folder / "Images" / "rooms", "a.jpg")
    points = "".join(
        f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in ((10, 20), (110, 20), (110, 220), (10, 220))
    )
    path = folder / "Annotations" / "rooms" / "a.xml"
    path.parent.mkdir(parents=True)
    path.write_text(
        "<annotation><filename>a.jpg</filename><folder>rooms</folder><source></source>"
        "<imagesize><nrows>480</nrows><ncols>640</ncols></imagesize>"
        "<object><name>person</name><deleted>0</deleted><verified>0</verified><occluded>no"
        "</occluded><attributes></attributes><parts><hasparts></hasparts><ispartof></ispartof>"
        f"</parts><id>0</id><polygon>{points}<username>me</username></polygon></object>"
        "</annotation>"
    )
    return path


@pytest.mark.parametrize("write", [mot, datumaros_json, label_me])
def test_what_a_refusal_advises_leads_to_the_boxes(
    tmp_path, monkeypatch, write: Callable[[Path], Path], capsys
) -> None:
    program = datumaro()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    asked = write(tmp_path / "set")
    assert main(["data", "import", str(asked), "--name", "Mine"]) == 2
    advice = " ".join(capsys.readouterr().err.split())
    datum, then = advice.partition("datum convert ")[2].split("; then: ")
    command = [str(program), "convert", *shlex.split(datum)]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    assert main([*shlex.split(then.replace("NAME", "Mine"))]) == 0, capsys.readouterr().err
    (row,) = read_table(find_table("Mine"))
    assert row.label in ("person", "pedestrian")
    assert tuple(row.truth.boxes[0]) == pytest.approx((10, 20, 110, 220), abs=1)
    assert len(row.truth.ignored) == (1 if write is mot else 0)
