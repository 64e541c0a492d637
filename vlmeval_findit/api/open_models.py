"""Models by their names: on this machine, behind a server, at OpenRouter or at a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..benchmarks import baselines
from ..benchmarks.findit import BENCHMARK, Family, space_of_whole_images
from ..boxes import space_from, stated_space
from ..core import names_of_arguments, no_effect, refuse_unknown, suggestion
from ..models import (
    MODELS,
    OPENROUTER,
    TOKEN_LIMITS,
    ModelRow,
    RunSettings,
    find_model,
    local_names,
    names_of_settings,
    row_of_checkpoint,
    same_checkpoint,
    space_source,
)
from ..protocol import (
    CustomPrompt,
    DatasetVariant,
    Described,
    Message,
    Reply,
    custom_prompt,
    prompt_set,
    settings_from,
)
from ..storage import read_image_header
from .custom_variants import SpaceLike, custom_query
from .inputs import ImageLike, as_list, image_in_memory, is_file
from .reply_scores import ReplyBoxes, read

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
    like: str | None = None,
    temperature: float | None = None,
    system: str | PathLike[str] | None = None,
    prompt_template: str | PathLike[str] | None = None,
    **settings: Any,
) -> Model:
    """Open a model by its name; a model on this machine is loaded now.

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
        like: known model whose prompts and space this model shares, where its checkpoint's
            ``config.json`` does not say it.
        temperature: of sampling (None: greedy, or as the model's row says).
        system: a file with a text that goes before every prompt.
        prompt_template: a file with a Jinja template of the prompt, in place of FindIt's words.
        settings: of a model on this machine, fields of
            :class:`..models.local.run_plan.RunSettings`: ``batch_size``, ``dtype``,
            ``device`` and so on; ``max_new_tokens`` of any model.

    Raises:
        ValueError: the model or a setting does not exist, or a URL or key cannot be used.
        OSError: the checkpoint does not exist.
    """
    # Imported late: the engine is for models that are called over HTTP.
    from ..engine import is_baseline

    known = names_of_arguments(open_model)
    refuse_unknown(settings, [*known, *names_of_settings(RunSettings)])
    stated = None if space is None else stated_space(space).as_dict()
    prompt = _prompt(system, prompt_template)
    fields: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
    fields |= {name: settings.pop(name) for name in TOKEN_LIMITS if name in settings}
    short = name.partition("=")[0]
    if provider is not None or base_url is not None:
        if is_baseline(short):
            given = "base_url" if provider is None else "provider"
            raise ValueError(no_effect(given, f"{short} is a baseline and calls no server"))
        _refuse(settings, f"{provider or 'a server'} sets them")
        more: Any = {"space": stated, "settings": fields, "like": like}
        return _served(name, provider, base_url, key, prompt, **more)
    here = {**settings, **fields}
    if stated is not None:
        here["space"] = stated
    if like is None and is_baseline(short):
        _refuse_key(key, short)
        return _baseline(name, here, prompt)
    local = _local_row(name, like, space_stated=stated is not None)
    if local is not None:
        row, checkpoint = local
        _refuse_key(key, short)
        return Model(name, _asks_here(checkpoint, row, here), prompt)
    _refuse(settings, "OpenRouter sets them")
    return _served(name, OPENROUTER, None, key, prompt, space=stated, settings=fields)


def _prompt(
    system: str | PathLike[str] | None, template: str | PathLike[str] | None
) -> CustomPrompt | None:
    """Read the files of a prompt, and refuse what FindIt's queries cannot be put into."""
    files = [None if path is None else fspath(path) for path in (system, template)]
    prompt = custom_prompt(*files)
    if prompt is not None:
        prompt.check(BENCHMARK)
    return prompt


def _baseline(name: str, settings: dict[str, Any], prompt: CustomPrompt | None) -> Model:
    short = name.partition("=")[0]
    _refuse(settings, f"{short} has none")
    if prompt is not None:
        stated = "system" if prompt.system is not None else "prompt_template"
        raise ValueError(no_effect(stated, f"{short} reads no prompts"))
    baseline = baselines()[short]
    return Model(name, lambda message, asked: Reply(0, *baseline.answer(message, asked)))


def _local_row(name: str, like: str | None, space_stated: bool) -> tuple[ModelRow, str] | None:
    """Return a local model's row and its checkpoint; None for a model of OpenRouter's.

    Raises:
        ValueError: the model does not exist, or runs neither here nor at OpenRouter.
    """
    short, _, checkpoint = name.partition("=")
    known = find_model(short)
    is_path = "/" in name or Path(name).is_dir()
    if not checkpoint and known is None and (like is not None or is_path):
        short, checkpoint = Path(name).name, name
    if checkpoint:
        return row_of_checkpoint(short, checkpoint, like, space_stated=space_stated), checkpoint
    if known is None:
        raise _unknown(short)
    if known.local is not None:
        checkpoints = known.local.checkpoints
        default = checkpoints.get(short) or next(iter(checkpoints.values()))
        if like is None:
            return known, default
        return row_of_checkpoint(short, default, like, space_stated=space_stated), default
    if like is not None:
        raise ValueError(no_effect("like", f"{short} does not run on this machine"))
    if known.api is None:
        raise ValueError(f"{short} needs a server: base_url=…")
    return None


def _unknown(name: str) -> ValueError:
    names = [*local_names(), *baselines(), *(row.entry for row in MODELS.values() if row.api)]
    meant = suggestion(name, names)
    if ours := same_checkpoint(name):
        meant = f": {' or '.join(ours)} is the same checkpoint, asked as the protocol says"
    return ValueError(
        f"unknown model {name!r}{meant}; base_url=… asks a server; NAME=CHECKPOINT, or the "
        "checkpoint alone, runs a folder or an identifier"
    )


def _refuse(settings: dict[str, Any], why: str) -> None:
    if settings:
        name = next(iter(settings))
        raise ValueError(no_effect(name, f"settings are of models on this machine; {why}"))


def _refuse_key(key: str | None, model: str) -> None:
    if key is not None:
        raise ValueError(no_effect("key", f"{model} answers on this machine and asks no server"))


def _tell_space(model: str, stated: Any, described: Described) -> None:
    """Say what a stated space overrides, and what a variable decides or does not."""
    space_source(model, settings_from({"space": stated}), described)


def _asks_here(checkpoint: str, row: ModelRow, settings: dict[str, Any]) -> Ask:
    # torch is imported only if a model is loaded.
    from ..models import describe_local_run, load_local, run_settings

    runner = load_local(checkpoint, row, run_settings(settings))

    def tell(variant: DatasetVariant) -> None:
        given = run_settings(settings)
        _tell_space(row.name, given.space, describe_local_run(row, checkpoint, variant, given))

    def ask(message: Message, variant: DatasetVariant) -> Reply:
        tell(variant)
        (answer,) = runner.answer_batch([message], variant)
        assert answer.record.space is not None  # Of a model on this machine
        space = space_of_whole_images(space_from(answer.record.space))
        return Reply(0, answer.text, replace(answer.record, space=space.as_dict()))

    return ask


def _served(
    name: str,
    provider: str | None,
    base_url: str | Sequence[str] | None,
    key: str | None,
    prompt: CustomPrompt | None,
    **asked: Any,
) -> Model:
    """Return a model behind HTTP; ``asked`` are further fields of its :class:`.ModelEntry`."""
    from ..engine import Asking, AtProvider, AtServer, HttpBackend
    from ..models import ModelEntry, server_name

    short, _, served = name.partition("=")
    if provider is None:
        short, served = server_name(name)
    where = base_url if isinstance(base_url, str | None) else ",".join(base_url)
    entry = ModelEntry(short, served=served or None, provider=provider, base_url=where, **asked)
    kind = AtServer if provider is None else AtProvider
    deployment = kind(entry, Asking(key=key))
    deployment.servers()  # refuses an address or a key now
    model = deployment.chat
    backend = HttpBackend(deployment.service)

    def tell(variant: DatasetVariant) -> None:
        # An unknown space is an error of the caller, not a failed call.
        model.space(variant)
        if variant.in_boxes:
            _tell_space(short, asked.get("space"), model.describe(variant, ()))

    def ask(message: Message, variant: DatasetVariant) -> Reply:
        tell(variant)
        answer = backend.ask(message, variant)
        return Reply(0, answer.text, answer.record)

    return Model(model.name, ask, prompt)
