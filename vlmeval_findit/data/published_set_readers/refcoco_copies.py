"""RefCOCO, RefCOCO+ and RefCOCOg whole: every expression of a published split, of any copy.

Published figures are of UNC's splits (RefCOCOg: UMD's), an expression a query.  The counts of
expressions and images are those of the catalogue of TensorFlow Datasets (``ref_coco``) and of the
hub's viewer of jxu124/refcoco-benchmark.  UNC and UMD divide images, Google divides objects.

What people have, established from cards and from programs that read it:

* Qwen-VL's lines, which InternVL's README links: ``refcoco+_testA.jsonl``, an expression a line,
  ``bbox`` as corners in pixels;
* the authors' ``refs(unc).p`` (a pickle of Python 2) with COCO's ``instances.json``;
* jxu124/refcoco of the hub: an object a row, ``bbox`` as corners; testA is called ``test``;
* jxu124/refcoco-benchmark: an image a row, with providers apart;
* lmms-lab/RefCOCO (RefCOCOplus, RefCOCOg): an object a row, ``answer`` has its expressions,
  ``bbox`` is [x, y, width, height].  ``val`` has 8,811 objects (RefCOCOg: 7,573): those of UNC's
  val and 5,000 more, which is the size of Google's (lmms-eval#1066).  ``test`` is no split of UNC;
* Kangheng/refcoco (refcocop, refcocog): an expression a row, ``question``, with its image; ``bbox``
  is a text of JSON, corners in pixels;
* VLM-R1's ``refcocop_testA.json``: a list of expressions, ``normal_caption``, with corners in
  pixels as ``solution``;
* VLMEvalKit's ``RefCOCO.tsv``: all splits, the question has InternVL's prompt around the
  expression, the answer is in fractions, and expressions can have lost a blank (VLMEvalKit#1330).
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ...benchmarks.findit import Family
from ...boxes import Corners
from ...core import Count, Text, error_line, read_bytes
from ...storage import Size, TableError, named_image, parquet_rows, tsv_rows
from ..annotated_samples import (
    AnnotatedBox,
    AnnotationError,
    BoxForm,
    PackedImages,
    Sample,
    Samples,
    Units,
    expression_samples,
)
from ..custom.annotation_values import (
    CornersOfJson,
    ObjectOfJson,
    SidesOfJson,
    json_of,
    published_text_of,
    state_size,
    validated,
)
from ..custom.class_rules import label_text
from ..custom.jsonl import lines_of
from ..custom.node import Node
from ..custom.parquet_images import ParquetImages, parquet_images
from ..ledger import Ledger
from ..sources import PublishedPart

SPLITS = {
    "refcoco": ("val", "testA", "testB"),
    "refcoco+": ("val", "testA", "testB"),
    "refcocog": ("val", "test"),
}
SET_NAMES = {"refcoco": "RefCOCOFull", "refcoco+": "RefCOCOplusFull", "refcocog": "RefCOCOgFull"}


@dataclass(frozen=True, slots=True)
class Split:
    """A split that figures are published of, in a folder of the user's."""

    folder: Path
    stem: str  # refcoco, refcoco+ or refcocog: the set, as files are called
    name: str

    @property
    def provider(self) -> str:
        """Whose split of the set it is."""
        return "umd" if self.stem == "refcocog" else "unc"

    def first(self, *patterns: str) -> list[Path]:
        """Return the first file that is there; names are those of the set and the split."""
        names = {"stem": self.stem, "split": self.name, "provider": self.provider}
        names["plain"] = self.stem.replace("+", "p")
        places = (self.folder / pattern.format(**names) for pattern in patterns)
        return [place for place in places if place.is_file()][:1]

    def parquet(self, name: str, column: str) -> list[Path]:
        """Return the Parquet files of a name that have a column."""
        import pyarrow
        import pyarrow.parquet as pq

        try:
            files = parquet_images(self.folder, name).files
            return list(files) if column in pq.read_schema(files[0]).names else []
        except AnnotationError:
            return []
        except (pyarrow.ArrowException, OSError) as error:
            raise AnnotationError(f"{self.folder}: {name}: not a Parquet file: {error}") from None


