"""The door of the room: names, in the order in which a newcomer should meet them."""

from .command import (
    clone_folder as clone_folder,
    program as program,
    as_called as as_called,
    is_under_vlmevalkit as is_under_vlmevalkit,
    activation as activation,
    shipped_folder as shipped_folder,
    package_sha256 as package_sha256,
    config_here_or_shipped as config_here_or_shipped,
    EXTRAS as EXTRAS,
    install_command as install_command,
    missing_extra as missing_extra,
    installed as installed,
    EXIT_SOME_FAILED as EXIT_SOME_FAILED,
    EXIT_REFUSED as EXIT_REFUSED,
    EXIT_LIMIT_REACHED as EXIT_LIMIT_REACHED,
    EXIT_LATER as EXIT_LATER,
    EXIT_INTERRUPTED as EXIT_INTERRUPTED,
)

from .synonyms import (
    MEANINGS as MEANINGS,
    OTHER_FLAGS as OTHER_FLAGS,
    OTHER_COMMANDS as OTHER_COMMANDS,
    advice_without as advice_without,
    is_of_others as is_of_others,
    same_meaning as same_meaning,
)

from .formatting import (
    TYPING_ERROR as TYPING_ERROR,
    closest as closest,
    flag_name as flag_name,
    no_effect as no_effect,
    suggestion as suggestion,
    ended as ended,
    is_one_line as is_one_line,
    printable as printable,
    printable_lines as printable_lines,
    shorten as shorten,
    shorten_names as shorten_names,
    common_beginning as common_beginning,
    alternatives as alternatives,
    first_few as first_few,
    counted as counted,
    agreeing as agreeing,
    duration as duration,
    as_csv as as_csv,
)

from .validation import (
    refuse_unknown as refuse_unknown,
    names_of_arguments as names_of_arguments,
    MisplacedError as MisplacedError,
    refuse_duplicates as refuse_duplicates,
    Expected as Expected,
    Checked as Checked,
    row_of as row_of,
    Name as Name,
    Text as Text,
    YesNo as YesNo,
    Whole as Whole,
    Count as Count,
    Finite as Finite,
    Number as Number,
    Share as Share,
    Seconds as Seconds,
    Dollars as Dollars,
    Values as Values,
    Several as Several,
    SeveralOrAll as SeveralOrAll,
    Config as Config,
    LARGEST_NUMBER as LARGEST_NUMBER,
    JsonObject as JsonObject,
    PlainNumber as PlainNumber,
    keys_of as keys_of,
    validate as validate,
    parse_lines as parse_lines,
    parse_plain_json as parse_plain_json,
)

from .rare_collections import RARE_COLLECTIONS as RARE_COLLECTIONS

from .late_pattern import late_pattern as late_pattern

from .text_files import (
    TextError as TextError,
    read_text as read_text,
    with_unix_lines as with_unix_lines,
    open_text as open_text,
    read_json as read_json,
    parse_json as parse_json,
    refuse_equal_keys as refuse_equal_keys,
    EqualKeysError as EqualKeysError,
    YamlLoader as YamlLoader,
    YamlTexts as YamlTexts,
    parse_yaml as parse_yaml,
    yaml_value as yaml_value,
)

from .json_values import (
    object_or_empty as object_or_empty,
    objects_of as objects_of,
    count_of as count_of,
    largest_count as largest_count,
    number_of as number_of,
    unlike_json as unlike_json,
)

from .objects_in_text import (
    objects_in as objects_in,
    unescaped as unescaped,
)

from .near_path import (
    near_path as near_path,
    not_there as not_there,
)

from .files import (
    is_disk_full as is_disk_full,
    NotRegularError as NotRegularError,
    open_regular as open_regular,
    read_bytes as read_bytes,
    suffix_of as suffix_of,
    file_sha256 as file_sha256,
    sha256_of as sha256_of,
    replacing as replacing,
    left_behind as left_behind,
    atomic_write as atomic_write,
    write_text_once as write_text_once,
    write_once as write_once,
    unsafe_name as unsafe_name,
    SETTLED_NS as SETTLED_NS,
    FileState as FileState,
    HashedFile as HashedFile,
    FileHashes as FileHashes,
    file_state as file_state,
)

from .lock import (
    LockedError as LockedError,
    Lock as Lock,
    is_held as is_held,
    locked as locked,
)

from .places import (
    remember_file as remember_file,
    remember_folder as remember_folder,
    remembering_places as remembering_places,
)

from .file_set import (
    FileSet as FileSet,
    new_file_set as new_file_set,
    settle_file_sets as settle_file_sets,
    write_together as write_together,
    clear_leftovers as clear_leftovers,
)

from .yaml_text import (
    ConfigError as ConfigError,
    YamlText as YamlText,
)

from .option import (
    THE_MODEL as THE_MODEL,
    SERVICES as SERVICES,
    MACHINE as MACHINE,
    COST as COST,
    Option as Option,
)

from .plugin_rows import (
    FILES_VARIABLE as FILES_VARIABLE,
    Group as Group,
    PluginError as PluginError,
    Plugin as Plugin,
    named_files as named_files,
    loaded_files as loaded_files,
    reported as reported,
    unreported as unreported,
    raised_in as raised_in,
    PluginTable as PluginTable,
)

from .web_address import (
    split_address as split_address,
    untrusted as untrusted,
)

from .standing_twice import (
    StandsTwiceError as StandsTwiceError,
    find_twice as find_twice,
    refuse_columns_twice as refuse_columns_twice,
    open_zip as open_zip,
)

from .unpacking import (
    UnpackedSizeError as UnpackedSizeError,
    most_unpacked as most_unpacked,
    check_unpacked as check_unpacked,
    check_sheets as check_sheets,
    gunzip as gunzip,
    limited_memory as limited_memory,
    take_memory_piecewise as take_memory_piecewise,
)

from .redaction import (
    HIDDEN as HIDDEN,
    remember_secrets as remember_secrets,
    is_secret_name as is_secret_name,
    is_secret_header as is_secret_header,
    secret_field as secret_field,
    without_credentials as without_credentials,
    Secrets as Secrets,
    known_secrets as known_secrets,
    scrub as scrub,
    quoted_line as quoted_line,
    quoted_json as quoted_json,
    error_line as error_line,
    replace_surrogates as replace_surrogates,
)

from .repeating import (
    repeated as repeated,
)

from .quoted_values import (
    quoted_value as quoted_value,
    plain_value as plain_value,
)

from .printable_logs import (
    printable_logs as printable_logs,
    make_logs_printable as make_logs_printable,
)

from .vlmevalkit import (
    Runner as Runner,
    package_folder as package_folder,
    RESULTS_VARIABLE as RESULTS_VARIABLE,
    results_folder as results_folder,
    read_env_file as read_env_file,
    host_version as host_version,
    git_revision as git_revision,
    find_runner as find_runner,
    hide_bars as hide_bars,
    quiet_log as quiet_log,
    HostFlag as HostFlag,
    host_flags as host_flags,
    may_have_model as may_have_model,
    model_names as model_names,
    may_have_dataset as may_have_dataset,
    has_dataset as has_dataset,
    dataset_names as dataset_names,
)

from .open_files import (
    room_for_files as room_for_files,
    open_file_limit as open_file_limit,
    too_many_files as too_many_files,
)

from .workbooks import (
    save_workbook as save_workbook,
)
