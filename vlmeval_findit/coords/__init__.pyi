"""The door of the room: names, in the order in which a newcomer should meet them."""

from .conventions import (
    Distortion as Distortion,
    scaling_of as scaling_of,
    NO_DISTORTION as NO_DISTORTION,
    Convention as Convention,
    CoordinateMap as CoordinateMap,
    SpaceRow as SpaceRow,
    SPACES as SPACES,
    conventions as conventions,
    space_row_of as space_row_of,
    describe_convention as describe_convention,
    Order as Order,
    CORNERS_EXCHANGED as CORNERS_EXCHANGED,
    ORDERS as ORDERS,
)

from .run_check import (
    NotBoxesError as NotBoxesError,
    RunReplies as RunReplies,
    replies_of_run as replies_of_run,
    matched_in as matched_in,
    metrics_in as metrics_in,
    ConventionMetrics as ConventionMetrics,
    CoordinateCheck as CoordinateCheck,
    check_run as check_run,
    check_points as check_points,
)

from .run_arrays import (
    MOST_BOXES as MOST_BOXES,
    AnsweredQuery as AnsweredQuery,
    RunArrays as RunArrays,
    run_arrays as run_arrays,
)

from .diagnosis import (
    ALIKE_DISTANCE as ALIKE_DISTANCE,
    CoordinateVerdict as CoordinateVerdict,
    SecondConvention as SecondConvention,
    UnlistedConvention as UnlistedConvention,
    RunFit as RunFit,
    Diagnosis as Diagnosis,
    diagnose as diagnose,
    why_too_few as why_too_few,
    decide_verdict as decide_verdict,
)

from .likelihood import (
    to_boxes as to_boxes,
    to_numbers as to_numbers,
    screen_conventions as screen_conventions,
    convention_distance as convention_distance,
    fit_distortion as fit_distortion,
)

from .free_resize import (
    ResizeFit as ResizeFit,
    fit_resize as fit_resize,
    box_ious as box_ious,
    mean_iou as mean_iou,
    least_gain as least_gain,
)

from .bend import (
    bent_axes as bent_axes,
)

from .point_check import (
    X_FIRST as X_FIRST,
    Y_FIRST as Y_FIRST,
    PointFit as PointFit,
    PointDiagnosis as PointDiagnosis,
    diagnose_points as diagnose_points,
)

from .probe_verdict import (
    FEWEST_PROBE_BOXES as FEWEST_PROBE_BOXES,
    ProbeVerdict as ProbeVerdict,
    ProbeResult as ProbeResult,
    judge_probe as judge_probe,
    SizeGroup as SizeGroup,
    group_by_size as group_by_size,
    OtherFormat as OtherFormat,
    find_other_format as find_other_format,
)

from . import (
    score_check as score_check,
)
