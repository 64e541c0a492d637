"""Models by their names: on this machine, behind a server, at OpenRouter or at a provider."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..benchmarks import baselines
from ..benchmarks.findit import BENCHMARK, Family, space_of_whole_images
from ..boxes import space_from, stated_space
from ..core import names_of_arguments, no_effect, refuse_unknown, validate
from ..models import (
    ANY_QUESTION,
    MODELS,
    ModelEntry,
    RunSettings,
    find_model,
    like_its_checkpoint,
    local_names,
    meant_model,
    names_of_settings,
    options_to,
    same_checkpoint,
    server_name,
    space_source,
)
from ..protocol import (
    Batch,
    CustomPrompt,
    DatasetVariant,
    Message,
    Reply,
    prompt_set,
    say_once,
    settings_from,
)
from ..storage import read_image_header
from .custom_variants import SpaceLike, custom_query
from .inputs import ImageLike, as_list, image_in_memory, is_file
from .reply_scores import ReplyBoxes, read

if TYPE_CHECKING:
    from ..engine import Deployment, InProcess, OverHttp

Ask = Callable[[Message, DatasetVariant], Reply]
"""Answers a message whose images are files."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer of a model: ``reply`` with its record, and the boxes ``parsed`` from it."""

    reply: Reply
    parsed: ReplyBoxes


class Model:
    """A model that can be asked; made by :func:`open_model`."""

    def __init__(self, name: str, ask: Ask, prompt: CustomPrompt | None = None) -> None:
        self.name = name
        self._ask = ask
        self._words = prompt_set(BENCHMARK, prompt)

    def __repr__(self) -> str:
        return f"Model({self.name!r})"

    def ask(
        self,
        image: ImageLike | Sequence[ImageLike],
        label: str | Sequence[str],
        format: str = "xyxy_json_bbox_2d",
        *,
        family: Family | str = Family.OBJDET,
        references: ImageLike | Sequence[ImageLike] = (),
        caption: str = "",
    ) -> ModelAnswer:
        """Ask for boxes.

        A failed call raises nothing: ``parsed.kind`` is ``ReplyKind.FAILED``.

        >>> import numpy as np
        >>> answer = open_model("FullImage").ask(np.zeros((480, 640, 3), np.uint8), "dog")
        >>> answer.parsed.boxes
        ((0.0, 0.0, 640.0, 480.0),)

        Args:
            image: the image, or the frames in their order: files, PIL images or arrays
                (height, width, 3) of uint8.
            label: what to find, as for :func:`.prompt`.
            format: format of the boxes: the end of a FindIt name.
            family: as for :func:`.prompt`.
            references: images of the object, for ``insdet``.
            caption: a text about the image that is shown before the prompt.

        Returns:
            Boxes (x1, y1, x2, y2) in pixels of the image.

        Raises:
            VariantError: the format or the family does not exist.
            ImageFileError: a file is no image.
            ValueError: an array is no image.
        """
        images = as_list(image)
        with _files([*images, *as_list(references)]) as paths:
            shown = paths[: len(images)]
            shots = paths[len(images) :]
            size = read_image_header(shown[0]).size
            more: Any = {"family": family, "references": shots, "caption": caption}
            query, variant = custom_query(label, format, shown, **more, size=size)
            reply = self._ask(self._words.message(query, variant), variant)
        form: Any = {"frames": variant.frames, "multilabel": variant.multilabel}
        return ModelAnswer(reply, read(reply, format, size=size, **form))


@contextmanager
def _files(images: Sequence[ImageLike]) -> Iterator[list[Path]]:
    """Yield images as files; images in memory are written to a temporary folder."""
    with TemporaryDirectory(prefix="findit-") as folder:
        paths = []
        for at, image in enumerate(images):
            path = Path(folder, f"{at}.png")
            if is_file(image):
                path = Path(image).absolute()
            else:
                image_in_memory(image).save(path)
            paths.append(path)
        yield paths


def open_model(
    name: str,
    base_url: str | Sequence[str] | None = None,
    *,
    provider: str | None = None,
    space: SpaceLike | None = None,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    like: str | None = None,
    temperature: float | None = None,
    system: str | PathLike[str] | None = None,
    prompt_template: str | PathLike[str] | None = None,
    **settings: Any,
) -> Model:
    """Open a model by its name; a model on this machine is loaded now.

    What ``findit run`` refuses before its first call is refused here, too.

    >>> open_model("FullImage")
    Model('FullImage')

    Args:
        name: a model of ``run_findit.py models``; ``NAME=CHECKPOINT`` for another folder or
            identifier, or the checkpoint alone; with ``base_url`` the server's name for it, or
            ``NAME=SERVED``.
        base_url: an OpenAI-compatible server up to and with ``/v1``, or several.
        provider: the model's maker, asked in the maker's protocol with your key: ``"openai"``,
            ``"anthropic"``, ``"google"``; ``NAME=SERVED`` for a model that the table lacks.
        space: the coordinate space of its answers, if the model table does not know it.
        key: of the server (None: FINDIT_SERVER_KEY) or the provider (None: from its variable);
            OpenRouter's is in OPENROUTER_API_KEY.
        headers: of every request to the servers or the provider, by name.
        like: known model whose prompts and space this model shares, where its checkpoint's
            ``config.json`` does not say it.
        temperature: of sampling (None: greedy, or as the model's row says).
        system: a file with a text that goes before every prompt.
        prompt_template: a file with a Jinja template of the prompt, in place of FindIt's words.
        settings: ``max_new_tokens`` and how replies are drawn
            (:class:`..models.shared_settings.Sampling`) of any model; of a model on this machine
            all fields of :class:`..models.local.run_settings.RunSettings`: ``batch_size``,
            ``dtype``, ``device`` and so on.

    Raises:
        ValueError: the model or a setting does not exist or has no effect, or a URL or key cannot
            be used.
        OSError: the checkpoint does not exist.
    """
    # Imported late: the engine is for models that are called.
    from ..engine import Asking, InProcess, OverHttp, check_model, deployment_of, is_baseline

    known = names_of_arguments(open_model)
    refuse_unknown(settings, [*known, *names_of_settings(RunSettings)])
    settings = {**settings, "temperature": temperature}
    given = {name: value for name, value in settings.items() if value is not None}
    more = {"like": like, "headers": headers, "provider": provider}
    texts = {"system": system, "prompt_template": prompt_template}
    more |= {name: None if path is None else fspath(path) for name, path in texts.items()}
    more["space"] = None if space is None else stated_space(space).as_dict()
    more["base_url"] = base_url if isinstance(base_url, str | None) else ",".join(base_url)
    entry = _entry(name, given, more)
    deployment = deployment_of(entry, Asking(key=key, spelled=str))
    if not isinstance(deployment, OverHttp) and not _runs_here(deployment):
        raise _unknown(entry)
    arguments = {**more, "key": key, "checkpoint": entry.checkpoint}
    stated = {name for name, value in arguments.items() if value is not None}
    _refuse_without_effect(deployment, stated - {"headers"})
    check_model(deployment, [_ANY])
    if not is_baseline(entry.name):
        deployment.describe(_ANY_QUESTION)  # Refuses with what no question can be asked
    prompt = entry.prompt
    if isinstance(deployment, InProcess):
        return Model(name, _asks_here(deployment), prompt)
    assert isinstance(deployment, OverHttp)
    return Model(entry.name, _asks_servers(deployment), prompt)


