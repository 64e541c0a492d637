"""The door of the room: names, in the order in which a newcomer should meet them."""

from .influences import (
    FEWEST_IMAGES as FEWEST_IMAGES,
    Indices as Indices,
    ClusteredSums as ClusteredSums,
    clustered_sums as clustered_sums,
    Estimate as Estimate,
    effective_number as effective_number,
    estimate_metrics as estimate_metrics,
    mean_of_estimates as mean_of_estimates,
)

from .intervals import (
    ALPHA as ALPHA,
    TOO_FEW_IMAGES as TOO_FEW_IMAGES,
    WHICH_IMAGES_COUNT as WHICH_IMAGES_COUNT,
    INTERVALS_LEGEND as INTERVALS_LEGEND,
    INTERVALS_ALONE as INTERVALS_ALONE,
    Interval as Interval,
    FamilyOfTests as FamilyOfTests,
    Verdict as Verdict,
    Difference as Difference,
    share_bounds as share_bounds,
    metric_intervals as metric_intervals,
    paired_difference as paired_difference,
    chance_of_lead as chance_of_lead,
    BOOTSTRAP_SAMPLES as BOOTSTRAP_SAMPLES,
    bootstrap_weights as bootstrap_weights,
    bootstrap_interval as bootstrap_interval,
    slice_intervals as slice_intervals,
)

from .sample_size import (
    CHANCE as CHANCE,
    Pilot as Pilot,
    Sized as Sized,
    pilot_of as pilot_of,
    assumed_pilot as assumed_pilot,
    smallest_difference as smallest_difference,
    images_needed as images_needed,
)

from .share_intervals import (
    Sampled as Sampled,
    mean_ends as mean_ends,
    CONFIDENCE_LEVEL as CONFIDENCE_LEVEL,
    SampledChanges as SampledChanges,
    reaches_of_changes as reaches_of_changes,
)

from .multiple_tests import (
    correct_by_holm as correct_by_holm,
    drop_allowance as drop_allowance,
    least_likely as least_likely,
    alpha_share as alpha_share,
    BestOf as BestOf,
    corrected_for_pairs as corrected_for_pairs,
)

from .rank_ranges import (
    RankRange as RankRange,
    rank_ranges as rank_ranges,
)

from .error_estimates import (
    estimate_errors as estimate_errors,
    estimate_all_errors as estimate_all_errors,
)

from .confidence_measures import (
    f1_curve as f1_curve,
    Threshold as Threshold,
    best_threshold as best_threshold,
    Matches as Matches,
    average_precision as average_precision,
    Bin as Bin,
    ConfidentBoxes as ConfidentBoxes,
    reliability as reliability,
    calibration_error as calibration_error,
    CalibrationError as CalibrationError,
    estimate_calibration_error as estimate_calibration_error,
)

from .equal_confidences import (
    Chain as Chain,
    ExpectedPrecision as ExpectedPrecision,
    expected_precision as expected_precision,
)

from .order_bounds import (
    MissLimits as MissLimits,
    highest_precision as highest_precision,
    lowest_precision as lowest_precision,
)

from .label_doubts import (
    Flags as Flags,
    CORRELATION as CORRELATION,
    FAMILY_CORRELATION as FAMILY_CORRELATION,
    LabelFault as LabelFault,
    FAULTS as FAULTS,
    LIKELY as LIKELY,
    UNNAMED as UNNAMED,
    UNKNOWN_CLASS as UNKNOWN_CLASS,
    LabelledObjects as LabelledObjects,
    OtherObjects as OtherObjects,
    Votes as Votes,
    LabelDoubts as LabelDoubts,
    label_doubts as label_doubts,
    DoubtCalibration as DoubtCalibration,
    calibrate_doubts as calibrate_doubts,
)

from .reviewed_estimates import (
    CountEstimate as CountEstimate,
    count_wrong as count_wrong,
    RandomRows as RandomRows,
    sums_of_all_rows as sums_of_all_rows,
    value_of_all_rows as value_of_all_rows,
    estimate_all_rows as estimate_all_rows,
    cohens_kappa as cohens_kappa,
)

from .held_out_sums import (
    Chosen as Chosen,
    second_half as second_half,
    names_of_sums as names_of_sums,
    totals_of as totals_of,
    join_rows as join_rows,
)
