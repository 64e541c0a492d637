"""Detection sets as they are published, with one image of 640 x 480 each, or a few."""

from __future__ import annotations

import json
from pathlib import Path

from one_truth import draw


def visdrone(folder: Path, split: str = "VisDrone2019-DET-val") -> Path:
    """Write a car, a region to ignore, a car that does not count, "others" and a bus."""
    place = folder / split
    draw(place / "images", "0000001_a.jpg")
    draw(place / "images", "0000002_b.jpg")
    (place / "annotations").mkdir()
    (place / "annotations" / "0000001_a.txt").write_text(
        "10,20,100,200,1,4,0,0\n300,20,50,60,0,0,0,0\n400,20,50,60,0,4,1,2\n"
        "500,20,50,60,1,11,0,0\n500,300,50,60,1,9,0,1,\n"
    )
    (place / "annotations" / "0000002_b.txt").write_text("")
    return folder


def wider_face(folder: Path, split: str = "val") -> Path:
    """Write a face, an invalid one, and an image without faces."""
    images = folder / f"WIDER_{split}" / "images"
    for name in ("0--Parade/0_Parade_a_1.jpg", "1--Handshaking/b.jpg"):
        draw(images, name)
    (folder / "wider_face_split").mkdir(exist_ok=True)
    (folder / "wider_face_split" / f"wider_face_{split}_bbx_gt.txt").write_text(
        "0--Parade/0_Parade_a_1.jpg\n2\n10 20 100 200 0 0 0 0 0 0 \n300 20 50 60 2 0 0 1 2 0 \n"
        "1--Handshaking/b.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n"
    )
    return folder


def crowdhuman(folder: Path, split: str = "val") -> Path:
    """Write a person, one to ignore, and a region of persons."""
    draw(folder / "Images", "273271,c9db000d5146c15.jpg")
    attributes = {"ignore": 1, "occ": 1, "unsure": 0}  # Of the head alone
    boxes = [
        {
            "tag": "person",
            "fbox": [10, 20, 100, 200],
            "vbox": [10, 20, 100, 150],
            "hbox": [30, 20, 20, 20],
            "head_attr": attributes,
            "extra": {"box_id": 0, "occ": 1},
        },
        {
            "tag": "person",
            "fbox": [300, 20, 50, 60],
            "vbox": [300, 20, 50, 60],
            "hbox": [310, 20, 10, 10],
            "head_attr": {},
            "extra": {"box_id": 1, "ignore": 1},
        },
        {
            "tag": "mask",
            "fbox": [400, 20, 200, 60],
            "vbox": [400, 20, 200, 60],
            "hbox": [400, 20, 200, 60],
            "head_attr": {"ignore": 1},
            "extra": {"box_id": 2, "ignore": 1},
        },
    ]
    line = {"ID": "273271,c9db000d5146c15", "gtboxes": boxes}
    (folder / f"annotation_{split}.odgt").write_text(json.dumps(line) + "\n")
    return folder


def dota(folder: Path, split: str = "val") -> Path:
    """Write an upright plane, a turned vehicle, a difficult one, and an image of nothing."""
    place = folder / split
    for name in ("P0003.png", "P0004.png"):
        draw(place / "images", name)
    (place / "labelTxt").mkdir()
    header = "imagesource:GoogleEarth\ngsd:0.146343590398\n"
    (place / "labelTxt" / "P0003.txt").write_text(
        f"{header}10.0 20.0 110.0 20.0 110.0 220.0 10.0 220.0 plane 0\n"
        "300.0 40.0 320.0 20.0 350.0 50.0 330.0 70.0 large-vehicle 0\n"
        "400.0 20.0 450.0 20.0 450.0 80.0 400.0 80.0 large-vehicle 1\n"
    )
    (place / "labelTxt" / "P0004.txt").write_text("imagesource:GoogleEarth\ngsd:None\n")
    return folder