Rows = Iterator[tuple[str, Any]]  # The place of each, and the row


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy as people have it. Paths lead to values in a row (``a.b``; lists are walked)."""

    name: str
    differs: str  # From the authors' annotations
    files: Callable[[Split], Sequence[Path]]  # That it has of a split; empty: it has none
    rows: Callable[[Split, Sequence[Path]], Rows]
    words: str
    box: str
    image: str = ""  # "": images have no names, ours are made of their content
    form: BoxForm = BoxForm.CORNERS  # Of the box
    each: str = ""  # A list of objects in every row
    size: tuple[str, ...] = ()  # Width and height
    units: Units = Units.PIXELS
    packed: Callable[[Split, Sequence[Path]], PackedImages] | None = None  # None: COCO's folder


def _walk(node: Node, path: str) -> Iterator[Node]:
    """Yield what stands at a path; the entries of a list on its way one after the other."""
    if isinstance(node.value, list):
        for entry in node.elements():
            yield from _walk(entry, path)
    elif not path:
        yield node
    else:
        key, _, rest = path.partition(".")
        if key not in node.keys:
            raise node.error(f"{key} is missing")
        yield from _walk(node.at(key), rest)


def _box_of(copy: Copy, thing: Node) -> Corners:
    *way, last = copy.box.split(".")
    for key in way:
        thing = thing.at(key)
    stated = thing.at(last)
    value = json_of(stated.value, str(stated)) if isinstance(stated.value, str) else stated.value
    kind = CornersOfJson if copy.form is BoxForm.CORNERS else SidesOfJson
    return copy.form.corners(validated(kind, value, stated))


def _image_name(copy: Copy, row: Node) -> str:
    """Return the name of the image of COCO train2014 that a path or the name of an object has."""
    if not copy.image:
        return _content_of(row)[0]
    stated: str = next(_walk(row, copy.image)).read(Text)
    match = re.search(r"COCO_train2014_\d{12}", stated)
    if match is None:
        raise row.error(f"{stated!r} names no image of COCO train2014")
    return f"{match[0]}.jpg"


def _content_of(row: Node) -> tuple[str, bytes]:
    """Return the name of an image without one, made of its content, and its bytes."""
    stated = row.at("image")
    cell = stated.value
    try:
        return named_image(cell["bytes"] if isinstance(cell, dict) else cell)
    except (TypeError, KeyError, ValueError) as error:
        raise stated.error(str(error)) from None


def read(copy: Copy, split: Split, others: Sequence[Copy]) -> Samples:
    """Return a query an expression; expressions of an object share its box."""
    files = copy.files(split)
    images = copy.packed(split, files) if copy.packed else needed_train2014(split.folder)
    ledger = Ledger()
    wanted = _wanted(copy, split, ledger)
    queries: list[Sample] = []
    names: list[str] = []
    sizes: dict[str, Size] = {}
    places: dict[tuple[str, Corners], str] = {}
    for in_file, value in copy.rows(split, files):
        row = Node(value, in_file, ledger)
        image = _image_name(copy, row)
        size = [side.read(Count) for path in copy.size for side in _walk(row, path)]
        if size:
            state_size(sizes, image, (size[0], size[1]), in_file)
        names.append(image)
        for thing in row.each(copy.each) if copy.each else [row]:
            corners = _box_of(copy, thing)
            texts = [each.read(Text) for each in _walk(thing, copy.words)]
            where = str(thing)
            if not wanted(image, corners, tuple(texts), where):
                names[-1] = ""
                continue
            box = AnnotatedBox(corners, places.setdefault((image, corners), f"{where}, bbox"))
            for words in map(label_text, texts):
                if words:
                    queries.append(Sample((image,), words, (box,), where))
                else:
                    ledger.leave_out("expressions without words", where)
    if not queries:
        raise AnnotationError(f"{files[0]}: no row is of {split.stem} {split.name}")
    if isinstance(images, ParquetImages):
        images = replace(images, names=tuple(names), repeated=True)
    ledger.note(f"this copy is {copy.name}: {copy.differs}", str(files[0]))
    for other in others:
        place = str(other.files(split)[0])
        ledger.not_read(f"another copy of the split: {other.name}", place)
    ledger.read("expressions", len(queries))
    ledger.read("objects", len(places))
    samples = expression_samples(files[0], images, Family.REFEXP, queries, sizes)
    return replace(samples, units=copy.units, units_stated=True, ledger=ledger)


# --- plain pickles --------------------------------------------------------------------------------


class _PlainUnpickler(pickle.Unpickler):
    """Refuses everything that a pickle names: functions, classes, and objects stored elsewhere."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for the object {pid!r} of another file")


