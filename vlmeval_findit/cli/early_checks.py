"""Refusals by FindIt's tables and files alone: nothing here imports VLMEvalKit or torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from ..benchmarks import (
    benchmark_of,
    listed_names,
    meant_names,
    parse,
    prefix_of,
    refuse_misnamed,
)
from ..benchmarks.findit import DATASETS, FAMILY_PROMPTS, FindItVariant
from ..core import (
    Count,
    MisplacedError,
    closest,
    dataset_names,
    flag_name,
    has_dataset,
    may_have_dataset,
    quoted_value,
    suggestion,
    validate,
)
from ..data import refuse_unmade
from ..engine import CellBuilder, Deployment
from ..models import (
    ModelEntry,
    ModelOptions,
    how_to_ask,
    like_which,
    meant_model,
    row_of_checkpoint,
    same_checkpoint,
)
from ..protocol import (
    PROMPTS_VARIABLE,
    DatasetVariant,
    PictureSample,
    Query,
    Settings,
)
from ..storage import (
    ImageError,
    image_folder,
    imported_contents,
    is_users_table,
    is_writable,
    named_image_keys,
    replaced_images,
    replaced_note,
    table_folders,
)
from ..sweeps import grid_tables
from .command_base import print_note


def check_amounts(options: ModelOptions, **more: int | None) -> None:
    """Refuse values of flags that are out of range; ``more`` belong to a single command."""
    options.check(flag_name)
    for name, value in more.items():
        if value is not None:
            try:
                validate(Count, value)
            except MisplacedError as error:
                raise MisplacedError(error.why, name, name=flag_name(name)) from None


# --- datasets -------------------------------------------------------------------------------------


def check_host_dataset(name: str) -> str | None:
    """Refuse a dataset that is neither FindIt's, VLMEvalKit's nor a table of its user's.

    Returns a note where VLMEvalKit's dataset is run, and FindIt has another of that name.
    """
    if has_dataset(name) or is_users_table(name):
        meant = meant_names(name)
        return _whose(name, meant[0]) if meant else None
    check_own_name(name)
    if may_have_dataset(name):
        return None
    names = {each: each for each in dataset_names()}
    names |= {listed.removeprefix(prefix_of(listed)): listed for listed in listed_names()}
    for table in grid_tables():
        for full_name in meant_names(table)[:1]:
            names[table] = full_name
    near = closest(name, names)
    example = "neither FindIt's (for example FindIt_Scenes_mini_xyxy_json) nor VLMEvalKit's"
    why = f": did you mean {names[near]}?" if near else f", {example}"
    raise ValueError(f"unknown dataset {name!r}{why}")


def check_own_name(name: str) -> None:
    """Refuse a name, none of VLMEvalKit's, that FindIt knows by another, or cannot have yet."""
    refuse_misnamed(name)
    refuse_unmade(name)


def _whose(name: str, ours: str) -> str:
    """Say that a name is VLMEvalKit's; refuse it where FindIt's table of that name is here.

    Who got FindIt's table by this name means FindIt's.
    """
    table = parse(ours).table
    if any((folder / f"{table}.tsv").is_file() for folder in table_folders()):
        raise ValueError(
            f"--data {name}: FindIt's table {table}.tsv is here, and VLMEvalKit has another "
            f"dataset of that name. FindIt's: --data {ours}; VLMEvalKit's, by its runner: "
            f"python -m vlmeval --data {name} --model MODEL"
        )
    return (
        f"FindIt: {name} is VLMEvalKit's dataset, with other questions and another metric; "
        f"FindIt's is --data {ours}"
    )


def note_of_shared_names(names: Iterable[str]) -> str | None:
    """Say which of FindIt's tables VLMEvalKit has another dataset of the name of; None if none."""
    shared = [name for name in names if has_dataset(name)]
    if not shared:
        return None
    return (
        f"FindIt: {', '.join(shared)} is FindIt's here (run --data {meant_names(shared[0])[0]}); "
        f"run --data {shared[0]} would be another dataset, VLMEvalKit's"
    )


