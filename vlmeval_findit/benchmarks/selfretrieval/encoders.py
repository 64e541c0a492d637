"""The dual encoder that scores a table, and its source."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ...core.benchmark import Scorer
from ...core.command import missing
from ...core.settings import Settings, SettingsError
from ...core.spelling import nearest
from ...models.dual_encoder.encoder import ENCODERS, Encoder, EncoderError, Padding
from .pairs import SETS


class EncoderInForce(NamedTuple):
    """An encoder and the source of the choice."""

    encoder: Encoder
    source: str

    @property
    def scorer(self) -> Scorer:
        facts = self.encoder.facts
        settings = {name: facts[name] for name in DECIDING if name in facts}
        settings["padding"] = facts.get(_PADDING, _PADDING)
        rest = set(facts) - {_NAME, _PADDING, *DECIDING}
        versions = {name: facts[name] for name in sorted(rest)}
        return Scorer(facts[_NAME], settings, self.source, versions)


_NAME, _PADDING = "identifier", Padding.AS_TRAINED.value

# Facts that decide scores: device and package versions change last digits at most.
DECIDING = ("architecture", "revision", "dtype", "image_processor")


def encoder_name(table: str, settings: Settings) -> tuple[str, str]:
    """Name a table's encoder and the source of the choice: the user, else the table.

    >>> encoder_name("SelfRetrieval_Scenes_mini", Settings())
    ('FindIt-Nano-SigLIP', 'default of SelfRetrieval_Scenes_mini')
    """
    if settings.encoder is not None:
        return settings.encoder.name, settings.encoder.source
    return SETS[table].encoder, f"default of {table}"


def refuse_unknown(table: str, settings: Settings) -> None:
    """Raise SettingsError unless a table's encoder is ours, a folder or like a Hugging Face id."""
    name, source = encoder_name(table, settings)
    if name not in ENCODERS and "/" not in name and not Path(name).is_dir():
        raise SettingsError(
            f"encoder {name!r} ({source}): neither a folder nor owner/name of Hugging Face"
            f"{nearest(name, ENCODERS)}"
        )


def encoder_in_force(table: str, settings: Settings) -> EncoderInForce:
    """Load the encoder that scores a table, or raise SettingsError or EncoderError."""
    refuse_unknown(table, settings)
    name, source = encoder_name(table, settings)
    return EncoderInForce(loaded(name), source)


@lru_cache(maxsize=1)
def loaded(name: str) -> Encoder:
    """Load an encoder by name, or raise EncoderError; the last one is cached."""
    try:
        # Imported here because it needs torch.
        from ...models.dual_encoder.towers import named_encoder

        return named_encoder(name)
    except ImportError as error:
        raise EncoderError(f"encoder {name}: {missing(error) or error}") from error
    except (ValueError, OSError) as error:
        raise EncoderError(f"encoder {name}: {error}") from error
