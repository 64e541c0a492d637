"""Ref-L4's protocol: hits in the authors' arithmetic, as sums, slices and metrics."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...protocol import Metric, Ratio, Sums, slice_weights
from .refl4_annotations import Annotation, RefL4Split, object_size

# Names of Objects365 (v2) in its spelling, in the order of category ids from 1
_OBJECTS365 = """
Person | Sneakers | Chair | Other Shoes | Hat | Car | Lamp | Glasses | Bottle | Desk | Cup |
Street Lights | Cabinet/shelf | Handbag/Satchel | Bracelet | Plate | Picture/Frame | Helmet | Book |
Gloves | Storage box | Boat | Leather Shoes | Flower | Bench | Potted Plant | Bowl/Basin | Flag |
Pillow | Boots | Vase | Microphone | Necklace | Ring | SUV | Wine Glass | Belt | Monitor/TV |
Backpack | Umbrella | Traffic Light | Speaker | Watch | Tie | Trash bin Can | Slippers | Bicycle |
Stool | Barrel/bucket | Van | Couch | Sandals | Basket | Drum | Pen/Pencil | Bus | Wild Bird |
High Heels | Motorcycle | Guitar | Carpet | Cell Phone | Bread | Camera | Canned | Truck |
Traffic cone | Cymbal | Lifesaver | Towel | Stuffed Toy | Candle | Sailboat | Laptop | Awning |
Bed | Faucet | Tent | Horse | Mirror | Power outlet | Sink | Apple | Air Conditioner | Knife |
Hockey Stick | Paddle | Pickup Truck | Fork | Traffic Sign | Balloon | Tripod | Dog | Spoon |
Clock | Pot | Cow | Cake | Dining Table | Sheep | Hanger | Blackboard/Whiteboard | Napkin |
Other Fish | Orange/Tangerine | Toiletry | Keyboard | Tomato | Lantern | Machinery Vehicle | Fan |
Green Vegetables | Banana | Baseball Glove | Airplane | Mouse | Train | Pumpkin | Soccer |
Skiboard | Luggage | Nightstand | Tea pot | Telephone | Trolley | Head Phone | Sports Car |
Stop Sign | Dessert | Scooter | Stroller | Crane | Remote | Refrigerator | Oven | Lemon | Duck |
Baseball Bat | Surveillance Camera | Cat | Jug | Broccoli | Piano | Pizza | Elephant | Skateboard |
Surfboard | Gun | Skating and Skiing shoes | Gas stove | Donut | Bow Tie | Carrot | Toilet | Kite |
Strawberry | Other Balls | Shovel | Pepper | Computer Box | Toilet Paper | Cleaning Products |
Chopsticks | Microwave | Pigeon | Baseball | Cutting/chopping Board | Coffee Table | Side Table |
Scissors | Marker | Pie | Ladder | Snowboard | Cookies | Radiator | Fire Hydrant | Basketball |
Zebra | Grape | Giraffe | Potato | Sausage | Tricycle | Violin | Egg | Fire Extinguisher | Candy |
Fire Truck | Billiards | Converter | Bathtub | Wheelchair | Golf Club | Briefcase | Cucumber |
Cigar/Cigarette | Paint Brush | Pear | Heavy Truck | Hamburger | Extractor | Extension Cord | Tong |
Tennis Racket | Folder | American Football | earphone | Mask | Kettle | Tennis | Ship | Swing |
Coffee Machine | Slide | Carriage | Onion | Green beans | Projector | Frisbee |
Washing Machine/Drying Machine | Chicken | Printer | Watermelon | Saxophone | Tissue | Toothbrush |
Ice cream | Hot-air balloon | Cello | French Fries | Scale | Trophy | Cabbage | Hot dog | Blender |
Peach | Rice | Wallet/Purse | Volleyball | Deer | Goose | Tape | Tablet | Cosmetics | Trumpet |
Pineapple | Golf Ball | Ambulance | Parking meter | Mango | Key | Hurdle | Fishing Rod | Medal |
Flute | Brush | Penguin | Megaphone | Corn | Lettuce | Garlic | Swan | Helicopter | Green Onion |
Sandwich | Nuts | Speed Limit Sign | Induction Cooker | Broom | Trombone | Plum | Rickshaw |
Goldfish | Kiwi fruit | Router/modem | Poker Card | Toaster | Shrimp | Sushi | Cheese | Notepaper |
Cherry | Pliers | CD | Pasta | Hammer | Cue | Avocado | Hami melon | Flask | Mushroom |
Screwdriver | Soap | Recorder | Bear | Eggplant | Board Eraser | Coconut | Tape Measure/Ruler |
Pig | Showerhead | Globe | Chips | Steak | Crosswalk Sign | Stapler | Camel | Formula 1 |
Pomegranate | Dishwasher | Crab | Hoverboard | Meatball | Rice Cooker | Tuba | Calculator | Papaya |
Antelope | Parrot | Seal | Butterfly | Dumbbell | Donkey | Lion | Urinal | Dolphin |
Electric Drill | Hair Dryer | Egg tart | Jellyfish | Treadmill | Lighter | Grapefruit | Game board |
Mop | Radish | Baozi | Target | French | Spring Rolls | Monkey | Rabbit | Pencil Case | Yak |
Red Cabbage | Binoculars | Asparagus | Barbell | Scallop | Noddles | Comb | Dumpling | Oyster |
Table Tennis paddle | Cosmetics Brush/Eyeliner Pencil | Chainsaw | Eraser | Lobster | Durian |
Okra | Lipstick | Cosmetics Mirror | Curling | Table Tennis
"""

OBJECTS365 = dict(enumerate(map(str.strip, _OBJECTS365.split("|")), 1))

# Names of classes. The last is none of Objects365's, which has several for COCO's sports balls.
_NAMES = {
    **{f"o365_{number}": name for number, name in OBJECTS365.items()},
    "o365_100000": "sports ball",
}

_AUTHORS = (
    "1:1 2:47 3:6 4:59 5:115 6:56 7:117 8:66 9:22 10:41 11:177 13:128 14:250 15:25 16:56 17:140 "
    "18:93 19:79 20:100 21:97 22:145 23:296 24:179 25:181 27:39 28:40 31:13 32:44 33:194 34:220 "
    "35:119 36:174 37:100000 38:155 39:138 40:114 41:146 42:147 43:205 44:9 46:36 47:11 48:89 "
    "49:85 50:94 51:26 52:113 53:83 54:266 55:104 56:142 57:153 58:235 59:144 60:151 61:98 62:3 "
    "63:51 64:26 65:76 67:98 70:154 72:37 73:74 74:116 75:133 76:107 77:62 78:164 79:135 80:278 "
    "81:82 82:134 84:19 85:95 86:31 87:170 88:70 89:328 90:227"
)

# COCO ids whose entry in the authors' table is one too low
ONE_TOO_LOW = frozenset({16, 31, 33, 35, 51, 55, 67, 72, 88, 89})
_COCO_PREFIX = "refcoco_"
_O365_PREFIX = "o365_"

# ``ori_category_id`` to class; an id that is not there is the class itself
ClassTable = Mapping[str, str]


def _tables() -> tuple[ClassTable, ClassTable]:
    """Return the authors' table and the corrected table."""
    authors: dict[str, str] = {}
    corrected: dict[str, str] = {}
    for pair in _AUTHORS.split():
        coco, o365 = map(int, pair.split(":"))
        right = o365 + 1 if coco in ONE_TOO_LOW else o365
        authors[f"{_COCO_PREFIX}{coco}"] = f"{_O365_PREFIX}{o365}"
        corrected[f"{_COCO_PREFIX}{coco}"] = f"{_O365_PREFIX}{right}"
    return authors, corrected


