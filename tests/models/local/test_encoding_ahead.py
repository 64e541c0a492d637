"""What comes next is read and encoded while the model generates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_models import VARIANT, picture
from waits import until

from vlmeval_findit.engine import local_backend
from vlmeval_findit.models import (
    MODELS,
    NANO,
    SHIPPED,
    Encoded,
    LocalClient,
    RunSettings,
    load_local,
)
from vlmeval_findit.protocol import NUMPY, Batch, CallResult, CancelledError, Message, image, text


class Watched:
    """A model whose encoder and generation are written down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        how = RunSettings(engine=NUMPY, max_new_tokens=12, **settings)
        self.client = LocalClient(load_local(SHIPPED[NANO], MODELS[NANO], how))
        self.encoded: list[str] = []
        self.answered: list[list[str]] = []
        self.before: Callable[[list[str]], None] = lambda texts: None
        loaded = self.client.runner._loaded
        encoder = loaded.encoder
        for name in ("encode", "encode_like"):
            monkeypatch.setattr(encoder, name, self._writes(getattr(encoder, name)))
        self._generate = loaded.generate
        monkeypatch.setattr(loaded, "generate", self._generated)

    def _writes(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def encode(*given: Any) -> Any:
            message = next(item for item in given if isinstance(item, tuple))
            result = real(*given)
            if result is not None:
                self.encoded.append(message[-1].value)
            return result

        return encode

    def _generated(self, batch: Sequence[Encoded], decoding: Any) -> Any:
        texts = [word for word in ALL if any(word in query.text for query in batch)]
        self.before(texts)
        self.answered.append(texts)
        return self._generate(batch, decoding)

    def answers(self, messages: Sequence[Message]) -> dict[int, CallResult]:
        window = Batch(tuple(messages), (VARIANT,) * len(messages))
        answers: dict[int, CallResult] = {}
        for part in local_backend.answers_in_turn(self.client, window, lambda: False):
            answers |= zip(part.places, part.answers, strict=True)
        return answers


ALL = [f"Find number {at}." for at in range(10)]


def messages() -> list[Message]:
    """Ten questions about five images of one size."""
    return [(image(picture(64, 48, at // 2)), text(words)) for at, words in enumerate(ALL)]


def texts(answers: dict[int, CallResult]) -> list[str]:
    return [answers[at].text for at in sorted(answers)]


def test_the_next_batch_is_encoded_while_one_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, batch_size=4)
    seen = []

    def before(batch: list[str]) -> None:
        following = ALL[ALL.index(batch[-1]) + 1 :][:4]
        until(lambda: {*following} <= {*watched.encoded})
        seen.append(len(watched.encoded))

    watched.before = before
    answers = watched.answers(messages())
    assert watched.answered == [ALL[:4], ALL[4:8], ALL[8:]]
    assert seen == [8, 10, 10], "one batch ahead, no more"
    assert watched.encoded == ALL, "each once, in order"
    watched.before = lambda batch: None
    one_by_one = [watched.client.ask(Batch((each,), (VARIANT,)))[0] for each in messages()]
    assert texts(answers) == [answer.text for answer in one_by_one]
    assert [answers[at].record.images for at in range(10)] == [
        answer.record.images for answer in one_by_one
    ]


def test_what_cannot_be_read_ahead_fails_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    asked = messages()
    asked[5] = (image(str(broken)), text(ALL[5]))
    watched = Watched(monkeypatch, batch_size=2)
    answers = watched.answers(asked)
    failed = [at for at, answer in answers.items() if answer.error is not None]
    assert failed == [5]
    assert len(answers) == 10


def test_equal_questions_are_encoded_once_and_answered_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch, batch_size=3)
    (one,) = {*texts(watched.answers([messages()[0]] * 6))}
    assert one
    assert watched.encoded == [ALL[0]] * 2


def test_a_batch_that_runs_out_of_memory_is_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, batch_size=4)
    expected = texts(watched.answers(messages()))

    def before(batch: list[str]) -> None:
        if len(batch) > 2:
            raise MemoryError

    watched.before = before
    assert texts(watched.answers(messages())) == expected
    assert max(map(len, watched.answered[-5:])) == 2


def test_a_run_that_is_cancelled_encodes_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, batch_size=2)

    def before(batch: list[str]) -> None:
        raise CancelledError

    watched.before = before
    assert not watched.answers(messages())
    assert not watched.client.runner._encoding._begun
    watched.before = lambda batch: None
    assert len(watched.answers(messages())) == 10
