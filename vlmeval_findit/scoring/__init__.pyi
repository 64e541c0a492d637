"""The door of the room: names, in the order in which a newcomer should meet them."""

from .pipeline import (
    score_file as score_file,
    open_predictions as open_predictions,
    check_replies as check_replies,
)

from .score_writing import (
    write_score as write_score,
    score_row as score_row,
    details_line as details_line,
    settings_of_score as settings_of_score,
    open_score as open_score,
)

from .provenance import (
    UNKNOWN_PROMPTS as UNKNOWN_PROMPTS,
    Provenance as Provenance,
    read_provenance as read_provenance,
    provenance_values as provenance_values,
    space_in_words as space_in_words,
)

from .stored_runs import (
    RowData as RowData,
    RunError as RunError,
    Run as Run,
    PluginMissingError as PluginMissingError,
    load_runs as load_runs,
    load_run as load_run,
    read_details as read_details,
    with_details as with_details,
)

from .row_scoring import (
    UNANSWERED as UNANSWERED,
    RunScore as RunScore,
    score_rows as score_rows,
    join_scores as join_scores,
    check_coordinates as check_coordinates,
    without_details as without_details,
    SearchError as SearchError,
    DroppedFormat as DroppedFormat,
    CellResult as CellResult,
    result_of as result_of,
    refuse_unanswered as refuse_unanswered,
)

from .score_reading import (
    ScoreFileError as ScoreFileError,
    lines_of_sums as lines_of_sums,
    read_details_line as read_details_line,
)

from .stored_sums import (
    SumsOfRows as SumsOfRows,
    read_sums as read_sums,
    sums_in_details as sums_in_details,
    write_sums as write_sums,
)

from .score_seal import (
    ScoreBasis as ScoreBasis,
    alike_but_for_time as alike_but_for_time,
    read_sealed as read_sealed,
)

from .prediction_names import (
    names_of as names_of,
    prediction_files as prediction_files,
    refuse_missing_runs as refuse_missing_runs,
    score_command as score_command,
)

from .new_identity import (
    run_identity as run_identity,
    identity_of_others as identity_of_others,
    plugin_tables as plugin_tables,
)

from .records_of_others import (
    refuse_yolo_folders as refuse_yolo_folders,
)

from .conversion import (
    convert_file as convert_file,
    REPLY_LAYOUTS as REPLY_LAYOUTS,
)

from .coco_predictions import (
    ConversionChoices as ConversionChoices,
)

from .answered_by import (
    count_models as count_models,
    as_values as as_values,
    models_in as models_in,
    answered_note as answered_note,
    answered_note_of as answered_note_of,
    keys_of as keys_of,
)

from .reply_note import (
    count_replies as count_replies,
    reply_note as reply_note,
)

from .reviewed_runs import (
    score_beside as score_beside,
    tables_of as tables_of,
    reviewed_runs as reviewed_runs,
    score_file_reviewed as score_file_reviewed,
)

from .reviewed_score import (
    TableDecisions as TableDecisions,
    score_reviewed as score_reviewed,
    accepted_answer as accepted_answer,
)

from .recorded_reviews import (
    ScoreReviews as ScoreReviews,
)

from .prompt_tokens import (
    FEWER_THAN_TEXT as FEWER_THAN_TEXT,
    FEWER_THAN_OTHERS as FEWER_THAN_OTHERS,
    PromptTokens as PromptTokens,
    prompt_tokens as prompt_tokens,
    text_tokens as text_tokens,
    count_unseen as count_unseen,
    unseen_prompts as unseen_prompts,
    recorded_prompts as recorded_prompts,
)

from .errata import (
    Erratum as Erratum,
    RunFacts as RunFacts,
    errata as errata,
    errata_of as errata_of,
    errata_lines as errata_lines,
    facts_of as facts_of,
    facts_of_score as facts_of_score,
)

from .recorded_scorer import (
    PACKAGE_KEY as PACKAGE_KEY,
    versions_now as versions_now,
    scored_with_now as scored_with_now,
    scorer_parts as scorer_parts,
    scorer_now as scorer_now,
    part_in_words as part_in_words,
    other_parts as other_parts,
)

from .other_scorers import (
    is_present as is_present,
    other_scorer as other_scorer,
    SCORE_AGAIN as SCORE_AGAIN,
    score_again as score_again,
)
