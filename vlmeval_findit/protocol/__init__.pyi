"""The door of the room: names, in the order in which a newcomer should meet them."""

from .benchmark import (
    Role as Role,
    DrawnBox as DrawnBox,
    DrawnLine as DrawnLine,
    DrawnImage as DrawnImage,
    Drawing as Drawing,
    Curve as Curve,
    ClassCounts as ClassCounts,
    PromptSet as PromptSet,
    Baseline as Baseline,
    Published as Published,
    Scorer as Scorer,
    AnswerScore as AnswerScore,
    BatchScore as BatchScore,
    Benchmark as Benchmark,
)

from .dataset_variant import (
    DatasetNameError as DatasetNameError,
    DatasetVariant as DatasetVariant,
    Query as Query,
    is_index as is_index,
    PlainVariant as PlainVariant,
    LoadedDataset as LoadedDataset,
    AnyDataset as AnyDataset,
    rows_text as rows_text,
    rows_from as rows_from,
    StoredRows as StoredRows,
    PartKind as PartKind,
    Part as Part,
    Reference as Reference,
    Message as Message,
    text as text,
    system as system,
    image as image,
    reference as reference,
    split_system as split_system,
    located as located,
    PromptDigest as PromptDigest,
    prompt_hash as prompt_hash,
    json_text as json_text,
)

from .chat_messages import (
    NotAReplyError as NotAReplyError,
    messages_in as messages_in,
    is_assistant as is_assistant,
    last_answer as last_answer,
    answer_in as answer_in,
    tool_calls_in as tool_calls_in,
    host_record as host_record,
    stored_reply as stored_reply,
    texts_elsewhere as texts_elsewhere,
    thought_in as thought_in,
)

from .metric import (
    Array as Array,
    SumKey as SumKey,
    SumName as SumName,
    Sums as Sums,
    Weights as Weights,
    slice_problem as slice_problem,
    name_of as name_of,
    Ratio as Ratio,
    Better as Better,
    Metric as Metric,
    slice_weights as slice_weights,
    weighted as weighted,
    divide as divide,
    metric_values as metric_values,
)

from .scored_row import (
    ScoredRow as ScoredRow,
    sum_rows as sum_rows,
    add_up as add_up,
    exceeds_floats as exceeds_floats,
    as_floats as as_floats,
    Texts as Texts,
    RowTable as RowTable,
    table_of as table_of,
    columns_of as columns_of,
    indices as indices,
    failed_calls as failed_calls,
    reasons as reasons,
    rows_with_sum as rows_with_sum,
    failures as failures,
    count_images as count_images,
)

from .replies import (
    LOG_OF_ZERO as LOG_OF_ZERO,
    TokenLogprobs as TokenLogprobs,
    FAILED_ANSWER as FAILED_ANSWER,
    text_of_failure as text_of_failure,
    PROCESSOR_KEY as PROCESSOR_KEY,
    TEXTS_UNDER as TEXTS_UNDER,
    ReplyRecord as ReplyRecord,
    NOTHING_RECORDED as NOTHING_RECORDED,
    call_failed as call_failed,
    CallTime as CallTime,
    NOT_TIMED as NOT_TIMED,
    Reply as Reply,
    Replies as Replies,
    ParseFailure as ParseFailure,
    TRUNCATED as TRUNCATED,
    UNREAD as UNREAD,
    FailureReasons as FailureReasons,
    read_reply as read_reply,
)

from .thoughts import (
    ThoughtMarks as ThoughtMarks,
    THINK as THINK,
    CHANNEL as CHANNEL,
    ThoughtRule as ThoughtRule,
    USUAL_THOUGHTS as USUAL_THOUGHTS,
    rule_of as rule_of,
    thought_marks as thought_marks,
    split_thought as split_thought,
    opened_by as opened_by,
    has_meaning as has_meaning,
    unnamed_marks as unnamed_marks,
)

from .call_results import (
    Batch as Batch,
    StopReason as StopReason,
    NOT_MADE as NOT_MADE,
    CallResult as CallResult,
    refused_if_it_quotes as refused_if_it_quotes,
    ModelClient as ModelClient,
    CancelledError as CancelledError,
    Cancellable as Cancellable,
)

