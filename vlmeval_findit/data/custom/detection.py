"""Make queries of annotated objects: for each image and label, and for all labels of an image."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
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
    # Areas that a COCO file states, by image, label and corners, where they are not the box's
    areas: Mapping[tuple[str, str, Corners], float] = field(default_factory=dict)


def detection_samples(detections: Detections, options: ReaderOptions, ledger: Ledger) -> Samples:
    """Return a query for each image and label, and one for all labels of each image.

    A repeated object counts once. Without a box of its label that counts, no query asks
    for an ignored box. An image without objects asks for one class that is not there, the classes
    in turn, so that negatives are as frequent as those images. With ``all_classes`` every image
    asks for every class of the set.

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
    objects = _drop_repeats(detections, ledger)
    by_label = _boxes_by_label(detections, objects, ledger)
    _note_equal_but_for_case(by_label, ledger)
    ledger.read("images", len(detections.sizes))
    ignored = len([box for _, box in objects if box.ignored])
    ledger.read("boxes", len(objects) - ignored)
    ledger.read("ignored boxes", ignored)
    if not by_label and not detections.boxless:
        but = " but those to ignore" if objects else ""
        raise AnnotationError(f"{detections.source}: no boxes{but}")
    if options.all_classes:
        queries = _queries_of_all_classes(detections, by_label, ledger)
    else:
        queries = _queries_of_labels(detections, objects, by_label, options, ledger)
    counts = Counts(
        images=len(detections.sizes),
        boxes=len(objects) - ignored,
        queries=len(by_label),
        classes=len(detections.classes),
        ignored=ignored,
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
        areas=detections.areas,
        boxless=tuple(detections.boxless),
    )


def _queries_of_labels(
    detections: Detections,
    objects: Sequence[tuple[str, AnnotatedBox]],
    by_label: Mapping[tuple[str, str], Sequence[AnnotatedBox]],
    options: ReaderOptions,
    ledger: Ledger,
) -> list[Sample]:
    """Return the queries about what is there, and those of images without objects."""
    single = [
        Sample((image,), label, tuple(boxes), boxes[0].where)
        for (image, label), boxes in by_label.items()
    ]
    negatives = _negatives(detections, objects, sorted({label for _, label in by_label}), ledger)
    if not options.negatives:
        _leave_negatives_out(negatives, ledger)
        negatives = []
    return [*single, *negatives, *_multilabel_queries(detections, single, negatives, ledger)]


def _queries_of_all_classes(
    detections: Detections,
    by_label: Mapping[tuple[str, str], Sequence[AnnotatedBox]],
    ledger: Ledger,
) -> list[Sample]:
    """Return a query for each image and class, and one for all classes of each image.

    Raises an AnnotationError where it is not known that what has no box is not there.
    """
    if detections.absent is not None or detections.not_exhaustive or detections.boxless:
        raise AnnotationError(
            f"{detections.source}: not every object of every class has a box, so images cannot be "
            "asked about all classes: leave --all-classes out"
        )
    labels = list(dict.fromkeys(detections.classes)) or sorted({label for _, label in by_label})
    why = multilabel_problem(labels)
    single = []
    multi = []
    for image in detections.sizes:
        where = f"{detections.source}, {image}"
        of_image: list[AnnotatedBox] = []
        for label in labels:
            boxes = by_label.get((image, label), ())
            single.append(Sample((image,), label, tuple(boxes), where))
            of_image += boxes
        if why:
            ledger.leave_out(f"queries for all labels of an image: {why}", where)
        else:
            of_image.sort(key=lambda box: bool(box.ignored))
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
            ledger.leave_out(f"boxes of the class {box.label!r}: --drop-class", box.where)
        elif box.label in rules.ignore:
            ledger.note(f"boxes of the class {box.label!r} where no answer counts", box.where)
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
    areas = {
        (image, rules.name_of(label), corners): area
        for (image, label, corners), area in detections.areas.items()
    }

    def renamed(labels: Iterable[str]) -> list[str]:
        return [rules.name_of(label) for label in labels if label not in gone]

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
        category_ids={
            rules.name_of(name): number
            for name, number in detections.category_ids.items()
            if name not in gone
        },
    )


