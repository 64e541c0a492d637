"""Log-probabilities of models on this machine: against a forward pass over prompt and reply."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tiny_models import VARIANT, ready, variants

from vlmeval_findit.models.local.model_images import ImageSet
from vlmeval_findit.models.local.run_plan import RunSettings, plan
from vlmeval_findit.models.model_table import MODELS

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from vlmeval_findit.models.local import shared_prefix, transformer  # noqa: E402
from vlmeval_findit.models.local.logits import LogprobRecorder  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

HOW = transformer.Decoding(12, logprobs=True)
ASKED = variants()[:3]
ROWS = ["FindIt-Nano", "Qwen3-VL", "Qwen3.5", "Gemma 4"]
"""Ours, multimodal rotary positions, linear attention and a thought, a sliding window."""


def forced(loaded: Any, item: Any, ids: Sequence[int]) -> list[float]:
    """Return the log-probabilities of new tokens by one forward pass over prompt and reply."""
    whole = replace(item, ids=(*item.ids, *ids), types=(*item.types, *[0] * len(ids)))
    if hasattr(loaded.model.model, "rope_deltas"):
        loaded.model.model.rope_deltas = None
    with torch.no_grad():
        logits = loaded.model(**loaded.inputs([whole])).logits[0].float()
    of_new = logits[len(item.ids) - 1 : -1].log_softmax(-1)
    actual: list[float] = of_new.gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()
    return actual


@pytest.mark.parametrize("row", ROWS)
def test_they_are_those_of_a_forward_pass(row: str) -> None:
    """One at a time, as a batch, and from a shared prefix; the reply is as without them."""
    loaded = ready(row)._loaded
    images = ImageSet(plan(MODELS[row], VARIANT, RunSettings()).bounds)
    encoded = [loaded.encoder.encode(message, images) for message in ASKED]
    prefix = shared_prefix.prefill(loaded, encoded)
    assert prefix is not None
    replies = {
        "single": [transformer.generate(loaded, [item], HOW)[0] for item in encoded],
        "batch": transformer.generate(loaded, encoded, HOW),
        "prefix": shared_prefix.continue_variants(loaded, prefix, encoded, HOW),
    }
    without = transformer.generate(loaded, encoded, HOW._replace(logprobs=False))
    for how, actual in replies.items():
        for item, new, plain in zip(encoded, actual, without, strict=True):
            assert new._replace(logprobs=None) == plain, how
            assert new.logprobs is not None
            count = len(new.ids)
            assert len(new.logprobs) == count + (new.finish_reason == "stop")
            assert new.logprobs[:count] == pytest.approx(forced(loaded, item, new.ids), abs=1e-3)
            if new.finish_reason == "stop":
                of_stops = [forced(loaded, item, [*new.ids, stop])[-1] for stop in loaded.stops]
                assert new.logprobs[count] == pytest.approx(max(of_stops), abs=1e-3)


@pytest.mark.parametrize("row", ["FindIt-Nano", "Qwen3-VL", "Qwen3.5"])
def test_a_reply_has_them_by_its_characters(row: str) -> None:
    model = ready(row)
    plain = model.answer_batch(ASKED, VARIANT)
    assert all(item.recorded.token_logprobs is None for item in plain)
    for actual in (
        model.answer_batch(ASKED, VARIANT, logprobs=True),
        model.answer_variants(ASKED, VARIANT, logprobs=True),
    ):
        for item, other in zip(plain, actual, strict=True):
            tokens = other.recorded.token_logprobs
            assert (other.text, replace(other.recorded, token_logprobs=None)) == item
            assert tokens is not None
            assert all(value <= 0 for value in tokens.logprobs)
            if other.recorded.ends_in_thought:
                assert (row, tokens.ends) == ("Qwen3.5", ())
            else:
                assert tokens.ends[-1] == len(other.text) > 0


@pytest.mark.parametrize("row", ["Qwen3-VL", "Gemma 4"])
@pytest.mark.parametrize("reply", ["日本 🐈‍⬛ [1]", "", "a  b\n\n"])
def test_ends_of_tokens_are_those_of_longer_and_longer_texts(row: str, reply: str) -> None:
    encoder = ready(row)._loaded.encoder
    ids = encoder.processor.tokenizer(reply, add_special_tokens=False)["input_ids"]
    ids = [*ids[:1], encoder.pad_id, *ids[1:]]  # a token that is not shown
    ends, whole = encoder.ends(ids), encoder.decode(ids)
    assert list(ends) == sorted(ends)
    assert ends[-1] == len(whole)
    for at, end in enumerate(ends, 1):
        begun = encoder.decode(ids[:at])
        assert begun.rstrip("\ufffd") == whole[:end]


def test_memory_does_not_grow_with_the_vocabulary() -> None:
    """Of the steps before the last nothing of the size of the vocabulary is left."""
    chosen, seen = LogprobRecorder(), []
    ids = torch.zeros((2, 1), dtype=torch.long)
    for step in range(5):
        scores = torch.randn(2, 1000)
        expected = scores.log_softmax(-1)[:, step]
        assert chosen(ids, scores) is scores
        seen.append((weakref.ref(scores), weakref.ref(chosen._last), expected))
        scores[:, 500:] = -torch.inf  # as those do that mask in place
        ids = torch.cat([ids, torch.full((2, 1), step)], dim=1)
        del scores
    assert [last() is not None for _, last, _ in seen] == [False] * 4 + [True]
    assert not any(scores() is not None for scores, _, _ in seen)
    actual = torch.tensor(chosen.of(ids[:, 1:]))
    assert torch.allclose(actual, torch.stack([item for *_, item in seen], dim=1))
    assert chosen._last is None
    assert torch.allclose(torch.tensor(chosen.of(ids[:, 1:4])), actual[:, :3]), "steps undone"
