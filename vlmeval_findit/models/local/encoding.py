"""Turn messages into model inputs: chat template, token ids, pixels, and their sizes.

Every query is encoded alone and batched later, so what a model sees does not depend on other
queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import accumulate
from typing import Any

from ...core import error_line
from ...protocol import Message, PartKind, split_system
from ..model_row import LocalFamily
from ..reply_tokens import id_ends
from .grammar import grammar_tokenizer
from .machine import is_out_of_memory
from .model_images import ImageSet

# A processor's outputs per token; the others are per image, patch or tile.
_TOKEN_KEYS = ("input_ids", "attention_mask", "mm_token_type_ids")


@dataclass(frozen=True, slots=True)
class Encoded:
    """One query as a model takes it."""

    text: str  # after the chat template, one placeholder per image
    ids: tuple[int, ...]  # token ids, one per image feature
    types: tuple[int, ...]  # 1: image feature, 0: text
    features: Mapping[str, Any]  # arrays of all images, in order along their first dimension
    images: tuple[Mapping[str, Any], ...]  # records of sizes
    seed: int | None = None  # of its reply's random numbers, where replies are sampled


class MessageEncoder:
    """A processor with a family's options; ``switches`` override its template's.

    The processor is of transformers, or has what is asked of one here, and ``arrays``: the kind of
    its features, as transformers names it.
    """

    def __init__(
        self, processor: Any, family: LocalFamily, switches: Mapping[str, Any] | None = None
    ) -> None:
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.family = family
        self._arrays = getattr(processor, "arrays", "pt")
        self._switches = {**family.template, **(switches or {})}
        self._placeholder = str(processor.image_token)
        self._alone = cache(lambda i: self._text([i]))
        self.grammar_tokenizer = cache(partial(grammar_tokenizer, self.tokenizer))

    def chat(self, message: Message) -> str:
        """Return the exact text after the chat template, with image placeholders."""
        before, asked = split_system(message)
        turns: list[dict[str, Any]] = []
        if before is not None:
            turns.append({"role": "system", "content": [{"type": "text", "text": before}]})
        content = [
            {"type": "image"}
            if part.kind is PartKind.IMAGE
            else {"type": "text", "text": part.value}
            for part in asked
        ]
        turns.append({"role": "user", "content": content})
        with self._told_of("its chat template cannot write a question"):
            text: str = self.processor.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True, **self._switches
            )
        return text

    @contextmanager
    def _told_of(self, what: str) -> Iterator[None]:
        """Name the checkpoint where its files raise what no caller expects."""
        try:
            yield
        except (OSError, MemoryError, ValueError):  # as of an image that is too narrow
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise ValueError(
                f"{self.tokenizer.name_or_path}: {what} ({error_line(error)}). Copy the files that "
                "were published with the model"
            ) from error

    def encode(self, message: Message, images: ImageSet) -> Encoded:
        """Encode one message; OSError if an image cannot be read, ValueError for placeholders."""
        text = self.chat(message)
        shown = [images.get(part.value) for part in message if part.kind is PartKind.IMAGE]
        places = text.count(self._placeholder)
        if places != len(shown):
            raise ValueError(
                f"{len(shown)} images, but {places} times {self._placeholder} after the chat "
                "template: it leaves images out, or a query's text contains the placeholder"
            )
        family = self.family
        layout = family.layout(self.processor.image_processor, images.bounds, family.pixels_counted)
        with self._told_of("its processor cannot encode a question"):
            inputs = self.processor(
                text=[text],
                images=[[image.pixels for image in shown]] if shown else None,
                images_kwargs=layout.as_arguments(),
                return_tensors=self._arrays,
            )
        ids = tuple(inputs["input_ids"][0].tolist())
        features = {key: value for key, value in inputs.items() if key not in _TOKEN_KEYS}
        return Encoded(text, ids, self._types(ids), features, layout.records(shown, inputs))

    def encode_like(self, first: Encoded, message: Message) -> Encoded | None:
        """Encode a message that differs from another only after its last image, else None."""
        text = self.chat(message)
        head, ending = self._ending(text)
        first_head, first_ending = self._ending(first.text)
        tail = self._tokens(first_ending)
        common = len(first.ids) - len(tail)
        if head != first_head or first.ids[common:] != tail:
            return None
        ids = first.ids[:common] + self._tokens(ending)
        return replace(first, text=text, ids=ids, types=self._types(ids))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a reply, without special tokens except those the family keeps."""
        return self._text([i for i in ids if i not in self._hidden])

    def ends(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return where each token ends in a reply's text (:meth:`decode`), in characters."""
        shown = [i for i in ids if i not in self._hidden]
        ends = iter(id_ends(shown, self._text, self._alone))
        # A hidden token ends where the previous one does.
        return tuple(accumulate((0 if i in self._hidden else next(ends) for i in ids), max))

    @cached_property
    def _hidden(self) -> frozenset[int]:
        added = self.tokenizer.added_tokens_decoder
        special = {i for i, token in added.items() if token.special}
        preserved = self.family.preserved_tokens
        shown = {i for i, token in added.items() if token.content in preserved}
        return frozenset((special | {*self.tokenizer.all_special_ids}) - shown)

    def _text(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    @property
    def pad_id(self) -> int:
        pad = self.tokenizer.pad_token_id
        return int(self.tokenizer.eos_token_id if pad is None else pad)

    def _ending(self, text: str) -> tuple[str, str]:
        at = text.rfind(self._placeholder) + len(self._placeholder)
        return text[:at], text[at:]

    def _tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _types(self, ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(int(i == self.processor.image_token_id) for i in ids)
