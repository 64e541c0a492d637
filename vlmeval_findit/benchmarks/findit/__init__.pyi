"""The door of the room: names, in the order in which a newcomer should meet them."""

from .benchmark import (
    full_image as full_image,
    FindIt as FindIt,
    HOST_CLASSES as HOST_CLASSES,
    BENCHMARK as BENCHMARK,
)

from .variant import (
    CENTRES as CENTRES,
    MARKS as MARKS,
    DECODINGS as DECODINGS,
    VariantError as VariantError,
    FindItVariant as FindItVariant,
    format_problem as format_problem,
)

from .dataset_names import (
    NameParts as NameParts,
    parse as parse,
    parse_format as parse_format,
    SUBSETS as SUBSETS,
    table_called as table_called,
)

from .findit_datasets import (
    Family as Family,
    Subset as Subset,
    Dataset as Dataset,
    BENCHMARK_DATASETS as BENCHMARK_DATASETS,
    DATASETS as DATASETS,
    custom_rows as custom_rows,
)

from .findit_query import (
    Sighting as Sighting,
    FindItQuery as FindItQuery,
    kept_frames as kept_frames,
    thinned_query as thinned_query,
    with_answer as with_answer,
    asked_labels as asked_labels,
)

from .grid import (
    AnswerFormat as AnswerFormat,
    STAGE_WINNER as STAGE_WINNER,
    AnnotationTable as AnnotationTable,
    all_tables as all_tables,
    release_tables as release_tables,
    FormatAxes as FormatAxes,
    AXIS_VALUES as AXIS_VALUES,
    axis_from as axis_from,
    axes_of as axes_of,
    formats as formats,
    Views as Views,
    variants as variants,
)

from .annotation_tables import (
    odd_boxes as odd_boxes,
    PreparedTable as PreparedTable,
    write_table as write_table,
    write_rows as write_rows,
    find_table as find_table,
    how_to_make as how_to_make,
    read_table as read_table,
    LoadedFindIt as LoadedFindIt,
)

from .box_prompts import (
    PROMPTS_NAME as PROMPTS_NAME,
    message as message,
)

from .release_prompts import (
    FamilyPromptError as FamilyPromptError,
    Asks as Asks,
    FAMILY_PROMPTS as FAMILY_PROMPTS,
    PromptError as PromptError,
    prompt_set as prompt_set,
)

from .reply_scoring import (
    ScoredReply as ScoredReply,
    FORMAT_FAILURES as FORMAT_FAILURES,
    match_replies as match_replies,
    scored_row as scored_row,
)

from .box_metrics import (
    LenientResult as LenientResult,
    lenient_matches as lenient_matches,
    box_answer_kind as box_answer_kind,
    NegativeOutcome as NegativeOutcome,
    NEGATIVE_OUTCOMES as NEGATIVE_OUTCOMES,
    NEGATIVE_SHARES as NEGATIVE_SHARES,
    REJECTION_ACCURACY as REJECTION_ACCURACY,
    FALSE_ALARM_RATE as FALSE_ALARM_RATE,
    rejections as rejections,
    mask_line as mask_line,
    mask_sums as mask_sums,
    rejection_line as rejection_line,
    box_sums as box_sums,
    F1 as F1,
    MIOU as MIOU,
    ADHERENCE as ADHERENCE,
    PRECISION as PRECISION,
    RECALL as RECALL,
    F1_FAILED_MISSED as F1_FAILED_MISSED,
    METRICS as METRICS,
    RANKING as RANKING,
    POINTS_INSIDE as POINTS_INSIDE,
    BOX_METRICS as BOX_METRICS,
    POINT_METRICS as POINT_METRICS,
    METRICS_BY_RULE as METRICS_BY_RULE,
)

from .f1_errors import (
    SIZE_SLICES as SIZE_SLICES,
    OBJECT_COUNT_SLICES as OBJECT_COUNT_SLICES,
    ERROR_TYPES as ERROR_TYPES,
    F1Errors as F1Errors,
    event_sums as event_sums,
    coco_size as coco_size,
)

from .run_space import (
    SpaceInForce as SpaceInForce,
    spaces_of as spaces_of,
    space_of_whole_images as space_of_whole_images,
    pixel_map as pixel_map,
    reply_format as reply_format,
)

from .box_outcomes import (
    IOU_THRESHOLDS as IOU_THRESHOLDS,
    box_roles as box_roles,
    draw as draw,
    draw_as as draw_as,
    threshold_curve as threshold_curve,
)

from .marked_references import (
    REFERENCE_RECIPE as REFERENCE_RECIPE,
    LONGEST_REFERENCE_SIDE as LONGEST_REFERENCE_SIDE,
    REFERENCE_SLICES as REFERENCE_SLICES,
    ReferenceOrigin as ReferenceOrigin,
    MarkedReference as MarkedReference,
    choose_references as choose_references,
    marked_crop as marked_crop,
)

from .release_subsets import (
    query_from_row as query_from_row,
    prepare_subset as prepare_subset,
    tables_of as tables_of,
)

from . import (
    box_outcomes as box_outcomes,
    box_prompts as box_prompts,
)

PREFIX: str
