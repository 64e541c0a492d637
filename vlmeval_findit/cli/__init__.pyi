"""The door of the room: names, in the order in which a newcomer should meet them."""

from .main_command import (
    COMMANDS as COMMANDS,
    OLD_WORDS as OLD_WORDS,
    command_named as command_named,
    Commands as Commands,
    _import as _import,
    ROOT as ROOT,
    main as main,
)

from .sweep import (
    sweep_command as sweep_command,
    run_and_print as run_and_print,
    results_of as results_of,
)

from .who_answers import (
    all_deployments as all_deployments,
    deployments_for as deployments_for,
    with_options as with_options,
)

from .early_checks import (
    check_host_dataset as check_host_dataset,
    note_of_shared_names as note_of_shared_names,
)

from .access import (
    CHOSEN_BY_FLAGS as CHOSEN_BY_FLAGS,
    KEYS_OF_SWEEPS as KEYS_OF_SWEEPS,
    refuse_unused_keys as refuse_unused_keys,
    unused_sweep_keys as unused_sweep_keys,
    USED_BY_NONE as USED_BY_NONE,
)

from .command_base import (
    DeclaredOption as DeclaredOption,
    error_text as error_text,
)

from .printing import (
    print_rows as print_rows,
    report_spending as report_spending,
)

from .progress import (
    SweepProgress as SweepProgress,
)

from .leaderboard import (
    print_board as print_board,
    print_remarks as print_remarks,
)

from .result_lines import (
    report_formats as report_formats,
    print_doubts as print_doubts,
)

from .reproduce_report import (
    against_lines as against_lines,
)
