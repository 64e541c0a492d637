"""The door of the room: names, in the order in which a newcomer should meet them."""

from .board import (
    OVERALL as OVERALL,
    RankedValue as RankedValue,
    DatasetMean as DatasetMean,
    Board as Board,
    BoardCell as BoardCell,
    boards as boards,
    make_board as make_board,
    difference_of as difference_of,
    best_first as best_first,
)

from .comparable import (
    ExcludedRun as ExcludedRun,
    group_comparable as group_comparable,
    of_one_scorer as of_one_scorer,
    of_answered_calls as of_answered_calls,
    asked_at as asked_at,
    group_by as group_by,
)

from .legends import (
    INTERVAL as INTERVAL,
    IN_A_TERMINAL as IN_A_TERMINAL,
    elsewhere_column as elsewhere_column,
    legend_of as legend_of,
)

from .reported_formats import (
    FormatError as FormatError,
    formats_by_model as formats_by_model,
    choose_reported as choose_reported,
    FormatRow as FormatRow,
)

from .notes import (
    signs_of as signs_of,
    how_to_read as how_to_read,
    format_note as format_note,
    cells_on_datasets as cells_on_datasets,
    datasets_in_words as datasets_in_words,
    formats_used as formats_used,
    SPACE_IN_DOUBT as SPACE_IN_DOUBT,
    FORMAT_NOT_FOLLOWED as FORMAT_NOT_FOLLOWED,
    NOTHING_FOUND as NOTHING_FOUND,
    ODD_REPLIES as ODD_REPLIES,
    formats_chosen as formats_chosen,
    formats_tried as formats_tried,
    formats_compared as formats_compared,
    notes_of as notes_of,
    remarks as remarks,
)

from .result_table import (
    FieldType as FieldType,
    Note as Note,
    Field as Field,
    TableCell as TableCell,
    Table as Table,
    text_of as text_of,
    range_of as range_of,
)

from .columns import (
    Column as Column,
    count_column as count_column,
    value_column as value_column,
    plain_value_column as plain_value_column,
    amount_column as amount_column,
    table_of as table_of,
)

from .board_tables import (
    metric_table as metric_table,
    overall_table as overall_table,
    tested_cell as tested_cell,
    values_table as values_table,
    sweep_table as sweep_table,
    excluded_table as excluded_table,
    slices_table as slices_table,
    run_slices_table as run_slices_table,
    slices_tables as slices_tables,
)

from .run_tables import (
    runs_table as runs_table,
    SIGNS_OF_ONE_RUN as SIGNS_OF_ONE_RUN,
    comparison_table as comparison_table,
    datasets_table as datasets_table,
    headline_title as headline_title,
    detection_table as detection_table,
    pairs_by_models as pairs_by_models,
    samples_table as samples_table,
    passes_table as passes_table,
    samples_legend as samples_legend,
    ranking_table as ranking_table,
    calibration_table as calibration_table,
    explain_tables as explain_tables,
)

from .unranked_tables import (
    UnrankedRun as UnrankedRun,
    unranked_table as unranked_table,
    explain_unranked as explain_unranked,
)

from .cost_tables import (
    RUN_COSTS as RUN_COSTS,
    dull_counts as dull_counts,
    cost_table as cost_table,
    cost_words as cost_words,
    cost_comparison_table as cost_comparison_table,
)

from .worded_tables import words_table as words_table

from .error_tables import (
    lost_table as lost_table,
    errors_table as errors_table,
    run_errors_table as run_errors_table,
    error_differences_table as error_differences_table,
    slice_errors_table as slice_errors_table,
    lenient_table as lenient_table,
    rejection_table as rejection_table,
)

from .label_tables import (
    doubts_table as doubts_table,
    calibration_text as calibration_text,
    kinds_line as kinds_line,
)

from .audit_voters import (
    VotersError as VotersError,
    choose_voters as choose_voters,
)

from .format_costs import (
    cheapest_formats as cheapest_formats,
    is_as_good as is_as_good,
    cheapest_table as cheapest_table,
    cheapest_sentence as cheapest_sentence,
)

from .format_spread import (
    format_spreads as format_spreads,
    spread_table as spread_table,
    spread_sentence as spread_sentence,
)

from .best_marks import (
    MARK_SHAPES as MARK_SHAPES,
    find_best_marks as find_best_marks,
)

from .ablation import (
    Ablation as Ablation,
    find_ablations as find_ablations,
    ablation_table as ablation_table,
)

from .learning_curve import (
    LearningCurve as LearningCurve,
    learning_curves as learning_curves,
    curve_table as curve_table,
    OTHER_FAMILY as OTHER_FAMILY,
)

from .reward_curve import (
    reward_table as reward_table,
)

from .table_output import (
    to_csv as to_csv,
    to_json as to_json,
    escape_markdown as escape_markdown,
    to_markdown as to_markdown,
    markdown_page as markdown_page,
    to_latex as to_latex,
    to_booktabs as to_booktabs,
    to_html as to_html,
    breakable as breakable,
    fits_terminal as fits_terminal,
    to_terminal as to_terminal,
)

from .board_files import (
    board_folder as board_folder,
    count_runs_of_tables as count_runs_of_tables,
    write_board as write_board,
    as_markdown as as_markdown,
    to_openvlm as to_openvlm,
)

from .latex_tables import (
    PaperStyle as PaperStyle,
    asked_with as asked_with,
    as_latex as as_latex,
)

from .workbook import (
    write_sheets as write_sheets,
)
