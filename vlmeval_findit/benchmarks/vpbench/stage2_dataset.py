"""The six formats of stage 2, loaded for all models or for a single model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import product

from ...core import suggestion
from ...protocol import DatasetNameError, LoadedDataset
from ...storage import draw_missing, find_table, image_folder
from . import stage2_asking as asking
from .mark_choices import BestMarkError, GoodMarks, MarkChoice, best_mark, good_marks
from .question_tables import MAX_NEW_TOKENS, STAGE_2, VPBenchVariant
from .vp_query import HOW_TO_MAKE_STAGE_2, Stage2Row, VPQuery, stage2_rows

IMAGES = "VPBench"  # key of the image folder


class RegionNaming(Enum):
    """How a question names its region."""

    BEST_MARK = "bvp"  # the mark that the model sees best in stage 1
    GOOD_MARK = "rbvp"  # a random mark for each question, among those that all models see well
    WORDS = "text"  # its place in words; images are not marked


@dataclass(frozen=True, slots=True)
class Stage2Variant(VPBenchVariant):
    """One format of stage 2."""

    naming: RegionNaming = RegionNaming.BEST_MARK
    described: bool = False  # a hint explains the mark or the words

    @property
    def axes(self) -> Mapping[str, str | int]:
        return {"naming": self.naming.value, "hint": "yes" if self.described else "no"}


def _variant(naming: RegionNaming, described: bool) -> Stage2Variant:
    described_part = "_described" if described else ""
    return Stage2Variant(
        f"{STAGE_2}_{naming.value}{described_part}",
        STAGE_2,
        IMAGES,
        family_name="Visual marks",
        max_new_tokens=MAX_NEW_TOKENS,
        naming=naming,
        described=described,
    )


_ALL = [_variant(naming, described) for naming, described in product(RegionNaming, (False, True))]
# The formats of stage 2 by the name of their dataset
VARIANTS = {variant.name: variant for variant in _ALL}


def is_of_stage2(name: str) -> bool:
    """Tell whether a name, perhaps mistyped, is of stage 2."""
    return name == STAGE_2 or name.startswith(f"{STAGE_2}_")


def parse(name: str) -> Stage2Variant:
    """Parse a name.

    >>> parse("VPBench_Stage2_text_described").described
    True

    Raises:
        DatasetNameError: invalid name.
    """
    if name not in VARIANTS:
        raise DatasetNameError(f"unknown dataset of stage 2 {name!r}{suggestion(name, VARIANTS)}")
    return VARIANTS[name]


LoadedStage2 = LoadedDataset[Stage2Variant, VPQuery]

# Keys of :attr:`.LoadedDataset.resolved_options`
MARK = "mark"
GOOD_MARKS = "good marks"
MARK_SOURCE = "source of the marks"
FROM_BOX = "drawn from boxes"  # how many marks had to use a box for an outline


def load_stage2(name: str) -> LoadedStage2:
    """Load a format of stage 2.

    With ``RegionNaming.BEST_MARK`` questions still have ``<color> <vp>`` and images are unmarked.

    Raises:
        DatasetNameError: an unknown format.
        FileNotFoundError: there is no table.
        TableError: the table cannot be read.
    """
    variant = parse(name)
    table = find_table(variant.table, HOW_TO_MAKE_STAGE_2)
    rows = stage2_rows(table)
    if variant.naming is RegionNaming.GOOD_MARK:
        return _marked(LoadedDataset(name, variant, table, {}), rows, *good_marks())
    if variant.naming is RegionNaming.WORDS:
        queries = [asking.query_in_words(row, variant.described) for row in rows]
    else:
        queries = [asking.unmarked_query(row) for row in rows]
    return LoadedDataset(name, variant, table, {query.index: query for query in queries})


def for_model(
    dataset: LoadedStage2, model: str, recorded: Mapping[str, str] | None
) -> LoadedStage2:
    """Return the dataset as it is for a model; see :meth:`.Benchmark.for_model`.

    Raises:
        BestMarkError: the model's best mark is unknown, or the run did not record its mark.
    """
    naming = dataset.variant.naming
    is_best = naming is RegionNaming.BEST_MARK
    if naming is RegionNaming.WORDS or (
        not is_best and recorded in (None, dataset.resolved_options)
    ):
        return dataset
    marks: MarkChoice | GoodMarks
    if recorded is None:
        marks, who = best_mark(model, dataset.variant.name)
    else:
        marks, who = _recorded_marks(dataset.variant, recorded)
    result = _marked(dataset, stage2_rows(dataset.table), marks, who)
    return replace(result, base_dataset=dataset) if is_best else result


def _recorded_marks(
    variant: Stage2Variant, recorded: Mapping[str, str]
) -> tuple[MarkChoice | GoodMarks, str]:
    """Return the marks that a run recorded, and who chose them."""
    is_best = variant.naming is RegionNaming.BEST_MARK
    key = MARK if is_best else GOOD_MARKS
    if key not in recorded or MARK_SOURCE not in recorded:
        raise BestMarkError(f"the run did not record its {key}: {variant.name}")
    kind = MarkChoice if is_best else GoodMarks
    return kind.from_name(recorded[key]), recorded[MARK_SOURCE]


def _marked(
    dataset: LoadedStage2, rows: Sequence[Stage2Row], marks: MarkChoice | GoodMarks, who: str
) -> LoadedStage2:
    described = dataset.variant.described
    queries: dict[int, VPQuery] = {}
    images: list[asking.MarkRequest] = []
    boxes = 0
    for row in rows:
        choice = marks.drawn_for(row.index)
        query, images_of_row = asking.query_with_marks(row, choice, described)
        queries[row.index] = query
        images += images_of_row
        boxes += asking.count_without_outline(row, choice.shape)
    folder = image_folder(dataset.variant.images)
    draw_missing(
        folder, {each.name: partial(asking.draw_marked_image, each, folder.path) for each in images}
    )
    key = MARK if isinstance(marks, MarkChoice) else GOOD_MARKS
    selected = {key: marks.name, MARK_SOURCE: who}
    if boxes:
        selected[FROM_BOX] = f"{boxes} of {sum(len(row.marks) for row in rows)}"
    return replace(dataset, queries=queries, resolved_options=selected)
