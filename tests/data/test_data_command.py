"""``data``: its commands, the list of datasets, and what is refused before anything is fetched."""

from __future__ import annotations

import custom_data
import pytest
from stand_ins import set_up_release
from web import Web

from vlmeval_findit.cli import COMMANDS, data_show, main

GROUP = [name for name in COMMANDS if name.startswith("data ")]


def test_the_group_names_its_commands(capsys) -> None:
    assert main(["data"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()[:2]) for line in lines if line.startswith("  data ")] == GROUP


def test_the_list_says_what_is_on_disk_and_its_licence(
    tmp_path, monkeypatch, web: Web, capsys
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    named = {line.split()[0].rstrip(","): line for line in lines[1:]}
    assert "–" in named["Pascal"]
    assert "under Flickr's terms of use; research use (VOC 2007)" in named["Pascal"]
    assert "made" in named["Scenes"]
    assert "photos.yaml" in named["Demo"]
    assert named["Probe"].split()[:2] == ["Probe", "made"]
    assert named["VPBench_Scenes"].split()[:2] == ["VPBench_Scenes", "made"]
    assert {"RefL4Full_val", "VPBench_Stage1", "SelfRetrieval"} <= named.keys()
    mini = set_up_release(tmp_path, monkeypatch, web)
    assert main(["data", "get", "Mini", "--no-images"]) == 0
    assert not (tmp_path / "lmu" / "images").exists()
    assert main(["data", "get", "Mini"]) == 0
    next((tmp_path / "lmu" / "images" / "COCO_train2014").glob("*.jpg")).unlink()
    monkeypatch.setattr(data_show, "DATASETS", {"Mini": mini})
    capsys.readouterr()
    assert main(["data", "list"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("Mini "))
    assert line.split()[1:3] == ["yes", "4/5"]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["VPBench"], "python run_findit.py data get VPBench --from PATH"),
        (["SelfRetrieval"], "the dataset.json of D3 self-retrieval"),
        (
            ["ScreenSpot-Pro", "Pascal"],
            "ScreenSpot-Pro is made from your files: get it in a separate command",
        ),
    ],
)
def test_what_is_not_fetched_says_what_to_get(names: list[str], says: str, capsys) -> None:
    assert main(["data", "get", *names]) == 2
    assert says in capsys.readouterr().err


def test_what_was_imported_is_checked_by_another_command(tmp_path, data_root, capsys) -> None:
    path = custom_data.write_coco(tmp_path)
    images = custom_data.make_images(tmp_path / "images")
    assert main(["data", "import", str(path), "--image-root", str(images), "--name", "Mine"]) == 0
    assert main(["data", "check", "Mine"]) == 2
    error = capsys.readouterr().err
    check = "check FindIt_Mine_xyxy_json"
    assert check in error
    assert main(check.split()) == 0
    (images / "one.jpg").unlink()
    assert main(check.split()) == 1
    assert "one.jpg is missing" in capsys.readouterr().out
