"""Which words a small model knows: those that its own tokenizer has whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core import object_or_empty
from .checkpoint_settings import read_settings
from .model_table import find_model

_MOST_TOKENS = 5_000  # Vocabularies of models that read any text begin at about 30,000
_BLANK = "Ġ"  # How byte-level tokens write a blank


@dataclass(frozen=True, slots=True)
class KnownWords:
    """The words of a checkpoint whose vocabulary is too small for any text."""

    words: Sequence[str]
    _tokenizer: Any = field(repr=False)

    def knows_one_of(self, text: str) -> bool:
        """Tell whether any word of a text is known."""
        return any(_is_whole(self._tokenizer, word) for word in re.findall(r"\w+", text))

    def unknown(self, texts: Iterable[str]) -> list[str]:
        """Return the texts of which no word is known, each once."""
        named = dict.fromkeys(text for text in texts if text)
        return [text for text in named if not self.knows_one_of(text)]


def known_words(checkpoint: str) -> KnownWords | None:
    """Return the words of a checkpoint in a folder; None where it may know any.

    The tokenizer keeps them whole in a sentence, and has a token for each.
    """
    folder = Path(checkpoint)
    file = folder / "tokenizer.json"
    if not file.is_file() or not _is_small(folder):
        return None
    from tokenizers import Tokenizer  # late: most commands need none

    tokenizer = Tokenizer.from_file(str(file))
    tokens = [token[1:] for token in tokenizer.get_vocab() if token.startswith(_BLANK)]
    letters = [token for token in tokens if token.isascii() and token.isalpha()]
    words = [word for word in letters if _is_whole(tokenizer, word)]
    # Parts that only lead to a longer token: "diam" of "diamond"
    whole = [word for word in words if not _begins_another(word, letters)]
    return KnownWords(tuple(sorted(whole)), tokenizer)


def words_of_model(name: str, checkpoint: str | None) -> KnownWords | None:
    """Return the words of a model here, by its checkpoint or its name in the table."""
    row = find_model(name)
    if checkpoint is None and row is not None and row.local is not None:
        checkpoint = row.local.checkpoints.get(name)
    return None if checkpoint is None else known_words(checkpoint)


def _is_small(folder: Path) -> bool:
    settings = read_settings(folder / "config.json")
    size = object_or_empty(settings.get("text_config")).get("vocab_size")
    size = size or settings.get("vocab_size")
    return isinstance(size, int) and size <= _MOST_TOKENS


def _is_whole(tokenizer: Any, word: str) -> bool:
    """Tell whether a word is one piece within a sentence, and the piece one token."""
    text = f"a {word} a"
    if tokenizer.normalizer is not None:
        text = tokenizer.normalizer.normalize_str(text)
    _, piece, _ = text.split(" ")
    pieces = [part for part, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
    token = f"{_BLANK}{piece}"
    return token in pieces and tokenizer.token_to_id(token) is not None


def _begins_another(word: str, others: Iterable[str]) -> bool:
    return any(other != word and other.startswith(word) for other in others)