# The table of the published metrics, and the table with the ten wrong entries mended
AUTHORS_CLASSES, CORRECTED_CLASSES = _tables()

_SHARED = frozenset(CORRECTED_CLASSES.values())  # Classes that COCO has too


def class_of(ori_category_id: str, table: ClassTable) -> str:
    """Return an annotation's class name, or the class id if it has no name.

    >>> class_of("refcoco_16", AUTHORS_CLASSES), class_of("refcoco_16", CORRECTED_CLASSES)
    ('Bus', 'Wild Bird')
    >>> class_of("refcoco_37", AUTHORS_CLASSES), class_of("o365_999", AUTHORS_CLASSES)
    ('sports ball', 'o365_999')
    """
    class_id = table.get(ori_category_id, ori_category_id)
    return _NAMES.get(class_id, class_id)


def source_of(ori_category_id: str) -> str:
    """Return the source of an annotated object; "" if its id does not tell.

    O365-P1 are objects of Objects365 whose class COCO has too, O365-P2 the others.

    >>> source_of("refcoco_16"), source_of("o365_57"), source_of("o365_13")
    ('COCO', 'O365-P1', 'O365-P2')
    """
    if ori_category_id.startswith(_COCO_PREFIX):
        return "COCO"
    if ori_category_id.startswith(_O365_PREFIX):
        return "O365-P1" if ori_category_id in _SHARED else "O365-P2"
    return ""


Array = NDArray[np.float32]

# The IoU of a hit is above the threshold.
IOU_THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

