"""From a message to what a model takes: chat template, token ids, pixels, and the sizes of both.

Every query is encoded by itself and only then put into a batch (:func:`collate`), so what a model
is shown does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..prompts import Message, PartKind
from .families import Bounds, LocalFamily
from .pictures import Picture, Pictures

_TOKEN_KEYS = ("input_ids", "attention_mask", "mm_token_type_ids")
"""What a processor returns per token; everything else is per image, patch or tile."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One query as a model takes it.

    ``text`` is the text after the chat template (one placeholder an image), ``ids`` the token ids
    (one an image feature), ``types`` say which of them are image features (1) and which text (0).
    ``features`` hold the processor's tensors of all images, in order along their first dimension.
    ``images`` are the records of their sizes.
    """

    text: str
    ids: tuple[int, ...]
    types: tuple[int, ...]
    features: Mapping[str, Any]
    images: tuple[Mapping[str, Any], ...]


class Encoder:
    """A processor with a family's switches.

    Args:
        processor: a transformers processor with tokenizer and chat template.
        family: the row that says how.
        switches: of the chat template, before the family's own.
    """

    def __init__(
        self, processor: Any, family: LocalFamily, switches: Mapping[str, Any] | None = None
    ) -> None:
        self.processor = processor
        self.family = family
        self._switches = {**family.template, **(switches or {})}
        self._placeholder = str(processor.image_token)

    def chat(self, message: Message) -> str:
        """The exact text after the chat template, images as placeholders at their places."""
        content = [
            {"type": "image"}
            if part.kind is PartKind.IMAGE
            else {"type": "text", "text": part.value}
            for part in message
        ]
        text: str = self.processor.apply_chat_template(
            [{"role": "user", "content": content}],
            tokenize=False,
            add_generation_prompt=True,
            **self._switches,
        )
        return text

    def encode(self, message: Message, pictures: Pictures, bounds: Bounds) -> Encoded:
        """Encode one message.

        Raises:
            OSError: an image cannot be read.
            ValueError: the text holds other than one placeholder an image.
        """
        text = self.chat(message)
        shown = pictures_of(message, pictures)
        self._check_places(text, len(shown))
        images = [picture.pixels for picture in shown]
        resize = Resize(self.processor.image_processor, bounds, self.family.pixels_counted)
        inputs = self.processor(
            text=[text],
            images=[images] if images else None,
            images_kwargs=resize.as_arguments(),
            return_tensors="pt",
        )
        ids = tuple(inputs["input_ids"][0].tolist())
        return Encoded(
            text=text,
            ids=ids,
            types=self._types(ids),
            features={k: v for k, v in inputs.items() if k not in _TOKEN_KEYS},
            images=resize.records(shown, inputs),
        )

    def encode_like(self, first: Encoded, message: Message) -> Encoded | None:
        """Encode a message that differs from an encoded one only after its last image.

        The images are not looked at again.  None where the messages differ before that, or where
        the tokens of the ending cannot be told apart from those before.
        """
        text = self.chat(message)
        head, ending = self._ending(text)
        first_head, first_ending = self._ending(first.text)
        tail = self._tokens(first_ending)
        if head != first_head or first.ids[len(first.ids) - len(tail) :] != tail:
            return None
        ids = first.ids[: len(first.ids) - len(tail)] + self._tokens(ending)
        return replace(first, text=text, ids=ids, types=self._types(ids))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a reply, without special tokens but those that the family keeps."""
        tokenizer = self.processor.tokenizer
        added = tokenizer.added_tokens_decoder
        special = {i for i, token in added.items() if token.special} | {*tokenizer.all_special_ids}
        kept = {i for i, token in added.items() if token.content in self.family.kept_tokens}
        text: str = tokenizer.decode(
            [i for i in ids if i in kept or i not in special],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        return text

    def stop_ids(self, checkpoint_says: Sequence[int]) -> list[int]:
        """The tokens that end a reply: the checkpoint's, the tokenizer's and the family's."""
        tokenizer = self.processor.tokenizer
        vocabulary = tokenizer.get_vocab()
        named = [vocabulary.get(token) for token in self.family.stops]
        return sorted(
            {i for i in (*checkpoint_says, tokenizer.eos_token_id, *named) if i is not None}
        )

    @property
    def gives_types(self) -> bool:
        """Whether the model wants to know which tokens are image features."""
        return "mm_token_type_ids" in self.processor.model_input_names

    @property
    def pad_id(self) -> int:
        """The token that fills up the left side of a batch."""
        pad = self.processor.tokenizer.pad_token_id
        return int(self.processor.tokenizer.eos_token_id if pad is None else pad)

    def _check_places(self, text: str, images: int) -> None:
        places = text.count(self._placeholder)
        if places != images:
            raise ValueError(
                f"{images} images, but {places} times {self._placeholder} after the chat template: "
                "the template leaves images out, or a query's text holds the placeholder itself"
            )

    def _ending(self, text: str) -> tuple[str, str]:
        """What stands up to the last image, and after it."""
        at = text.rfind(self._placeholder) + len(self._placeholder)
        return text[:at], text[at:]

    def _tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self.processor.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _types(self, ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(int(i == self.processor.image_token_id) for i in ids)


def pictures_of(message: Message, pictures: Pictures) -> list[Picture]:
    """The images of a message, in its order."""
    return [pictures.get(part.value) for part in message if part.kind is PartKind.IMAGE]


def collate(batch: Sequence[Encoded], encoder: Encoder, device: Any) -> dict[str, Any]:
    """One batch, padded on the left: tensors of shape (queries, tokens), and all their images."""
    longest = max(len(one.ids) for one in batch)

    def padded(rows: Sequence[Sequence[int]], fill: int) -> Any:
        return torch.tensor([[fill] * (longest - len(row)) + list(row) for row in rows])

    inputs = {
        "input_ids": padded([one.ids for one in batch], encoder.pad_id),
        "attention_mask": padded([[1] * len(one.ids) for one in batch], 0),
    }
    if encoder.gives_types:
        inputs["mm_token_type_ids"] = padded([one.types for one in batch], 0)
    with_images = [one.features for one in batch if one.images]
    for key in with_images[0] if with_images else ():
        inputs[key] = torch.cat([features[key] for features in with_images])
    return {key: value.to(device) for key, value in inputs.items()}


# --- sizes ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resize:
    """What an image processor is told, and what it does to sizes.

    ``counted`` is how often the processor's own areas count a pixel (:class:`.LocalFamily`).
    """

    image_processor: Any
    bounds: Bounds
    counted: int

    @property
    def area(self) -> dict[str, int]:
        """The least and the greatest area, in pixels."""
        own = self.image_processor.size
        return {
            "min_pixels": self.bounds.min_pixels or own["shortest_edge"] // self.counted,
            "max_pixels": self.bounds.max_pixels or own["longest_edge"] // self.counted,
        }

    @property
    def patches(self) -> int:
        """The greatest number of tiles."""
        return int(self.bounds.patches or self.image_processor.max_patches)

    def as_arguments(self) -> dict[str, Any]:
        """The bounds in the processor's own words; nothing where they are left to it."""
        if self.bounds.patches is not None:
            return {"crop_to_patches": True, "max_patches": self.bounds.patches}
        if self.bounds.min_pixels is None and self.bounds.max_pixels is None:
            return {}
        least, greatest = (edge * self.counted for edge in self.area.values())
        return {"size": {"shortest_edge": least, "longest_edge": greatest}}

    def records(
        self, shown: Sequence[Picture], inputs: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], ...]:
        """Of every image the original size, the size as sent, as processed, and the bounds."""
        in_force = self._in_force(inputs)
        return tuple(
            {
                "original": list(picture.original),
                "sent": list(picture.sent),
                "processed": list(size),
                "bounds": in_force,
            }
            for picture, size in zip(shown, self._processed(shown, inputs), strict=True)
        )

    def _in_force(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The bounds with what the run left to the processor."""
        if "image_grid_thw" in inputs:
            return self.bounds.overridden(self.area).as_dict()
        if "image_position_ids" in inputs:
            return {"soft_tokens": self.image_processor.max_soft_tokens}
        return self.bounds.overridden({"patches": self.patches}).as_dict()

    def _processed(
        self, shown: Sequence[Picture], inputs: Mapping[str, Any]
    ) -> list[tuple[int, int]]:
        """The size (w, h) in pixels of every image after the processor.

        Read off what the processor returned where that says it (grids of patches: Qwen, GLM;
        positions of patches: Gemma 4); for InternVL the canvas that was cut into tiles.
        """
        if "image_grid_thw" in inputs:
            patch = self.image_processor.patch_size
            return [(w * patch, h * patch) for _, h, w in inputs["image_grid_thw"].tolist()]
        if "image_position_ids" in inputs:
            patch = self.image_processor.patch_size
            last = inputs["image_position_ids"].amax(dim=1).tolist()
            return [((x + 1) * patch, (y + 1) * patch) for x, y in last]
        return [self._canvas(*picture.sent) for picture in shown]

    def _canvas(self, width: int, height: int) -> tuple[int, int]:
        from transformers.models.got_ocr2 import image_processing_got_ocr2 as tiles

        tile = (self.image_processor.size["height"], self.image_processor.size["width"])
        least = self.image_processor.min_patches
        grid = tiles.get_optimal_tiled_canvas((height, width), tile, least, self.patches)
        return grid[0] * tile[1], grid[1] * tile[0]
