"""The rows that the authors published.  They are not ours: tables show them as published."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

SOURCE = (
    "arXiv 2406.16866, tables 4 and 5, figures 10 and 11 (class_macc); "
    "class_acc of CogVLM-Grounding from the benchmark's README"
)
CLEANED_SOURCE = "arXiv 2406.16866, tables 1 and 2"


class OutputKind(Enum):
    """What a model answers with."""

    BOX = "box"
    MASK = "mask"
    """Scored by its tight box."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A published row: val and test together where a field does not name one, in percent."""

    model: str
    acc_050: float
    acc_075: float
    acc_090: float
    macc: float
    macc_val: float
    macc_test: float
    small_acc: float
    small_macc: float
    medium_acc: float
    medium_macc: float
    large_acc: float
    large_macc: float
    class_macc: float
    class_acc: float | None
    """Known of one model only."""
    output: OutputKind
    source: str

    @property
    def named(self) -> dict[str, float | None]:
        """The twelve figures by their published names, as :attr:`.figures.Figures.named`."""
        return {
            "acc_0.5": self.acc_050,
            "acc_0.75": self.acc_075,
            "acc_0.9": self.acc_090,
            "macc": self.macc,
            "small_acc": self.small_acc,
            "small_macc": self.small_macc,
            "medium_acc": self.medium_acc,
            "medium_macc": self.medium_macc,
            "large_acc": self.large_acc,
            "large_macc": self.large_macc,
            "class_acc": self.class_acc,
            "class_macc": self.class_macc,
        }


@dataclass(frozen=True, slots=True)
class PublishedCleaned:
    """A published pair of accuracies (IoU above 0.5) on val and all tests of a dataset, in percent.

    ``fine_tuned``: on that dataset's training part.
    """

    model: str
    dataset: str
    original: float
    kept: float
    fine_tuned: bool
    source: str = CLEANED_SOURCE


_COLUMNS = (
    *("acc_050", "acc_075", "acc_090", "macc", "macc_val", "macc_test"),
    *("small_acc", "small_macc", "medium_acc", "medium_macc", "large_acc", "large_macc"),
    "class_macc",
)

# A dagger marks masks.
_ROWS = """
GPT-4V             9.91  1.19  0.12  2.88  2.96  2.85  2.13  0.49 10.29  2.78 14.93  4.83  1.42
KOSMOS-2          48.53 38.34 17.54 34.72 34.89 34.64 24.19 11.63 46.95 32.91 69.32 54.98 19.37
OFA-Tiny          55.21 43.22 27.70 41.44 41.53 41.40 17.91 11.49 65.13 49.00 64.46 49.61 15.37
OFA-Large         72.53 62.31 45.02 59.17 59.42 59.07 40.13 27.07 81.03 66.49 80.78 69.36 32.88
Ferret-7b         57.54 42.44 21.01 40.29 40.31 40.28 30.93 14.57 62.40 43.72 68.18 52.92 20.27
Ferret-13b        64.44 49.04 27.46 46.88 47.31 46.71 36.46 17.88 70.50 51.86 73.92 59.09 23.33
GroundingGPT      60.84 40.48 12.00 38.19 38.42 38.09 24.43 10.28 67.67 41.04 75.09 53.47 14.60
Shikra-7b         65.06 39.62 10.45 38.60 38.91 38.47 43.91 18.50 75.98 46.27 60.60 39.34 21.22
Lenna             65.90 58.55 45.58 55.69 55.88 55.60 31.02 23.48 72.90 61.53 78.72 68.66 34.30
MiniGPTv2         66.93 50.50 25.30 47.15 47.43 47.03 32.99 14.85 73.67 51.16 79.52 63.53 21.13
Qwen-VL-Chat      73.80 58.05 37.16 55.94 56.18 55.83 47.66 26.26 79.80 61.06 82.01 68.37 31.41
ONE-PEACE         70.82 60.09 36.12 55.07 55.49 54.89 22.18 13.98 83.26 63.39 83.81 70.04 24.11
SPHINX-MoE        66.23 44.90 15.32 42.38 42.80 42.21 39.48 16.39 72.97 46.38 73.55 54.17 18.77
SPHINX-MoE-1k     74.45 62.70 38.85 58.07 58.35 57.95 58.96 37.61 77.80 61.53 79.70 66.77 36.84
SPHINX            74.78 53.65 21.15 50.09 50.33 49.99 48.82 22.08 80.56 54.10 83.27 63.34 26.95
SPHINX-1k         78.52 62.17 32.95 57.57 57.91 57.42 59.48 33.21 82.95 61.82 84.40 67.68 36.01
SPHINX-v2-1k      81.31 70.49 46.59 65.39 65.67 65.27 65.23 43.43 84.00 68.45 88.21 75.91 46.40
CogVLM-Grounding  81.70 70.77 48.35 66.09 66.25 66.02 75.06 52.85 86.43 71.31 77.91 66.25 52.56
PixelLM-7B†       41.83 27.57 13.32 27.10 27.09 27.11  8.25  4.05 43.90 27.33 62.72 43.64  8.74
PixelLM-13B†      49.89 35.37 18.42 34.10 34.52 33.92 17.05  8.54 53.40 35.48 67.59 50.34 13.19
LISA-Explanatory† 65.12 52.35 38.26 50.77 50.89 50.72 39.11 27.16 70.03 54.61 75.25 61.09 29.87
LISA†             66.23 54.02 39.73 52.18 52.44 52.07 39.24 27.49 71.17 56.05 77.01 63.22 31.22
PSALM†            67.26 58.22 44.11 55.46 55.68 55.37 37.35 28.43 75.06 61.79 74.97 63.74 27.62
GlaMM†            71.90 60.27 45.15 57.89 58.16 57.78 47.07 34.36 77.17 62.28 80.50 67.14 36.25
"""

_CLASS_ACC = {"CogVLM-Grounding": 72.42}

# RefCOCO, RefCOCO+, RefCOCOg: original and kept.  A star marks models fine-tuned on the dataset.
_CLEANED = """
ONE-PEACE*        92.15 94.11 88.14 90.79 89.18 90.75
OFA-L*            89.85 92.06 85.06 87.38 84.77 86.39
OFA-L             85.13 87.95 77.56 80.50 79.25 80.89
Qwen-VL           88.51 90.68 82.52 85.60 85.11 86.79
CogVLM-Grounding  92.44 94.58 88.55 91.43 90.67 92.36
"""


def _row(line: str) -> PublishedRow:
    name, *values = line.split()
    model = name.removesuffix("†")
    return PublishedRow(
        model=model,
        **dict(zip(_COLUMNS, map(float, values), strict=True)),
        class_acc=_CLASS_ACC.get(model),
        output=OutputKind.BOX if model == name else OutputKind.MASK,
        source=SOURCE,
    )


def _pairs(line: str) -> list[PublishedCleaned]:
    name, *values = line.split()
    model = name.removesuffix("*")
    numbers = iter(map(float, values))
    return [
        PublishedCleaned(model, dataset, next(numbers), next(numbers), fine_tuned=model != name)
        for dataset in ("RefCOCO", "RefCOCO+", "RefCOCOg")
    ]


PUBLISHED: tuple[PublishedRow, ...] = tuple(map(_row, _ROWS.strip().splitlines()))
"""All published rows, in the authors' order."""

PUBLISHED_CLEANED: tuple[PublishedCleaned, ...] = tuple(
    pair for line in _CLEANED.strip().splitlines() for pair in _pairs(line)
)
"""All published pairs on RefCOCO/+/g, as published and cleaned."""
