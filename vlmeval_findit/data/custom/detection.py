"""Make queries of annotated objects: for each image and label, and for all labels of an image."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from ...benchmarks.findit import Family
from ...boxes import Corners
from ...storage import Size
from ..annotated_samples import (
    REGION,
    AnnotatedBox,
    AnnotationError,
    BoxlessObject,
    Counts,
    RenamedClass,
    Sample,
    Samples,
)
from ..ledger import Ledger
from .checks import multilabel_problem
from .class_rules import ClassRules, refuse_codes, refuse_undecided
from .reader_options import ReaderOptions


@dataclass(frozen=True, slots=True)
class Detections:
    """What a file or folder of boxes says."""

    source: Path  # What was read
    images: Path  # The folder of the images
    sizes: Mapping[str, Size | None]  # Every image, with its size (w, h) where that is stated
    objects: Sequence[tuple[str, AnnotatedBox]]  # After the name of its image
    classes: Sequence[str] = ()  # With or without objects; empty: not listed
    boxless: Sequence[BoxlessObject] = ()
    # Labels by image of which not every instance is annotated (LVIS)
    not_exhaustive: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Labels by image that are known to be absent; None: all that have no box there
    absent: Mapping[str, Sequence[str]] | None = None
    # Ids of a COCO file, by file name and by class, for an export
    image_ids: Mapping[str, int | str] = field(default_factory=dict)
    category_ids: Mapping[str, int | str] = field(default_factory=dict)
    renamed_classes: tuple[RenamedClass, ...] = ()
    # Areas that a COCO file states, by image, label and corners, where they are not the box's
    areas: Mapping[tuple[str, str, Corners], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Annotated:
    """The objects of a set, each once: those that count, and where boxes do not count."""

    counted: Mapping[tuple[str, str], Sequence[AnnotatedBox]]  # By image and label
    # By image: ignored objects of any label, then regions where no answer counts
    ignored: Mapping[str, Sequence[AnnotatedBox]]

    @property
    def labels(self) -> list[str]:
        """The labels of objects that count."""
        return sorted({label for _, label in self.counted})

    def boxes(self, image: str, label: str) -> Sequence[AnnotatedBox]:
        """Return the boxes of a query about a label, there or not: first those that count."""
        counted = self.counted.get((image, label), ())
        if image not in self.ignored:
            # As nearly always
            return counted
        boxes = [*counted]
        for box in self.ignored[image]:
            if box.ignored == REGION:
                boxes.append(structs.replace(box, label=label))
            elif box.label == label:
                boxes.append(box)
        return boxes

    def boxes_of_labels(self, image: str, labels: Sequence[str]) -> list[AnnotatedBox]:
        """Return the boxes of a query about several labels: first those that count.

        All ignored objects of the image are among them: a box on one is no error, asked for or not.
        """
        boxes: list[AnnotatedBox] = []
        for label in labels:
            boxes += self.boxes(image, label)
        if image in self.ignored:
            for box in self.ignored[image]:
                if box.ignored != REGION and box.label not in labels:
                    boxes.append(box)
            boxes.sort(key=lambda box: bool(box.ignored))
        return boxes


def detection_samples(detections: Detections, options: ReaderOptions, ledger: Ledger) -> Samples:
    """Return a query for each image and label, and one for all labels of each image.

    A repeated object counts once. No query is made for an ignored box alone, but all queries about
    its image and label have it, and that about all labels of its image. An image without objects
    asks for one class that is not there, the classes in turn, so that negatives are as frequent as
    those images. With ``all_classes`` every image asks for every class of the set.

    Raises:
        AnnotationError: there are no boxes, a rule is about no class, a class's name says that its
            boxes do not count and no rule says how that is meant, or every image should ask for
            every class and some are not annotated.
    """
    names = detections.classes or _labels_of(detections)
    options.classes.check(detections.source, names)
    refuse_codes(detections.source, names, options.classes)
    refuse_undecided(detections.source, options.classes.undecided(names))
    detections = _apply_rules(detections, options, ledger)
    objects, repeats = _distinct_objects(detections, ledger)
    annotated = _by_image(detections, objects, ledger)
    _note_equal_but_for_case(annotated.counted, ledger)
    ledger.read("images", len(detections.sizes))
    ignored = [(image, box) for image, box in objects if box.ignored]
    boxes = len(objects) - len(ignored)
    ledger.read("boxes", boxes)
    if not annotated.counted and not detections.boxless:
        but = " but those to ignore" if ignored else ""
        raise AnnotationError(f"{detections.source}: no boxes{but}")
    if options.all_classes:
        queries = _queries_of_all_classes(detections, annotated, ledger)
    else:
        queries = _queries_of_labels(detections, annotated, options, ledger)
    _account_for_ignored(ignored, queries, ledger)
    counts = Counts(
        images=len(detections.sizes),
        boxes=boxes,
        queries=len(annotated.counted),
        classes=len(detections.classes),
        ignored=len(ignored),
    )
    return Samples(
        detections.source,
        detections.images,
        Family.OBJDET,
        tuple(queries),
        sizes=detections.sizes,
        counts=counts,
        ledger=ledger,
        image_ids=detections.image_ids,
        category_ids=detections.category_ids,
        renamed_classes=detections.renamed_classes,
        areas=detections.areas,
        repeats=repeats,
        boxless=tuple(detections.boxless),
        all_classes=options.all_classes,
    )


def _queries_of_labels(
    detections: Detections, annotated: _Annotated, options: ReaderOptions, ledger: Ledger
) -> list[Sample]:
    """Return the queries about what is there, and those of images without objects."""
    single = [
        Sample((image,), label, tuple(annotated.boxes(image, label)), counted[0].where)
        for (image, label), counted in annotated.counted.items()
    ]
    negatives = _negatives(detections, annotated, ledger)
    if not options.negatives:
        _leave_negatives_out(negatives, ledger)
        negatives = []
    return [*single, *negatives, *_multilabel_queries(annotated, single, negatives, ledger)]


def _queries_of_all_classes(
    detections: Detections, annotated: _Annotated, ledger: Ledger
) -> list[Sample]:
    """Return a query for each image and class, and one for all classes of each image.

    Raises an AnnotationError where it is not known that what has no box is not there.
    """
    if detections.absent is not None or detections.not_exhaustive or detections.boxless:
        raise AnnotationError(
            f"{detections.source}: not every object of every class has a box, so images cannot be "
            "asked about all classes: leave --all-classes out"
        )
    labels = list(dict.fromkeys(detections.classes)) or annotated.labels
    why = multilabel_problem(labels)
    single = []
    multi = []
    for image in detections.sizes:
        where = f"{detections.source}, {image}"
        for label in labels:
            single.append(Sample((image,), label, tuple(annotated.boxes(image, label)), where))
        if why:
            ledger.leave_out(f"queries for all labels of an image: {why}", where)
        else:
            of_image = annotated.boxes_of_labels(image, labels)
            multi.append(Sample((image,), tuple(labels), tuple(of_image), where))
    return [*single, *multi]


def _labels_of(detections: Detections) -> list[str]:
    labels = {box.label for _, box in detections.objects if box.ignored != REGION}
    labels.update(each.label for each in detections.boxless)
    return sorted(labels)


def _apply_rules(detections: Detections, options: ReaderOptions, ledger: Ledger) -> Detections:
    """Rename and leave out classes, and make regions of those where nothing counts."""
    rules = options.classes
    if rules == ClassRules():
        return detections
    objects = []
    for image, box in detections.objects:
        if box.label in rules.drop:
            what = f"boxes of the class {box.label!r}: --drop-class"
            ledger.leave_out(what, box.where, unlike_file=True)
        elif box.label in rules.ignore:
            what = f"boxes of the class {box.label!r} where no answer counts"
            ledger.note(what, box.where, unlike_file=True)
            objects.append((image, structs.replace(box, ignored=REGION)))
        else:
            name = rules.name_of(box.label)
            renamed_box = box if name == box.label else structs.replace(box, label=name)
            objects.append((image, renamed_box))
    boxless = []
    for each in detections.boxless:
        if each.label in rules.drop or each.label in rules.ignore:
            flag = "--drop-class" if each.label in rules.drop else "--ignore-class"
            ledger.leave_out(
                f"objects without a box of the class {each.label!r}: {flag}", each.where
            )
        else:
            boxless.append(replace(each, label=rules.name_of(each.label)))
    gone = {*rules.drop, *rules.ignore}
    _note_joined(detections, rules, ledger)
    areas = {
        (image, rules.name_of(label), corners): area
        for (image, label, corners), area in detections.areas.items()
    }

    def renamed(labels: Iterable[str]) -> list[str]:
        return [rules.name_of(label) for label in labels if label not in gone]

    category_ids, renamed_classes = _renamed_ids(detections, rules)
    absent = None
    if detections.absent is not None:
        absent = {image: renamed(labels) for image, labels in detections.absent.items()}
    return replace(
        detections,
        objects=objects,
        boxless=boxless,
        classes=renamed(detections.classes),
        not_exhaustive={
            image: frozenset(map(rules.name_of, labels))
            for image, labels in detections.not_exhaustive.items()
        },
        absent=absent,
        areas=areas,
        category_ids=category_ids,
        renamed_classes=renamed_classes,
    )


def _note_joined(detections: Detections, rules: ClassRules, ledger: Ledger) -> None:
    """Note classes that have the name of another class of the file by --rename-class."""
    names: dict[str, list[str]] = defaultdict(list)
    for old in detections.classes or _labels_of(detections):
        if old not in rules.drop and old not in rules.ignore:
            names[rules.name_of(old)].append(old)
    for name, several in names.items():
        if len(several) > 1:
            what = f"classes that became one, {name}: --rename-class"
            ledger.note(what, ", ".join(several), len(several), unlike_file=True)


def _renamed_ids(
    detections: Detections, rules: ClassRules
) -> tuple[dict[str, int | str], tuple[RenamedClass, ...]]:
    """Return the ids of classes by their labels here, and the classes of other names.

    Of classes that are joined, the label has the id of the one that is called so in the file, else
    of the first.
    """
    gone = {*rules.drop, *rules.ignore}
    stated = {name: number for name, number in detections.category_ids.items() if name not in gone}
    ids: dict[str, int | str] = {}
    for name, number in stated.items():
        label = rules.name_of(name)
        if name == label or label not in ids:
            ids[label] = number
    others = [
        RenamedClass(name, number, rules.name_of(name))
        for name, number in stated.items()
        if rules.name_of(name) != name
    ]
    for each in detections.renamed_classes:
        if each.label not in gone:
            others.append(replace(each, label=rules.name_of(each.label)))
    return ids, tuple(others)


def _distinct_objects(
    detections: Detections, ledger: Ledger
) -> tuple[list[tuple[str, AnnotatedBox]], dict[tuple[str, str, Corners], int]]:
    """Return every object once, and how often those that count stand there, if several times.

    Repetitions have the same image, label and corners.
    """
    places = {(image, box.corners) for image, box in detections.objects}
    if len(places) == len(detections.objects):
        # As nearly always
        return [*detections.objects], {}
    seen: set[object] = set()
    objects = []
    repeats: dict[tuple[str, str, Corners], int] = {}
    what = "boxes that repeat image, label and corners of another"
    if detections.image_ids:
        what += ", but for findit ap and export --to coco, which count them like pycocotools"
    for image, box in detections.objects:
        key = (image, box.label, box.corners, box.ignored)
        if key in seen:
            ledger.leave_out(what, box.where)
            if not box.ignored:
                place = (image, box.label, box.corners)
                repeats[place] = repeats.get(place, 1) + 1
        else:
            seen.add(key)
            objects.append((image, box))
    return objects, repeats


def _by_image(
    detections: Detections, objects: Sequence[tuple[str, AnnotatedBox]], ledger: Ledger
) -> _Annotated:
    """Return the objects by their images and labels."""
    counted: dict[tuple[str, str], list[AnnotatedBox]] = defaultdict(list)
    ignored: dict[str, list[AnnotatedBox]] = defaultdict(list)
    for image, box in objects:
        if box.ignored:
            ignored[image].append(box)
        else:
            counted[image, box.label].append(box)
    for boxes in ignored.values():
        boxes.sort(key=lambda box: box.ignored == REGION)
    for image, label in list(counted) if detections.not_exhaustive else ():
        if label in detections.not_exhaustive.get(image, ()):
            boxes = counted.pop((image, label))
            why = "boxes in images where not every instance of their label is annotated"
            ledger.leave_out(why, boxes[0].where, len(boxes), unlike_file=True)
    return _Annotated(dict(counted), dict(ignored))


def _account_for_ignored(
    ignored: Sequence[tuple[str, AnnotatedBox]], queries: Sequence[Sample], ledger: Ledger
) -> None:
    """Note which ignored boxes queries have; each is read or left out."""
    if not ignored:
        return
    used: set[tuple[str, str, Corners]] = set()
    for query in queries:
        for box in query.boxes:
            if box.ignored:
                used.add((query.images[0], box.where, box.corners))
    for image, box in ignored:
        if (image, box.where, box.corners) in used:
            ledger.read("ignored boxes")
        else:
            ledger.leave_out(f"{box.ignored} that no query is about", box.where)


def _note_equal_but_for_case(
    counted: Mapping[tuple[str, str], Sequence[AnnotatedBox]], ledger: Ledger
) -> None:
    """Note classes that differ in letter case only: Cat and cat are asked for apart."""
    first: dict[str, str] = {}
    for (_, label), boxes in counted.items():
        before = first.setdefault(label.casefold(), label)
        if before != label:
            both = " and ".join(sorted((before, label)))
            what = f"queries of classes that differ in letter case only: {both} (--rename-class)"
            ledger.note(what, boxes[0].where)


def _negatives(detections: Detections, annotated: _Annotated, ledger: Ledger) -> list[Sample]:
    """Return a query with nothing to find for each image without objects, where that is known."""
    with_objects = {each.image for each in detections.boxless}
    with_objects.update(image for image, box in detections.objects if box.ignored != REGION)
    labels = annotated.labels
    negatives: list[Sample] = []
    for image in detections.sizes:
        if image in with_objects:
            continue
        where = f"{detections.source}, {image}"
        known = labels
        if detections.absent is not None:
            absent = detections.absent.get(image, ())
            known = [label for label in labels if label in absent]
        if not known:
            why = "images without objects for which no label is known to be absent"
            ledger.leave_out(why, where)
            continue
        label = known[len(negatives) % len(known)]
        negatives.append(Sample((image,), label, tuple(annotated.boxes(image, label)), where))
    return negatives


def _leave_negatives_out(negatives: Sequence[Sample], ledger: Ledger) -> None:
    for query in negatives:
        ledger.leave_out("images without an object, which make no query", query.where)


def _multilabel_queries(
    annotated: _Annotated, single: Sequence[Sample], negatives: Sequence[Sample], ledger: Ledger
) -> list[Sample]:
    """Return one query for all labels of each image; left out where its labels cannot be listed."""
    labels_of: dict[str, list[str]] = {}
    for query in single:
        labels_of.setdefault(query.images[0], []).append(query.labels[0])
    queries = []
    for image, labels in labels_of.items():
        boxes = annotated.boxes_of_labels(image, labels)
        queries.append(Sample((image,), tuple(sorted(labels)), tuple(boxes), boxes[0].where))
    queries += [structs.replace(query, label=query.labels) for query in negatives]
    multi = []
    for query in queries:
        why = multilabel_problem(query.labels)
        if why:
            ledger.leave_out(f"queries for all labels of an image: {why}", query.where)
        else:
            multi.append(query)
    return multi
