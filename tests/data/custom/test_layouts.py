"""Folders as tools lay them out: what is recognised, and which of several splits is read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import custom_data
import pytest

from vlmeval_findit.benchmarks.findit import find_table, read_table
from vlmeval_findit.cli import main
from vlmeval_findit.data import AnnotationError, Fate, ReaderOptions, Samples, recognise

pytestmark = pytest.mark.usefixtures("data_root")


def read(path: Path, split: str | None = None) -> Samples:
    layout = recognise(path, split)
    return layout.format.read(layout.path, layout.images, ReaderOptions(split=split))


def images(samples: Samples) -> set[str]:
    return {name for query in samples.queries for name in query.images}


def counts(samples: Samples, fate: Fate = Fate.LEFT_OUT) -> dict[str, int]:
    return {entry.what: entry.count for entry in samples.ledger if entry.fate is fate}


def yolo_set(folder: Path, inner: str = "") -> Path:
    """Write images/ and labels/ of three images below a folder, with classes of their own."""
    place = folder / inner
    place.mkdir(parents=True, exist_ok=True)
    custom_data.write_yolo(place)
    if inner:
        shutil.move(place / "data.yaml", folder / "data.yaml")
    return folder


# --- YOLO -----------------------------------------------------------------------------------------


def roboflow(folder: Path) -> Path:
    for split in ("train", "valid", "test"):
        yolo_set(folder, split)
    names = "[cat, traffic light]"
    splits = "train: ../train/images\nval: ../valid/images\ntest: ../test/images\n"
    (folder / "data.yaml").write_text(f"{splits}names: {names}\nroboflow: {{version: 1}}\n")
    (folder / "README.roboflow.txt").write_text("exported")
    return folder


def with_lists(folder: Path) -> Path:
    yolo_set(folder)
    (folder / "data.yaml").write_text("train: t.txt\nval: [v.txt]\nnames: [cat, traffic light]\n")
    (folder / "t.txt").write_text("./images/three.jpg\n")
    (folder / "v.txt").write_text("./images/one.jpg\nimages/sub/two.png\n")
    return folder


def with_dev(folder: Path) -> Path:
    for split in ("train", "dev"):
        shutil.copytree(
            yolo_set(folder.with_name(f"plain-{split}")) / "images", folder / "images" / split
        )
        shutil.copytree(folder.with_name(f"plain-{split}") / "labels", folder / "labels" / split)
    text = "path: .\ntrain: images/train\nval: images/dev\nnames: [cat, traffic light]\n"
    (folder / "data.yaml").write_text(text)
    return folder


def labelimg(folder: Path) -> Path:
    """Labels, images and classes.txt in one folder."""
    yolo_set(folder)
    for place in ("images", "labels"):
        for path in list((folder / place).rglob("*.*")):
            shutil.move(path, folder / path.name)
        shutil.rmtree(folder / place)
    (folder / "data.yaml").unlink()
    (folder / "classes.txt").write_text("cat\ntraffic light\n")
    return folder


@pytest.mark.parametrize(
    ("write", "split", "expected"),
    [
        (
            roboflow,
            None,
            {"valid/images/one.jpg", "valid/images/sub/two.png", "valid/images/three.jpg"},
        ),
        (
            roboflow,
            "test",
            {"test/images/one.jpg", "test/images/sub/two.png", "test/images/three.jpg"},
        ),
        (with_lists, None, {"one.jpg", "sub/two.png"}),
        (with_dev, None, {"dev/one.jpg", "dev/sub/two.png", "dev/three.jpg"}),
        (labelimg, None, {"one.jpg", "two.png", "three.jpg"}),
    ],
)
def test_yolo_as_tools_lay_it_out(
    tmp_path, write: Callable[[Path], Path], split: str | None, expected: set[str]
) -> None:
    folder = write(tmp_path / "set")
    assert images(read(folder, split)) == expected


def test_a_split_folder_uses_class_names_above_it(tmp_path) -> None:
    folder = roboflow(tmp_path / "set")
    assert images(read(folder / "test")) == {"one.jpg", "sub/two.png", "three.jpg"}
    assert read(folder / "test").images == folder / "test" / "images"


@pytest.mark.parametrize(
    "text",
    ["val: images/train\ntrain: images/train", "train: images/train", "train: images"],
)
def test_training_images_are_read_only_when_asked_for(tmp_path, text: str) -> None:
    folder = with_dev(tmp_path / "set")
    (folder / "data.yaml").write_text(f"{text}\nnames: [cat, traffic light]\n")
    with pytest.raises(AnnotationError, match="which models are trained on"):
        read(folder)
    assert images(read(folder, "train"))


def test_splits_of_another_machine_are_looked_for_in_folders(tmp_path) -> None:
    folder = with_dev(tmp_path / "set")
    (folder / "data.yaml").write_text("train: /gone/a\nval: /gone/b\nnames: [cat, traffic light]\n")
    assert images(read(folder)) == {"dev/one.jpg", "dev/sub/two.png", "dev/three.jpg"}


def test_left_out_boxes_and_labels_are_counted(tmp_path) -> None:
    folder = with_dev(tmp_path / "set")
    (folder / "labels" / "dev" / "classes.txt").write_text("cat")
    (folder / "labels" / "dev" / ".hidden.txt").write_text("rubbish")
    (folder / "labels" / "dev" / "notes.json").write_text("{}")
    (folder / "images" / "dev" / "list.csv").write_text("")
    (folder / "images" / "dev" / "one_mask.png").write_bytes(
        (folder / "images" / "dev" / "sub" / "two.png").read_bytes()
    )
    with (folder / "data.yaml").open("a") as f:
        f.write("nc: 2\ncolours: [red, blue]\n")
    samples = read(folder)
    assert counts(samples) == {"label files of the split train": 3}
    assert counts(samples, Fate.NOT_READ) == {
        "data.yaml: colours": 1,
        "files .csv among images": 1,
        "files .json among label files": 1,
    }
    noted = [entry for entry in samples.ledger if entry.fate is Fate.NOTED]
    assert [entry.what for entry in noted] == ["images without a label file: nothing to find"]
    assert noted[0].first.endswith("one_mask.png")


def test_labels_are_found_whatever_hides_them(tmp_path) -> None:
    """A suffix in capitals, folders that are links."""
    folder = yolo_set(tmp_path / "set")
    (folder / "labels" / "one.txt").rename(folder / "labels" / "one.TXT")
    for place in ("images", "labels"):
        shutil.move(folder / place / "sub", tmp_path / f"store-{place}")
        (folder / place / "sub").symlink_to(tmp_path / f"store-{place}")
    samples = read(folder)
    assert samples.counts.boxes == 4
    assert images(samples) == {"one.jpg", "sub/two.png", "three.jpg"}
    (folder / "images" / "loop").symlink_to(folder / "images")
    with pytest.raises(AnnotationError, match="the link leads back"):
        read(folder)


def test_two_images_that_share_a_label_file_are_refused(tmp_path) -> None:
    folder = yolo_set(tmp_path / "set")
    shutil.copy(folder / "images" / "three.jpg", folder / "images" / "one.tif")
    with pytest.raises(AnnotationError, match=r"which image is it about, one\.jpg or one\.tif"):
        read(folder)


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        ("[yes, no]", ["yes", "no"]),
        ("[on, Off]", ["on", "Off"]),
        ("[007, 1e3]", ["007", "1e3"]),
        ("[0x1F, 12:30]", ["0x1F", "12:30"]),
        ("[1_000, ~]", ["1_000", "~"]),
        ("[2024-01-01, 1.0]", ["2024-01-01", "1.0"]),
        ("{0: null, 1: .5}", ["null", ".5"]),
    ],
)
def test_names_of_classes_are_the_words_of_the_file(
    tmp_path, names: str, labels: list[str]
) -> None:
    folder = yolo_set(tmp_path / "set")
    (folder / "data.yaml").write_text(f"names: {names}\n")
    asked = {query.label for query in read(folder).queries if isinstance(query.label, str)}
    assert asked == set(labels)


def test_aliases_do_not_grow(tmp_path) -> None:
    folder = yolo_set(tmp_path / "set")
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    (folder / "data.yaml").write_text("\n".join([*lines, "names: {0: *i}", "val: *i"]))
    with pytest.raises(AnnotationError) as error:
        read(folder)
    assert len(str(error.value)) < 300


# --- VOC ------------------------------------------------------------------------------------------


def voc(folder: Path) -> Path:
    return custom_data.write_voc(folder)


def lists(folder: Path, **splits: str) -> None:
    place = folder / "ImageSets" / "Main"
    place.mkdir(parents=True)
    for name, text in splits.items():
        (place / f"{name}.txt").write_text(text)


def test_lists_of_voc_say_which_images_are_read(tmp_path) -> None:
    folder = voc(tmp_path / "voc")
    lists(folder, train="three\n", val="one\ntwo.png\ngone\n", cat_val="three 1\none -1\n")
    samples = read(folder)
    assert images(samples) == {"one.jpg", "sub/two.png"}
    assert counts(samples) == {
        "XML files not of the split val": 1,
        "images of the split val without an XML file": 1,
    }
    with pytest.raises(AnnotationError, match="unknown split 'vla'"):
        read(folder, "vla")
    (folder / "ImageSets" / "Main" / "val.txt").unlink()
    with pytest.raises(AnnotationError, match="which models are trained on"):
        read(folder)


def test_voc_in_folders_of_splits_and_beside_images(tmp_path) -> None:
    folder = tmp_path / "set"
    for split in ("train", "valid"):
        plain = voc(tmp_path / f"plain-{split}")
        (folder / split).mkdir(parents=True)
        for path in (*plain.rglob("*.xml"), *plain.rglob("*.*g")):
            shutil.copy(path, folder / split / path.name)
    assert images(read(folder)) == {"valid/one.jpg", "valid/two.png", "valid/three.jpg"}
    assert images(read(folder / "train")) == {"one.jpg", "two.png", "three.jpg"}


def test_voc_below_subfolders_and_with_capitals(tmp_path) -> None:
    folder = voc(tmp_path / "voc")
    (folder / "Annotations" / "sub").mkdir()
    (folder / "Annotations" / "two.xml").rename(folder / "Annotations" / "sub" / "two.XML")
    file = folder / "Annotations" / "sub" / "two.XML"
    for stated in ("sub/two.png", "two.png", "two", "", "old.png"):
        file.write_text(_renamed(file.read_text(), stated))
        assert images(read(folder)) == {"one.jpg", "sub/two.png", "three.jpg"}, stated


def _renamed(text: str, name: str) -> str:
    before, _, rest = text.partition("<filename>")
    return f"{before}<filename>{name}</filename>{rest.partition('</filename>')[2]}"


@pytest.mark.parametrize(("stated", "why"), [("three.jpg", "is called like one.jpg")])
def test_a_filename_that_is_another_image_is_refused(tmp_path, stated: str, why: str) -> None:
    folder = voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    file.write_text(_renamed(file.read_text(), stated))
    with pytest.raises(AnnotationError, match=why):
        read(folder)


def test_a_filename_without_an_image_means_the_xml_files_image(tmp_path) -> None:
    folder = voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    file.write_text(_renamed(file.read_text(), "IMG_0001.JPG"))
    samples = read(folder)
    assert "one.jpg" in images(samples)
    assert counts(samples, Fate.NOTED) == {
        "images called like their XML file, not as <filename> says": 1
    }


@pytest.mark.parametrize(
    ("text", "ignored"), [("1", 1), ("true", 1), (" True ", 1), ("0", 0), ("false", 0), ("", 0)]
)
def test_difficult_in_all_spellings(tmp_path, text: str, ignored: int) -> None:
    folder = voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    changed = file.read_text().replace("<difficult>0<", f"<difficult>{text}<", 1)
    file.write_text(changed)
    assert read(folder).counts.ignored == ignored
    file.write_text(changed.replace(f"<difficult>{text}<", "<difficult>perhaps<", 1))
    with pytest.raises(AnnotationError, match="'perhaps' should be 0 or 1"):
        read(folder)


def test_elements_that_no_reader_knows_are_named(tmp_path) -> None:
    folder = voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    text = file.read_text().replace("<object>", "<object><part>x</part><mood>1</mood>", 1)
    file.write_text(text.replace("</annotation>", "<weather>rain</weather></annotation>"))
    (folder / "Annotations" / "log.txt").write_text("")
    assert counts(read(folder), Fate.NOT_READ) == {
        "XML files: weather": 1,
        "objects: part": 1,
        "objects: mood": 1,
        "files .txt among XML files": 1,
    }


def test_files_that_count_from_1_are_noticed(tmp_path) -> None:
    folder = voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    text = file.read_text()
    one = text.replace("<xmin>0.0<", "<xmin>1<").replace("<ymin>0.0<", "<ymin>1<")
    assert counts(read(folder), Fate.NOTED) == {}
    file.write_text(one)
    noted = read(folder)
    assert [what for what in counts(noted, Fate.NOTED) if "--voc-from 1" in what]
    samples = read_from_1(folder)
    boxes = {box.corners for query in samples.queries for box in query.boxes}
    assert (0.0, 0.0, 12.0, 30.0) in boxes
    assert counts(samples, Fate.NOTED) == {}


def read_from_1(folder: Path) -> Samples:
    layout = recognise(folder, None)
    return layout.format.read(layout.path, layout.images, ReaderOptions(first_pixel=1))


def test_a_box_of_another_shape_is_listed_as_bad(tmp_path) -> None:
    folder = voc(tmp_path / "voc")
    file = folder / "Annotations" / "one.xml"
    text = file.read_text()
    begin = text.index("<bndbox>")
    end = text.index("</bndbox>") + len("</bndbox>")
    file.write_text(text[:begin] + "<robndbox><cx>1</cx></robndbox>" + text[end:])
    assert {thing.why for thing in read(folder).boxless} == {
        "no <bndbox> with xmin, ymin, xmax and ymax, but <robndbox>, which is not read"
    }


# --- COCO, and what is not clear ------------------------------------------------------------------


@pytest.mark.sees("data import --split")
def test_a_file_for_each_split_of_coco(tmp_path) -> None:
    folder = tmp_path / "set"
    for split in ("train", "valid"):
        custom_data.make_images(folder / split)
        custom_data.write_coco(folder / split).rename(folder / split / "_annotations.coco.json")
    layout = recognise(folder, None)
    assert (layout.path.parent.name, layout.images.name) == ("valid", "valid")
    cvat = tmp_path / "cvat"
    custom_data.make_images(cvat / "images" / "default")
    (cvat / "annotations").mkdir()
    custom_data.write_coco(cvat).rename(cvat / "annotations" / "instances_default.json")
    assert recognise(cvat, None).images == cvat / "images" / "default"
    assert main(["data", "import", str(folder), "--name", "Mine", "--split", "train"]) == 0
    assert len(read_table(find_table("Mine"))) == 4


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ((), "no annotations that can be read"),
        (("a.json", "b.json"), "which file is meant? There are a.json, b.json"),
        (("labels/a.txt", "Annotations/a.xml"), "has labels/ (YOLO) and Annotations/ (VOC)"),
        (("notes.odt",), "There is notes.odt"),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path, names: tuple[str, ...], why: str) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    with pytest.raises(AnnotationError) as error:
        recognise(folder, None)
    assert why in str(error.value)


def test_one_of_two_formats_may_be_named(tmp_path) -> None:
    folder = yolo_set(tmp_path / "set")
    (folder / "Annotations").mkdir()
    assert recognise(folder / "labels", None).format.name == "YOLO"
    assert recognise(folder / "Annotations", None).format.name == "VOC"
