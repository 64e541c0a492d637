"""Offline vLLM: the same messages, images and limits through its engine.

The engine batches by itself, and its prefix cache shares what queries begin with, images included.
Written against vLLM 0.33's ``LLM`` and ``SamplingParams`` and tested up to that call; it has not
been run, for want of a GPU (see ``docs/models.md``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.messages import Message
from ...core.question import Question
from ..revision import revision_of
from ..row import ModelRow
from .encoding import Encoder, pictures_of
from .pictures import Picture, Pictures
from .resize import resize_of
from .run_settings import RunSettings
from .runner import GenerationPlan, LocalReply, failed_answer, plan, spoken
from .transformer import ended, said_tokens

_WINDOW = 64


class VllmRunner:
    """A checkpoint in vLLM's offline engine."""

    def __init__(
        self,
        engine: Any,
        encoder: Encoder,
        row: ModelRow,
        settings: RunSettings,
        who: Mapping[str, str],
    ) -> None:
        self._engine = engine
        self._encoder = encoder
        self._row = row
        self._settings = settings
        self._who = dict(who)

    def __str__(self) -> str:
        return f"{self._who['row']} from {self._who['identifier']} in offline vLLM"

    @property
    def at_once(self) -> int:
        """The engine schedules by itself: hand it many."""
        return self._settings.batch_size or _WINDOW

    def answer_batch(
        self, messages: Sequence[Message], question: Question, *, confidences: bool = False
    ) -> list[LocalReply]:
        """Replies to messages of one question, in their order."""
        from vllm import SamplingParams

        how = plan(self._row, question, self._settings, confidences=confidences)
        pictures = Pictures(how.bounds)
        shown: dict[int, list[Picture]] = {}
        answers: dict[int, LocalReply] = {}
        for at, message in enumerate(messages):
            try:
                shown[at] = pictures_of(message, pictures)
            except OSError as error:
                answers[at] = failed_answer(f"{type(error).__name__}: {error}", how)
        resize = resize_of(how.family, self._encoder.processor.image_processor, how.bounds)
        prompts = [
            {
                "prompt": self._encoder.chat(messages[at]),
                "multi_modal_data": {"image": [picture.pixels for picture in images]},
                "mm_processor_kwargs": resize.as_arguments(),
            }
            for at, images in shown.items()
        ]
        greedy = SamplingParams(
            temperature=0.0,
            max_tokens=how.limit,
            stop_token_ids=self._encoder.stop_ids([]),
            skip_special_tokens=False,
            detokenize=False,
            # None beside the chosen token; by default the engine gives them of the raw logits.
            logprobs=0 if confidences else None,
            **_held_to(how.schema),
        )
        outputs = self._engine.generate(prompts, sampling_params=greedy)
        for at, prompt, output in zip(shown, prompts, outputs, strict=True):
            answers[at] = self._answered(str(prompt["prompt"]), shown[at], output, how)
        return [answers[at] for at in range(len(messages))]

    def _answered(
        self, prompt: str, shown: Sequence[Picture], output: Any, how: GenerationPlan
    ) -> LocalReply:
        """One reply; the engine does not say to what size it resized."""
        bounds = how.bounds.as_dict()
        records = [
            {"original": list(one.original), "sent": list(one.sent), "bounds": bounds}
            for one in shown
        ]
        made = output.outputs[0]
        chosen = None
        if how.confidences and made.logprobs is not None:
            both = zip(made.token_ids, made.logprobs, strict=True)
            chosen = [of_step[token].logprob for token, of_step in both]
        new = ended(made.token_ids, self._encoder.stop_ids([]), chosen)
        new = new._replace(finish_reason="length" if made.finish_reason == "length" else "stop")
        tokens = {"prompt": len(output.prompt_token_ids or ()), "reply": len(new.ids)}
        text, said = self._encoder.decode(new.ids), said_tokens(new, self._encoder)
        return spoken(how, prompt, text, new.finish_reason, records, tokens, self._who, said)

    def answer_variants(
        self, messages: Sequence[Message], question: Question, *, confidences: bool = False
    ) -> list[LocalReply]:
        """Replies to messages that share their images: the engine's prefix cache shares them."""
        return self.answer_batch(messages, question, confidences=confidences)


def _held_to(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The sampling parameters that hold replies to a JSON schema."""
    if schema is None:
        return {}
    from vllm.sampling_params import StructuredOutputsParams

    return {"structured_outputs": StructuredOutputsParams(json=dict(schema))}


def engine_arguments(
    checkpoint: str, settings: RunSettings, devices: int, images: int = 80
) -> dict[str, Any]:
    """The arguments of ``vllm.LLM``.

    Tensor parallel over all visible devices unless told otherwise.  Data parallel is the host's:
    under torchrun every process has its own devices and its own share of the rows.  ``images`` is
    the most that a message may hold: 64 frames and some reference shots.
    """
    return {
        "model": checkpoint,
        "revision": settings.revision,
        "dtype": settings.dtype or "auto",
        "seed": 0,
        "tensor_parallel_size": settings.tensor_parallel_size or max(devices, 1),
        "enable_prefix_caching": True,
        "limit_mm_per_prompt": {"image": images},
        "generation_config": "vllm",
        **settings.vllm,
    }


def load_vllm(checkpoint: str, row: ModelRow, settings: RunSettings) -> VllmRunner:
    """Start the engine for a checkpoint.

    Raises:
        ValueError: vLLM is not installed.
        OSError: the checkpoint is not there.
    """
    from .device import this_machine
    from .transformer import load_processor

    try:
        from vllm import LLM
    except ImportError as error:
        raise ValueError(
            f"--use-vllm: vLLM cannot be imported ({error}): pip install vllm"
        ) from None
    if row.local is None:
        raise ValueError(f"{row.name} does not run on this machine")
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    arguments = engine_arguments(checkpoint, settings, this_machine().cuda_devices)
    encoder = Encoder(load_processor(checkpoint, settings.revision), row.local, settings.template)
    engine = LLM(**arguments)
    revision = revision_of(checkpoint, None)
    who = {"row": row.name, "identifier": checkpoint, "revision": revision, "engine": "vllm"}
    return VllmRunner(engine, encoder, row, settings, who)
