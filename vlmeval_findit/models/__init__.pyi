"""The door of the room: names, in the order in which a newcomer should meet them."""

from .model_table import (
    NANO as NANO,
    NANO_PX as NANO_PX,
    SHIPPED as SHIPPED,
    MODELS as MODELS,
    find_model as find_model,
    thought_rule as thought_rule,
    UnknownModelError as UnknownModelError,
    known_model as known_model,
    space_of_settings as space_of_settings,
    space_of_variable as space_of_variable,
    check_settings as check_settings,
    check_stated as check_stated,
    local_names as local_names,
    same_checkpoint as same_checkpoint,
    meant_model as meant_model,
    how_to_ask as how_to_ask,
    like_which as like_which,
    unknown_space as unknown_space,
)

from .model_row import (
    qwen3_bounds as qwen3_bounds,
    space_within as space_within,
    LocalFamily as LocalFamily,
    ModelRow as ModelRow,
    ANY_QUESTION as ANY_QUESTION,
    row_problem as row_problem,
)

from .shared_settings import (
    Sampling as Sampling,
    sampling_of as sampling_of,
)

from .stated_options import (
    HEADINGS as HEADINGS,
    Declared as Declared,
    declared_options as declared_options,
    options_to as options_to,
)

from .model_entry import (
    KEYS_OF_SERVICES as KEYS_OF_SERVICES,
    ModelEntry as ModelEntry,
    MODEL_KEYS as MODEL_KEYS,
    entry_values as entry_values,
    like_its_checkpoint as like_its_checkpoint,
    ModelOptions as ModelOptions,
    refuse_same_names as refuse_same_names,
    urls_of as urls_of,
)

from .model_client import (
    HostMessage as HostMessage,
    to_host_message as to_host_message,
    from_host_message as from_host_message,
    TimedClient as TimedClient,
    GenerateClient as GenerateClient,
    answer_from as answer_from,
    Stopwatch as Stopwatch,
)

from .checkpoint_row import (
    ANY_CHECKPOINT as ANY_CHECKPOINT,
    row_to_run as row_to_run,
    row_of_checkpoint as row_of_checkpoint,
    check_like as check_like,
    why_not_of_row as why_not_of_row,
    name_taken as name_taken,
)

from .checkpoint_files import (
    architecture_of as architecture_of,
    loadable_types as loadable_types,
)

from .known_words import (
    KnownWords as KnownWords,
    known_words as known_words,
    words_of_model as words_of_model,
)

from .safetensors_header import (
    read_header as read_header,
)

from .torch_file import (
    read_torch_file as read_torch_file,
    tensors_in as tensors_in,
)

from .revision import (
    HASH_CACHE as HASH_CACHE,
    fingerprint as fingerprint,
    known_revision as known_revision,
    base_settings as base_settings,
    refuse_missing as refuse_missing,
    refuse_unreachable as refuse_unreachable,
    revision_of as revision_of,
)

from .adapter import (
    Adapter as Adapter,
    adapter_of as adapter_of,
    refuse_adapter as refuse_adapter,
    refuse_without_peft as refuse_without_peft,
)

from .answering_names import (
    is_other_model as is_other_model,
    may_be_same_model as may_be_same_model,
    names_asked as names_asked,
)

from .local.local_runner import (
    LocalRunner as LocalRunner,
    without_thought as without_thought,
    load_local as load_local,
    ProcessorMissingError as ProcessorMissingError,
    encode_as_shown as encode_as_shown,
)

from .local.local_client import (
    LocalClient as LocalClient,
    load_local_client as load_local_client,
)

from .http.known_fields import (
    KNOWN_FIELDS as KNOWN_FIELDS,
    meant_fields as meant_fields,
)
from .http.thinking_fields import (
    SPELLINGS as SPELLINGS,
)
from .local.refused_settings import (
    refuse_settings as refuse_settings,
)
from .local.which_engine import (
    engine_of as engine_of,
)
from .local.run_settings import (
    RunSettings as RunSettings,
    run_settings as run_settings,
)
from .local.run_plan import (
    stated_bounds as stated_bounds,
    plan_generation as plan_generation,
    describe_local_run as describe_local_run,
    on_this_machine as on_this_machine,
)

