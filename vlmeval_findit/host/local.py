"""Models on this machine as VLMEvalKit's: one base class, and a class a family."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from vlmeval.smp import get_logger, get_rank_and_world_size

from ..models.local import Answer, Runner, RunSettings, load_local
from ..models.table import MODELS, ModelRow, local_names
from ..prompts import Message, Part, PartKind
from ..variant import nearest
from .lookahead import HostMessage, LookAhead
from .models import FindItModel, RecordedReply, variant_of

Maker = Callable[..., Any]


class FindItLocalModel(FindItModel):
    """A Hugging Face image-text model on this machine, as a row of the model table says.

    Any number of threads may share it: they are served one after the other.

    Args:
        model_path: a folder or an identifier (default: the first checkpoint of the row).
        row: a row of the model table (default: the class's own); ``Qwen3.5-nothink`` and the like.
        use_vllm: offline vLLM instead of transformers (default: whether ``--use-vllm`` was given).
        settings: the fields of :class:`..models.local.RunSettings`.

    Raises:
        ValueError: an unknown row or setting; vLLM is asked for and is not there.
        OSError: the checkpoint is not there.
    """

    row: ClassVar[str] = ""

    def __init__(
        self,
        model_path: str | None = None,
        row: str | None = None,
        use_vllm: bool | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        known = _local_row(row or self.row)
        checkpoint = model_path or _own_checkpoint(known)
        with_vllm = "--use-vllm" in sys.argv if use_vllm is None else use_vllm
        self._runner = (_load_vllm if with_vllm else load_local)(
            checkpoint, known, _settings(settings)
        )
        self._lock = threading.RLock()
        self._ahead: tuple[str, LookAhead[RecordedReply]] | None = None
        get_logger("FindIt").info("FindIt: %s", self._runner)

    def generate_inner(self, message: HostMessage, dataset: str | None = None) -> RecordedReply:
        """The reply to a message; rows that the host is going to ask for are answered with it."""
        name = variant_of(dataset).name if dataset is None else dataset
        with self._lock:
            return self._window(name).reply(message)

    def generate_batch(self, messages: Sequence[HostMessage], dataset: str) -> list[RecordedReply]:
        """The replies to messages of one dataset, in their order, worked out together."""
        with self._lock:
            return _replies(
                self._runner.answer_batch([_parts(m) for m in messages], variant_of(dataset))
            )

    def generate_variants(
        self, messages: Sequence[HostMessage], dataset: str
    ) -> list[RecordedReply]:
        """The replies to variants of one query, whose images are encoded and prefilled once.

        ``dataset`` is the name of any of the variants: they have dataset and frames in common.
        """
        with self._lock:
            return _replies(
                self._runner.answer_variants([_parts(m) for m in messages], variant_of(dataset))
            )

    def set_dump_image(self, dump_image_func: Callable[..., Any]) -> None:
        """The host says which dataset comes: the rows to look ahead at."""
        super().set_dump_image(dump_image_func)
        self._ahead = None

    def _window(self, name: str) -> LookAhead[RecordedReply]:
        if self._ahead is None or self._ahead[0] != name:
            self._ahead = (
                name,
                LookAhead(
                    self._coming(name),
                    lambda messages: self.generate_batch(messages, name),
                    self._runner.at_once,
                ),
            )
        return self._ahead[1]

    def _coming(self, name: str) -> list[HostMessage]:
        """The messages that the host will ask of this process, in its order; none if unknown."""
        dataset: Any = getattr(self.dump_image_func, "__self__", None)
        if getattr(dataset, "dataset_name", None) != name or not hasattr(dataset, "build_prompt"):
            return []
        rank, processes = get_rank_and_world_size()
        rows = dataset.data.iloc[rank::processes]
        return [dataset.build_prompt(rows.iloc[at]) for at in range(len(rows))]


def _parts(message: HostMessage) -> Message:
    return tuple(Part(PartKind(part["type"]), part["value"]) for part in message)


def _replies(answers: Sequence[Answer]) -> list[RecordedReply]:
    return [RecordedReply(answer.text, answer.recorded) for answer in answers]


def _settings(values: Mapping[str, Any]) -> RunSettings:
    for key in values:
        if key not in RunSettings.__dataclass_fields__:
            raise ValueError(f"no setting {key!r}{nearest(key, RunSettings.__dataclass_fields__)}")
    return RunSettings(**values)


def _local_row(name: str) -> ModelRow:
    row = MODELS.get(name)
    if row is None or row.local is None:
        there = [one.name for one in MODELS.values() if one.local]
        raise ValueError(f"no local model {name!r}{nearest(name, there)}")
    return row


def _own_checkpoint(row: ModelRow) -> str:
    return next(identifier for one, identifier in local_names().values() if one is row)


def _load_vllm(checkpoint: str, row: ModelRow, settings: RunSettings) -> Runner:
    from ..models.vllm import load_vllm

    return load_vllm(checkpoint, row, settings)


class FindItQwen3VL(FindItLocalModel):
    """Qwen3-VL."""

    row = "Qwen3-VL"


class FindItQwen25VL(FindItLocalModel):
    """Qwen2.5-VL."""

    row = "Qwen2.5-VL"


class FindItQwen35(FindItLocalModel):
    """Qwen3.5; without thinking as the row ``Qwen3.5-nothink``."""

    row = "Qwen3.5"


class FindItGLM46V(FindItLocalModel):
    """GLM-4.6V without thinking."""

    row = "GLM-4.6V"


class FindItGemma4(FindItLocalModel):
    """Gemma 4."""

    row = "Gemma 4"


class FindItInternVL3(FindItLocalModel):
    """InternVL3 (the transformers checkpoints, ``-hf``)."""

    row = "InternVL3"


LOCAL_CLASSES: tuple[type[FindItLocalModel], ...] = (
    FindItQwen3VL,
    FindItQwen25VL,
    FindItQwen35,
    FindItGLM46V,
    FindItGemma4,
    FindItInternVL3,
)


def class_of(row: ModelRow) -> type[FindItLocalModel]:
    """The class that a row names."""
    assert row.local is not None
    return next(cls for cls in LOCAL_CLASSES if cls.__name__ == row.local.class_name)


def local_maker(row: ModelRow, checkpoint: str) -> Maker:
    """An entry of the host's ``supported_VLM``."""
    return partial(class_of(row), model_path=checkpoint, row=row.name)


def local_models() -> dict[str, Maker]:
    """Our entries of ``supported_VLM`` for models on this machine."""
    return {name: local_maker(row, checkpoint) for name, (row, checkpoint) in local_names().items()}
