"""The door of the room: names, in the order in which a newcomer should meet them."""

from .run_statistics import (
    HIT_SCORE as HIT_SCORE,
    estimate_run as estimate_run,
    run_intervals as run_intervals,
    SameAnswers as SameAnswers,
    is_same_run as is_same_run,
    same_answers as same_answers,
    compare_runs as compare_runs,
    PairTest as PairTest,
    paired_differences as paired_differences,
    compare_means as compare_means,
    untested_metrics as untested_metrics,
    scores_by_index as scores_by_index,
    compare_hits as compare_hits,
    pair_runs as pair_runs,
)

from .detection import (
    Detectable as Detectable,
    detectable_differences as detectable_differences,
    format_pilots as format_pilots,
    shown_by_search as shown_by_search,
)

from .comparable_pairs import (
    StatisticsError as StatisticsError,
    check_comparable as check_comparable,
    is_favoured as is_favoured,
    known_images as known_images,
    other_images as other_images,
    transparent_rows as transparent_rows,
)

from .worded_objects import (
    WORDED_METRICS as WORDED_METRICS,
    WordedObjects as WordedObjects,
    objects_named as objects_named,
    find_by_all_words as find_by_all_words,
)

from .run_errors import (
    ErrorCost as ErrorCost,
    rows_with_events_of as rows_with_events_of,
    error_types_of as error_types_of,
    errors_of as errors_of,
    points_of as points_of,
    error_estimate as error_estimate,
    compare_errors as compare_errors,
    error_differences as error_differences,
    SliceErrors as SliceErrors,
    errors_by_slice as errors_by_slice,
    rejection_shares as rejection_shares,
    LenientGain as LenientGain,
    lenient_replies as lenient_replies,
    lenient_gain as lenient_gain,
    gain_by_repair as gain_by_repair,
    reading_notes as reading_notes,
)

from .answer_notes import (
    adherence_note as adherence_note,
    nothing_found_note as nothing_found_note,
)

from .run_calibration import (
    APValue as APValue,
    CalibrationResult as CalibrationResult,
    DefinitionResult as DefinitionResult,
    measure_calibration as measure_calibration,
)

from .box_orders import (
    Overlaps as Overlaps,
    BoxOrders as BoxOrders,
)

from .order_ends import (
    OrderEnds as OrderEnds,
)

from .over_orders import (
    precision_over_orders as precision_over_orders,
)

from .unranked_precision import (
    UnrankedValues as UnrankedValues,
    UnrankedPrecision as UnrankedPrecision,
    measure_unranked as measure_unranked,
    mean_unranked as mean_unranked,
)

from .sample_scores import (
    SamplesError as SamplesError,
    sample_files as sample_files,
    load_samples as load_samples,
    SamplesScore as SamplesScore,
    score_samples as score_samples,
    pass_at as pass_at,
    pass_estimate as pass_estimate,
    add_agreement as add_agreement,
)

from .best_format import (
    UNEVEN_DATASETS as UNEVEN_DATASETS,
    ranking_rule as ranking_rule,
    FormatAverage as FormatAverage,
    rank_formats as rank_formats,
)

from .format_file import (
    format_averages as format_averages,
    choose_best_format as choose_best_format,
    search_outcome as search_outcome,
    AsGood as AsGood,
    formats_as_good as formats_as_good,
    elsewhere_of as elsewhere_of,
    INTERVAL_SUFFIX as INTERVAL_SUFFIX,
    race_calls as race_calls,
    dropped_formats as dropped_formats,
    write_formats as write_formats,
    BestFormats as BestFormats,
    FormatOutcome as FormatOutcome,
    FormatsFile as FormatsFile,
)

from .race_rules import (
    RACE_ROUNDS as RACE_ROUNDS,
    rounds_of as rounds_of,
    rank_round as rank_round,
)

from .pareto_front import (
    counted_score as counted_score,
    pareto_front as pareto_front,
)

from .cost_differences import (
    CostDifference as CostDifference,
    compare_costs as compare_costs,
    shared_costs as shared_costs,
)

from .label_audit import (
    RANDOM_ROWS_SEED as RANDOM_ROWS_SEED,
    FEWEST_LISTED as FEWEST_LISTED,
    FEWEST_RANDOM as FEWEST_RANDOM,
    Voter as Voter,
    AuditedRow as AuditedRow,
    LabelAudit as LabelAudit,
    ReviewedRows as ReviewedRows,
    why_no_voter as why_no_voter,
    family_of as family_of,
    known_family as known_family,
    audit_labels as audit_labels,
    with_reviews as with_reviews,
    DrawnRow as DrawnRow,
    draw_rows as draw_rows,
    audit_record as audit_record,
    sums_if_wrong as sums_if_wrong,
)

from .label_votes import (
    ClassedBoxes as ClassedBoxes,
    classed_boxes as classed_boxes,
    count_votes as count_votes,
)

from .label_proposals import (
    ClassNumbers as ClassNumbers,
    LabelProposal as LabelProposal,
    LabelProposals as LabelProposals,
)

from .review_summary import (
    ReviewerAgreement as ReviewerAgreement,
    WrongLabels as WrongLabels,
    ReviewSummary as ReviewSummary,
    reviews_by_table as reviews_by_table,
    summarise_reviews as summarise_reviews,
    estimate_wrong as estimate_wrong,
)

from .consensus import (
    write_consensus as write_consensus,
)

from .box_fusion import (
    group_of as group_of,
    fuse_boxes as fuse_boxes,
)

from .coco_boxes import (
    ConfidenceError as ConfidenceError,
    NoConfidenceError as NoConfidenceError,
    definitions_in as definitions_in,
    boxes_of_rows as boxes_of_rows,
    CocoBoxes as CocoBoxes,
)

from .coco_evaluator import (
    CocoEvaluator as CocoEvaluator,
)

from .scored_tables import (
    load_scored_dataset as load_scored_dataset,
    check_table as check_table,
)

from . import (
    run_statistics as run_statistics,
)

from .held_out_answers import (
    ELSEWHERE as ELSEWHERE,
    ELSEWHERE_MEANING as ELSEWHERE_MEANING,
    TOO_FEW_TO_CHOOSE as TOO_FEW_TO_CHOOSE,
    HeldOutAnswers as HeldOutAnswers,
    held_out_answers as held_out_answers,
)
