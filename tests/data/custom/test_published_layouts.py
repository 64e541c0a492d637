"""Sets as they are published: folders without a flag, what does not count, odd lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import published_layouts
import pytest

from vlmeval_findit.benchmarks.findit import find_table, read_table
from vlmeval_findit.cli import main

pytestmark = pytest.mark.usefixtures("data_root")

Boxes = list[tuple[float, ...]]

# Every truth has this box, of its first label.
BOX = (10, 20, 110, 220)


def imports(path: Path, *flags: str) -> int:
    return main(["data", "import", str(path), "--name", "Mine", "--replace", *flags])


def truth() -> dict[tuple[str, str], tuple[Boxes, Boxes]]:
    """Return the boxes that count, and the others, by image and label."""
    return {
        (row.images[0], row.label): (
            [tuple(box) for box in row.truth.boxes],
            [(*each.box, each.crowd) for each in row.truth.ignored],
        )
        for row in read_table(find_table("Mine"))
    }


WRITERS: list[tuple[Callable[..., Path], dict[tuple[str, str], tuple[Boxes, Boxes]], list[str]]] = [
    (
        published_layouts.visdrone,
        {
            # The region counts for no label, and the ignored car for its own.
            ("0000001_a.jpg", "car"): (
                [BOX],
                [(400, 20, 450, 80, False), (300, 20, 350, 80, True)],
            ),
            ("0000001_a.jpg", "bus"): ([(500, 300, 550, 360)], [(300, 20, 350, 80, True)]),
            ("0000002_b.jpg", "bus"): ([], []),
        },
        ['left out: objects of the category "others" (1)', "truncation and occlusion"],
    ),
    (
        published_layouts.wider_face,
        {
            ("0--Parade/0_Parade_a_1.jpg", "face"): ([BOX], [(300, 20, 350, 80, False)]),
            ("1--Handshaking/b.jpg", "face"): ([], []),
        },
        ["blur, expression, illumination, occlusion, pose"],
    ),
    (
        published_layouts.crowdhuman,
        {
            ("273271,c9db000d5146c15.jpg", "person"): (
                [BOX],
                [(300, 20, 350, 80, False), (400, 20, 600, 80, True)],
            )
        },
        ["not read: boxes: vbox (3)", "not read: boxes: hbox (3)"],
    ),
    (
        published_layouts.dota,
        {
            ("P0003.png", "plane"): ([BOX], []),
            ("P0003.png", "large-vehicle"): (
                [(300, 20, 350, 70)],
                [(400, 20, 450, 80, False)],
            ),
            ("P0004.png", "large-vehicle"): ([], []),
        },
        ["note: rotated boxes that became the upright boxes around them (1)"],
    ),
]


@pytest.mark.parametrize(("write", "expected", "said"), WRITERS)
def test_a_published_set_is_recognised_and_read(
    tmp_path, write: Callable[..., Path], expected: object, said: list[str], capsys
) -> None:
    folder = write(tmp_path / "set")
    assert imports(folder) == 0, capsys.readouterr().err
    assert truth() == expected
    out = " ".join(capsys.readouterr().out.split())
    assert [words for words in said if words not in out] == []


@pytest.mark.parametrize(("write", "expected", "said"), WRITERS)
def test_what_lies_inside_a_published_set_may_be_named(
    tmp_path, write: Callable[..., Path], expected: object, said: list[str], capsys
) -> None:
    """The folder of a split, that of its annotations, and their file: images are found beside."""
    folder = write(tmp_path / "set")
    annotations = [path for path in folder.rglob("*") if path.suffix in (".txt", ".odgt")]
    is_alone = len(annotations) == 1
    inside = annotations[0] if is_alone else annotations[0].parent
    assert imports(inside) == 0, capsys.readouterr().err
    assert truth() == expected
    if not is_alone:
        assert imports(inside.parent) == 0, capsys.readouterr().err
        assert truth() == expected


@pytest.mark.parametrize(
    ("write", "training"),
    [
        (published_layouts.visdrone, "VisDrone2019-DET-train"),
        (published_layouts.wider_face, "train"),
        (published_layouts.crowdhuman, "train"),
        (published_layouts.dota, "train"),
    ],
)
def test_a_published_set_has_its_splits(
    tmp_path, write: Callable[..., Path], training: str, capsys
) -> None:
    folder = write(tmp_path / "set", training)
    assert imports(folder) == 2
    assert "which models are trained on" in capsys.readouterr().err
    assert imports(folder, "--split", "train") == 0
    write(folder)
    assert imports(folder) == 0
    assert "val" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("write", "old", "new", "why"),
    [
        (published_layouts.visdrone, "200,1,4", "200,0.7,4", "these are results of a model"),
        (published_layouts.visdrone, "60,1,9", "60,1,17", "VisDrone's labels are left,top,"),
        (published_layouts.wider_face, "\n2\n", "\n3\n", "should be x y w h blur"),
        (published_layouts.wider_face, "b.jpg", "b.doc", "should be the name of an image"),
        (published_layouts.dota, "plane 0", "plane 0 0.9", "x1 y1 x2 y2 x3 y3 x4 y4 category"),
        (published_layouts.dota, "plane 0", "plane 7", "difficult: '7' should be 0 or 1"),
        (published_layouts.crowdhuman, '"fbox": [10, ', '"fbox": [', "should be [x, y, width"),
        (published_layouts.crowdhuman, '"tag": "person", ', "", "tag is missing"),
        (
            published_layouts.crowdhuman,
            '"fbox": [10, 20, 100',
            '"fbox": [-9, 20, 100',
            "--clip-boxes",
        ),
    ],
)
def test_odd_lines_of_a_published_set_are_refused(
    tmp_path, write: Callable[..., Path], old: str, new: str, why: str, capsys
) -> None:
    folder = write(tmp_path / "set")
    for path in folder.rglob("*"):
        if path.suffix in (".txt", ".odgt"):
            path.write_text(path.read_text().replace(old, new))
    assert imports(folder) == 2
    assert why in " ".join(capsys.readouterr().err.split())
