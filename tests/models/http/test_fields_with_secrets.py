"""Fields that are recorded with a run hold no credential."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vlmeval_findit.core import MisplacedError, validate
from vlmeval_findit.models import ModelEntry, extra_fields

SECRETS: list[dict[str, Any]] = [
    {"api_key": "sk-1"},
    {"apiKey": "sk-1"},
    {"provider": {"token": "t"}},
    {"list": [{"Authorization": "Bearer x"}]},
    {"x": {"password": "p"}},
    {"secret": "s"},
]
PLAIN: list[dict[str, Any]] = [
    {"seed": 1, "stop_token_ids": [1], "max_tokens_per_image": 9},
    {"prompt_cache_key": "name", "eos_token": "<|end|>"},
    {"guided_json": {"properties": {"token": {"type": "string"}}}},
    {"chat_template_kwargs": {"enable_thinking": False}},
]


@pytest.mark.parametrize("fields", SECRETS)
def test_a_credential_in_recorded_fields_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="looks like a credential") as error:
        extra_fields(json.dumps(fields))
    assert "sk-1" not in str(error.value)
    with pytest.raises(MisplacedError, match="looks like a credential"):
        validate(ModelEntry, {"name": "GPT-5.4", "settings": fields})


@pytest.mark.parametrize("fields", PLAIN)
def test_other_fields_pass(fields: dict[str, Any]) -> None:
    assert extra_fields(json.dumps(fields)) == fields
    assert validate(ModelEntry, {"name": "GPT-5.4", "settings": fields}).settings == fields
