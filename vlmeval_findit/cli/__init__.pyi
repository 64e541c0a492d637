"""The door of the room: names, in the order in which a newcomer should meet them."""

from .main_command import (
    COMMANDS as COMMANDS,
    Commands as Commands,
    _import as _import,
    ROOT as ROOT,
    main as main,
)

from .run import (
    run_command as run_command,
)

from .sweep import (
    sweep_command as sweep_command,
    run_and_print as run_and_print,
    results_of as results_of,
)

from .early_checks import (
    check_host_dataset as check_host_dataset,
    note_of_shared_names as note_of_shared_names,
    check_model as check_model,
    refuse_device as refuse_device,
    all_models as all_models,
)

from .access import (
    Access as Access,
    USED_BY as USED_BY,
    CHOSEN_BY_FLAGS as CHOSEN_BY_FLAGS,
    KEYS_USED_BY as KEYS_USED_BY,
    unused_sweep_keys as unused_sweep_keys,
    USED_BY_NONE as USED_BY_NONE,
    access_of as access_of,
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
)

from .reproduce_report import (
    against_lines as against_lines,
)