def read_plain_pickle(path: Path) -> Any:
    """Return the plain values of a pickle, also of Python 2, whose texts are UTF-8 or Latin-1.

    Raises:
        AnnotationError: it holds anything else, or is damaged.
        OSError: it cannot be opened.
    """
    data = read_bytes(path)
    try:
        try:
            return _PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
        except UnicodeDecodeError:
            return _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()
    except Exception as error:  # A damaged pickle can raise any
        raise AnnotationError(
            f"{path}: not a pickle of lists, texts and numbers, so nothing of it is used: "
            + error_line(error)
        ) from None


# --- rows of files --------------------------------------------------------------------------------


def _lines(split: Split, files: Sequence[Path]) -> Rows:
    return lines_of(files[0], published_text_of(files[0]))


def _list(split: Split, files: Sequence[Path]) -> Rows:
    (path,) = files
    rows = json_of(published_text_of(path), str(path))
    for at, row in enumerate(validated(list[Any], rows, str(path))):
        yield f"{path}[{at}]", row


def _parquet(split: Split, files: Sequence[Path], *columns: str) -> Rows:
    for path in files:
        yield from parquet_rows(path, error=AnnotationError)


def _refs(split: Split, path: Path) -> Rows:
    for at, ref in enumerate(validated(list[ObjectOfJson], read_plain_pickle(path), str(path))):
        if ref.get("split") == split.name:
            yield f"{path}[{at}]", ref


def _joined_refs(split: Split, files: Sequence[Path]) -> Rows:
    """Yield the authors' objects, each with its box and image of COCO's instances.json."""
    refs, instances = files
    values = json_of(published_text_of(instances), str(instances))
    coco = validated(ObjectOfJson, values, str(instances))
    root = Node(coco, str(instances), Ledger())
    images = {each.get("id", int): each.value for each in root.each("images")}
    things = {each.get("id", int): each.value for each in root.each("annotations")}
    for where, ref in _refs(split, refs):
        thing = things.get(ref.get("ann_id"))
        if thing is None or thing.get("image_id") not in images:
            raise AnnotationError(
                f"{where}: {instances} has no object {ref.get('ann_id')} with its image"
            )
        yield where, {**ref, "bbox": thing.get("bbox"), "of": images[thing["image_id"]]}


def _refs_and_instances(split: Split) -> Sequence[Path]:
    refs = split.first("{stem}/refs({provider}).p", "refs({provider}).p")
    instances = [path.parent / "instances.json" for path in refs]
    return [*refs, *instances] if all(path.is_file() for path in instances) else []


