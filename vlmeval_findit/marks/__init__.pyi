"""The door of the room: names, in the order in which a newcomer should meet them."""

from .style import (
    StyleError as StyleError,
    Shape as Shape,
    ONLY_VARIANT as ONLY_VARIANT,
    STYLES as STYLES,
    COLOURS as COLOURS,
    CONTRAST as CONTRAST,
    DEFAULT_WIDTH as DEFAULT_WIDTH,
    Style as Style,
    default_style as default_style,
    words_of as words_of,
    contrasting_colour as contrasting_colour,
)

from .mark_drawing import (
    MarkedImage as MarkedImage,
    draw_marks as draw_marks,
)

from .region import (
    MaskArray as MaskArray,
    RLEError as RLEError,
    PackedMask as PackedMask,
    packed_mask as packed_mask,
    rle_of as rle_of,
    pack_several as pack_several,
    Polygon as Polygon,
    Region as Region,
)

from .predicted_masks import (
    MASK_KEYS as MASK_KEYS,
    MaskError as MaskError,
    box_of_mask as box_of_mask,
)

from .masks_in_replies import (
    MaskReading as MaskReading,
    read_masks as read_masks,
)

from .shapes import (
    ARROW_SHAFT as ARROW_SHAFT,
)

from .scribble import (
    skeleton_curve as skeleton_curve,
    skeleton_of as skeleton_of,
)

from . import (
    style as style,
)
