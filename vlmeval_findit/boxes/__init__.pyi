"""The door of the room: names, in the order in which a newcomer should meet them."""

from .representation import (
    Corners as Corners,
    NO_RECTANGLE as NO_RECTANGLE,
    MatchRule as MatchRule,
    CLASS_KEY as CLASS_KEY,
    BOX_KEYS as BOX_KEYS,
    Representation as Representation,
    PAPER_REPRESENTATIONS as PAPER_REPRESENTATIONS,
    REPRESENTATIONS as REPRESENTATIONS,
    OUTPUTS as OUTPUTS,
    DEFAULT_KEY as DEFAULT_KEY,
    JSON_KEYS as JSON_KEYS,
    default_key as default_key,
    DEFAULT_STRUCTURE as DEFAULT_STRUCTURE,
    STRUCTURES as STRUCTURES,
    PLURAL_KEYS as PLURAL_KEYS,
    ReplyFormat as ReplyFormat,
)

from .box_records import (
    Mask as Mask,
    Ignored as Ignored,
    Truth as Truth,
    FormatFailure as FormatFailure,
    ParsedReply as ParsedReply,
    NO_BOX as NO_BOX,
    MatchResult as MatchResult,
)

from .image_border import (
    BORDER_MARGIN as BORDER_MARGIN,
    leaves_image as leaves_image,
    is_in_first_pixel as is_in_first_pixel,
)

from .reading import (
    Reader as Reader,
    read as read,
    reader as reader,
)

from .writing import (
    BoxToWrite as BoxToWrite,
    write as write,
    schema_of as schema_of,
)

from .spaces import (
    Size as Size,
    ImageExtent as ImageExtent,
    ToPixels as ToPixels,
    SpaceError as SpaceError,
    Space as Space,
    space_from as space_from,
    reply_extent as reply_extent,
    reference_size as reference_size,
    to_pixels as to_pixels,
    as_sent as as_sent,
    smart_resize as smart_resize,
    chat_resize as chat_resize,
    SpaceKind as SpaceKind,
    PIXELS as PIXELS,
    SPACE_KINDS as SPACE_KINDS,
    FILE_PIXELS as FILE_PIXELS,
    spaces_help as spaces_help,
    stated_space as stated_space,
)

from .matching import (
    HIT_IOU as HIT_IOU,
    iou as iou,
    as_decimal as as_decimal,
    match as match,
    plain_label as plain_label,
    points_inside as points_inside,
)

from .answer_kinds import (
    AnswerKind as AnswerKind,
    answer_kind as answer_kind,
    has_number_or_bracket as has_number_or_bracket,
)

from .error_types import (
    CountsAs as CountsAs,
    BoxError as BoxError,
    ErrorEvent as ErrorEvent,
    JudgedAnswer as JudgedAnswer,
    classify_errors as classify_errors,
    f1_costs as f1_costs,
)

from .box_answer import (
    BoxAnswer as BoxAnswer,
    LenientBoxes as LenientBoxes,
    finite_corners as finite_corners,
    match_details as match_details,
    stated_details as stated_details,
    recovered_objects as recovered_objects,
    lenient_details as lenient_details,
    mask_details as mask_details,
    confidence_details as confidence_details,
    with_confidences as with_confidences,
    first_box_details as first_box_details,
)

from .confidences import (
    CONFIDENCE_DEFINITIONS as CONFIDENCE_DEFINITIONS,
    AGREEMENT as AGREEMENT,
    CONFIDENCE_MEANINGS as CONFIDENCE_MEANINGS,
    DEFAULT_CONFIDENCE as DEFAULT_CONFIDENCE,
    Confidences as Confidences,
    confidences as confidences,
)

from .spans import (
    Span as Span,
    stated_places as stated_places,
)

from .hungarian import (
    CELLS_AT_ONCE as CELLS_AT_ONCE,
    assign as assign,
    assign_sparse as assign_sparse,
)

from .lenient.lenient_parsing import (
    LONGEST_REPLY as LONGEST_REPLY,
    LenientReply as LenientReply,
    parse_leniently as parse_leniently,
)

from .lenient.records import (
    Repair as Repair,
)

from .lenient.repaired_values import (
    List as List,
    Object as Object,
    values_in as values_in,
)