# An IoU of "0.6" is float32(0.6), which is more than the 64-bit 0.6 and would pass it.
_LIMITS = np.array(IOU_THRESHOLDS, dtype=np.float32)
_LEAST_UNION = np.float32(1e-6)


def paired_iou(truths: Array, predictions: Array) -> Array:
    """Compute the IoU of paired boxes, both (N, 4) corners x1, y1, x2, y2 in pixels.

    In 32 bits, like the authors' evaluator and unlike FindIt (:mod:`...boxes.matching`).  Sides are
    signed, without an added pixel: boxes without area, with swapped corners or with non-finite
    values give 0 or NaN.  A union is at least 1e-6, so tiny boxes (normalised coordinates) miss.
    """
    l1, t1, r1, b1 = truths.T
    l2, t2, r2, b2 = predictions.T
    zero = np.float32(0)
    with np.errstate(all="ignore"):
        width = np.maximum(np.minimum(r1, r2) - np.maximum(l1, l2), zero)
        height = np.maximum(np.minimum(b1, b2) - np.maximum(t1, t2), zero)
        both = width * height
        # The order of summation decides the last bit, and thereby some hits.
        union = ((r1 - l1) * (b1 - t1) + (r2 - l2) * (b2 - t2)) - both
        values: Array = both / np.maximum(union, _LEAST_UNION)
    return values


class JudgedBoxes(NamedTuple):
    """The boxes of answers, compared with the true ones."""

    ious: list[float]  # No box: 0
    passed: list[int]  # Number of thresholds that the IoU exceeds; NaN: none


def compare_boxes(
    annotations: Sequence[Annotation], boxes: Sequence[Sequence[float] | None]
) -> JudgedBoxes:
    """Compare each box (None: there is none) with the annotation's."""
    truths = [annotation.corners for annotation in annotations]
    # A box without area has IoU 0 with everything.
    answers = [(0.0, 0.0, 0.0, 0.0) if box is None else box for box in boxes]
    values = paired_iou(_array(truths), _array(answers))
    passed = (values[:, None] > _LIMITS).sum(axis=1)
    return JudgedBoxes(values.tolist(), passed.tolist())


def _array(boxes: Sequence[Sequence[float]]) -> Array:
    with np.errstate(over="ignore"):  # A model may answer 1e300
        return np.array(boxes, np.float32).reshape(-1, 4)


ANSWERED_SUM = "asked"  # The sum of answered expressions
HIT_SUMS = tuple(
    f"hits_{threshold:g}" for threshold in IOU_THRESHOLDS
)  # Sums of hits, by threshold
HIT_MORE = f"lenient_{HIT_SUMS[0]}"  # The sum of hits of boxes that only a lenient reader takes


def sums_of(passed: int, has_box: bool, failed: bool = False) -> dict[str, float]:
    """Return the sums of an answer whose box exceeds ``passed`` thresholds."""
    hits = {name: int(at < passed and not failed) for at, name in enumerate(HIT_SUMS)}
    is_boxless = not has_box and not failed
    return {
        ANSWERED_SUM: int(not failed),
        "failed": int(failed),
        "boxless": int(is_boxless),
        **hits,
    }


CLASS = "class"  # Slices by class, by the authors' table
CORRECTED_CLASS = "corrected class"

# Slices by the number of words: the most words of each, and its name
_WORDS = ((10, "<=10"), (20, "11-20"), (40, "21-40"))


def slices_of(annotation: Annotation) -> dict[str, str]:
    """Return the slices of an expression that are known."""
    split = annotation.split
    category = annotation.ori_category_id
    slices = {
        "split": "" if split is RefL4Split.ALL else split.value,
        "size": object_size(annotation),
        "source": source_of(category),
        "words": _word_slice(annotation.caption),
        "wording": _wording(annotation),
        CLASS: class_of(category, AUTHORS_CLASSES),
        CORRECTED_CLASS: class_of(category, CORRECTED_CLASSES),
    }
    return {kind: value for kind, value in slices.items() if value}


def _word_slice(caption: str) -> str:
    count = len(caption.split())
    if not count:
        return ""
    return next((name for most, name in _WORDS if count <= most), ">40")


def _wording(annotation: Annotation) -> str:
    if annotation.is_rewrite is None:
        return ""
    return "rewritten" if annotation.is_rewrite else "original"


