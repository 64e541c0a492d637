"""Models of this process as clients: errors become failed answers, and times are taken.

One bad image must not end a sweep. A stopwatch says how long a model takes, and what it uses of
this machine.
"""

from __future__ import annotations

import logging
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ..core import counted, error_line, quoted_line
from ..protocol import (
    Batch,
    CallResult,
    CallTime,
    Message,
    Part,
    PartKind,
    Reference,
    StopReason,
    call_failed,
    image_paths,
    refused_if_it_quotes,
    split_system,
    system,
)
from ..storage import parse_record
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


class TimedClient(ABC):
    """A model of this process, or behind an object of it, and what it takes.

    Exceptions are failed calls. Messages that fail together are asked one at a time.

    Args:
        runs_here: it computes in this process; False: it asks a service.
    """

    def __init__(self, *, runs_here: bool = True) -> None:
        self._runs_here = runs_here
        self._warned = False
        # A service may fail for a while; what computes here fails for good.
        self._first = FirstFailures() if runs_here else None

    @property
    def called(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    @abstractmethod
    def replies(self, batch: Batch) -> Sequence[CallResult]:
        """Return the answers to messages that it answers together; they are timed here."""

    @abstractmethod
    def answers_together(self) -> bool:
        """Return whether it answers several messages at once."""

    def parts(self, window: Batch) -> Sequence[Sequence[int]]:
        places = range(len(window.messages))
        return [places] if self.answers_together() else [[at] for at in places]

    def ask(self, batch: Batch) -> list[CallResult]:
        answers = self._answers(batch)
        for answer in answers:
            if answer.error is not None and not answer.is_recorded:
                # Models that record failures, as FindIt's do, also log them.
                log.error("%s: a call failed: %s", self.called, answer.error)
        answered = [answer for answer in answers if answer.error is None]
        if batch.logprobs and answered and not self._warned:
            self._warned = all(answer.record.token_logprobs is None for answer in answered)
            if self._warned:
                why = "%s records no log-probabilities: its replies are stored without them"
                log.warning(why, self.called)
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
                first.note(answer.error, image_paths(message))
        if not first.are_hopeless:
            return answers
        return [answer._replace(stop=StopReason.HOPELESS) for answer in answers]

    def _answers(self, batch: Batch) -> list[CallResult]:
        if len(batch.messages) > 1 and self.answers_together():
            answers = self._timed(batch)
            # What a model recorded of a message is about it, and would be the same of it alone.
            if any(answer.error is None or answer.is_recorded for answer in answers):
                return answers
            why = answers[0].error
            log.warning("%d messages at once failed (%s): one at a time", len(answers), why)
        return [self._timed(batch.only([at]))[0] for at in range(len(batch.messages))]

    def _timed(self, batch: Batch) -> list[CallResult]:
        """Return timed answers; an exception fails all of them."""
        count = len(batch.messages)
        watch = Stopwatch(runs_here=self._runs_here)
        try:
            answers = list(self.replies(batch))
            if len(answers) != count:
                # Whose replies they are is not known.
                raise ValueError(
                    f"the model returned {counted(len(answers), 'reply', 'replies')} "
                    f"to {counted(count, 'message')}"
                )
        except Exception as error:
            answers = [CallResult("", error=error_line(error))] * count
        taken = watch.call_time(count)
        return [answer._replace(seconds=taken.seconds or 0.0, time=taken) for answer in answers]


class GenerateClient(TimedClient):
    """A model object of VLMEvalKit's kind: it has ``generate(message=, dataset=)``.

    A true ``takes_system`` says that it gets the system text with each message; others have it
    since they were made.
    """

    def __init__(self, model: Any, *, runs_here: bool = True) -> None:
        super().__init__(runs_here=runs_here)
        self._model = model

    @property
    def called(self) -> str:
        return type(self._model).__name__

    def answers_together(self) -> bool:
        return False

    def replies(self, batch: Batch) -> list[CallResult]:
        (message,), (variant,) = batch.messages, batch.variants
        if not getattr(self._model, "takes_system", False):
            _, message = split_system(message)
        host_message = to_host_message(message)
        return [answer_from(self._model.generate(message=host_message, dataset=variant.name))]


def answer_from(reply: Any) -> CallResult:
    """Return the answer in a model's return value: a string, or a text with a record.

    Raises:
        RecordError: it has a record of ours, which is damaged.
    """
    foreign = None
    if isinstance(reply, Mapping):
        foreign = reply.get("extra_records")
        reply = reply.get("prediction")
    record = parse_record(foreign)
    answer = CallResult("", record, foreign=foreign)
    if not isinstance(reply, str):
        return answer._replace(error=f"the model returned {type(reply).__name__}, not a text")
    if call_failed(reply, record):
        return answer._replace(error=quoted_line(str(record.call.get("error") or reply), 500))
    return refused_if_it_quotes(answer._replace(text=reply))