def check_prompts(variants: Iterable[DatasetVariant]) -> None:
    """Refuse variants that the prompt of a family (``--prompts``) does not ask for."""
    prompt = FAMILY_PROMPTS.get(os.environ.get(PROMPTS_VARIABLE, ""))
    if prompt is None:
        return
    for variant in variants:
        if isinstance(variant, FindItVariant):
            prompt.check(variant)


def check_folder(folder: Path) -> None:
    """Refuse a folder of results that cannot be written to."""
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not existing.is_dir() or not is_writable(existing):
        why = "cannot be written to" if existing.is_dir() else "is not a folder"
        raise ValueError(f"--work-dir {folder}: {existing} {why}")


def note_unknown_image_keys() -> None:
    """Say which folders that the user named for images are of no dataset: nobody looks there."""
    of_findit = {dataset.images for dataset in DATASETS.values()}
    named = {key: place for place, key in named_image_keys() if key not in of_findit}
    if not named:
        return
    variants = map(parse, listed_names())
    known = sorted(of_findit | {variant.images for variant in variants})
    for key, place in named.items():
        if key not in known:
            near = suggestion(key, known)
            print_note(f"{place}: no dataset has images called {quoted_value(key)}{near}")


def check_rows(
    variants: Iterable[DatasetVariant],
    tables: CellBuilder,
    limit: int | None,
    pictures: PictureSample | None = None,
) -> None:
    """Refuse variants whose tables or images do not exist, or whose images were replaced.

    What ``tables`` loads, cells are made of later. Only images of rows that are asked are looked
    at: of the first ``limit`` (None: all), or of a sample of ``pictures``.
    """
    distinct = {(each.table, each.images, each.frames): each for each in variants}
    if distinct:
        note_unknown_image_keys()
    for variant in distinct.values():
        dataset = tables.dataset(variant)
        rows = tables.asked(variant, limit, pictures).rows
        known = imported_contents(dataset.table)
        if known:
            folder = image_folder(variant.images)
            asked = _images_asked(dataset.queries, rows)
            others = replaced_images(
                {name: known[name] for name in asked & known.keys()}, folder.path
            )
            if others:
                raise ImageError(replaced_note(sorted(others), folder.path))


def _images_asked(queries: Mapping[int, Query], rows: Iterable[int]) -> set[str]:
    return {name for row in rows for name in (*queries[row].support, *queries[row].images)}


# --- models ---------------------------------------------------------------------------------------


def check_gpu_numbers() -> None:
    """Refuse GPUs that VLMEvalKit's runner cannot read: Slurm and MIG name them by UUID."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if named and not all(number.strip().isdecimal() for number in named.split(",")):
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES={named}: VLMEvalKit's runner takes numbers only "
            "(nvidia-smi -L): CUDA_VISIBLE_DEVICES=0; findit sweep takes names"
        )


def refuse_untabled(entry: ModelEntry, more: str = "") -> NoReturn:
    """Refuse a model that is not in the model table; ``more`` continues the message."""
    name = entry.like or entry.name
    if entry.checkpoint is not None:
        row_of_checkpoint(entry.name, entry.checkpoint, entry.like)  # says what its files say
    at_server = bool(entry.base_url or entry.provider)
    ours = same_checkpoint(name)
    if ours and not at_server:
        raise ValueError(
            f"unknown model {name!r}. {' or '.join(ours)} is the same checkpoint, "
            f"asked as the protocol says. For {name} itself type --space SPACE{more}"
        )
    asked = like_which(name, entry.served or name) if at_server else how_to_ask(name)
    raise ValueError(
        f"unknown model {name!r}{meant_model(name)}\n{asked}\n"
        f"Or type --like NAME or --space SPACE{more}"
    )


def check_answers(
    deployment: Deployment, variants: Iterable[DatasetVariant], settings: Settings
) -> None:
    """Refuse a model that cannot answer a variant, or whose coordinate space is unknown."""
    for variant in variants:
        described = deployment.describe(variant)
        benchmark_of(variant).space(deployment.name, variant, settings, described)
