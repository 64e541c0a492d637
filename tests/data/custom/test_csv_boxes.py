"""Listings as tools name their columns: what is read, what counts, what is named as not read."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from vlmeval_findit.data import (
    CROWD,
    DIFFICULT,
    IGNORED,
    AnnotationError,
    BoxForm,
    ClassRules,
    Fate,
    ReaderOptions,
    Samples,
    Units,
    read_csv,
)

HEAD = "image,label,x1,y1,x2,y2"


def read(folder: Path, *lines: str, options: ReaderOptions | None = None) -> Samples:
    path = folder / "boxes.csv"
    path.write_text("\n".join(lines) + "\n")
    for name in ("a.jpg", "b.png"):
        (folder / name).write_bytes(b"")
    return read_csv(path, folder, options)


def boxes(samples: Samples) -> list[tuple[str, str, tuple[float, ...], str]]:
    return [
        (query.images[0], str(query.label), box.corners, box.ignored)
        for query in samples.queries
        for box in query.boxes
        if isinstance(query.label, str)
    ]


def entries(samples: Samples, fate: Fate) -> dict[str, int]:
    return {entry.what: entry.count for entry in samples.ledger if entry.fate is fate}


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (HEAD, "a.jpg,cat,1,2,30,40"),
        ("filename,width,height,class,xmin,ymin,xmax,ymax", "a.jpg,120,80,cat,1,2,30,40"),
        ("ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax", "a,x,cat,1,1,30,2,40"),
        ("y2,x2,y1,x1,Label,File_Name", "40,30,2,1,cat,a.jpg"),
        ("image_path,category,left,top,right,bottom", "old/a.jpg,cat,1,2,30,40"),
        ("image,label,x,y,width,height", "a.jpg,cat,1,2,29,38"),
        ("image,label,xmin,ymin,w,h,width,height", "a.jpg,cat,1,2,29,38,120,80"),
        ("image,label,x_center,y_center,box_w,box_h", "a.jpg,cat,15.5,21,29,38"),
        (
            "label_name,bbox_x,bbox_y,bbox_width,bbox_height,image_name,image_width,image_height",
            "cat,1,2,29,38,a.jpg,120,80",
        ),
        ("\ufeffimage;label;x1;y1;x2;y2", "a.jpg;cat;1,0;2;30,00;40.0"),
        ("image;label;x1;y1;x2;y2", "a.jpg;a, b;1;2;30;40"),
        ("sep=;\nimage;label;x1;y1;x2;y2", "a.jpg;cat;1;2;30;40"),
        ("image\tlabel\tx1\ty1\tx2\ty2", "a.jpg\tcat\t1\t2\t30\t40"),
        # Without a header
        ("a.jpg,1,2,30,40,cat", "b.png,,,,,"),
        ("b.png,,,,,", "a.jpg,1,2,30,40,cat"),
        ("a.jpg,cat,1,2,30,40", ",,,,,"),
        ("a.jpg;cat;1,0;2,0;30,0;40,0", ""),
        ("cat,1,2,29,38,a.jpg,120,80", ""),
        # As spreadsheets and pandas leave them
        (HEAD, "a.jpg,cat,1,2,30,40\n,,,,,\n , ,,,,"),
        (HEAD, "a.jpg,cat,1,2,30,40\nb.png,nan,NaN,nan,nan,nan\nb.png,NULL,NULL,,,None"),
    ],
)
def test_columns_as_tools_name_them(tmp_path, header: str, line: str) -> None:
    label = "a, b" if "a, b" in line else "cat"
    assert boxes(read(tmp_path, header, line)) == [("a.jpg", label, (1, 2, 30, 40), "")]


@pytest.mark.parametrize(
    ("column", "why"),
    [("iscrowd", CROWD), ("IsGroupOf", CROWD), ("difficult", DIFFICULT), ("ignore", IGNORED)],
)
def test_columns_that_say_what_does_not_count(tmp_path, column: str, why: str) -> None:
    lines = ["a.jpg,cat,1,2,30,40,0", "a.jpg,cat,5,2,30,40,1", "a.jpg,cat,6,2,30,40,True"]
    samples = read(tmp_path, f"{HEAD},{column}", *lines)
    assert [row[3] for row in boxes(samples)] == ["", why, why]
    with pytest.raises(AnnotationError, match="'perhaps' should be 0 or 1"):
        read(tmp_path, f"{HEAD},{column}", "a.jpg,cat,1,2,30,40,perhaps")


def test_columns_that_no_reader_knows_are_named(tmp_path) -> None:
    samples = read(tmp_path, f"{HEAD},score,Source", "a.jpg,cat,1,2,30,40,0.5,x")
    assert entries(samples, Fate.NOT_READ) == {"columns: score": 1}
    assert entries(samples, Fate.NOT_NEEDED) == {"columns: Source": 1}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (f"{HEAD},x1", "duplicate column 'x1' (columns 3 and 7): remove one"),
        ("filename,path,label,x1,y1,x2,y2", "both filename and path may be the image"),
        ("a.jpg,7,1,2,30,40", "put a line like image,label,x1,y1,x2,y2 on top"),
        ("image,label,x1,y1,x2", "missing: y2 (commas separate them)"),
        ("image;label;x;y;breite;h\u00f6he", "missing: x1, y1, x2, y2 (semicolons separate them)"),
        ("image,label,x,y,w", "missing: x1, y1, x2, y2"),
    ],
)
def test_a_header_that_is_not_clear_is_refused(tmp_path, header: str, why: str) -> None:
    with pytest.raises(AnnotationError) as error:
        read(tmp_path, header, header.replace("a.jpg", "b.png"))
    assert why in str(error.value)


def test_a_line_with_an_image_only_shows_no_object(tmp_path) -> None:
    samples = read(tmp_path, HEAD, "a.jpg,cat,1,2,30,40", "b.png,,,,,")
    asked = [(query.images[0], query.label, len(query.boxes)) for query in samples.queries[:2]]
    assert asked == [("a.jpg", "cat", 1), ("b.png", "cat", 0)]
    for label in ("", "nan"):
        with pytest.raises(AnnotationError, match="line 2, column label: is empty"):
            read(tmp_path, HEAD, f"a.jpg,{label},1,2,30,40")
    assert boxes(read(tmp_path, HEAD, "a.jpg,None,1,2,30,40"))[0][1] == "None"
    with pytest.raises(AnnotationError, match="line 2, column x1: '' is not a number"):
        read(tmp_path, HEAD, "a.jpg,cat,,3,4,5")


@pytest.mark.parametrize("empty", ["", "nan", "NULL"])
def test_an_object_without_numbers_has_no_box(tmp_path, empty: str) -> None:
    line = ",".join(["a.jpg", "dog", *[empty] * 4])
    samples = read(tmp_path, HEAD, "a.jpg,cat,1,2,30,40", line)
    (thing,) = samples.boxless
    assert (thing.image, thing.label, thing.why) == ("a.jpg", "dog", "has no numbers")
    assert [row[1] for row in boxes(samples)] == ["cat"]


def test_unclear_numbers_of_csv_are_asked_about(tmp_path) -> None:
    with pytest.raises(AnnotationError, match=r"line 2: is 1,234 1234 or 1\.234"):
        read(tmp_path, HEAD.replace(",", ";"), "a.jpg;cat;10;20;1,234;5,678")
    sides = "image,label,x,y,width,height"
    lines = ["a.jpg,cat,1,2,640,480", "a.jpg,cat,9,2,640,480", "b.png,cat,9,2,64,48"]
    with pytest.raises(AnnotationError, match="are width and height those of the boxes"):
        read(tmp_path, sides, *lines)
    # Without names of columns, numbers may have another form; with them they may not.
    bare = "a.jpg,cat,10,20,30,40"
    samples = read(tmp_path, bare)
    assert samples.form is BoxForm.CORNERS
    assert "files without a header, read as image,label,x1,y1,x2,y2" in entries(samples, Fate.NOTED)
    stated = ReaderOptions(form=BoxForm.SIDES)
    samples = read(tmp_path, bare, options=stated)
    assert (boxes(samples)[0][2], samples.form) == ((10, 20, 40, 60), None)
    with pytest.raises(AnnotationError, match="columns say what the numbers are"):
        read(tmp_path, HEAD, bare, options=stated)


def test_a_column_of_splits_is_chosen_from(tmp_path) -> None:
    lines = ["a.jpg,cat,1,2,30,40,train", "b.png,cat,1,2,30,40,val"]
    samples = read(tmp_path, f"{HEAD},split", *lines)
    assert {row[0] for row in boxes(samples)} == {"b.png"}
    assert entries(samples, Fate.LEFT_OUT) == {"lines of the split train": 1}
    train = ReaderOptions(split="train")
    assert {row[0] for row in boxes(read(tmp_path, f"{HEAD},split", *lines, options=train))} == {
        "a.jpg"
    }
    with pytest.raises(AnnotationError, match="no splits here"):
        read(tmp_path, HEAD, "a.jpg,cat,1,2,30,40", options=train)


def test_units_are_as_the_user_says(tmp_path) -> None:
    stated = ReaderOptions(units=Units.PERCENT)
    samples = read(tmp_path, HEAD, "a.jpg,cat,1,2,30,40", options=stated)
    assert (samples.units, samples.units_stated) == (Units.PERCENT, True)


def with_sizes(folder: Path, *lines: str, options: ReaderOptions | None = None) -> Samples:
    """Read a listing whose image a.jpg has 120x80 pixels."""
    Image.new("RGB", (120, 80)).save(folder / "a.jpg")
    path = folder / "boxes.csv"
    path.write_text("\n".join(lines) + "\n")
    return read_csv(path, folder, options)


@pytest.mark.parametrize(
    ("cells", "corners"),
    [
        (['"[60, 50, 30, 20]"', '"[1, 2, 10, 10]"'], (60, 50, 90, 70)),
        (["60 50 30 20", "(1 2 10 10)"], (60, 50, 90, 70)),
        (['"[60, 50, 110, 70]"', '"(1.0, 2.0, 10, 10)"'], (60, 50, 110, 70)),
        (["0.5 0.5 0.25 0.25", "0.1 0.1 0.2 0.2"], (0.5, 0.5, 0.75, 0.75)),
    ],
)
@pytest.mark.parametrize("name", ["bbox", "Bounding_Box", "box"])
def test_a_box_in_one_column(
    tmp_path, name: str, cells: list[str], corners: tuple[float, ...]
) -> None:
    lines = [f"a.jpg,cat,{cell}" for cell in cells]
    assert boxes(with_sizes(tmp_path, f"file,label,{name}", *lines))[0][2] == corners


def test_boxes_in_one_column_that_may_be_either(tmp_path) -> None:
    lines = ["file,label,bbox", 'a.jpg,cat,"[10, 10, 30, 30]"']
    with pytest.raises(AnnotationError, match="Type --box corners or --box sides"):
        with_sizes(tmp_path, *lines)
    for form, corners in ((BoxForm.CORNERS, (10, 10, 30, 30)), (BoxForm.SIDES, (10, 10, 40, 40))):
        samples = with_sizes(tmp_path, *lines, options=ReaderOptions(form=form))
        assert boxes(samples)[0][2] == corners
    with pytest.raises(AnnotationError, match=r"line 2, column bbox: .* should be four numbers"):
        with_sizes(tmp_path, lines[0], 'a.jpg,cat,"[10, 10, 30]"')
    with pytest.raises(AnnotationError, match="Add a column label"):
        with_sizes(tmp_path, "file,bbox", 'a.jpg,"[10, 10, 30, 30]"')


@pytest.mark.parametrize(
    "header",
    [
        "img,cls,bbox_x1,bbox_y1,bbox_x2,bbox_y2",
        "Image File,object_name,Box Left,Box Top,Box Right,Box Bottom",
        "img_path,obj_class,object_xmin,object_ymin,object_xmax,object_ymax",
        "file_path,object_label,x_min,y_min,x_max,y_max",
        "filename,category_name,min_x,min_y,max_x,max_y",
    ],
)
def test_columns_are_known_with_what_they_are_about(tmp_path, header: str) -> None:
    samples = read(tmp_path, header, "a.jpg,cat,1,2,30,40")
    assert boxes(samples) == [("a.jpg", "cat", (1, 2, 30, 40), "")]


@pytest.mark.parametrize("column", ["class_id", "category_id", "Label ID", "class_idx"])
def test_numbers_of_classes_need_names(tmp_path, column: str) -> None:
    lines = [f"image,{column},x1,y1,x2,y2", "a.jpg,7,1,2,30,40"]
    with pytest.raises(AnnotationError, match=f"line 2, column {column}: .* --rename-class 7=NAME"):
        read(tmp_path, *lines)
    named = ReaderOptions(classes=ClassRules(rename={"7": "cat"}))
    assert boxes(read(tmp_path, *lines, options=named))[0][1] == "cat"
    beside = read(tmp_path, f"{lines[0]},label", f"{lines[1]},dog")
    assert boxes(beside)[0][1] == "dog"


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        (["a.jpg,20,80,10,60,cat", "a.jpg,5,9,1,2,cat"], "image,x1,x2,y1,y2,label"),
        (["a.jpg,cat,20,80,10,60", "b.png,cat,5,9,1,2"], "image,label,x1,x2,y1,y2"),
    ],
)
def test_another_order_without_a_header_is_said(tmp_path, lines: list[str], header: str) -> None:
    with pytest.raises(AnnotationError) as error:
        read(tmp_path, *lines)
    assert header.replace("x2,y1", "y1,x2") in str(error.value)
    assert header in str(error.value)
    assert boxes(read(tmp_path, header, *lines))[0][2] == (20, 10, 80, 60)
