"""Adapter from a batch of messages to what a model object can do.

A model may answer several messages at once, in two ways; others get them one by one. Errors become
failed answers: one bad image must not end a sweep. A stopwatch says how long a model
takes, and what it uses of this machine.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core import error_line, quoted_line
from ..protocol import (
    Batch,
    CallResult,
    CallTime,
    Cancellable,
    Message,
    Part,
    PartKind,
    Reference,
    StopReason,
    call_failed,
    parse_record,
    refused_if_it_quotes,
    split_system,
    system,
)
from .first_failures import FirstFailures


class Stopwatch:
    """Measures messages that are answered together, from now on.

    Where torch holds memory of GPUs in this process, all of them are at work. Where it holds none
    and the machine has a GPU, another process may use it (vLLM's workers): what the model uses is
    not known.

    Args:
        runs_here: the model runs in this process.
    """

    def __init__(self, *, runs_here: bool) -> None:
        self._runs_here = runs_here
        self._began = time.perf_counter()
        self._processor = time.process_time()

    def call_time(self, count: int) -> CallTime:
        """Return what each of ``count`` messages took until now: equal shares."""
        seconds = round((time.perf_counter() - self._began) / count, 6)
        processor = round((time.process_time() - self._processor) / count, 6)
        gpus = gpus_in_use() if self._runs_here else None
        if gpus is None:
            return CallTime(seconds)
        if gpus:
            return CallTime(seconds, gpu_seconds=gpus * seconds)
        return CallTime(seconds, cpu_seconds=processor)


def gpus_in_use() -> int | None:
    """Return on how many GPUs torch holds memory in this process; None: another process may."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    if torch.cuda.is_available():
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        return sum(torch.cuda.memory_allocated(each) > 0 for each in devices) or None
    if torch.backends.mps.is_available():
        return 1 if torch.mps.current_allocated_memory() else None
    return 0


log = logging.getLogger(__name__)

# A message as VLMEvalKit's models take it: ``type`` and ``value``, images as file paths.
#
# Reference images have a true ``reference``, which its models ignore; the system text, a true
# ``system``, goes only to models that take it.
HostMessage = list[dict[str, Any]]


def to_host_message(message: Message) -> HostMessage:
    """Copy a message to the host's form; a new message each time, as its models change them."""
    return [
        {"type": "text", "value": part.value, "system": True}
        if part.kind is PartKind.SYSTEM
        else {"type": part.kind.value, "value": part.value}
        | ({"reference": True} if isinstance(part, Reference) else {})
        for part in message
    ]


def from_host_message(host: Sequence[Mapping[str, Any]]) -> Message:
    """Convert a message from the host's form."""
    return tuple(
        system(str(part["value"]))
        if part.get("system")
        else (Reference if part.get("reference") else Part)(
            PartKind(part["type"]), str(part["value"])
        )
        for part in host
    )


class GenerateClient:
    """A model object of VLMEvalKit's kind.

    It must have ``generate(message=, dataset=)``. If present, ``generate_variants`` gets messages
    over the same images and ``generate_batch`` those of a dataset variant; both take
    ``logprobs=True`` to record log-probabilities and ``seeds=`` to sample by. A true
    ``takes_system`` says that it gets the system text with each message; others have it since they
    were made.

    Args:
        model: the object.
        runs_here: it computes in this process; False: it asks a service.
    """

    def __init__(self, model: Any, *, runs_here: bool = True) -> None:
        self._model = model
        self._runs_here = runs_here
        self._warned = False
        # A service may fail for a while; what computes here fails for good.
        self._first = FirstFailures() if runs_here else None

    def ask(self, batch: Batch) -> list[CallResult]:
        answers = self._answers(batch)
        name = type(self._model).__name__
        for answer in answers:
            if answer.error is not None and answer.extra is None:
                # Models that record failures, as FindIt's do, also log them.
                log.error("%s: a call failed: %s", name, answer.error)
        answered = [answer for answer in answers if answer.error is None]
        if batch.logprobs and answered and not self._warned:
            self._warned = not any("logprobs" in answer.record for answer in answered)
            if self._warned:
                why = "%s records no log-probabilities: its replies are stored without them"
                log.warning(why, name)
        return self._ended(batch, answers)

    def _ended(self, batch: Batch, answers: list[CallResult]) -> list[CallResult]:
        """Return the answers; they end the run if all first calls failed in the same words."""
        first = self._first
        if first is None or first.any_answered:
            return answers
        for message, answer in zip(batch.messages, answers, strict=True):
            if answer.error is None:
                first.answered()
            else:
                first.note(answer.error, _images(message))
        if not first.are_hopeless:
            return answers
        return [answer._replace(stop=StopReason.HOPELESS) for answer in answers]

    def _answers(self, batch: Batch) -> list[CallResult]:
        if len(batch.messages) > 1 and self.answers_together(shares_images=batch.shares_images):
            answers = self._at_once(batch, shares_images=batch.shares_images)
            # What a model recorded of a message is about it, and would be the same of it alone.
            if any(answer.error is None or answer.extra is not None for answer in answers):
                return answers
            why = answers[0].error
            log.warning("%d messages at once failed (%s): one at a time", len(answers), why)
        return [self._answer(single) for single in batch.single()]

    def cancelled_by(self, told: Callable[[], bool]) -> None:
        if isinstance(self._model, Cancellable):
            self._model.cancelled_by(told)

    def answers_together(self, *, shares_images: bool) -> bool:
        return hasattr(self._model, "generate_variants" if shares_images else "generate_batch")

    def _answer(self, single: Batch) -> CallResult:
        if (single.logprobs or single.seeds) and self.answers_together(shares_images=False):
            return self._at_once(single, shares_images=False)[0]
        (message,), (variant,) = single.messages, single.variants
        arguments = {"message": self._host_message(message), "dataset": variant.name}
        return self._timed(lambda: [self._model.generate(**arguments)], 1)[0]

    def _at_once(self, batch: Batch, *, shares_images: bool) -> list[CallResult]:
        ask = self._model.generate_variants if shares_images else self._model.generate_batch
        messages = [self._host_message(message) for message in batch.messages]
        more: dict[str, Any] = {"logprobs": True} if batch.logprobs else {}
        more |= {"seeds": batch.seeds} if batch.seeds else {}
        return self._timed(lambda: ask(messages, batch.variants[0].name, **more), len(messages))

    def _host_message(self, message: Message) -> HostMessage:
        if not getattr(self._model, "takes_system", False):
            _, message = split_system(message)
        return to_host_message(message)

    def _timed(self, ask: Callable[[], Sequence[Any]], count: int) -> list[CallResult]:
        """Return timed answers; an exception fails all of them."""
        watch = Stopwatch(runs_here=self._runs_here)
        try:
            answers = [answer_from(reply) for reply in ask()]
            if len(answers) != count:
                # Whose replies they are is not known.
                raise ValueError(f"the model returned {len(answers)} replies to {count} messages")
        except Exception as error:
            answers = [CallResult("", error=error_line(error))] * count
        taken = watch.call_time(count)
        return [answer._replace(seconds=taken.seconds or 0.0, time=taken) for answer in answers]


def _images(message: Message) -> tuple[str, ...]:
    return tuple(part.value for part in message if part.kind is PartKind.IMAGE)


def answer_from(reply: Any) -> CallResult:
    """Return the answer in a model's return value: a string, or a text with a record."""
    extra = None
    if isinstance(reply, Mapping):
        extra = reply.get("extra_records")
        reply = reply.get("prediction")
    if not isinstance(reply, str):
        return CallResult("", extra, f"the model returned {type(reply).__name__}, not a text")
    record = parse_record(extra)
    if call_failed(reply, record):
        return CallResult("", extra, quoted_line(str(record.call.get("error") or reply), 500))
    return refused_if_it_quotes(CallResult(reply, extra))
