"""The fields of requests that services know, and which of them a misspelt field means.

Services drop a field that they do not know without a word, so that a misspelt one would have no
effect. Whatever is far from all that is known may be a service's own, and passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...serving import BOUNDS_FIELD, TEMPLATE_FIELD

# OpenAI's chat completions
_OPENAI = """
audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
messages metadata modalities model n parallel_tool_calls prediction presence_penalty
prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed
service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user
verbosity web_search_options
"""
# What vLLM, SGLang, llama.cpp, LMDeploy and Ollama take besides
_SERVERS = f"""
add_generation_prompt add_special_tokens allowed_token_ids bad_words best_of cache_salt
chat_template {TEMPLATE_FIELD} continue_final_message continue_from_uuid custom_logit_processor
custom_params documents do_sample early_stopping echo enable_thinking ebnf
guided_choice guided_decoding_backend guided_grammar guided_json guided_regex
guided_whitespace_pattern ignore_eos include_reasoning include_stop_str_in_output kv_transfer_params
length_penalty logits_processors lora_path media_io_kwargs min_new_tokens max_new_tokens min_p
min_tokens {BOUNDS_FIELD} no_stop_trim priority prompt_logprobs regex repetition_penalty request_id
return_hidden_states return_token_ids return_tokens_as_token_ids rid separate_reasoning session_id
session_params skip_special_tokens spaces_between_special_tokens stop_regex stop_token_ids
stream_reasoning structural_tag structured_outputs thinking_token_budget top_k
truncate_prompt_tokens use_beam_search vllm_xargs
cache_prompt dry_allowed_length dry_base dry_multiplier dry_penalty_last_n dynatemp_exponent
dynatemp_range grammar id_slot json_schema min_keep mirostat mirostat_eta mirostat_tau n_keep
n_predict n_probs post_sampling_probs reasoning_format repeat_last_n repeat_penalty samplers
thinking_forced_open timings_per_token tfs_z top_a top_n_sigma typical_p xtc_probability
xtc_threshold adapter_name max_prompt_tokens options keep_alive format raw think
"""
# OpenRouter, Anthropic, Google, and makers with OpenAI's protocol
_PROVIDERS = """
container context_management extra_body fallbacks headers inference_geo input max_price
mcp_servers models output_config plugins preset prompt provider reasoning route speed
stop_sequences structured_outputs thinking thinking_budget tool_config transforms trace usage
vl_high_resolution_images enable_search search_options incremental_output result_format
safe_prompt prompt_mode random_seed
document_image_limit document_page_limit citation_options
cachedContent contents generationConfig generation_config safetySettings safety_settings
systemInstruction system_instruction toolConfig labels
"""

_GOOGLE_CONFIG = """
candidateCount enableEnhancedCivicAnswers frequencyPenalty imageConfig logprobs maxOutputTokens
mediaResolution presencePenalty responseJsonSchema responseLogprobs responseMimeType
responseModalities responseSchema seed speechConfig stopSequences temperature thinkingConfig topK
topP candidate_count frequency_penalty max_output_tokens media_resolution presence_penalty
response_json_schema response_logprobs response_mime_type response_modalities response_schema
stop_sequences thinking_config top_k top_p
"""
_GOOGLE_THINKING = """
includeThoughts thinkingBudget thinkingLevel include_thoughts thinking_budget thinking_level
"""
_TEMPLATE = """
add_vision_id enable_thinking thinking thinking_budget thinking_mode reasoning_effort
model_identity preserve_thinking clear_thinking
"""
_PROCESSOR = """
crop_to_patches do_convert_rgb do_normalize do_pan_and_scan do_rescale do_resize
do_sample_frames dynamic_hd fps images_kwargs longest_edge max_dynamic_patch max_patches max_pixels
max_soft_tokens merge_size min_dynamic_patch min_patches min_pixels num_crops num_frames patch_size
shortest_edge size temporal_patch_size total_pixels use_thumbnail vision_feature_layer
"""
_ROUTES = """
allow_fallbacks data_collection enforce_distillable_text ignore max_price only order
preferred_max_latency preferred_min_throughput quantizations require_parameters sort zdr
"""

# Known names by the objects around them; "" is the request itself
KNOWN_FIELDS: Mapping[str, frozenset[str]] = {
    place: frozenset(names.split())
    for place, names in {
        "": f"{_OPENAI} {_SERVERS} {_PROVIDERS}",
        "generationConfig": _GOOGLE_CONFIG,
        "generation_config": _GOOGLE_CONFIG,
        "generationConfig.thinkingConfig": _GOOGLE_THINKING,
        "generation_config.thinking_config": _GOOGLE_THINKING,
        TEMPLATE_FIELD: _TEMPLATE,
        BOUNDS_FIELD: _PROCESSOR,
        "reasoning": "effort enabled exclude max_tokens summary generate_summary",
        "thinking": "type budget_tokens display clear_thinking",
        "provider": _ROUTES,
        "output_config": "effort format task_budget",
    }.items()
}

_SHORTEST = 6  # shorter names have neighbours that mean something else
_FAR = 3  # letters in which names differ that are not confused


def meant_fields(fields: Mapping[str, Any], own: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield unknown fields that are very near to a known one, and what is meant.

    Names have the objects around them, as ``reasoning.efort``. Very near: one or two letters more,
    fewer, exchanged or other ones, whatever their case, in a name of six letters or more. ``own``
    are names that the provider has besides.

    >>> list(meant_fields({"temprature": 0.5, "my_field": 1}))
    [('temprature', 'temperature')]
    """
    return _meant_within(fields, "", own)


def _meant_within(
    fields: Mapping[str, Any], place: str, own: Collection[str]
) -> Iterator[tuple[str, str]]:
    known = KNOWN_FIELDS.get(place, frozenset())
    inside = f"{place}." if place else ""
    for name, value in fields.items():
        is_known = name in known or f"{inside}{name}" in own
        if not is_known and (near := _nearest(name, sorted(known))):
            yield f"{inside}{name}", f"{inside}{near}"
        elif isinstance(value, Mapping):
            yield from _meant_within(value, f"{inside}{name}", own)


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name in which the fewest letters are others; None if none is near."""
    distances = {
        each: _letters_apart(name.lower(), each.lower())
        for each in known
        if len(each) >= _SHORTEST and abs(len(each) - len(name)) < _FAR
    }
    best = min(distances, key=distances.__getitem__, default=None)
    return best if best is not None and distances[best] < _FAR else None


def _letters_apart(left: str, right: str) -> int:
    """Count letters that are added, left out, replaced, or exchanged with their neighbour."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for at, letter in enumerate(left, 1):
        new = [at]
        for place, other in enumerate(right, 1):
            least = min(row[place] + 1, new[-1] + 1, row[place - 1] + (letter != other))
            are_exchanged = at > 1 and place > 1 and letter == right[place - 2]
            if are_exchanged and left[at - 2] == other:
                least = min(least, before[place - 2] + 1)
            new.append(least)
        before = row
        row = new
    return row[-1]
