"""The constrained twin: a format's grammar, and decoding that is held to it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from vlmeval_findit.benchmarks.findit.variant import DECODINGS, Variant, grid
from vlmeval_findit.boxes.reading import read
from vlmeval_findit.boxes.reply_format import ReplyFormat
from vlmeval_findit.boxes.reply_schema import schema_of
from vlmeval_findit.boxes.writing import Said, write
from vlmeval_findit.models.http.payload import SchemaRoot, response_format, unwrapped

FORMATS = list(dict.fromkeys(v.reply for v in grid(decodings=DECODINGS) if v.frames in (1, 8)))
"""Every JSON format that a variant can have."""


def fits(text: str, schema: Mapping[str, Any]) -> bool:
    return Draft202012Validator(schema).is_valid(json.loads(text))


@pytest.mark.parametrize("how", FORMATS, ids=str)
def test_what_keeps_to_a_format_fits_its_schema(how: ReplyFormat) -> None:
    schema = schema_of(how)
    Draft202012Validator.check_schema(schema)
    boxes = [
        Said((1.0, 2.0, 30.0, 40.0), "a cat", 0),
        Said((5.0, 6.0, 70.0, 80.0), "dog", how.frames - 1),
    ]
    assert fits(write(boxes, how), schema)
    assert fits(write(boxes, how, digits=0), schema)
    assert fits("[]", schema)
    # What the reader does not take, no schema lets through.
    for other in ('[{"other": [1, 2, 3, 4, 5]}]', "{}", "[[1, 2, 3, 4]]", '[{"bbox": "1"}]'):
        assert read(other, how).reason is not None
        assert not fits(other, schema)


@given(st.sampled_from(FORMATS), st.integers(0, 2**32))
def test_what_fits_a_schema_is_read(how: ReplyFormat, seed: int) -> None:
    text = json.dumps(_made(schema_of(how), random.Random(seed)))
    reading = read(text, how)
    if how.frames == 1 or json.loads(text):
        assert reading.reason is None or "frame" in reading.reason.value, text


def _made(schema: Mapping[str, Any], rng: random.Random) -> Any:
    """Something that fits a schema of ours."""
    kind = schema["type"]
    if kind == "array":
        low = schema.get("minItems", 0)
        high = schema.get("maxItems", 3)
        return [_made(schema["items"], rng) for _ in range(rng.randint(low, high))]
    if kind == "object":
        made = {name: _made(value, rng) for name, value in schema["properties"].items()}
        if schema["additionalProperties"]:
            made["a label"] = _made(schema["additionalProperties"], rng)
        return made
    if kind == "integer":
        return rng.randint(max(1, schema["minimum"]), schema["maximum"])
    return rng.choice(["", "cat"]) if kind == "string" else round(rng.uniform(0, 1000), 1)


def test_text_has_no_schema() -> None:
    with pytest.raises(ValueError, match="text have no grammar"):
        schema_of(ReplyFormat("text", "xyxy"))


# --- services -------------------------------------------------------------------------------------


def test_a_server_is_sent_the_schema_as_it_is() -> None:
    schema = schema_of(ReplyFormat("json", "xyxy", "bbox_2d"))
    sent = response_format(schema, SchemaRoot.LIST)
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["strict"] is True
    assert sent["json_schema"]["schema"] == schema


def test_a_provider_is_sent_an_object_without_lengths() -> None:
    how = ReplyFormat("json", "xyxy", "bbox_2d", multilabel=True, frames=8)
    schema = response_format(schema_of(how), SchemaRoot.OBJECT)["json_schema"]["schema"]
    assert schema["type"] == "object"
    assert "Items" not in json.dumps(schema)
    assert "minimum" not in json.dumps(schema)
    said = write([Said((1, 2, 3, 4), "cat", 2)], how)
    whole = f'{{"answer": {said}}}'
    assert fits(whole, schema)
    assert read(unwrapped(whole, SchemaRoot.OBJECT), how) == read(said, how)


@pytest.mark.parametrize("text", ["", "[]", '{"answer": [', '{"answer": [], "more": 1}', "[1"])
def test_what_is_not_wrapped_stays_as_it_is(text: str) -> None:
    assert unwrapped(text, SchemaRoot.OBJECT) == text


def test_keys_that_are_labels_cannot_be_sent_to_a_provider() -> None:
    how = Variant("Pascal", "xyxy", "json", "class_name", multilabel=True).reply
    with pytest.raises(ValueError, match="keys are labels"):
        response_format(schema_of(how), SchemaRoot.OBJECT)
