"""Any dual encoder by name, with its features kept on disk.  Imports torch and transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...core.files import file_sha256, sha256_of
from .encoder import Encoder, Padding, TextFeatures, Vectors
from .kept import KeptFeatures
from .table import checkpoint_of, identifier_of
from .towers import Towers


def named_encoder(name: str) -> Encoder:
    """The dual encoder of a name of :data:`.table.ENCODERS`, of the Hugging Face hub, or a folder.

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
