"""A classical object detector over OpenCV: cascades, HOG and Hough circles.

It stands in for a multimodal model where none can be run. It reads a text for words that it
knows, runs the detectors behind these words, and knows nothing of any annotation, so that its
scores are earned: right for coins, faces and wheels, wrong or empty for most of the world.

OpenCV 5 dropped the cascades and HOG: this module needs ``opencv-python<5``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
"""An image: height x width x 3, RGB; where the text says grey: height x width."""

Box = tuple[float, float, float, float]
"""x1, y1, x2, y2 in pixels; the origin is the image's top left corner."""

MAX_SIDE = 1600
"""Images with a longer side are shrunk to this many pixels before detection."""

MAX_BOXES = 50
"""No answer has more boxes than this."""

NMS_IOU = 0.3
"""Of two boxes with one label that overlap more, only the better one stays."""


@dataclass(frozen=True)
class Detection:
    """A labelled box in pixels of the image that was given: x1, y1, x2, y2."""

    label: str
    box: Box


@dataclass(frozen=True)
class Candidate:
    """A box that a detector proposes; scores compare only within one detector."""

    box: Box
    score: float


Detector = Callable[[Pixels], list[Candidate]]
"""From an RGB image to candidates in its pixels."""


@dataclass(frozen=True)
class Concept:
    """A row of the vocabulary: words that mean one kind of thing, and what finds it."""

    words: tuple[str, ...]
    detector: Detector


# --- geometry -------------------------------------------------------------------------------


