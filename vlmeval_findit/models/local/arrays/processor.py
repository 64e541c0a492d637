"""Chat template, token ids and patches of a Qwen3-VL checkpoint, equal to those of transformers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jinja2.sandbox import ImmutableSandboxedEnvironment
from numpy.typing import NDArray
from PIL import Image
from tokenizers import Tokenizer

from ....core import TextError, read_text
from ...checkpoint_settings import read_settings
from .resize import resized

Array = NDArray[np.float32]


class ArrayTokenizer:
    """The tokenizer of a folder, as far as encoders ask for it."""

    def __init__(self, folder: Path) -> None:
        self.name_or_path = str(folder)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = read_settings(folder / "tokenizer_config.json")
        named = {name: value for name, value in config.items() if name.endswith("_token")}
        found = {name: self._tokenizer.token_to_id(value) for name, value in named.items()}
        self._named = {name: token for name, token in found.items() if token is not None}
        self.image_token = str(config["image_token"])

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> Mapping[str, list[int]]:
        encoded = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return {"input_ids": encoded.ids}

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool, **_: Any) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return text

    def convert_ids_to_tokens(self, token: int) -> str | None:
        text: str | None = self._tokenizer.id_to_token(token)
        return text

    def get_vocab(self) -> Mapping[str, int]:
        vocabulary: Mapping[str, int] = self._tokenizer.get_vocab()
        return vocabulary

    @property
    def added_tokens_decoder(self) -> Mapping[int, Any]:
        added: Mapping[int, Any] = self._tokenizer.get_added_tokens_decoder()
        return added

    @property
    def all_special_ids(self) -> Sequence[int]:
        return sorted({*self._named.values()})

    @property
    def pad_token_id(self) -> int | None:
        return self._named.get("pad_token")

    @property
    def eos_token_id(self) -> int | None:
        return self._named.get("eos_token")

    @property
    def backend_tokenizer(self) -> Tokenizer:
        return self._tokenizer


@dataclass(frozen=True)
class ArrayImages:
    """The image processor of a folder: sizes, and patches of pixels."""

    patch_size: int
    merge_size: int
    temporal_patch_size: int
    size: Mapping[str, int]  # ``shortest_edge`` and ``longest_edge``: least and greatest area
    mean: Array  # of pixels from 0 to 255
    deviation: Array

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ArrayImages:
        scale = np.float32(1 / values["rescale_factor"])
        return cls(
            values["patch_size"],
            values["merge_size"],
            values["temporal_patch_size"],
            values["size"],
            np.array(values["image_mean"], dtype=np.float32) * scale,
            np.array(values["image_std"], dtype=np.float32) * scale,
        )

    def patches(
        self, image: Image.Image, size: Mapping[str, int] | None = None
    ) -> tuple[Array, tuple[int, int]]:
        """Return an image's patches (patches, numbers), in merged blocks, and its grid."""
        pixels = np.asarray(image.convert("RGB"))
        height, width = self._rounded(pixels.shape[0], pixels.shape[1], size or self.size)
        values = resized(pixels, height, width).astype(np.float32)
        values = ((values - self.mean) / self.deviation).transpose(2, 0, 1)
        merged, side = self.merge_size, self.patch_size
        rows, columns = height // side, width // side
        blocks = values.reshape(
            len(values), rows // merged, merged, side, columns // merged, merged, side
        )
        ordered = blocks.transpose(1, 4, 2, 5, 0, 3, 6)
        frames = np.repeat(ordered[:, :, :, :, :, None], self.temporal_patch_size, axis=5)
        return frames.reshape(rows * columns, -1), (rows, columns)

    def _rounded(self, height: int, width: int, area: Mapping[str, int]) -> tuple[int, int]:
        """Return the sides as multiples of a block, within the bounds of the area."""
        if max(height, width) / min(height, width) > 200:
            ratio = max(height, width) / min(height, width)
            raise ValueError(f"absolute aspect ratio must be smaller than 200, got {ratio}")
        block = self.patch_size * self.merge_size
        rows, columns = round(height / block), round(width / block)
        if rows * columns * block**2 > area["longest_edge"]:
            shrunk = math.sqrt(height * width / area["longest_edge"])
            rows = max(1, math.floor(height / shrunk / block))
            columns = max(1, math.floor(width / shrunk / block))
        elif rows * columns * block**2 < area["shortest_edge"]:
            grown = math.sqrt(area["shortest_edge"] / (height * width))
            rows = math.ceil(height * grown / block)
            columns = math.ceil(width * grown / block)
        return rows * block, columns * block


class ArrayProcessor:
    """The processor of a folder, with what :class:`..encoding.MessageEncoder` asks of one."""

    arrays = "np"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.tokenizer = ArrayTokenizer(folder)
        values = read_settings(folder / "processor_config.json")
        self.image_processor = ArrayImages.of(values["image_processor"])
        self.image_token = self.tokenizer.image_token
        self.image_token_id = self.tokenizer.get_vocab()[self.image_token]

    @cached_property
    def chat_template(self) -> str:
        path = self._folder / "chat_template.jinja"
        try:
            return read_text(path)
        except TextError as error:
            raise ValueError(error.message_for(path)) from None

    @cached_property
    def _template(self) -> Any:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        return environment.from_string(self.chat_template)

    def apply_chat_template(
        self, turns: Sequence[Mapping[str, Any]], *, tokenize: bool = False, **switches: Any
    ) -> str:
        text: str = self._template.render(messages=turns, **switches)
        return text

    def __call__(
        self,
        text: Sequence[str],
        images: Sequence[Sequence[Image.Image]] | None,
        images_kwargs: Mapping[str, Any],
        return_tensors: str,
    ) -> dict[str, Any]:
        """Return the token ids of one text, and the patches and grids of its images."""
        (whole,) = text
        features: dict[str, Any] = {}
        if images is not None:
            read = [
                self.image_processor.patches(image, images_kwargs.get("size"))
                for image in images[0]
            ]
            grids = [(1, rows, columns) for _, (rows, columns) in read]
            features["pixel_values"] = np.concatenate([patches for patches, _ in read])
            features["image_grid_thw"] = np.array(grids)
            whole = self._with_places(whole, [rows * columns for _, rows, columns in grids])
        ids = self.tokenizer(whole)["input_ids"]
        return {"input_ids": np.array([ids], dtype=np.int64), **features}

    def _with_places(self, text: str, patches: Sequence[int]) -> str:
        """Repeat each image's token, once for each block of patches."""
        block = self.image_processor.merge_size**2
        pieces = text.split(self.image_token)
        whole = pieces[0]
        for count, piece in zip(patches, pieces[1:], strict=True):
            whole += self.image_token * (count // block) + piece
        return whole
