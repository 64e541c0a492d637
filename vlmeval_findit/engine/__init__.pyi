"""The door of the room: names, in the order in which a newcomer should meet them."""

from .calls import (
    Images as Images,
    unread as unread,
    Prompts as Prompts,
    prompts_of as prompts_of,
    Cell as Cell,
    Call as Call,
    settings_of as settings_of,
    sample_setting as sample_setting,
    NOT_IN_KEYS as NOT_IN_KEYS,
    of_answers as of_answers,
    shared_key as shared_key,
    CellBuilder as CellBuilder,
)

from .plan import (
    WorkItem as WorkItem,
    Plan as Plan,
    work_items as work_items,
    calls_left as calls_left,
)

from .backend import (
    CallOptions as CallOptions,
    Backend as Backend,
    Loader as Loader,
    run_sync as run_sync,
    CancelToken as CancelToken,
    LostCallError as LostCallError,
)

from .answering import (
    StoppedError as StoppedError,
    ModelStoppedError as ModelStoppedError,
    JobSpec as JobSpec,
    answer_cells as answer_cells,
    check_earlier_answers as check_earlier_answers,
    Engine as Engine,
)

from .retry_scheduler import (
    Assignment as Assignment,
    FinishedItem as FinishedItem,
    Scheduler as Scheduler,
)

from .server_state import (
    WINDOW as WINDOW,
    CallOutcome as CallOutcome,
    ServerPolicy as ServerPolicy,
    policy_of as policy_of,
    QueuedItem as QueuedItem,
    ImageGroup as ImageGroup,
    ServerState as ServerState,
)

from .http_backend import (
    HttpService as HttpService,
    HttpBackend as HttpBackend,
    HttpRun as HttpRun,
)

from .deployment import (
    Asking as Asking,
    Deployment as Deployment,
    InProcess as InProcess,
    MadeInHost as MadeInHost,
)

from .over_http import (
    OverHttp as OverHttp,
    AtServer as AtServer,
    AtProvider as AtProvider,
    InBatches as InBatches,
    AtOpenRouter as AtOpenRouter,
    ApiSettings as ApiSettings,
    api_settings as api_settings,
    asked_settings as asked_settings,
    api_chat as api_chat,
    api_service as api_service,
    describe_api as describe_api,
    OF_THIS_MACHINE as OF_THIS_MACHINE,
    refuse_of_this_machine as refuse_of_this_machine,
    refuse_headers as refuse_headers,
)

from .served_model import (
    ServedModel as ServedModel,
    served_model as served_model,
    Served as Served,
)

from .local_backend import (
    answers_of as answers_of,
    LocalBackend as LocalBackend,
    ThreadedBackend as ThreadedBackend,
)

from .own_models import (
    describe_baseline as describe_baseline,
    describe_local as describe_local,
    local_on_this_machine as local_on_this_machine,
    refuse_loading as refuse_loading,
    LocalBaseline as LocalBaseline,
    BaselineClient as BaselineClient,
    Local as Local,
)

from .deployment_kinds import (
    InVLMEvalKit as InVLMEvalKit,
    OnRay as OnRay,
    KINDS as KINDS,
    deployment_of as deployment_of,
    is_baseline as is_baseline,
    all_models as all_models,
    OF_SOME as OF_SOME,
    has_effect as has_effect,
    users_of as users_of,
    why_without_effect as why_without_effect,
    check_model as check_model,
)

from .ray_backend import (
    RayBackend as RayBackend,
)

from .ray_cluster import (
    LOOPBACK as LOOPBACK,
)

from .journal.writer import (
    ONE_WRITER as ONE_WRITER,
    DiskFullError as DiskFullError,
    JournalTakenError as JournalTakenError,
    UnwrittenError as UnwrittenError,
    Journal as Journal,
    lock_path as lock_path,
)

from .journal.view import (
    encode_record as encode_record,
    decode_record as decode_record,
    JournalCutError as JournalCutError,
    JournalError as JournalError,
    JournalView as JournalView,
    JournalTail as JournalTail,
)

from .batch_backend import (
    BatchLedger as BatchLedger,
)

from .pending_batches import (
    note_batch_journal as note_batch_journal,
    PendingBatches as PendingBatches,
)

from .cell_files import (
    count_failed as count_failed,
    score_in_memory as score_in_memory,
    prediction_rows as prediction_rows,
    clean_up as clean_up,
    merge_predictions as merge_predictions,
    RowDigests as RowDigests,
    basis_of as basis_of,
)

from .outputs import (
    Output as Output,
    prepare_output as prepare_output,
    check_output as check_output,
    begin_output as begin_output,
)

from .sink import (
    PlannedCalls as PlannedCalls,
    Watcher as Watcher,
    about_planned_images as about_planned_images,
)

from .signals import (
    cancelled_by_signals as cancelled_by_signals,
)