from .threads import in_thread as in_thread

from .settings import (
    SettingsError as SettingsError,
    ChosenEncoder as ChosenEncoder,
    OfUnknown as OfUnknown,
    LastScore as LastScore,
    Settings as Settings,
    FORCE_VARIABLE as FORCE_VARIABLE,
    LOGPROBS_VARIABLE as LOGPROBS_VARIABLE,
    PROMPTS_VARIABLE as PROMPTS_VARIABLE,
    ENCODER_VARIABLE as ENCODER_VARIABLE,
    SETTING_NAMES as SETTING_NAMES,
    judge_args as judge_args,
    our_settings as our_settings,
    settings_from as settings_from,
    variables as variables,
    wants_logprobs as wants_logprobs,
    skips_missing as skips_missing,
)

from .custom_prompt import (
    TemplateError as TemplateError,
    CustomPrompt as CustomPrompt,
    custom_prompt as custom_prompt,
    prompt_set as prompt_set,
)

from .identity import (
    TRANSFORMERS as TRANSFORMERS,
    NUMPY as NUMPY,
    ENGINE_KEY as ENGINE_KEY,
    ENGINE_PACKAGES as ENGINE_PACKAGES,
    SPACE_KEY as SPACE_KEY,
    GIVEN_SOURCE as GIVEN_SOURCE,
    PROVIDER_KIND as PROVIDER_KIND,
    SAMPLE_SETTING as SAMPLE_SETTING,
    SOURCE_KEY as SOURCE_KEY,
    IMAGES_KEY as IMAGES_KEY,
    MADE_WITH as MADE_WITH,
    HEADERS_KEY as HEADERS_KEY,
    NOT_SET as NOT_SET,
    NO_PROXY as NO_PROXY,
    PROXY_KEY as PROXY_KEY,
    ROW_KEY as ROW_KEY,
    SETTING as SETTING,
    HEADER as HEADER,
    IdentityError as IdentityError,
    Answering as Answering,
    Described as Described,
    Identity as Identity,
    IdentityConflict as IdentityConflict,
)

from .contradictions import (
    identity_conflicts as identity_conflicts,
    merge_for_resume as merge_for_resume,
    Predictions as Predictions,
    contradictions as contradictions,
    overrule as overrule,
    OF_SOMETHING_ELSE as OF_SOMETHING_ELSE,
    plugin_conflicts as plugin_conflicts,
    apply_force as apply_force,
    refuse_variable as refuse_variable,
)

from .error_analysis import (
    lost_key as lost_key,
    ErrorGroup as ErrorGroup,
    ErrorType as ErrorType,
    ErrorAnalysis as ErrorAnalysis,
    LABEL_KEY as LABEL_KEY,
    FAILED_CALL as FAILED_CALL,
    UNREADABLE as UNREADABLE,
    WRONG as WRONG,
    AnswerErrors as AnswerErrors,
    with_events as with_events,
)

from .reviews import (
    ReviewsError as ReviewsError,
    ReviewVerdict as ReviewVerdict,
    RowChoice as RowChoice,
    Box as Box,
    Answer as Answer,
    box_iou as box_iou,
    Review as Review,
    AuditRecord as AuditRecord,
    RowsDrawnFrom as RowsDrawnFrom,
    rows_drawn_from as rows_drawn_from,
    as_ranges as as_ranges,
    in_ranges as in_ranges,
    Decision as Decision,
    Reviews as Reviews,
    row_hash as row_hash,
)

from .picture_sample import (
    picture_places as picture_places,
    PictureSample as PictureSample,
)

from .choices import (
    SPACE_SETTING as SPACE_SETTING,
    THOUGHT_MARKS as THOUGHT_MARKS,
    READS_LIKE as READS_LIKE,
    VP_MARK as VP_MARK,
    SETTINGS as SETTINGS,
    STATED_SOURCE as STATED_SOURCE,
    IN_PLACE_OF as IN_PLACE_OF,
    is_stated as is_stated,
    Known as Known,
    Setting as Setting,
    choose_value as choose_value,
    note_on_choice as note_on_choice,
    note_on_spaces as note_on_spaces,
    stating_flag as stating_flag,
    in_words as in_words,
    say_once as say_once,
)