def _rows_of_table(split: Split, files: Sequence[Path]) -> Rows:
    wanted = f"{split.stem}{split.name}".lower()
    try:
        for where, cells in tsv_rows(files[0], ("image", "question", "answer", "category")):
            if re.sub(r"[\s_-]", "", cells["category"]).lower() == wanted:
                asked = re.search(r"<ref>(.*)</ref>", cells["question"], re.DOTALL)
                if asked is None:
                    raise AnnotationError(
                        f"{where}, question: no expression between <ref> and </ref>"
                    )
                yield where, {**cells, "question": asked[1]}
    except TableError as error:
        raise AnnotationError(f"{error} (expected is VLMEvalKit's RefCOCO.tsv)") from None


@dataclass(frozen=True, slots=True)
class TableImages:
    """Images in base64 in a table; a name is made of the content."""

    split: Split
    files: Sequence[Path]
    missing: tuple[str, ...] = ()

    def unpack(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for where, cells in _rows_of_table(self.split, self.files):
            name, data = _content_of(Node(cells, where, Ledger()))
            if not (folder / name).exists():
                (folder / name).write_bytes(data)


# --- the copies -----------------------------------------------------------------------------------


def _packed(name: Callable[[Split], str]) -> Callable[[Split, Sequence[Path]], PackedImages]:
    return lambda split, files: parquet_images(split.folder, name(split))


def _of_hub(split: Split) -> str:
    return split.name


def _of_image_rows(split: Split) -> str:
    return f"{split.stem.replace('+', '_plus')}_{split.provider}_{split.name}"


_RENAMED = {"val": "validation", "testA": "test"}

LINES = Copy(
    "Qwen-VL's JSON lines",
    "an expression a line, as the authors have them",
    lambda split: split.first(
        "{stem}_{split}.jsonl", "refcoco/{stem}_{split}.jsonl", "{stem}/{stem}_{split}.jsonl"
    ),
    _lines,
    "sent",
    "bbox",
    "image",
    size=("width", "height"),
)
LMMS_LAB = Copy(
    "lmms-lab's of the hub",
    "an object a row; its val holds 5,000 objects more, its test is none of UNC's",
    lambda split: split.parquet(split.name, "answer"),
    _parquet,
    "answer",
    "bbox",
    "file_name",
    BoxForm.SIDES,
    packed=_packed(_of_hub),
)
COPIES = (
    LINES,
    Copy(
        "the authors' refs(…).p with instances.json",
        "nothing differs, these are the annotations",
        _refs_and_instances,
        _joined_refs,
        "sentences.sent",
        "bbox",
        "of.file_name",
        BoxForm.SIDES,
        size=("of.width", "of.height"),
    ),
    Copy(
        "VLM-R1's lists",
        "an expression an entry, with a prompt, which is not asked",
        lambda split: split.first(
            "{plain}_{split}.json", "rec_jsons_processed/{plain}_{split}.json"
        ),
        _list,
        "normal_caption",
        "solution",
        "image",
    ),
    Copy(
        "jxu124/refcoco of the hub",
        "an object a row; testA is called test",
        lambda split: split.parquet(_RENAMED.get(split.name, split.name), "raw_image_info"),
        _parquet,
        "sentences.sent",
        "bbox",
        "image_path",
    ),
    Copy(
        "jxu124/refcoco-benchmark of the hub",
        "an image a row, the splits of others are apart",
        lambda split: split.parquet(_of_image_rows(split), "ref_list"),
        _parquet,
        "ref_info.sentences.sent",
        "ann_info.bbox",
        "image_info.file_name",
        BoxForm.SIDES,
        each="ref_list",
        size=("image_info.width", "image_info.height"),
        packed=_packed(_of_image_rows),
    ),
    Copy(
        "Kangheng's of the hub",
        "an expression a row; images have no names, ours are made of their content",
        lambda split: split.parquet(split.name, "image_size"),
        _parquet,
        "question",
        "bbox",
        size=("image_size",),
        packed=_packed(_of_hub),
    ),
    LMMS_LAB,
    Copy(
        "VLMEvalKit's RefCOCO.tsv",
        "boxes are rounded fractions, and an expression can have lost a blank (VLMEvalKit#1330)",
        lambda split: split.first("RefCOCO.tsv"),
        _rows_of_table,
        "question",
        "answer",
        units=Units.FRACTIONS,
        packed=TableImages,
    ),
)


# --- the copy whose val is of two splits ----------------------------------------------------------

Wanted = Callable[[str, Corners, tuple[str, ...], str], bool]


def _wanted(copy: Copy, split: Split, ledger: Ledger) -> Wanted:
    """Return what tells the objects of a split; all are wanted but in lmms-lab's val."""
    is_uncs = copy is LMMS_LAB and split.stem != "refcocog"
    if is_uncs and replace(split, name="test").parquet("test", "answer"):
        ledger.not_read("the split test, which is none of UNC's", str(split.folder))
    if copy is not LMMS_LAB or split.name != "val":
        return lambda *thing: True
    published = _published_images(split)
    seen: set[object] = set()

    def wanted(image: str, corners: Corners, texts: tuple[str, ...], where: str) -> bool:
        same = (image, corners, texts)
        if image not in published:
            ledger.leave_out("objects in images that are not of the published val", where)
        elif same in seen:
            ledger.leave_out("objects that another row has", where)
        else:
            seen.add(same)
            return True
        return False

    return wanted


def _published_images(split: Split) -> set[str]:
    """Return the images of a split by the annotations next to a copy that mixes two splits."""
    lines = LINES.files(split)
    refs = split.first("{stem}/refs({provider}).p", "refs({provider}).p")
    if lines:
        there = lines_of(lines[0], published_text_of(lines[0]))
        rows = (Node(value, where, Ledger()) for where, value in there)
        return {_image_name(LINES, row) for row in rows}
    if refs:
        rows = (Node(ref, where, Ledger()) for where, ref in _refs(split, refs[0]))
        return {f"COCO_train2014_{row.get('image_id', int):012}.jpg" for row in rows}
    rest = ",".join(name for name in SPLITS[split.stem] if name != "val")
    raise AnnotationError(
        f"{split.folder}: val of this copy (lmms-lab's) holds {split.provider.upper()}'s val and "
        "5,000 objects more, and nothing in it tells which. Put the authors' "
        f"refs({split.provider}).p or {split.stem}_val.jsonl next to it: then only the images that "
        f"it names are taken. Without: data import {split.folder} --set {SET_NAMES[split.stem]} "
        f"--only {rest}"
    )


# --- a folder -------------------------------------------------------------------------------------

_TRAIN2014 = ("train2014", "images/train2014", "coco/train2014", "images/mscoco/images/train2014")


def train2014(folder: Path) -> Path | None:
    """Return the folder of COCO's images below one of annotations; None if it is not there."""
    return next((folder / place for place in _TRAIN2014 if (folder / place).is_dir()), None)


def needed_train2014(folder: Path) -> Path:
    """Return the folder of COCO's images, or raise an AnnotationError that says where to put it."""
    images = train2014(folder)
    if images is None:
        raise AnnotationError(
            f"{folder / 'train2014'} is missing: the images of COCO train2014, which this copy has "
            f"not. Where they lie elsewhere: ln -s /path/to/train2014 {folder / 'train2014'}"
        )
    return images


def find_refcoco(folder: Path, stem: str) -> Sequence[PublishedPart]:
    """Return the splits of a set (refcoco, refcoco+, refcocog) that a folder has in any copy.

    Raises:
        AnnotationError: it has none.
    """
    parts = []
    for name in SPLITS[stem]:
        split = Split(folder, stem, name)
        there = [copy for copy in COPIES if copy.files(split)]
        ready = [copy for copy in there if copy.packed or train2014(folder)]
        if there:
            copy = (ready or there)[0]
            others = [other for other in there if other is not copy]
            parts.append(PublishedPart(name, partial(read, copy, split, others)))
    if not parts:
        raise AnnotationError(f"{folder}: no split of {stem} in any copy that is known")
    return parts
