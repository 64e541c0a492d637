"""Collect what files say of images and objects: one way for every format.

How a reader is written: it makes a :class:`Collector`, walks its format, and says of every image
:meth:`Collector.image` and of every object :meth:`Collector.add`; where an object has no box that
can be used, :meth:`Collector.add_boxless` with the reason; of a region where nothing counts
:meth:`Collector.add_region`.  :meth:`Collector.samples` makes the queries::

    def read_boards(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
        collector = Collector(path, images, options)
        for _, board in collector.json_elements(path):
            splits = board.rest("boards", {"file", "size", "things"})
            image = collector.image(board.get("file", Text), board, board.at("size").size, splits)
            for thing in board.each("things"):
                x, y, w, h = thing.get("bbox", SidesOfJson)
                flags = thing.flags("things", {"bbox", "name"})
                box = (x, y, x + w, y + h)
                collector.add(image, thing.get("name", Text), box, thing, flags)
        return collector.samples()

A row in ``annotation_formats.py`` makes it a format.  What is alike in all formats has one home,
which the collector asks, and no reader decides:

* the encoding of a text, elements and attributes that stand twice: ``text_encodings.py``;
* cells of several lines: ``csv_lines.py``;
* which file a stated name means, and two entries about one image: ``image_names.py``, here;
* the folder of the images, where it is not that of the annotations: ``image_folders.py``;
* the stated size of an image: :attr:`Node.size`, ``exif_pixels.py``;
* what numbers mean (pixels or fractions, corners or sides, turned): ``number_readings.py``;
* which split is read: ``splits.py``; keys of an image that name its split go to ``splits``;
* flags like ``iscrowd``: ``uncounted_objects.py``; what may be one goes to ``flags``;
* the text of a label, names of classes, and rules for them: ``class_rules.py``;
* the upright box of a shape: ``upright_boxes.py``;
* masks: ``polygons.py``, ``annotation_values.py``;
* what became of everything else: the ledger; :meth:`Node.rest` notes keys that are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from ...boxes import Corners
from ...core import suffix_of
from ...marks import PackedMask
from ...storage import Size
from ..annotated_samples import (
    REGION,
    AnnotatedBox,
    AnnotationError,
    BoxForm,
    BoxlessObject,
    Samples,
    Units,
)
from ..ledger import Ledger
from .annotation_values import IMAGE_SUFFIXES
from .class_rules import label_at
from .detection import Detections, detection_samples
from .found_files import files_below
from .image_names import ImageNames, PairedImages
from .node import Node, read_elements, read_json, read_lines
from .reader_options import ReaderOptions
from .splits import (
    chosen_split,
    key_of_splits,
    listed_splits,
    names_a_split,
    split_by_folders,
)
from .text_encodings import text_of, xml_of
from .uncounted_objects import why_ignored


@dataclass(frozen=True, slots=True)
class ListedFile:
    """An annotation file about one image, and its path without suffix below their folder."""

    path: Path
    stem: str


def listed_files(folder: Path, suffix: str, ledger: Ledger, kind: str) -> list[ListedFile]:
    """Return the files below a folder that have a suffix; the ledger notes those that are others.

    ``kind`` is what one is: "XML file".
    """
    files = []
    for path in files_below(folder, ledger):
        if suffix_of(path) == suffix:
            files.append(ListedFile(path, path.relative_to(folder).with_suffix("").as_posix()))
        elif suffix_of(path) not in IMAGE_SUFFIXES:
            ledger.not_read(f"files {path.suffix or 'without a suffix'} among {kind}s", str(path))
    return files


@dataclass(slots=True)
class _Entry:
    """What is stated of one image."""

    where: object
    size: Size | None = None
    splits: Mapping[str, str] = field(default_factory=dict)  # Keys that name its split


class Collector:
    """What was read so far of a file or folder, and what became of the rest."""

    def __init__(
        self,
        source: Path,
        images: Path,
        options: ReaderOptions | None,
        units: Units = Units.PIXELS,
        form: BoxForm | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """Begin with nothing; ``form`` is that of boxes whose numbers have no names."""
        self.options = options or ReaderOptions()
        self.ledger = Ledger() if ledger is None else ledger
        self.objects: list[tuple[str, AnnotatedBox]] = []  # After the name of its image
        self.images: dict[str, _Entry] = {}
        self._source = source
        self._folder = images
        self._units = units
        self.form = form
        self._names = ImageNames(images, self.ledger)
        self._paired: PairedImages | None = None
        self._boxless: list[BoxlessObject] = []
        self.split_is_chosen = False  # Whether all that is noted is of one split

    # --- texts ------------------------------------------------------------------------------------

    def lines(self, path: Path) -> Iterator[tuple[str, str]]:
        """Yield the lines of a text after their places, stripped, but for those that are empty."""
        for at, line in enumerate(text_of(path, self.options.encoding).splitlines(), 1):
            if line.strip():
                yield f"{path}, line {at}", line.strip()

    def json(self, path: Path) -> Node:
        """Return what a file of JSON holds."""
        return read_json(path, self.ledger, self.options.encoding)

    def json_elements(self, path: Path) -> Iterator[tuple[str, Node]]:
        """Yield the elements of a large file of JSON; see :func:`read_elements`."""
        return read_elements(path, self.ledger, self.options.encoding)

    def json_lines(self, path: Path) -> Iterator[Node]:
        """Yield the JSON of every line that is not empty."""
        return read_lines(path, self.ledger, self.options.encoding)

    def xml(self, path: Path) -> Element:
        """Return the outermost element of an XML file; see :func:`only_element` for those in it."""
        return xml_of(path, self.options.encoding)

    # --- images -----------------------------------------------------------------------------------

    def image(
        self,
        stated: str,
        where: object,
        size: Size | None = None,
        splits: Mapping[str, str] | None = None,
        *,
        again: bool = False,
    ) -> str:
        """Note an image, and return the name of its file.

        Args:
            stated: its name in the annotations.
            where: the file and the place in it.
            size: its (width, height) in pixels, if it is stated.
            splits: keys of the entry that name a split.
            again: whether a format has several entries about one image.

        Raises:
            AnnotationError: it is not clear which file is meant, another entry is about it, or its
                size is stated otherwise there.
        """
        name = self._names.find(stated, where)
        self._note_image(name, where, size, splits, again)
        return name

    def packed_image(
        self,
        name: str,
        where: object,
        size: Size | None = None,
        splits: Mapping[str, str] | None = None,
    ) -> str:
        """Note an image that is in no file of its own yet; see :meth:`image`."""
        self._note_image(name, where, size, splits, False)
        return name

    def image_of_file(
        self,
        file: ListedFile,
        stated: Sequence[str],
        key: str,
        kind: str,
        size: Size | None = None,
        splits: Mapping[str, str] | None = None,
    ) -> str:
        """Note the image of an annotation file, and return its name; see :meth:`image`.

        ``stated`` are the names at a key of the file of a kind; see :meth:`PairedImages.find`.
        """
        if self._paired is None:
            self._paired = PairedImages(self._folder, self._names, self.ledger)
        name = self._paired.find(file.stem, stated, file.path, key, kind)
        self._note_image(name, file.path, size, splits, False)
        return name

    def _note_image(
        self,
        name: str,
        where: object,
        size: Size | None,
        splits: Mapping[str, str] | None,
        again: bool,
    ) -> None:
        entry = self.images.get(name)
        if entry is None:
            entry = self.images[name] = _Entry(where)
        if entry.where is not where and not again:
            kind = "file" if isinstance(where, Path) else "entry"
            raise AnnotationError(
                f"{where}: another {kind} is about {name}, too: {entry.where}. Whose boxes are "
                "meant? Join both, or leave one out"
            )
        if size is not None:
            if entry.size not in (None, size):
                here, there = (f"{w}x{h}" for w, h in (size, entry.size or size))
                raise AnnotationError(f"{where}: {name} is {here} here, {there} before")
            entry.size = size
        if splits:
            entry.splits = {**entry.splits, **splits}
        self.options.progress("images", 1)

    # --- objects ----------------------------------------------------------------------------------

    def add(
        self,
        image: str,
        label: str,
        corners: Corners,
        where: object,
        flags: Mapping[str, Any] | None = None,
        mask: PackedMask | None = None,
    ) -> None:
        """Note an object: (x1, y1, x2, y2) in the units of the format.

        ``flags`` are values by key, of which :func:`why_ignored` takes those that it knows.
        """
        text = label_at(label, where)
        if not text:
            raise AnnotationError(f"{where}: no label")
        place = str(where)
        ignored = why_ignored(flags, place) if flags else ""
        self.objects.append((image, AnnotatedBox(corners, place, text, 0, ignored, mask)))

    def add_region(self, image: str, corners: Corners, where: object) -> None:
        """Note a region in which no answer counts, whatever it names."""
        self.objects.append((image, AnnotatedBox(corners, str(where), ignored=REGION)))

    def add_boxless(self, image: str, label: str, why: str, where: object) -> None:
        """Note an object without a box that can be used; ``why`` says so in a message."""
        text = label_at(label, where) or "without a label"
        self._boxless.append(BoxlessObject(image, text, why, str(where)))

    # --- splits -----------------------------------------------------------------------------------

    def files(self, path: Path, suffix: str, kind: str) -> list[ListedFile]:
        """Return an annotation file about an image, or those below a folder of the chosen split."""
        if path.is_file():
            return [ListedFile(path, path.stem)]
        return self.files_of_split(path, listed_files(path, suffix, self.ledger, kind), kind)

    def files_of_split(
        self, folder: Path, files: Sequence[ListedFile], kind: str
    ) -> list[ListedFile]:
        """Return the annotation files of the chosen split; all, where there are no splits.

        Lists of images say what the splits are, in the folder or above it, else folders.

        Args:
            folder: what the files lie in.
            files: one an image.
            kind: what one is: "XML file".
        """
        stems = [file.stem for file in files]
        above = [folder, folder.absolute().parent, folder.absolute().parent.parent]
        splits = listed_splits(above, stems, self.options.encoding)
        if not splits:
            for stem, split in split_by_folders(stems).items():
                splits.setdefault(split, set()).add(stem)
        if not splits:
            return list(files)
        self.split_is_chosen = True
        split = chosen_split(folder, splits, self._stated_split(folder))
        wanted = splits[split]
        for file in files:
            if file.stem not in wanted:
                self.ledger.leave_out(f"{kind}s not of the split {split}", str(file.path))
        for name in sorted(wanted - {*stems}):
            self.ledger.leave_out(f"images of the split {split} without an {kind}", name)
        chosen = [file for file in files if file.stem in wanted]
        if not chosen:
            raise AnnotationError(f"{folder}: no {kind} is of the split {split}")
        return chosen

    def places_of_split(self, splits: Sequence[str], places: Sequence[str], what: str) -> list[int]:
        """Return the places of the entries of the chosen split; all, where there are no splits.

        Args:
            splits: what a column or an attribute says, by entry; "" and "default" are none.
            places: the file and the place in it of each entry.
            what: the entries of a split in the plural, for the ledger.
        """
        there = list(dict.fromkeys(splits))
        if there in ([], [""], ["default"]):
            return [*range(len(splits))]
        self.split_is_chosen = True
        split = chosen_split(self._source, there, self._stated_split(self._source))
        for at, other in enumerate(splits):
            if other != split:
                self.ledger.leave_out(f"{what} {other}", places[at])
        return [at for at, other in enumerate(splits) if other == split]

    def _stated_split(self, place: Path) -> str | None:
        """Return the split that the user states, unless the path of the annotations is of it."""
        stated = self.options.split
        parts = (part.lower() for part in (*place.parts[-3:], place.stem))
        return None if stated is not None and stated.lower() in parts else stated

    def _drop_other_splits(self) -> None:
        """Leave out the images of other splits, as their keys or their folders say."""
        if self.split_is_chosen:
            return
        stated = self._stated_split(self._source)
        keys = dict.fromkeys(key for entry in self.images.values() for key in entry.splits)
        columns = {key: [entry.splits.get(key) for entry in self.images.values()] for key in keys}
        chosen = key_of_splits(columns)
        splits: dict[str, str] = {}
        if chosen is not None:
            splits = {name: entry.splits[chosen] for name, entry in self.images.items()}
        for entry in self.images.values():
            for other in entry.splits:
                if other == chosen:
                    continue
                self.ledger.not_read(f"images: {other}", str(entry.where))
        # The user named a file of one split: its images may lie anywhere.
        if not splits and not names_a_split(self._source.stem):
            splits = split_by_folders(self.images)
        if not splits:
            if stated is not None:
                raise AnnotationError(f"{self._source}: no splits here. Leave --split out")
            return
        there = dict.fromkeys(splits.values())
        split = chosen_split(self._source, list(there), stated)
        for name, of_image in splits.items():
            if of_image != split:
                what = f"images of the split {of_image}" if of_image else "images of no split"
                where = f"{self.images[name].where}: {name}"
                self.ledger.leave_out(what, where, unlike_file=True)
        kept = {name for name, of_image in splits.items() if of_image == split}
        self.images = {name: entry for name, entry in self.images.items() if name in kept}
        self.objects = [each for each in self.objects if each[0] in kept]
        self._boxless = [each for each in self._boxless if each.image in kept]

    # --- queries ----------------------------------------------------------------------------------

    def samples(self, units: Units | None = None, **more: Any) -> Samples:
        """Return queries about all that was noted.

        ``units`` are those of the format; ``more`` are further fields of :class:`Detections`.
        """
        self._drop_other_splits()
        noted = Detections(
            source=self._source,
            images=self._folder,
            sizes={name: entry.size for name, entry in self.images.items()},
            objects=self.objects,
            boxless=self._boxless,
            **more,
        )
        samples = detection_samples(noted, self.options, self.ledger)
        units = units or self._units
        return replace(
            samples,
            units=self.options.units or units,
            units_stated=self.options.units is not None,
            form=None if self.options.form else self.form,
        )
