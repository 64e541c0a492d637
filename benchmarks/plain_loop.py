"""The loop over transformers that a model on this machine is measured against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor


class PlainLoop(NamedTuple):
    processor: Any
    model: Any

    def replies(self, asked: Sequence[tuple[str, str]], batch: int, **limits: Any) -> Iterator[str]:
        """Yield the replies to pairs of an image file and a text, so many at a time."""
        for first in range(0, len(asked), batch):
            part = asked[first : first + batch]
            images = [[Image.open(path).convert("RGB")] for path, _ in part]
            texts = [self._chat(text) for _, text in part]
            inputs = self.processor(text=texts, images=images, padding=True, return_tensors="pt")
            inputs = inputs.to(self.model.device)
            with torch.inference_mode():
                output = self.model.generate(**inputs, do_sample=False, **limits)
            new = output[:, inputs["input_ids"].shape[1] :]
            yield from self.processor.batch_decode(new, skip_special_tokens=True)

    def _chat(self, text: str) -> Any:
        content = [{"type": "image"}, {"type": "text", "text": text}]
        turns = [{"role": "user", "content": content}]
        return self.processor.apply_chat_template(turns, add_generation_prompt=True)


def load(checkpoint: str, device: str, dtype: str, area: tuple[int, int] | None) -> PlainLoop:
    """Load a checkpoint; ``area`` are the least and most pixels of an image (None: its own)."""
    processor = AutoProcessor.from_pretrained(checkpoint)
    processor.tokenizer.padding_side = "left"
    if area is not None:
        processor.image_processor.size = {"shortest_edge": area[0], "longest_edge": area[1]}
    model = AutoModelForImageTextToText.from_pretrained(checkpoint, dtype=getattr(torch, dtype))
    return PlainLoop(processor, model.eval().to(device))
