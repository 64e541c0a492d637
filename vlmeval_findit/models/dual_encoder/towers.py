"""The two towers of a transformers dual encoder: images and captions to pooled vectors.

Float32, on a GPU if there is one. A vector does not depend on its batch: unpadded captions only
share a batch with others of their length.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import transformers as hf

from ...core import file_sha256, installed, sha256_of, write_once
from ...storage import decode_image, make_lmu_data_root
from ..loading_report import checked_loading, judge_loading, report_of
from ..revision import known_revision, refuse_missing, refuse_unreachable, revision_of
from .encoder import (
    NANO_SIGLIP,
    DualEncoder,
    EncoderError,
    Padding,
    TextFeatures,
    Vectors,
    checkpoint_of,
)

log = logging.getLogger(__name__)

Item = TypeVar("Item")

FOLDER = "findit_features"
UNPADDED_TOKENS = 64  # where :attr:`Padding.UNPADDED` cuts; the end token stays

_BATCH = 16
# By ``model_type``: trained on captions padded to full length without a mask.
_UNMASKED = ("siglip", "siglip2")


class Towers:
    """A dual encoder of the hub or of a folder; the numbers of its weights are read on first use.

    Raises EncoderError if it is none, or weights that are on this machine do not make it; OSError
    or ValueError if it cannot be read.
    """

    def __init__(self, checkpoint: str) -> None:
        refuse_missing(checkpoint)
        refuse_unreachable(checkpoint)
        self.checkpoint = checkpoint
        self.revision = known_revision(checkpoint) or _revision_at_hub(checkpoint)
        # The hub commit whose features are stored
        self._pinned: dict[str, Any] = {"trust_remote_code": False}
        if not Path(checkpoint).is_dir():
            self._pinned["revision"] = self.revision
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        config = hf.AutoConfig.from_pretrained(checkpoint, **self._pinned)
        self._class = hf.MODEL_MAPPING[type(config)]
        if not all(hasattr(self._class, f"get_{kind}_features") for kind in ("image", "text")):
            raise EncoderError(
                f"{checkpoint}: {self._class.__name__} is not a dual encoder: it has no features "
                "of images and of texts that could be compared (those of SigLIP and CLIP have)"
            )
        self.masked = config.model_type not in _UNMASKED
        self.most_tokens = int(config.text_config.max_position_embeddings)
        processor = hf.AutoProcessor.from_pretrained(checkpoint, **self._pinned)
        self._tokenizer = processor.tokenizer
        self._pictures = processor.image_processor
        with suppress(OSError):  # Not on this machine, and not needed if all features are stored
            self._load(device_map="meta", local_files_only=True)

    @property
    def facts(self) -> Mapping[str, str]:
        cut = f"cut at {self.most_tokens} tokens"
        padded = f"padded to {self.most_tokens} tokens"
        return {
            "architecture": self._class.__name__,
            "revision": self.revision,
            "dtype": "float32",
            "device": self.device,
            "image_processor": f"{type(self._pictures).__name__} ({self._pictures.backend})",
            Padding.AS_TRAINED.value: f"{cut}, masked" if self.masked else f"{padded}, not masked",
            **installed(("torch", "torchvision", "transformers", "tokenizers", "pillow")),
        }

    @cached_property
    def _model(self) -> Any:
        try:
            model = self._load(dtype=torch.float32)
        except OSError as error:
            raise EncoderError(self._unreadable(error)) from error
        return model.eval().to(self.device)

    def _load(self, **how: Any) -> Any:
        """Load the model and judge its loading; on the device "meta", from names and shapes alone.

        Raises EncoderError if it is refused, OSError if there are no weights.
        """
        try:
            model, info = self._class.from_pretrained(
                self.checkpoint,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # The report has them, and is judged
                **how,
                **self._pinned,
            )
        except (RuntimeError, ValueError) as error:
            raise EncoderError(self._unreadable(error)) from error
        report = report_of(info, model)
        if model.device.type == "meta":  # It is loaded again, and ignored weights are said then
            refusal = judge_loading(report).refusal
            if refusal is not None:
                raise EncoderError(f"{self.checkpoint}: {refusal}")
            return model
        try:
            checked_loading(self.checkpoint, report)
        except ValueError as error:
            raise EncoderError(str(error)) from None
        return model

    def _unreadable(self, error: Exception) -> str:
        return f"{self.checkpoint}: no weights that can be read: {error}"

    def images(self, paths: Sequence[Path]) -> Vectors:
        pooled = []
        for batch in _batches(paths):
            parts = [
                self._pictures(images=[decode_image(path)], return_tensors="pt") for path in batch
            ]
            given = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
            pooled.append(self._pooled("image", given))
        return np.concatenate(pooled)

    def lengths(self, captions: Sequence[str]) -> list[int]:
        """Count each caption's tokens before the cut, with begin and end tokens."""
        return [len(ids) for ids in self._tokenizer([*captions], verbose=False).input_ids]

    def limit(self, padding: Padding) -> int:
        most = UNPADDED_TOKENS if padding is Padding.UNPADDED else self.most_tokens
        return min(most, self.most_tokens)

    def texts(self, captions: Sequence[str], padding: Padding) -> Vectors:
        as_trained = padding is Padding.AS_TRAINED
        token_ids = self._tokenizer(
            [*captions],
            padding="max_length" if as_trained and not self.masked else False,
            truncation=True,
            max_length=self.limit(padding),
        ).input_ids
        by_length = defaultdict(list)
        for i, ids in enumerate(token_ids):
            by_length[len(ids)].append(i)
        pooled: dict[int, Any] = {}
        for numbers in by_length.values():
            for batch in _batches(numbers):
                given = {"input_ids": torch.tensor([token_ids[i] for i in batch])}
                if as_trained and self.masked:
                    given["attention_mask"] = torch.ones_like(given["input_ids"])
                pooled.update(zip(batch, self._pooled("text", given), strict=True))
        return np.stack([pooled[i] for i in range(len(token_ids))])

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _pooled(self, kind: str, given: Mapping[str, Any]) -> Vectors:
        inputs = {name: value.to(self.device) for name, value in given.items()}
        out = getattr(self._model, f"get_{kind}_features")(**inputs)
        vectors = out if isinstance(out, torch.Tensor) else getattr(out, "pooler_output", None)
        if vectors is None or vectors.ndim != 2:
            raise EncoderError(
                f"{self.checkpoint}: {self._class.__name__} has no single vector of its {kind}s"
            )
        result = np.asarray(vectors.float().cpu().numpy(), dtype=np.float32)
        if not np.isfinite(result).all():
            raise EncoderError(
                f"{self.checkpoint}: the vectors of its {kind}s are not numbers, as after a "
                "training that diverged. Name another checkpoint"
            )
        return result


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for first in range(0, len(items), _BATCH):
        yield items[first : first + _BATCH]


