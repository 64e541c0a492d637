"""Each fact has one home: every format that can state it gives the same table, or the same no."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import one_truth
import pytest
from every_pair import every_pair
from few_fast import every_nth_fast
from one_truth import Picture, Thing, Writer, draw
from paths import ROOT

from vlmeval_findit.benchmarks.findit import FindItQuery, find_table, read_table
from vlmeval_findit.cli import main
from vlmeval_findit.data import ANNOTATION_FORMATS

pytestmark = pytest.mark.usefixtures("data_root")

CAT = (10.0, 20.0, 110.0, 220.0)
DOG = (300.0, 20.0, 400.0, 220.0)
FAR = (500.0, 300.0, 620.0, 470.0)
BOTH = (Thing("cat", CAT), Thing("dog", DOG))


def write(
    writer: Writer, folder: Path, pictures: Sequence[Picture], files: Sequence[str] = ()
) -> Path:
    """Write annotations, and their images of 640 x 480."""
    folder.mkdir()
    for name in files or [picture.name for picture in pictures]:
        draw(folder, name)
    return writer(folder, pictures)


def imports(path: Path, *flags: str) -> int:
    return main(["data", "import", str(path), "--name", "Mine", "--replace", *flags])


def rows() -> list[FindItQuery]:
    return list(read_table(find_table("Mine")))


def boxes() -> dict[tuple[str, str], list[tuple[float, ...]]]:
    """Return the boxes of each image and label, rounded: formats have sides, centres, percent."""
    return {
        (row.images[0], row.label): [
            tuple(round(number, 6) for number in box) for box in row.truth.boxes
        ]
        for row in rows()
    }


EVERY_FORMAT = (*one_truth.OBJECTS, *one_truth.BARE, *one_truth.LINES)


def formats(*writers: Writer, step: int = 3) -> pytest.MarkDecorator:
    few = every_nth_fast(writers, step)
    return pytest.mark.parametrize("writer", few, ids=lambda writer: writer.__name__)


def test_the_page_says_which_formats_state_which_facts() -> None:
    page = (ROOT / "docs/reference/annotation-formats.md").read_text(encoding="utf-8")
    for title, writer in one_truth.TITLES.items():
        cells = ["yes" if writer in writers else "" for writers in one_truth.FACTS.values()]
        row = " | ".join([title, *cells])
        assert f"\n| {row} |\n" in page, title


def test_every_format_has_a_writer() -> None:
    """But for published sets, whose classes are their own: test_published_layouts.py has them."""
    titles = {
        "VOC": "Pascal VOC",
        "VIA's JSON": "VIA",
        "CVAT's XML": "CVAT",
        "Label Studio's JSON": "Label Studio",
        "Parquet of Hugging Face's hub": "Hugging Face's Parquet",
    }
    names = {titles.get(each.name, each.name) for each in ANNOTATION_FORMATS}
    assert names - one_truth.TITLES.keys() == {"VisDrone", "WIDER FACE", "CrowdHuman"}
    assert one_truth.TITLES.keys() <= names
    written = {*one_truth.OBJECTS, *one_truth.LINES, *one_truth.BARE}
    assert written - {*one_truth.TITLES.values()} == {one_truth.spreadsheet}


# --- images ---------------------------------------------------------------------------------------


@every_pair("writer, name", EVERY_FORMAT, ["a.png", "cam 1/b.png", "train.png", "notes.jpg"])
def test_the_same_truth_gives_the_same_table(tmp_path, writer: Writer, name: str) -> None:
    assert imports(write(writer, tmp_path / "set", [Picture(name, BOTH)])) == 0
    assert boxes() == {(name, "cat"): [CAT], (name, "dog"): [DOG]}


@formats(*one_truth.NAMING, step=1)
@pytest.mark.parametrize("second", [CAT, (10.5, 20.0, 111.0, 219.0), DOG])
def test_two_entries_about_one_image_are_refused(
    tmp_path, writer: Writer, second: tuple[float, ...], capsys
) -> None:
    """By one name, and by two names of one file."""
    pictures = [Picture("a.png", BOTH[:1]), Picture("a.png", [Thing("cat", second)])]
    assert imports(write(writer, tmp_path / "set", pictures)) == 2
    assert "another entry is about a.png, too" in capsys.readouterr().err
    pictures[1] = Picture("old/a.png", [Thing("cat", second)])
    assert imports(write(writer, tmp_path / "other", pictures, ["a.png"])) == 2
    assert "would both be" in capsys.readouterr().err


@formats(*one_truth.FILES)
def test_two_files_about_one_image_are_refused(tmp_path, writer: Writer, capsys) -> None:
    path = write(writer, tmp_path / "set", [Picture("a.png", BOTH)])
    (file,) = (each for each in path.iterdir() if each.stem == "a" and each.suffix != ".png")
    file.with_stem("a_backup").write_text(file.read_text())
    assert imports(path) == 2
    assert "another file is about a.png, too" in capsys.readouterr().err


@formats(*one_truth.FILES)
@pytest.mark.parametrize("is_swapped", [True, False])
def test_a_stale_name_inside_is_refused(tmp_path, writer: Writer, is_swapped: bool, capsys) -> None:
    """Files that were renamed together, or one that was copied of the other."""
    pictures = [Picture("a.png", BOTH[:1]), Picture("b.png", BOTH[1:])]
    path = write(writer, tmp_path / "set", pictures)
    a, b = (next(each for each in path.glob(f"{s}.*") if each.suffix != ".png") for s in "ab")
    texts = (b.read_text(), a.read_text())
    b.write_text(texts[1])
    if is_swapped:
        a.write_text(texts[0])
    assert imports(path) == 2
    assert "which image is meant?" in capsys.readouterr().err


@every_pair(
    "writer, stated, there",
    [*one_truth.NAMING, one_truth.csv_file, *one_truth.LINES],
    [
        ("/home/me/set/cam2/a.png", "cam2/a.png"),
        ("C:\\set\\cam2\\a.png", "cam2/a.png"),
        ("images/v1/cam2/a.png", "cam2/a.png"),
        ("{folder}/cam2/a.png", "cam2/a.png"),
        ("B%20c.png", "B c.png"),
        ("IMG_1.JPG", "img_1.jpg"),
        ("f\u00fc\u00df.png", "fu\u0308\u00df.png"),
        ("Bahnho\u0308fe/a.png", "bahnh\u00f6fe/a.png"),
    ],
)
def test_a_name_finds_its_file(tmp_path, writer: Writer, stated: str, there: str, capsys) -> None:
    stated = stated.replace("{folder}", str(tmp_path / "set"))
    files = [there, "cam1/a.png"]
    path = write(writer, tmp_path / "set", [Picture(stated, BOTH)], files)
    assert imports(path) == 0, capsys.readouterr().err
    assert {row.images[0] for row in rows()} == {there}
    # Label Studio's addresses are always encoded.
    is_address = writer is one_truth.label_studio and "%" in stated
    assert ("note: images " in capsys.readouterr().out) is not is_address


# --- sizes and EXIF -------------------------------------------------------------------------------


@every_pair("writer, width, height", one_truth.STATING_SIZES, [(1280, 960), (480, 640), (641, 480)])
def test_a_size_that_is_not_the_images_is_refused(
    tmp_path, writer: Writer, width: int, height: int, capsys
) -> None:
    pictures = [Picture("a.png", BOTH, (width, height))]
    assert imports(write(writer, tmp_path / "set", pictures)) == 2
    assert f"is 640x480, but its annotations are for {width}x{height}" in capsys.readouterr().err
    assert imports(write(writer, tmp_path / "right", [Picture("a.png", BOTH, (640, 480))])) == 0


@formats(*(each for each in one_truth.STATING_SIZES if each in one_truth.IN_PIXELS))
def test_a_stored_size_does_not_decide_what_boxes_refer_to(
    tmp_path, writer: Writer, capsys
) -> None:
    box = (10.0, 20.0, 60.0, 90.0)
    for name, size in (("stored", (200, 120)), ("turned", (120, 200))):
        folder = tmp_path / name
        folder.mkdir()
        draw(folder, "a.jpg", (200, 120), orientation=6)
        path = writer(folder, [Picture("a.jpg", [Thing("cat", box)], size)])
        assert imports(path) == (2 if name == "stored" else 0)
        asked = "--exif stored or --exif turned" in capsys.readouterr().err
        assert asked is (name == "stored")
        assert imports(path, "--exif", "turned") == 0
        assert boxes()["a.jpg", "cat"] == [(20, 60, 90, 110)]


# --- splits ---------------------------------------------------------------------------------------


@every_pair(
    "writer, training, validation",
    EVERY_FORMAT,
    [
        ("train", "val"),
        ("Training_set", "Validation"),
        ("train2017", "dev"),
        ("a/trainset", "a/val_1"),
    ],
)
def test_folders_of_splits_are_not_merged(
    tmp_path, writer: Writer, training: str, validation: str, capsys
) -> None:
    if writer in (*one_truth.FILES, *one_truth.BARE):
        training, validation = (name.rpartition("/")[2] for name in (training, validation))
    pictures = [Picture(f"{training}/0.png", BOTH), Picture(f"{validation}/0.png", BOTH)]
    path = write(writer, tmp_path / "set", pictures)
    assert imports(path) == 0
    assert {row.images[0] for row in rows()} == {f"{validation}/0.png"}
    assert "left out: " in capsys.readouterr().out
    assert imports(path, "--split", training.rpartition("/")[2]) == 0
    assert {row.images[0] for row in rows()} == {f"{training}/0.png"}
    only = write(writer, tmp_path / "only", pictures[:1])
    assert imports(only) == 2
    assert "which models are trained on" in capsys.readouterr().err


@every_pair("writer, key", one_truth.KEYS_OF_SPLITS, ["split", "set", "dataset_split", "partition"])
def test_a_key_of_splits_is_chosen_from(tmp_path, writer: Writer, key: str, capsys) -> None:
    pictures = [
        Picture("a.png", BOTH, keys={key: "training"}),
        Picture("b.png", BOTH, keys={key: "valid"}),
    ]
    path = write(writer, tmp_path / "set", pictures)
    assert imports(path) == 0
    assert {row.images[0] for row in rows()} == {"b.png"}
    assert f"not read: images: {key}" not in capsys.readouterr().out
    assert imports(path, "--split", "train") == 0
    assert {row.images[0] for row in rows()} == {"a.png"}


@formats(*one_truth.FILES)
@pytest.mark.parametrize("place", ["", "ImageSets", "ImageSets/Main", "ImageSets/Segmentation"])
@pytest.mark.parametrize("names", [("train", "val"), ("cat_train", "cat_val"), ("trainset", "dev")])
def test_lists_of_splits_are_chosen_from(
    tmp_path, writer: Writer, place: str, names: tuple[str, str]
) -> None:
    path = write(writer, tmp_path / "set", [Picture(f"{stem}.png", BOTH) for stem in "abc"])
    (path / place).mkdir(parents=True, exist_ok=True)
    (path / place / f"{names[0]}.txt").write_text("a  1\nb -1\n")
    (path / place / f"{names[1]}.txt").write_text("c  1\n")
    assert imports(path) == 0
    assert {row.images[0] for row in rows()} == {"c.png"}


def test_what_is_no_split_is_not_taken_for_one(tmp_path) -> None:
    """A class that is called train, and validation images of training folders."""
    pictures = [Picture(f"{folder}/a.png", BOTH) for folder in ("train", "bus", "car")]
    assert imports(write(one_truth.coco, tmp_path / "classes", pictures)) == 0
    assert len({row.images[0] for row in rows()}) == 3
    folder = tmp_path / "lvis"
    path = write(one_truth.coco, folder, [Picture("train2017/a.png", BOTH)])
    assert imports(path.rename(folder / "lvis_v1_val.json")) == 0


# --- objects --------------------------------------------------------------------------------------


@every_pair(
    "writer, flag",
    one_truth.OBJECTS,
    ["iscrowd", "is_crowd", "Difficult", "isIgnored", "invalid", "hard"],
)
def test_a_flag_is_honoured_however_it_is_spelled(tmp_path, writer: Writer, flag: str) -> None:
    things = [Thing("cat", CAT, {flag: 0}), Thing("cat", DOG, {flag: 1})]
    assert imports(write(writer, tmp_path / "set", [Picture("a.png", things)])) == 0
    (row,) = rows()
    assert [len(row.truth.boxes), len(row.truth.ignored)] == [1, 1]


@formats(*one_truth.OBJECTS)
def test_a_flag_that_says_neither_is_refused_everywhere(tmp_path, writer: Writer, capsys) -> None:
    things = [Thing("cat", CAT, {"difficult": "perhaps"})]
    assert imports(write(writer, tmp_path / "set", [Picture("a.png", things)])) == 2
    assert "'perhaps' should be 0 or 1" in capsys.readouterr().err


@every_pair(
    "writer, other", one_truth.OBJECTS, ["red cat ", " red  cat", "red\u00a0cat", "r\u200bed cat"]
)
def test_labels_that_differ_in_blanks_are_one(tmp_path, writer: Writer, other: str) -> None:
    things = [Thing("red cat", CAT), Thing(other, DOG)]
    assert imports(write(writer, tmp_path / "set", [Picture("a.png", things)])) == 0
    assert boxes() == {("a.png", "red cat"): [CAT, DOG]}


@formats(*one_truth.OBJECTS, *one_truth.BARE)
def test_labels_that_differ_in_letter_case_are_noted(tmp_path, writer: Writer, capsys) -> None:
    things = [Thing("Cat", CAT), Thing("cat", DOG)]
    assert imports(write(writer, tmp_path / "set", [Picture("a.png", things)])) == 0
    assert "differ in letter case only: Cat and cat" in capsys.readouterr().out


# --- numbers --------------------------------------------------------------------------------------


@every_pair("writer, units", one_truth.IN_PIXELS, ["fractions", "percent", "thousandths"])
def test_units_are_asked_for_and_taken(tmp_path, writer: Writer, units: str, capsys) -> None:
    """An object without an area has no say."""
    scale = {"fractions": 1, "percent": 100, "thousandths": 1000}[units]
    places = [(0.1 * at, 0.05 * at, 0.1 * at + 0.1, 0.05 * at + 0.2) for at in range(9)]
    places.append((0.6, 0.8, 0.99, 0.99))
    parts = [tuple(scale * number for number in place) for place in places]
    things = [Thing(f"thing {at}", box) for at, box in enumerate(parts)]  # type: ignore[arg-type]
    path = write(writer, tmp_path / "set", [Picture("a.png", things)])
    assert imports(path, "--leave-out-bad-boxes") == 2
    error = capsys.readouterr().err
    assert f"--units {units}" in error
    assert "--units pixels" in error
    assert imports(path, "--units", units) == 0
    expected = tuple(n * side for n, side in zip(places[-1], (640, 480) * 2, strict=True))
    assert boxes()["a.png", "thing 9"][0] == pytest.approx(expected)


@pytest.mark.sees("data import --clip-boxes")
@formats(*one_truth.OBJECTS, *one_truth.BARE)
def test_a_box_past_the_border_is_cut_off_or_ignored(tmp_path, writer: Writer, capsys) -> None:
    things = [Thing("cat", CAT), Thing("cat", (-30.0, 20.0, 80.0, 220.0))]
    path = write(writer, tmp_path / "set", [Picture("a.png", things)])
    assert imports(path) == 2
    assert "--clip-boxes" in capsys.readouterr().err
    assert imports(path, "--clip-boxes") == 0
    assert boxes() == {("a.png", "cat"): [CAT, (0, 20, 80, 220)]}
    assert "cut off at the border: --clip-boxes (1)" in capsys.readouterr().out
    assert imports(path, "--leave-out-bad-boxes") == 0
    (row,) = rows()
    assert len(row.truth.boxes) == 1
    (ignored,) = row.truth.ignored
    assert ignored.box == pytest.approx((0, 20, 80, 220))
    assert not ignored.crowd


@formats(*one_truth.IN_PIXELS)
def test_clipping_is_not_offered_where_other_units_fit(tmp_path, writer: Writer, capsys) -> None:
    things = [Thing("cat", CAT), Thing("dog", (500.0, 200.0, 900.0, 900.0))]
    path = write(writer, tmp_path / "set", [Picture("a.png", things)])
    for flags in ((), ("--clip-boxes",), ("--leave-out-bad-boxes",)):
        assert imports(path, *flags) == 2
        error = capsys.readouterr().err
        assert "--units thousandths or --units pixels" in error
        assert "--clip-boxes" not in error
    assert imports(path, "--units", "pixels") == 2
    assert "--clip-boxes" in capsys.readouterr().err


@formats(*one_truth.OBJECTS)
def test_no_flag_is_offered_that_helps_no_box(tmp_path, writer: Writer, capsys) -> None:
    flat = [Thing("cat", (50.0, 60.0, 50.0, 90.0)), Thing("dog", (9.0, 9.0, 9.0, 9.0))]
    path = write(writer, tmp_path / "set", [Picture("a.png", flat)])
    assert imports(path) == 2
    error = capsys.readouterr().err
    assert "2 of 2 boxes cannot be used" in error
    assert "--leave-out-bad-boxes" not in error
    assert "--clip-boxes" not in error


@formats(*one_truth.OBJECTS, *one_truth.BARE)
@pytest.mark.parametrize("flat", [(0.0, 0.0, 0.0, 0.0), (50.0, 60.0, 50.0, 90.0)])
def test_a_box_without_an_area_is_a_bad_box(
    tmp_path, writer: Writer, flat: tuple[float, float, float, float], capsys
) -> None:
    things = [Thing("cat", CAT), Thing("cat", flat), Thing("dog", DOG)]
    path = write(writer, tmp_path / "set", [Picture("a.png", things)])
    assert imports(path) == 2
    error = capsys.readouterr().err
    assert "has no area" in error
    assert "--units" not in error
    assert imports(path, "--leave-out-bad-boxes") == 0
    assert boxes() == {("a.png", "cat"): [CAT], ("a.png", "dog"): [DOG]}
    (region,) = next(row for row in rows() if row.label == "cat").truth.ignored
    assert region.box == (0, 0, 640, 480)