def _drop_repeats(detections: Detections, ledger: Ledger) -> list[tuple[str, AnnotatedBox]]:
    """Return every object once: repetitions have the same image, label and corners."""
    places = {(image, box.corners) for image, box in detections.objects}
    if len(places) == len(detections.objects):
        # As nearly always
        return [*detections.objects]
    seen: set[object] = set()
    objects = []
    for image, box in detections.objects:
        key = (image, box.label, box.corners, box.ignored)
        if key in seen:
            ledger.leave_out("boxes that repeat image, label and corners of another", box.where)
        else:
            seen.add(key)
            objects.append((image, box))
    return objects


def _boxes_by_label(
    detections: Detections, objects: Sequence[tuple[str, AnnotatedBox]], ledger: Ledger
) -> dict[tuple[str, str], list[AnnotatedBox]]:
    """Return the boxes of each query with one label, first those that count."""
    by_label: dict[tuple[str, str], list[AnnotatedBox]] = defaultdict(list)
    ignored = []
    for image, box in objects:
        if box.ignored:
            ignored.append((image, box))
        else:
            by_label[image, box.label].append(box)
    for image, label in list(by_label) if detections.not_exhaustive else ():
        if label in detections.not_exhaustive.get(image, ()):
            boxes = by_label.pop((image, label))
            why = "boxes in images where not every instance of their label is annotated"
            ledger.leave_out(why, boxes[0].where, len(boxes))
    regions: dict[str, list[AnnotatedBox]] = {}
    for image, box in ignored:
        if box.ignored == REGION:
            regions.setdefault(image, []).append(box)
        elif (image, box.label) in by_label:
            by_label[image, box.label].append(box)
        else:
            ledger.leave_out(f"{box.ignored} in images with nothing else of their label", box.where)
    for (image, label), boxes in by_label.items() if regions else ():
        boxes += [structs.replace(region, label=label) for region in regions.get(image, ())]
    return dict(by_label)


def _note_equal_but_for_case(
    by_label: Mapping[tuple[str, str], Sequence[AnnotatedBox]], ledger: Ledger
) -> None:
    """Note classes that differ in letter case only: Cat and cat are asked for apart."""
    first: dict[str, str] = {}
    for (_, label), boxes in by_label.items():
        before = first.setdefault(label.casefold(), label)
        if before != label:
            both = " and ".join(sorted((before, label)))
            what = f"queries of classes that differ in letter case only: {both} (--rename-class)"
            ledger.note(what, boxes[0].where)


def _negatives(
    detections: Detections,
    objects: Sequence[tuple[str, AnnotatedBox]],
    labels: Sequence[str],
    ledger: Ledger,
) -> list[Sample]:
    """Return a query with nothing to find for each image without objects, where that is known."""
    regions: dict[str, list[AnnotatedBox]] = {}
    with_objects = {each.image for each in detections.boxless}
    for image, box in objects:
        if box.ignored == REGION:
            regions.setdefault(image, []).append(box)
        else:
            with_objects.add(image)
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
        boxes = tuple(structs.replace(region, label=label) for region in regions.get(image, ()))
        negatives.append(Sample((image,), label, boxes, where))
    return negatives


def _leave_negatives_out(negatives: Sequence[Sample], ledger: Ledger) -> None:
    for query in negatives:
        ledger.leave_out("images without an object, which make no query", query.where)


def _multilabel_queries(
    detections: Detections, single: Sequence[Sample], negatives: Sequence[Sample], ledger: Ledger
) -> list[Sample]:
    """Return one query for all labels of each image; left out where its labels cannot be listed."""
    by_image: dict[str, list[Sample]] = {}
    for query in single:
        by_image.setdefault(query.images[0], []).append(query)
    queries = [_join_queries(detections, image, of_image) for image, of_image in by_image.items()]
    queries += [structs.replace(query, label=query.labels) for query in negatives]
    multi = []
    for query in queries:
        why = multilabel_problem(query.labels)
        if why:
            ledger.leave_out(f"queries for all labels of an image: {why}", query.where)
        else:
            multi.append(query)
    return multi


def _join_queries(detections: Detections, image: str, queries: Sequence[Sample]) -> Sample:
    labels = sorted([query.labels[0] for query in queries])
    boxes = list(chain.from_iterable([query.boxes for query in queries]))
    if any(box.ignored for box in boxes):
        boxes.sort(key=lambda box: bool(box.ignored))
    return Sample((image,), tuple(labels), tuple(boxes), boxes[0].where)