def _revision_at_hub(checkpoint: str) -> str:
    """Return the commit that is on this machine, or the newest."""
    from huggingface_hub import hf_hub_download

    return revision_of(checkpoint, hf_hub_download(checkpoint, "config.json"))


def named_encoder(name: str) -> DualEncoder:
    """Return a dual encoder by name in ENCODERS, at the hub, or by folder; raises as Towers.

    Weights are loaded when a feature is not stored yet.
    """
    return _NamedEncoder(name, Towers(checkpoint_of(name)))


@dataclass(frozen=True)
class _NamedEncoder:
    name: str
    towers: Towers

    @property
    def facts(self) -> Mapping[str, str]:
        # The shipped one has its name wherever it is.
        known = self.name if self.name == NANO_SIGLIP else checkpoint_of(self.name)
        return {"identifier": known, **self.towers.facts}

    def images(self, paths: Sequence[Path]) -> Vectors:
        origin = {**self.towers.facts, "of": "image"}
        return stored_vectors(origin, paths, map(file_sha256, paths), self.towers.images)

    def texts(self, captions: Sequence[str], padding: Padding) -> TextFeatures:
        # Tokenizers refuse lone surrogates, which a reply may have.
        captions = [caption.encode("utf-8", "replace").decode() for caption in captions]
        origin = {**self.towers.facts, "of": "text", "padding": padding.value}
        contents = (sha256_of(caption.encode()) for caption in captions)
        make = partial(self.towers.texts, padding=padding)
        vectors = stored_vectors(origin, captions, contents, make)
        tokens = tuple(self.towers.lengths(captions))
        limit = self.towers.limit(padding)
        return TextFeatures(vectors, tokens, tuple(count > limit for count in tokens))


def stored_vectors(
    origin: Mapping[str, str],
    items: Sequence[Item],
    contents: Iterable[str],
    make: Callable[[Sequence[Item]], Vectors],
) -> Vectors:
    """Return the vectors of items, n x d; what VLMEvalKit's data folder lacks is made and stored.

    It has a file per vector, named by content and origin. Processes may share it: files are written
    atomically, and equal features are equal files. A vector takes at most 5 KB, so nothing is
    evicted.

    Args:
        origin: all that vectors depend on besides the content.
        contents: SHA-256 of each item; of equal ones only one is made.
    """
    # Version 1.0 stored vectors of weights that were drawn at random, too.
    prefix = json.dumps({**origin, "weights": "all there"}, sort_keys=True).encode()
    keys = [sha256_of(prefix, b"\0", content.encode()) for content in contents]
    folder = make_lmu_data_root() / FOLDER
    paths = [folder / key[:2] / f"{key}.f32" for key in keys]
    known: dict[Path, Any] = {}
    missing: dict[Path, Item] = {}
    for path, item in zip(paths, items, strict=True):
        if path in known or path in missing:
            continue
        try:
            known[path] = np.frombuffer(path.read_bytes(), dtype="<f4")
        except OSError:  # not stored or unreadable
            missing[path] = item
    made = make(list(missing.values())) if missing else ()
    for path, vector in zip(missing, made, strict=True):
        known[path] = vector
        try:
            write_once(path, vector.astype("<f4").tobytes())
        except OSError as error:
            log.warning("FindIt: a feature cannot be stored at %s: %s", path, error)
    return np.stack([known[path] for path in paths]) if paths else np.zeros((0, 0), np.float32)