from .local.layout import (
    Bounds as Bounds,
    Grid as Grid,
    Tiles as Tiles,
)

from .local.model_images import (
    limit_size as limit_size,
    ImageSet as ImageSet,
    expected_length as expected_length,
)

from .local.encoding import (
    Encoded as Encoded,
    MessageEncoder as MessageEncoder,
)

from .local.transformer import (
    checkpoint_revision as checkpoint_revision,
)

from .local.loaded_model import (
    Flaw as Flaw,
)

from .local.logits import (
    NumberCheck as NumberCheck,
    SeededSampler as SeededSampler,
    LogprobRecorder as LogprobRecorder,
)

from .local.machine import (
    Machine as Machine,
    choose_placement as choose_placement,
    Asked as Asked,
    BatchLimit as BatchLimit,
    WINDOW as WINDOW,
    window_of as window_of,
    is_out_of_memory as is_out_of_memory,
    in_batches as in_batches,
    in_order as in_order,
)

from .reply_tokens import (
    answer_span as answer_span,
    byte_ends as byte_ends,
)

from .token_limits import (
    LIMIT_SETTING as LIMIT_SETTING,
    TOKEN_LIMITS as TOKEN_LIMITS,
    token_limit as token_limit,
    with_one_limit as with_one_limit,
    names_of_settings as names_of_settings,
)

from .http.chat import (
    ChatModel as ChatModel,
    once_a_variant as once_a_variant,
    chat_model as chat_model,
    server_name as server_name,
    server_space as server_space,
    unknown_bounds as unknown_bounds,
    extra_fields as extra_fields,
)

from .http.request_fields import (
    merged_fields as merged_fields,
    stated_fields as stated_fields,
    ORIGINAL_TILES as ORIGINAL_TILES,
    bounds_in_request as bounds_in_request,
)

from .http.chat_call import (
    ChatCall as ChatCall,
)

from .http.completion import (
    Completion as Completion,
)

from .http.call_errors import (
    BUSY_STATUSES as BUSY_STATUSES,
    NOT_TAKEN_STATUSES as NOT_TAKEN_STATUSES,
    DENIED_STATUSES as DENIED_STATUSES,
    HOPELESS_STATUSES as HOPELESS_STATUSES,
    CallError as CallError,
)

from .http.reply_bodies import (
    MOST_ERROR_BYTES as MOST_ERROR_BYTES,
    BodyRoom as BodyRoom,
    most_bytes_of as most_bytes_of,
    most_reply_bytes as most_reply_bytes,
)

from .http.client import (
    HttpRequest as HttpRequest,
    HttpClient as HttpClient,
    retry_after as retry_after,
)

from .http.addresses import (
    AddressFile as AddressFile,
    Endpoints as Endpoints,
    identifying_servers as identifying_servers,
    make_endpoints as make_endpoints,
    provider_endpoints as provider_endpoints,
)

from .http.stated_headers import (
    header_lines as header_lines,
    joined_headers as joined_headers,
    server_headers as server_headers,
    recorded_headers as recorded_headers,
)

from .http.endpoint import (
    Endpoint as Endpoint,
)

from .http.asked_server import (
    HttpEndpoint as HttpEndpoint,
    http_endpoints as http_endpoints,
    SharedTime as SharedTime,
)

from .http.sent_images import (
    SentImage as SentImage,
    ChatRequest as ChatRequest,
    json_pieces as json_pieces,
    ImageRule as ImageRule,
    for_provider as for_provider,
    as_they_are as as_they_are,
    ImageToSend as ImageToSend,
    images_to_send as images_to_send,
    EncodedImages as EncodedImages,
)

from .http.schema import (
    SchemaRoot as SchemaRoot,
    response_format as response_format,
    unwrapped as unwrapped,
    PROBE_REQUEST as PROBE_REQUEST,
)

from .http.reply_logprobs import (
    with_logprobs as with_logprobs,
    reply_logprobs as reply_logprobs,
)

from .http.response_verdict import (
    CallVerdict as CallVerdict,
    Judgement as Judgement,
    judge_response as judge_response,
    read_completion as read_completion,
    object_in as object_in,
)

