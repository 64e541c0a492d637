"""The door of the room: names, in the order in which a newcomer should meet them."""

from .benchmark import (
    published as published,
    BENCHMARK as BENCHMARK,
)

from .expression_tables import (
    RefL4Variant as RefL4Variant,
    DATASETS as DATASETS,
    read_table as read_table,
    load_dataset as load_dataset,
    prepare as prepare,
)

from .refl4_annotations import (
    RefusedError as RefusedError,
    Corners as Corners,
    RefL4Split as RefL4Split,
    Annotation as Annotation,
    object_size as object_size,
    file_name as file_name,
    annotation as annotation,
    of_split as of_split,
    read_annotations as read_annotations,
    RELEASE_COUNTS as RELEASE_COUNTS,
    unlike_release as unlike_release,
    read_box as read_box,
    predictions_from as predictions_from,
    boxes_of as boxes_of,
    replies_of as replies_of,
)

from .accuracy_metrics import (
    IOU_THRESHOLDS as IOU_THRESHOLDS,
    paired_iou as paired_iou,
    compare_boxes as compare_boxes,
    ANSWERED_SUM as ANSWERED_SUM,
    HIT_SUMS as HIT_SUMS,
    sums_of as sums_of,
    slices_of as slices_of,
    ACC as ACC,
    MACC as MACC,
    AUTHORS_METRICS as AUTHORS_METRICS,
    CORRECTED_METRICS as CORRECTED_METRICS,
    METRICS as METRICS,
    ONE_TOO_LOW as ONE_TOO_LOW,
    AUTHORS_CLASSES as AUTHORS_CLASSES,
    CORRECTED_CLASSES as CORRECTED_CLASSES,
    class_of as class_of,
)

from .published_reviews import (
    JoinKey as JoinKey,
    PublishedEntry as PublishedEntry,
    PublishedReviews as PublishedReviews,
    is_published_list as is_published_list,
    read_published as read_published,
    plain_number as plain_number,
    image_number as image_number,
    join_reviews as join_reviews,
)

from . import (
    expression_tables as expression_tables,
)

PREFIX: str
