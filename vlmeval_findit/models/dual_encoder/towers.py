"""The two towers of a dual encoder of transformers: images and captions in, pooled vectors out.

Float32, on a GPU where there is one.  What a batch holds beside a caption or a picture does not
change its vector: captions that are not padded are only run beside others of their length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import transformers as hf

from ...core.command import installed
from ...core.files import file_sha256, sha256_of
from ...core.image_files import decode
from ..revision import known_revision, refuse_missing, revision_of
from .encoder import (
    UNPADDED_TOKENS,
    Encoder,
    EncoderError,
    Padding,
    TextFeatures,
    Vectors,
    checkpoint_of,
    identifier_of,
)
from .kept import KeptFeatures

_Item = TypeVar("_Item")

_BATCH = 16
_UNMASKED = ("siglip", "siglip2")
"""By ``model_type``: trained on captions padded to their full length, without a mask."""


class Towers:
    """A dual encoder of the hub or of a folder; its weights are read when they are first needed.

    Raises:
        EncoderError: the checkpoint is there but is no dual encoder, or cannot be read.
        ValueError: there is no such checkpoint.
    """

    def __init__(self, checkpoint: str) -> None:
        refuse_missing(checkpoint)
        self.checkpoint = checkpoint
        self.revision = _revision(checkpoint)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            config = hf.AutoConfig.from_pretrained(checkpoint, **self._pinned)
            self._class = hf.MODEL_MAPPING[type(config)]
        except (OSError, KeyError, ValueError) as error:
            raise EncoderError(f"{checkpoint}: no model that can be read: {error!r}") from error
        if not all(hasattr(self._class, f"get_{kind}_features") for kind in ("image", "text")):
            raise EncoderError(
                f"{checkpoint}: {self._class.__name__} is no dual encoder: it has no features of "
                "images and of texts that could be compared (those of SigLIP and CLIP have)"
            )
        self.masked = config.model_type not in _UNMASKED
        try:
            self.most_tokens = int(config.text_config.max_position_embeddings)
            processor = hf.AutoProcessor.from_pretrained(checkpoint, **self._pinned)
            self._tokenizer, self._pictures = processor.tokenizer, processor.image_processor
        except (OSError, AttributeError, ValueError, ImportError) as error:
            raise EncoderError(
                f"{checkpoint}: no processor of images and texts that can be read: {error}"
            ) from error

    @property
    def _pinned(self) -> Mapping[str, str]:
        """Of the hub, the very commit whose features are kept."""
        return {} if Path(self.checkpoint).is_dir() else {"revision": self.revision}

    @property
    def facts(self) -> Mapping[str, str]:
        """All that a vector depends on, but for where the checkpoint lies."""
        return {
            "architecture": self._class.__name__,
            "revision": self.revision,
            "dtype": "float32",
            "device": self.device,
            "image_processor": f"{type(self._pictures).__name__} ({self._pictures.backend})",
            Padding.AS_TRAINED.value: (
                f"cut at {self.most_tokens} tokens, masked"
                if self.masked
                else f"padded to {self.most_tokens} tokens, not masked"
            ),
            **installed(("torch", "torchvision", "transformers", "tokenizers", "pillow")),
        }

    @cached_property
    def _model(self) -> Any:
        try:
            model = self._class.from_pretrained(
                self.checkpoint, dtype=torch.float32, **self._pinned
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise EncoderError(
                f"{self.checkpoint}: no weights that can be read: {error}"
            ) from error
        return model.eval().to(self.device)

    def images(self, paths: Sequence[Path]) -> Vectors:
        """The vectors of image files, read as RGB.

        Raises:
            OSError: a file is not there or is no image.
        """
        made = []
        for batch in _batches(paths):
            parts = [self._pictures(images=[decode(path)], return_tensors="pt") for path in batch]
            given = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
            made.append(self._pooled("image", given))
        return np.concatenate(made)

    def lengths(self, captions: Sequence[str]) -> list[int]:
        """Tokens of each caption as a whole, the ones that begin and end it counted."""
        return [len(ids) for ids in self._tokenizer([*captions], verbose=False).input_ids]

    def limit(self, padding: Padding) -> int:
        """Tokens at which captions are cut."""
        if padding is Padding.UNPADDED:
            return min(UNPADDED_TOKENS, self.most_tokens)
        return self.most_tokens

    def texts(self, captions: Sequence[str], padding: Padding) -> Vectors:
        """The vectors of captions."""
        whole = padding is Padding.AS_TRAINED and not self.masked
        said = self._tokenizer(
            [*captions],
            padding="max_length" if whole else False,
            truncation=True,
            max_length=self.limit(padding),
        ).input_ids
        alike = defaultdict(list)
        for i, ids in enumerate(said):
            alike[len(ids)].append(i)
        made: dict[int, Any] = {}
        for numbers in alike.values():
            for batch in _batches(numbers):
                given = {"input_ids": torch.tensor([said[i] for i in batch])}
                if padding is Padding.AS_TRAINED and self.masked:
                    given["attention_mask"] = torch.ones_like(given["input_ids"])
                made.update(zip(batch, self._pooled("text", given), strict=True))
        return np.stack([made[i] for i in range(len(said))])

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _pooled(self, kind: str, given: Mapping[str, Any]) -> Vectors:
        """What a tower makes of its input, whether it gives vectors or an object that has them."""
        inputs = {name: value.to(self.device) for name, value in given.items()}
        out = getattr(self._model, f"get_{kind}_features")(**inputs)
        vectors = out if isinstance(out, torch.Tensor) else getattr(out, "pooler_output", None)
        if vectors is None or vectors.ndim != 2:
            raise EncoderError(
                f"{self.checkpoint}: {self._class.__name__} has no single vector of its {kind}s"
            )
        return np.asarray(vectors.float().cpu().numpy(), dtype=np.float32)


def _batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    for first in range(0, len(items), _BATCH):
        yield items[first : first + _BATCH]


def _revision(checkpoint: str) -> str:
    """The revision that will be loaded: of the hub, the commit that is here, or the newest."""
    known = known_revision(checkpoint)
    if known is not None:
        return known
    from huggingface_hub import hf_hub_download

    try:
        return revision_of(checkpoint, hf_hub_download(checkpoint, "config.json"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"{checkpoint}: cannot be found on the hub or here: {error}") from error


# --- by name, with features kept on disk ----------------------------------------------------------


def named_encoder(name: str) -> Encoder:
    """The dual encoder of a name of :data:`.encoder.ENCODERS`, of the hub, or of a folder.

    Its weights are read when a feature is asked for that is not kept.

    Raises:
        EncoderError: the checkpoint cannot be read, or is no dual encoder.
        ValueError: there is no such checkpoint.
    """
    return _NamedEncoder(name, Towers(checkpoint_of(name)))


class _NamedEncoder:
    def __init__(self, name: str, towers: Towers) -> None:
        self._name, self._towers = name, towers

    @property
    def facts(self) -> Mapping[str, str]:
        return {"identifier": identifier_of(self._name), **self._towers.facts}

    def images(self, paths: Sequence[Path]) -> Vectors:
        contents = [file_sha256(path) for path in paths]
        kept = KeptFeatures({**self._towers.facts, "of": "image"})
        return kept.of(contents, lambda numbers: self._towers.images([paths[i] for i in numbers]))

    def texts(self, captions: Sequence[str], padding: Padding) -> TextFeatures:
        # Half a surrogate pair, which a reply may hold, is no text that a tokenizer takes.
        captions = [caption.encode("utf-8", "replace").decode() for caption in captions]
        contents = [sha256_of(caption.encode()) for caption in captions]
        kept = KeptFeatures({**self._towers.facts, "of": "text", "padding": padding.value})
        vectors = kept.of(
            contents, lambda numbers: self._towers.texts([captions[i] for i in numbers], padding)
        )
        tokens = tuple(self._towers.lengths(captions))
        limit = self._towers.limit(padding)
        return TextFeatures(vectors, tokens, tuple(count > limit for count in tokens))