@dataclass(frozen=True, slots=True)
class AuthorsMetric(Metric):
    """A metric in the authors' order of operations, which decides the last bit.

    They round to two decimals: 49 hits of 160 are 30.625 %, which they print as 30.63, because
    their number is 30.625000000000004.

    >>> MACC.value({"asked": 16, "hits_0.5": 16, "hits_0.55": 16, "hits_0.6": 16, "hits_0.65": 1})
    30.625000000000004
    """

    percent_last: bool = False  # Thresholds are averaged as shares of 1

    def value(self, sums: Sums) -> float | None:
        by_threshold: dict[str, list[float]] = {}  # With an entry for each class
        for ratio in self.ratios(sums):
            (asked,) = ratio.whole
            count = sums.get(asked)
            if not count:
                continue
            for at, hits in enumerate(ratio.part):
                share = sums.get(hits, 0) / count
                value = share if self.percent_last else share * 100
                by_threshold.setdefault(HIT_SUMS[at], []).append(value)
        if not by_threshold:
            return self.empty
        mean = statistics.mean([statistics.mean(values) for values in by_threshold.values()])
        return mean * 100 if self.percent_last else mean


_HITS_AT_HALF = {HIT_SUMS[0]: 1.0}
_ALL_HITS = dict.fromkeys(HIT_SUMS, 1.0)
_ASKED = {ANSWERED_SUM: 1.0}
_ASKED_AT_ALL = {ANSWERED_SUM: float(len(HIT_SUMS))}
_FOUND = Ratio(_HITS_AT_HALF, _ASKED)  # Who misses at 0.5 misses at all thresholds


def _of_size(size: str) -> tuple[Metric, Metric]:
    """Make the metrics acc (at 0.5) and macc (all thresholds) of a size."""
    acc = AuthorsMetric(
        f"{size}_acc",
        slice_weights(_HITS_AT_HALF, "size", size),
        slice_weights(_ASKED, "size", size),
        empty=None,
        in_short_tables=False,
        key=f"{size}_acc",
    )
    macc = AuthorsMetric(
        f"{size}_macc",
        slice_weights(_ALL_HITS, "size", size),
        slice_weights(_ASKED_AT_ALL, "size", size),
        empty=None,
        in_short_tables=False,
        key=f"{size}_macc",
        hits=Ratio(acc.part, acc.whole),
    )
    return acc, macc


CLASS_ACC = AuthorsMetric(
    "class_acc", _HITS_AT_HALF, _ASKED, over=CLASS, empty=None, key="class_acc"
)
CLASS_MACC = AuthorsMetric(
    "class_macc",
    _ALL_HITS,
    _ASKED_AT_ALL,
    over=CLASS,
    empty=None,
    in_short_tables=False,
    key="class_macc",
    hits=_FOUND,
)
# Share of expressions whose box has an IoU of 0.5 or more: the headline
ACC = AuthorsMetric("acc_0.5", _HITS_AT_HALF, _ASKED, empty=None)
# Mean of the accuracies at IoUs of 0.5 to 0.95
MACC = AuthorsMetric("macc", _ALL_HITS, _ASKED_AT_ALL, empty=None, percent_last=True, hits=_FOUND)

# The published metrics, by their published names and in their order
AUTHORS_METRICS = (
    ACC,
    AuthorsMetric("acc_0.75", {"hits_0.75": 1}, _ASKED, empty=None, in_short_tables=False),
    AuthorsMetric("acc_0.9", {"hits_0.9": 1}, _ASKED, empty=None, in_short_tables=False),
    MACC,
    *_of_size("small"),
    *_of_size("medium"),
    *_of_size("large"),
    CLASS_ACC,
    CLASS_MACC,
)

# By the corrected table of classes
CORRECTED_METRICS = (
    replace(
        CLASS_ACC,
        name="class_acc (corrected)",
        over=CORRECTED_CLASS,
        in_short_tables=False,
        key="class_acc_corrected",
    ),
    replace(
        CLASS_MACC,
        name="class_macc (corrected)",
        over=CORRECTED_CLASS,
        key="class_macc_corrected",
    ),
)
ADHERENCE = Metric(
    "Adherence", {"adherent": 1}, _ASKED, empty=None, in_short_tables=False, key="adherence"
)

# The headline where answers without a box get the first box that lenient parsing finds
ACC_LENIENT = Metric(
    "acc_0.5 (lenient)",
    {**_HITS_AT_HALF, HIT_MORE: 1},
    _ASKED,
    empty=None,
    in_short_tables=False,
    key="acc_0.5_lenient",
)

# All metrics of a score, the authors' twelve first
METRICS = (*AUTHORS_METRICS, *CORRECTED_METRICS, ADHERENCE, ACC_LENIENT)

# No other metric counts failed calls.
ACC_FAILED_MISSED = Metric(
    "acc_0.5 (failed calls as misses)",
    _HITS_AT_HALF,
    {ANSWERED_SUM: 1, "failed": 1},
    empty=None,
    key="acc_0.5_failed_missed",
)

RANKING = (ACC_FAILED_MISSED, MACC, ADHERENCE)
COUNTS = {"hits at 0.5": HIT_SUMS[0], "without a box": "boxless"}