def iou(a: Box, b: Box) -> float:
    """Intersection over union of two boxes, 0 where they do not meet."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def suppress(candidates: Sequence[Candidate], threshold: float = NMS_IOU) -> list[Candidate]:
    """Greedy non-maximum suppression: best first, without those that overlap a better one.

    Equal scores go by the box, so that the result does not depend on the order of the input.
    """
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (-c.score, c.box)):
        if all(iou(candidate.box, other.box) <= threshold for other in kept):
            kept.append(candidate)
    return kept


def clip(box: Box, width: float, height: float) -> Box:
    """The part of a box inside an image of the given size."""
    x1, x2 = (min(max(x, 0.0), float(width)) for x in (box[0], box[2]))
    y1, y2 = (min(max(y, 0.0), float(height)) for y in (box[1], box[3]))
    return x1, y1, x2, y2


def inner(box: Box, across: float, down: float) -> Box:
    """The box with the same centre and these fractions of the width and height."""
    centre_x, centre_y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    half_x, half_y = across * (box[2] - box[0]) / 2, down * (box[3] - box[1]) / 2
    return centre_x - half_x, centre_y - half_y, centre_x + half_x, centre_y + half_y


# --- detectors ------------------------------------------------------------------------------


def require_cascades() -> None:
    """Raise RuntimeError where OpenCV has no cascades (from version 5 on)."""
    needed = ("CascadeClassifier", "HOGDescriptor", "data")
    if not all(hasattr(cv2, name) for name in needed):
        raise RuntimeError(
            f"OpenCV {cv2.__version__} has no cascade classifiers: pip install 'opencv-python<5'"
        )


def load_cascade(name: str) -> Any:
    """Load a cascade that ships with OpenCV, e.g. 'frontalface_alt2'.

    Nothing is cached: a classifier must not run in two threads at once, and loading one takes
    a fraction of running it.

    Raises:
        RuntimeError: this OpenCV does not ship it.
    """
    path = Path(cv2.data.haarcascades) / f"haarcascade_{name}.xml"  # type: ignore[attr-defined, unused-ignore]
    cascade = cv2.CascadeClassifier(str(path)) if path.is_file() else None
    if cascade is None or cascade.empty():
        raise RuntimeError(f"OpenCV ships no {path.name}: pip install 'opencv-python<5'")
    return cascade


def load_people_hog() -> Any:
    """The HOG descriptor with the weights for upright people that OpenCV ships."""
    hog = cv2.HOGDescriptor()
    hog.setSVMDetector(cv2.HOGDescriptor_getDefaultPeopleDetector())  # type: ignore[attr-defined, unused-ignore]
    return hog


def grey(image: Pixels) -> Pixels:
    """RGB to grey."""
    result: Pixels = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    return result


def run_cascade(grey_image: Pixels, name: str, neighbours: int) -> list[Candidate]:
    """Windows that a cascade accepts at least ``neighbours`` times; their number is the score."""
    boxes, counts = load_cascade(name).detectMultiScale2(
        grey_image, scaleFactor=1.05, minNeighbors=neighbours
    )
    return [
        Candidate((float(x), float(y), float(x + w), float(y + h)), float(count))
        for (x, y, w, h), count in zip(boxes, np.ravel(counts), strict=True)
    ]


def cascade(name: str, neighbours: int) -> Detector:
    """A detector that runs one cascade over the whole image."""

    def find(image: Pixels) -> list[Candidate]:
        return run_cascade(cv2.equalizeHist(grey(image)), name, neighbours)

    return find


# Ten agreeing windows: fewer let textures such as a coin's portrait or a shelf pass for faces.
find_faces = cascade("frontalface_alt2", 10)


def search_within(image: Pixels, region: Box, name: str, neighbours: int) -> list[Candidate]:
    """Run a cascade inside a region of the image; the boxes are in pixels of the image."""
    height, width = image.shape[:2]
    x1, y1, x2, y2 = (round(value) for value in clip(region, width, height))
    if x2 - x1 < 10 or y2 - y1 < 10:
        return []
    return [
        Candidate((c.box[0] + x1, c.box[1] + y1, c.box[2] + x1, c.box[3] + y1), c.score)
        for c in run_cascade(grey(image)[y1:y2, x1:x2], name, neighbours)
    ]


def find_eyes(image: Pixels) -> list[Candidate]:
    """Eyes in the upper half of every face; without a face, circles (the iris of an animal).

    The cascade's window is a square from the brow to the cheek; the eye itself is the middle
    half of its height.
    """
    eyes: list[Candidate] = []
    faces = suppress(find_faces(image))
    for face in faces:
        x1, y1, x2, y2 = face.box
        upper = (x1, y1, x2, y1 + 0.6 * (y2 - y1))
        found = suppress(search_within(image, upper, "eye_tree_eyeglasses", 4))
        eyes += [Candidate(inner(eye.box, 0.9, 0.5), eye.score) for eye in found[:2]]
    return eyes if faces else find_circles(image)


def find_mouths(image: Pixels) -> list[Candidate]:
    """The best mouth in the lower half of every face.

    The cascade fires everywhere outside of faces, and its window leaves a margin of about a
    fifth around the mouth.
    """
    mouths = []
    for face in suppress(find_faces(image)):
        x1, y1, x2, y2 = face.box
        side = y2 - y1
        # The face's window ends above the chin, hence the strip below it.
        lower = (x1, y1 + 0.55 * side, x2, y2 + 0.2 * side)
        found = suppress(search_within(image, lower, "smile", 8))
        mouths += [Candidate(inner(mouth.box, 0.7, 0.6), mouth.score) for mouth in found[:1]]
    return mouths


def body_below(face: Box) -> Box:
    """Where the body that belongs to an upright face should be, by human proportions.

    A person is about three face widths wide at the shoulders and seven to eight faces tall, with
    half a face of hair or hat above the window that a face cascade reports.
    """
    x1, y1, x2, _ = face
    side, centre = x2 - x1, (x1 + x2) / 2
    return centre - 1.5 * side, y1 - 0.5 * side, centre + 1.5 * side, y1 + 7.0 * side


def find_people(image: Pixels) -> list[Candidate]:
    """People from their faces, then upright people by HOG."""
    height, width = image.shape[:2]
    by_face = [
        # One point ahead of HOG, whose margins are of the order of 1: a face is better evidence.
        Candidate(clip(body_below(face.box), width, height), 10.0 + face.score)
        for face in suppress(find_faces(image))
    ]
    boxes: Sequence[Any] = ()
    margins: Sequence[Any] = ()
    if height >= 128 and width >= 64:  # the size of HOG's window; OpenCV fails on less
        boxes, margins = load_people_hog().detectMultiScale(image, winStride=(8, 8), scale=1.05)
    by_shape = [
        # HOG is trained with a margin around the person.
        Candidate(inner((float(x), float(y), float(x + w), float(y + h)), 0.7, 0.85), float(margin))
        for (x, y, w, h), margin in zip(boxes, np.ravel(margins), strict=True)
        if margin > 1.0
    ]
    return by_face + by_shape


def find_circles(image: Pixels) -> list[Candidate]:
    """Circles by the Hough transform; of concentric ones (rims) the outermost stays."""
    smooth = cv2.medianBlur(grey(image), 5)
    shorter = min(smooth.shape)
    found = cv2.HoughCircles(
        smooth,
        cv2.HOUGH_GRADIENT_ALT,
        dp=1.5,
        minDist=shorter / 20,
        param1=200,
        param2=0.8,  # how perfect a circle has to be, of 1
        minRadius=shorter // 30,
        maxRadius=shorter // 2,
    )
    if found is None:
        return []
    height, width = smooth.shape
    # OpenCV reports the best supported circles first and no comparable score.
    ranked = [(float(x), float(y), float(r)) for x, y, r in found[0]]
    return [
        Candidate(clip((x - r, y - r, x + r, y + r), width, height), -float(rank))
        for rank, (x, y, r) in enumerate(ranked)
        if not any(
            math.hypot(x - other_x, y - other_y) < other_r / 2 and r < other_r
            for other_x, other_y, other_r in ranked
        )
    ]


VOCABULARY: tuple[Concept, ...] = (
    Concept(("face", "faces"), find_faces),
    Concept(
        ("person", "persons", "people", "human", "humans", "man", "men", "woman", "women",
         "pedestrian", "pedestrians"),
        find_people,
    ),
    Concept(("eye", "eyes"), find_eyes),
    Concept(("mouth", "mouths", "smile", "smiles", "lips"), find_mouths),
    Concept(
        ("cat", "cats", "kitten", "kittens", "cat face", "cat faces"),
        cascade("frontalcatface_extended", 6),
    ),
    Concept(
        ("license plate", "license plates", "licence plate", "licence plates", "number plate",
         "number plates", "car plate", "car plates"),
        cascade("russian_plate_number", 6),
    ),
    # Things that are round, or whose rim is.
    Concept(("coin", "coins"), find_circles),
    Concept(("wheel", "wheels", "tyre", "tyres", "tire", "tires"), find_circles),
    Concept(("clock", "clocks", "watch", "watches"), find_circles),
    Concept(("ball", "balls"), find_circles),
    Concept(("button", "buttons"), find_circles),
    Concept(("cup", "cups", "mug", "mugs"), find_circles),
    Concept(("plate", "plates", "saucer", "saucers"), find_circles),
    Concept(("circle", "circles"), find_circles),
)  # fmt: skip
"""What the detector knows: one row a concept."""


# --- from text to boxes ---------------------------------------------------------------------


def find_words(text: str) -> list[tuple[str, Concept]]:
    """The concepts that a text mentions, each with its first word, in order of appearance.

    Whole words, whatever their case; a longer entry hides the shorter ones inside it
    ("license plate" is no "plate").
    """
    concepts = {word: concept for concept in VOCABULARY for word in concept.words}
    longest_first = sorted(concepts, key=lambda word: (-len(word), word))
    pattern = r"\b(?:" + "|".join(re.escape(word) for word in longest_first) + r")\b"
    mentions: dict[Concept, str] = {}
    for match in re.finditer(pattern, text.lower()):
        mentions.setdefault(concepts[match.group()], match.group())
    return [(word, concept) for concept, word in mentions.items()]


def shrink(image: Pixels) -> tuple[Pixels, float]:
    """Shrink an image to MAX_SIDE on its longer side; also gives new size / old size."""
    height, width = image.shape[:2]
    scale = min(1.0, MAX_SIDE / max(height, width))
    return (image, 1.0) if scale == 1.0 else (resize(image, scale), scale)


def resize(image: Pixels, scale: float) -> Pixels:
    """Scale an image, at least one pixel a side."""
    height, width = image.shape[:2]
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    result: Pixels = cv2.resize(image, size, interpolation=way)
    return result


def enlarge(box: Box, scale: float) -> Box:
    """A box of an image that was scaled by ``scale``, in pixels of the image before."""
    return box[0] / scale, box[1] / scale, box[2] / scale, box[3] / scale


def detect(image: Pixels, text: str) -> list[Detection]:
    """Find what a text names.

    ``image`` is height x width x 3 uint8 RGB. The result is in order of the words in the text,
    best boxes first, at most MAX_BOXES, empty for a text without a word of the vocabulary. The
    label of a box is the word of the text, in lower case. The same input gives the same output.

    Raises:
        RuntimeError: OpenCV 5 or newer, which has no cascades.
    """
    require_cascades()
    small, scale = shrink(np.ascontiguousarray(image))
    height, width = image.shape[:2]
    detections = [
        Detection(word, clip(enlarge(candidate.box, scale), width, height))
        for word, concept in find_words(text)
        for candidate in suppress(concept.detector(small))
    ]
    return detections[:MAX_BOXES]


# --- instances ------------------------------------------------------------------------------

TEMPLATE_SIDE = 800
"""Scenes are shrunk to this many pixels on the longer side before templates slide over them."""

TEMPLATE_SCALES = tuple(1.08**step for step in range(-15, 16))
"""Sizes tried for a reference picture, from about a third to three times its own."""

TEMPLATE_THRESHOLD = 0.6
"""The least normalised correlation (1 is identity) that counts as found."""

TEMPLATE_LEAST = 12
"""Templates with a shorter side in pixels are not tried: they match everywhere."""


def match_template(scene: Pixels, template: Pixels) -> Candidate | None:
    """The best place of a template of exactly this size in a scene, None where it cannot fit."""
    height, width = template.shape[:2]
    if min(height, width) < TEMPLATE_LEAST:
        return None
    if height > scene.shape[0] or width > scene.shape[1]:
        return None
    scores = cv2.matchTemplate(scene, template, cv2.TM_CCOEFF_NORMED)
    # A template of one colour has no correlation; OpenCV then gives 1 or an infinity.
    scores[~np.isfinite(scores)] = -1.0
    if float(template.std()) < 1.0:
        return None
    _, best, _, (x, y) = cv2.minMaxLoc(scores)
    return Candidate((float(x), float(y), float(x + width), float(y + height)), float(best))


def find_instance(image: Pixels, supports: Sequence[Pixels]) -> list[Box]:
    """Find the object of some reference pictures in an image.

    ``image`` and ``supports`` are height x width x 3 uint8 RGB, the supports cropped to the
    object. Every support slides over the image in many sizes; the place with the best normalised
    correlation wins. The result has one box in pixels of the image, or none where nothing is
    similar enough.
    """
    height, width = image.shape[:2]
    shrunk = min(1.0, TEMPLATE_SIDE / max(height, width))
    scene = resize(image, shrunk)
    places = [
        match_template(scene, resize(support, shrunk * scale))
        for support in supports
        for scale in TEMPLATE_SCALES
    ]
    good = [p for p in places if p is not None and p.score >= TEMPLATE_THRESHOLD]
    return [clip(enlarge(c.box, shrunk), width, height) for c in suppress(good)[:1]]