# Stands for what may be asked: its benchmark says which words a template may have
_ANY = BENCHMARK.parse(BENCHMARK.variant_names()[0])
_ANY_QUESTION = replace(ANY_QUESTION, in_boxes=False)  # Its space need not be known yet


def _entry(name: str, settings: Mapping[str, Any], more: Mapping[str, Any]) -> ModelEntry:
    """Return the entry of a model, as a sweep's file would have it."""
    from ..engine import is_baseline

    of_machine = options_to("resources")
    resources = {name: value for name, value in settings.items() if name in of_machine}
    rest = {name: value for name, value in settings.items() if name not in of_machine}
    values = {**more, "settings": rest, "resources": resources}
    short, _, where = name.partition("=")
    elsewhere = more["provider"] or more["base_url"]
    if elsewhere and more["provider"] is None and not is_baseline(short):
        short, where = server_name(name)
    is_path = "/" in name or Path(name).is_dir()
    if not elsewhere and not where and find_model(short) is None and (more["like"] or is_path):
        short = Path(name).name
        where = name
    place = "served" if elsewhere else "checkpoint"
    entry = validate(ModelEntry, {**values, "name": short, place: where or None})
    return like_its_checkpoint(entry)


def _runs_here(deployment: Deployment) -> bool:
    from ..engine import InProcess, InVLMEvalKit

    return isinstance(deployment, InProcess) and not isinstance(deployment, InVLMEvalKit)


def _unknown(entry: ModelEntry) -> ValueError:
    """Return the error for a name that nobody answers for here."""
    name = entry.name
    if find_model(name) is not None:
        return ValueError(f"{name} needs a server: base_url=…")
    names = [*local_names(), *baselines(), *(row.entry for row in MODELS.values() if row.api)]
    meant = meant_model(name, names)
    if ours := same_checkpoint(name):
        meant = f": {' or '.join(ours)} is the same checkpoint, asked as the protocol says"
    return ValueError(
        f"unknown model {name!r}{meant}; base_url=… asks a server; NAME=CHECKPOINT, or the "
        "checkpoint alone, runs a folder or an identifier"
    )


def _refuse_without_effect(deployment: Deployment, stated: Collection[str]) -> None:
    """Refuse arguments that change nothing of a model."""
    from ..engine import has_effect, is_baseline, why_without_effect

    for name in sorted(stated):
        if not has_effect(deployment, name):
            raise ValueError(no_effect(name, why_without_effect(deployment, name)))
    if "space" in stated and is_baseline(deployment.name):
        raise ValueError(no_effect("space", f"{deployment.name} is a baseline, which has its own"))


def _tell_space(deployment: Deployment, variant: DatasetVariant) -> None:
    """Say what a stated space overrides, and what a variable decides or does not.

    Raises SpaceError if the space is not known: that is an error of the caller, no failed call.
    """
    described = deployment.describe(variant)
    if variant.in_boxes:
        space_source(deployment.name, settings_from({"space": deployment.entry.space}), described)


def _asks_here(deployment: InProcess) -> Ask:
    from ..engine import Local

    client = deployment.loader()

    def ask(message: Message, variant: DatasetVariant) -> Reply:
        _tell_space(deployment, variant)
        (answer,) = client.ask(Batch((message,), (variant,)))
        record = answer.record
        if isinstance(deployment, Local) and record.space is not None:
            space = space_of_whole_images(space_from(record.space))
            record = replace(record, space=space.as_dict())
        return Reply(0, answer.text, record)

    return ask


def _asks_servers(deployment: OverHttp) -> Ask:
    from ..engine import HttpBackend

    backend = HttpBackend(deployment.service)

    def ask(message: Message, variant: DatasetVariant) -> Reply:
        _tell_space(deployment, variant)
        answer = backend.ask(message, variant)
        note = deployment.note_on_answer(answer)
        if note is not None:
            say_once(note)
        return Reply(0, answer.text, answer.record)

    return ask
