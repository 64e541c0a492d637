"""Models by their names: on this machine, behind a server, at OpenRouter or at a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..benchmarks import baselines
from ..benchmarks.findit.benchmark import BENCHMARK
from ..benchmarks.findit.findit_datasets import Family
from ..boxes.spaces import Space
from ..core.benchmark import Baseline
from ..core.config import config_from
from ..core.formatting import nearest
from ..core.image_files import header
from ..core.messages import Message
from ..core.question import Question
from ..core.replies import Reply, recorded
from ..models.http.providers.table import OPENROUTER
from ..models.model_row import ModelRow
from ..models.model_table import MODELS, find_model, local_names
from .given import Picture, in_memory, is_file, several
from .prompts import custom_query
from .questions import SpaceLike
from .reading import Read, read

if TYPE_CHECKING:
    from ..models.http.endpoints import Endpoints

Ask = Callable[[Message, Question], Reply]
"""From a message, its images files, to what came of it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a model answered: the reply with all that was recorded, and what was read from it."""

    reply: Reply
    read: Read


class Model:
    """A model that can be asked; :func:`open_model` makes it."""

    def __init__(self, name: str, ask: Ask) -> None:
        self.name = name
        self._ask = ask

    def __repr__(self) -> str:
        return f"Model({self.name!r})"

    def ask(
        self,
        image: Picture | Sequence[Picture],
        label: str | Sequence[str],
        format: str = "xyxy_json_bbox_2d",
        *,
        family: Family | str = Family.OBJDET,
        references: Picture | Sequence[Picture] = (),
        caption: str = "",
    ) -> Answered:
        """Ask for boxes.

        A call that failed is an answer of the kind ``failed call``, whatever failed of it.

        Args:
            image: the picture, or the frames in their order: files, PIL images or arrays
                (height, width, 3) of 8 bits.
            label: what to find, as of :func:`.prompt`.
            format: how boxes are to be written, as in a FindIt name.
            family: as of :func:`.prompt`.
            references: as of :func:`.prompt`.
            caption: as of :func:`.prompt`.

        Raises:
            VariantError: there is no such format or family.
            ImageFileError: a file is no picture.
            ValueError: an array is none.
        """
        given = several(image)
        with _files([*given, *several(references)]) as paths:
            shown, shots = paths[: len(given)], paths[len(given) :]
            size = header(shown[0]).size
            query, variant = custom_query(
                label,
                format,
                shown,
                family=family,
                references=shots,
                caption=caption,
                size=size,
            )
            reply = self._ask(BENCHMARK.prompts()[0].message(query, variant), variant)
        found = read(reply, format, size=size, frames=variant.frames, multilabel=variant.multilabel)
        return Answered(reply, found)


@contextmanager
def _files(images: Sequence[Picture]) -> Iterator[list[Path]]:
    """Yield images as files; those that are none lie in a temporary folder meanwhile."""
    with TemporaryDirectory(prefix="findit-") as folder:
        paths = []
        for at, one in enumerate(images):
            path = Path(folder, f"{at}.png")
            if is_file(one):
                path = Path(one).absolute()
            else:
                in_memory(one).save(path)
            paths.append(path)
        yield paths


def open_model(
    name: str,
    base_url: str | Sequence[str] | None = None,
    *,
    provider: str | None = None,
    space: SpaceLike | None = None,
    key: str | None = None,
    like: str | None = None,
    temperature: float | None = None,
    **settings: Any,
) -> Model:
    """Open a model by its name; one of this machine is loaded now.

    >>> open_model("FullImage")
    Model('FullImage')

    Args:
        name: a model of ``run_findit.py models``; ``NAME=CHECKPOINT`` for one of another folder or
            identifier, or the checkpoint alone with ``like``. With ``base_url`` the server's name
            for it, or ``NAME=THE_SERVERS_NAME``.
        base_url: an OpenAI-compatible server up to and with ``/v1``, or several.
        provider: who is asked in its own protocol with a key of one's own: ``"openai"``,
            ``"anthropic"``, ``"google"``; a model that the table does not have there is
            ``NAME=THE_PROVIDERS_NAME``.
        space: in which coordinates it answers, where the model table does not say it.
        key: of the server (None: FINDIT_SERVER_KEY) or the provider (None: its own variable);
            OpenRouter's is in OPENROUTER_API_KEY.
        like: the model of the table that it is like, where its name is none of it.
        temperature: of sampling (None: greedy, or as the model's row says).
        settings: of a model on this machine, fields of
            :class:`..models.local.run_settings.RunSettings`: ``batch_size``, ``dtype``,
            ``device`` and so on.

    Raises:
        ValueError: there is no such model or setting, or a URL or key cannot be used.
        OSError: the checkpoint is not there.
    """
    said = space.as_dict() if isinstance(space, Space) else space
    short, _, checkpoint = name.partition("=")
    named = find_model(short)
    if provider is not None or base_url is not None:
        _refuse(settings, f"{provider or 'a server'} has its own")
        return _over_http(name, provider, base_url, said, key, like, temperature)
    own = {"space": said, "temperature": temperature}
    here = {**settings, **{key: value for key, value in own.items() if value is not None}}
    if like is None and short in baselines():
        _refuse(here, f"{short} has none")
        return Model(name, _asks_baseline(baselines()[short]))
    row = named if like is None else find_model(like)
    if row is not None and row.local is not None:
        checkpoint = checkpoint or _own_checkpoint(short, named) or name
        return Model(name, _asks_here(checkpoint, row, here))
    if like is not None:
        raise ValueError(
            f"like: no model {like!r} runs on this machine{nearest(like, list(local_names()))}"
        )
    if named is None:
        names = [*local_names(), *baselines(), *(one.entry for one in MODELS.values() if one.api)]
        raise ValueError(
            f"no model {short!r}{nearest(short, names)}; base_url=… asks a server; a checkpoint "
            "needs like=…, the model that it is like"
        )
    if named.api is None:
        raise ValueError(f"{short} is asked at a server: base_url=…")
    _refuse(settings, "OpenRouter has its own")
    return _over_http(name, OPENROUTER, None, said, key, None, temperature)


def _own_checkpoint(name: str, row: ModelRow | None) -> str:
    """Return the checkpoint of a model of the table; nothing where it has none."""
    known = row.local.checkpoints if row is not None and row.local is not None else {}
    return known.get(name) or next(iter(known.values()), "")


def _refuse(settings: dict[str, Any], why: str) -> None:
    if settings:
        raise ValueError(f"{', '.join(settings)}: settings are of models on this machine; {why}")


def _asks_baseline(baseline: Baseline) -> Ask:
    def ask(message: Message, question: Question) -> Reply:
        text, record = baseline.answer(message, question)
        return Reply(0, text, record)

    return ask


def _asks_here(checkpoint: str, row: ModelRow, settings: dict[str, Any]) -> Ask:
    # torch: only where a model is really opened.
    from ..models.local.run_settings import RunSettings
    from ..models.local.runner import load_local

    runner = load_local(checkpoint, row, config_from(RunSettings, settings))

    def ask(message: Message, question: Question) -> Reply:
        (one,) = runner.answer_batch([message], question)
        return Reply(0, one.text, one.recorded)

    return ask


def _over_http(
    name: str,
    provider: str | None,
    base_url: str | Sequence[str] | None,
    space: Any,
    key: str | None,
    like: str | None,
    temperature: float | None,
) -> Model:
    from ..engine.http_backend import HttpBackend, HttpService
    from ..models.http.chat import chat_model, server_name
    from ..models.http.endpoints import endpoints, provider_endpoints

    own, _, served = name.partition("=")
    if provider is None:
        own, served = server_name(name)
    fields = {} if temperature is None else {"temperature": temperature}
    model = chat_model(own, provider, served, space, fields, like=like)
    servers: Endpoints = (
        endpoints(base_url or (), key)
        if provider is None
        else provider_endpoints(provider, base_url, key)
    )
    backend = HttpBackend(lambda: HttpService(model, servers))

    def ask(message: Message, question: Question) -> Reply:
        # A space that nothing says is an error of the caller, not a failed call.
        model.space(question)
        answer = backend.ask(message, question)
        return Reply(0, answer.text, recorded(answer.extra))

    return Model(model.name, ask)
