"""The door of the room: names, in the order in which a newcomer should meet them."""

from .benchmark import (
    scored_row as scored_row,
    draw as draw,
    first_option as first_option,
    random_option as random_option,
    BENCHMARK as BENCHMARK,
)

from .question_tables import (
    STAGE_2 as STAGE_2,
    VPBenchVariant as VPBenchVariant,
    parse as parse,
    message as message,
    write_table as write_table,
    read_table as read_table,
)

from .vp_query import (
    LETTERS as LETTERS,
    QuestionKind as QuestionKind,
    HintColumn as HintColumn,
    VPQuery as VPQuery,
    mark_colours as mark_colours,
    question_kind as question_kind,
    is_absent as is_absent,
    RegionRole as RegionRole,
    SOURCE_NAMES as SOURCE_NAMES,
    MarkedRegion as MarkedRegion,
    Stage2Row as Stage2Row,
    stage2_rows as stage2_rows,
)

from .letter_reading import (
    published_letter as published_letter,
    read_letter as read_letter,
)

from .letter_claims import (
    find_claims as find_claims,
    concluded_letters as concluded_letters,
    denied_letters as denied_letters,
    DENIED as DENIED,
    CLAIMED as CLAIMED,
)

from .letter_metrics import (
    AS_PUBLISHED as AS_PUBLISHED,
    HALLUCINATION as HALLUCINATION,
    MEAN_OVER_SOURCES as MEAN_OVER_SOURCES,
)

from .stage1_release import (
    prepare_stage1 as prepare_stage1,
)

from .stage2_release import (
    prepare_stage2 as prepare_stage2,
    parts_in as parts_in,
    reading_of as reading_of,
)

from .stage2_dataset import (
    VARIANTS as VARIANTS,
    load_stage2 as load_stage2,
    for_model as for_model,
)

from .mark_choices import (
    BestMarkError as BestMarkError,
    MarkChoice as MarkChoice,
)

from . import (
    mark_choices as mark_choices,
    stage1_release as stage1_release,
    stage2_release as stage2_release,
)

PREFIX: str