from .http.service_errors import (
    error_of as error_of,
)

from .http.wrong_address import (
    redirect_error as redirect_error,
    other_addresses as other_addresses,
    is_about_model as is_about_model,
    names_in as names_in,
)

from .http.server_program import (
    PROGRAM_NAMES as PROGRAM_NAMES,
    RunningProgram as RunningProgram,
    running_program as running_program,
)

from .http.estimates import (
    CHARACTERS_A_TOKEN as CHARACTERS_A_TOKEN,
    Load as Load,
    words_of as words_of,
    load_of as load_of,
    image_tokens as image_tokens,
)

from .http.proxies import (
    ProxyError as ProxyError,
    proxy_for as proxy_for,
    proxies_to as proxies_to,
    recorded_proxies as recorded_proxies,
    notes_on_proxies as notes_on_proxies,
)

from .http.providers.provider_table import (
    Provider as Provider,
    OPENROUTER as OPENROUTER,
    PROVIDERS as PROVIDERS,
    find_provider as find_provider,
    headers_to as headers_to,
)

from .http.providers.anthropic_messages import (
    messages_request as messages_request,
    reply_of_messages as reply_of_messages,
)

from .http.providers.google_content import (
    content_request as content_request,
    reply_of_content as reply_of_content,
)

from .http.batch.services import (
    BatchService as BatchService,
    AnthropicBatches as AnthropicBatches,
    BATCH_SERVICES as BATCH_SERVICES,
)

from .http.batch.batch_records import (
    BATCH_PRICE as BATCH_PRICE,
    BatchKind as BatchKind,
    BatchRequest as BatchRequest,
    BatchStatus as BatchStatus,
    BatchLine as BatchLine,
    BatchResults as BatchResults,
)

from .prices import (
    PRICES_AS_OF as PRICES_AS_OF,
    TokenPrices as TokenPrices,
    prices_from as prices_from,
    PricesField as PricesField,
    GPT_5_4 as GPT_5_4,
    GPT_6_ASTRA as GPT_6_ASTRA,
    SONNET_4_5 as SONNET_4_5,
    OPUS_5_5 as OPUS_5_5,
    GEMINI_2_5_FLASH as GEMINI_2_5_FLASH,
)

from .http.reply_json import parse_reply as parse_reply

from .http.spending import (
    Usage as Usage,
    Charge as Charge,
    MostTokens as MostTokens,
    charge_for as charge_for,
    is_implausible as is_implausible,
    usage_of as usage_of,
    token_counts as token_counts,
    SpendingError as SpendingError,
    Budget as Budget,
)

from .dual_encoder.encoder import (
    Padding as Padding,
    TextFeatures as TextFeatures,
    DualEncoder as DualEncoder,
    EncoderError as EncoderError,
    NANO_SIGLIP as NANO_SIGLIP,
    ENCODERS as ENCODERS,
    checkpoint_of as checkpoint_of,
)

from .dual_encoder.towers import (
    Towers as Towers,
    named_encoder as named_encoder,
    stored_vectors as stored_vectors,
)

from .http.refused_fields import (
    NEEDED_FIELDS as NEEDED_FIELDS,
)

from .http.sent_whole import (
    FREE_STATUSES as FREE_STATUSES,
    may_be_billed as may_be_billed,
    was_sent_whole as was_sent_whole,
)

from .http.stated_costs import (
    RESPONSE_HEADERS as RESPONSE_HEADERS,
    read_headers as read_headers,
    amount_of as amount_of,
)

from .loading_report import (
    Shapes as Shapes,
    LoadingReport as LoadingReport,
    report_of as report_of,
    adapters_report as adapters_report,
    report_of_log as report_of_log,
    checked_loading as checked_loading,
    judge_loading as judge_loading,
)

from .model_settings import (
    settings_of_model as settings_of_model,
    space_or_variable as space_or_variable,
    space_source as space_source,
)

from .tiers import (
    tiers_in as tiers_in,
    surcharge as surcharge,
)

from .weight_files import (
    READ_ERRORS as READ_ERRORS,
    shards_of as shards_of,
    fault_of as fault_of,
    is_one_of_many as is_one_of_many,
    refuse_unloadable as refuse_unloadable,
)
