"""The door of the room: names, in the order in which a newcomer should meet them."""

from .sweep_cells import (
    SweepOptions as SweepOptions,
    Sweep as Sweep,
    stage_variants as stage_variants,
    all_variants as all_variants,
    in_best_formats as in_best_formats,
    refuse_samples as refuse_samples,
    scoring_settings as scoring_settings,
)

from .sweep_file import (
    SweepFile as SweepFile,
    read_sweep as read_sweep,
    parse_sweep as parse_sweep,
    grid_tables as grid_tables,
)

from .sweep_run import (
    run_sweep as run_sweep,
)

from .single_runs import (
    SingleRuns as SingleRuns,
    ask_runs as ask_runs,
)

from .format_search import (
    STAGES as STAGES,
    search_sweep as search_sweep,
    search_target as search_target,
)

from .model_runs import (
    UnfinishedError as UnfinishedError,
    check_cell as check_cell,
    prepare_cell as prepare_cell,
    own_journal as own_journal,
)

from .call_counts import (
    Track as Track,
    JournalOf as JournalOf,
    opened_journals as opened_journals,
    CallGroup as CallGroup,
    GroupCounts as GroupCounts,
    DryRun as DryRun,
    count_calls as count_calls,
    sweep_groups as sweep_groups,
)

from .checkpoints import (
    Checkpoint as Checkpoint,
    name_and_step as name_and_step,
    checkpoints_in as checkpoints_in,
    unfinished_in as unfinished_in,
    is_complete as is_complete,
    is_refused as is_refused,
    what_is_missing as what_is_missing,
    evaluate_checkpoint as evaluate_checkpoint,
)

from .logged_rewards import (
    LoggedRewards as LoggedRewards,
    logged_rewards as logged_rewards,
)
