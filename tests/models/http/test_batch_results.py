"""What results of batches cost: those that a service calls failed, expired or cancelled nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vlmeval_findit.models import AnthropicBatches, BatchService, CallError
from vlmeval_findit.protocol import USUAL_THOUGHTS

Result = Mapping[str, Any]

CODES = [
    "batch_expired", "batch_cancelled", "server_error", "rate_limit_exceeded", "invalid_request",
    "insufficient_quota", "timeout", "", 500,
]  # fmt: skip
UNASKED: list[Result] = [
    *({"response": None, "error": {"code": code, "message": "no"}} for code in CODES),
    *({"response": None, "error": {"code": code}} for code in CODES if code),
    {"response": None, "error": {"message": "This request could not be executed in time"}},
    {"response": None, "error": "batch_expired"},
    {"response": None, "error": [{"code": "batch_expired"}]},
    {"error": {"code": "batch_expired", "message": "no"}},
    {"response": {"status_code": 400, "body": {"error": {"message": "too large"}}}, "error": None},
    {"response": {"status_code": 429, "body": None}, "error": None},
]
PERHAPS_BILLED: list[Result] = [
    {},
    {"response": None, "error": None},
    {"response": None, "error": {}},
    {"response": {"status_code": 200, "body": None}, "error": None},
    {"response": {"status_code": 200, "body": {}}, "error": {"code": "server_error"}},
    {"response": {}, "error": {"code": "server_error"}},
    {"response": "?", "error": {"code": "server_error"}},
    {"response": {"status_code": 504, "body": {"error": {"message": "late"}}}, "error": None},
]


def failure(service: type[BatchService], result: Result) -> CallError:
    with pytest.raises(CallError) as failed:
        service.completion(result, False, USUAL_THOUGHTS)
    return failed.value


@pytest.mark.parametrize("result", UNASKED, ids=str)
def test_what_no_model_was_asked_is_free(result: Result) -> None:
    assert not failure(BatchService, result).is_charged


@pytest.mark.parametrize("result", PERHAPS_BILLED, ids=str)
def test_what_says_nothing_of_a_failure_is_charged(result: Result) -> None:
    assert failure(BatchService, result).is_charged


@pytest.mark.parametrize("kind", ["errored", "canceled", "expired", "succeeded", "?", None])
@pytest.mark.parametrize("error", [None, {"error": {"type": "api_error", "message": "no"}}])
def test_results_of_anthropic_cost_as_their_type_says(kind: str | None, error: Any) -> None:
    failed = failure(AnthropicBatches, {"result": {"type": kind, "error": error}})
    assert failed.is_charged is (kind not in ("errored", "canceled", "expired"))
