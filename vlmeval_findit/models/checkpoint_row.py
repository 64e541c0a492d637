"""Which row of the model table a checkpoint is run by: its files decide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..boxes import Space
from ..core import ended, near_path
from ..protocol import DatasetVariant
from ..storage import check_model_name
from .adapter import HUB_IDENTIFIER, adapter_of
from .checkpoint_files import Architecture, architecture_of, lacks_chat_template, loadable_types
from .model_row import LocalFamily, ModelRow
from .model_table import (
    MODELS,
    SHIPPED,
    find_model,
    local_names,
    meant_model,
    same_checkpoint,
    unknown_space,
)
from .revision import refuse_missing


def _stated_only(variant: DatasetVariant) -> Space:
    raise unknown_space("checkpoint without a row")


# Any checkpoint that transformers' AutoModelForImageTextToText loads, once its space is stated.
# Its prompts are the variant's; its processor and chat template are used as they are.
ANY_CHECKPOINT = ModelRow("image-text-to-text", r"(?!)", _stated_only, local=LocalFamily({}))


def row_to_run(name: str | None, checkpoint: str | None, space: object) -> tuple[ModelRow, str]:
    """Return the row of a name of the model table as a checkpoint fits it, and the checkpoint.

    Args:
        name: of the row (None: the checkpoint's files decide).
        checkpoint: a folder or an identifier (None: the first of the row).
        space: that the user states (None: the row's).

    Raises:
        ValueError: the row is unknown, the checkpoint contradicts it, or decides for none.
    """
    if name is None:
        return _row_of_files(checkpoint, space_stated=space is not None), str(checkpoint)
    row = ANY_CHECKPOINT if name == ANY_CHECKPOINT.name and checkpoint else MODELS.get(name)
    if row is None or row.local is None:
        local = [row.name for row in MODELS.values() if row.local]
        raise ValueError(f"unknown local model {name!r}{meant_model(name, local)}")
    checkpoint = checkpoint or next(iter(row.local.checkpoints.values()))
    return fitting(row, checkpoint, space_stated=space is not None), checkpoint


def _row_of_files(checkpoint: str | None, *, space_stated: bool) -> ModelRow:
    """Return the row that a checkpoint's files decide for; ValueError with the choices if none."""
    local = [row.name for row in MODELS.values() if row.local]
    if not checkpoint:
        raise ValueError(f"name a checkpoint ('model_path'), or what it is ('like'): {_or(local)}")
    refuse_missing(checkpoint)
    decided = decided_rows(checkpoint)
    if len(decided) == 1:
        return decided[0]
    architecture = architecture_of(checkpoint)
    if not decided and architecture is not None:
        _refuse_unloadable(checkpoint, checkpoint, architecture)
        if space_stated:
            return ANY_CHECKPOINT
    what = (
        "its config.json does not say which model it is" if architecture is None else architecture
    )
    choices = [row.name for row in decided] or local
    raise ValueError(f"{checkpoint}: {what}: name what it is ('like'): {_or(choices)}")


def _or(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def row_of_checkpoint(
    name: str, checkpoint: str, like: str | None = None, *, space_stated: bool = False
) -> ModelRow:
    """Return the row that a checkpoint is run by.

    Args:
        name: of the results; any.
        checkpoint: a folder or an identifier.
        like: a name in the model table, for its prompts and coordinates.
        space_stated: whether the user states the coordinate space: then ``like`` gives only
            prompts, and a checkpoint without a row is :data:`ANY_CHECKPOINT`.

    Raises:
        ValueError: no row fits, several do, ``like`` or the name contradicts the files of the
            checkpoint, the checkpoint does not exist, or the name is no file name.
    """
    check_model_name(name)
    check_like(name, checkpoint, like)
    named = find_model(like or name)
    refuse_missing(checkpoint)
    if named is not None and named.local is not None:
        return fitting(named, checkpoint, space_stated=space_stated, named=name)
    decided = decided_rows(checkpoint)
    if len(decided) == 1:
        return decided[0]
    architecture = architecture_of(checkpoint)
    where = f"{name}={checkpoint}"
    if decided:
        what = f"it {_is_of(decided)}"
        if architecture is not None:
            what = f"{architecture}, which {_is_of(decided)}"
        raise ValueError(f"{where}: {what}. Type {_likes(decided)}")
    if architecture is None:
        unknown = f"{name!r} is not a local model{meant_model(name, local_names())}"
        raise ValueError(
            f"{where}: its config.json does not say which model it is{_not_here(checkpoint)}, and "
            f"{ended(unknown)} Name the known model whose prompts and coordinates it shares: "
            "--like NAME"
        )
    _refuse_unloadable(where, checkpoint, architecture)
    if space_stated:
        return ANY_CHECKPOINT
    raise ValueError(
        f"{where}: {architecture}, and no known model is of that type. State the space that it "
        "answers in when you run it: --space SPACE (names: run_findit.py score --help), or add a "
        "row for it (six lines: docs/how-to/benchmarks.md, A model)"
    )


def check_like(name: str, checkpoint: str, like: str | None) -> None:
    """Refuse a checkpoint that is to be like no model on this machine; no file is looked at."""
    if like is None:
        return
    row = find_model(like)
    if row is None or row.local is None:
        meant = meant_model(like, local_names())
        raise ValueError(f"{name}={checkpoint}: unknown local model {like!r}{meant}")


def fitting(
    row: ModelRow, checkpoint: str, *, space_stated: bool, named: str | None = None
) -> ModelRow:
    """Return a row for a checkpoint, or raise ValueError where its files contradict it.

    With a stated space its prompts stay, and the checkpoint runs as its files say.
    """
    why = why_not_of_row(row, checkpoint)
    if why is None:
        return row
    decided = decided_rows(checkpoint)
    architecture = architecture_of(checkpoint)
    where = checkpoint if named is None else f"{named}={checkpoint}"
    if not space_stated:
        instead = f"Type {_likes(decided)}, or state" if decided else "State"
        raise ValueError(
            f"{where}: {why}. {instead} the space that it answers in when you run it: --space SPACE"
        )
    if len(decided) > 1:
        raise ValueError(f"{where}: {why}. Type {_likes(decided)}")
    if not decided and architecture is not None:
        _refuse_unloadable(where, checkpoint, architecture)
    return replace(row, local=(decided[0] if decided else ANY_CHECKPOINT).local)


def why_not_of_row(row: ModelRow, checkpoint: str) -> str | None:
    """Return why a checkpoint cannot be of a row, with both values; None if nothing says so."""
    local = row.local
    if local is None or not local.model_types:
        return None
    architecture = architecture_of(checkpoint)
    if architecture is None:
        others = rows_of_identifier(checkpoint)
        if not others or any(_share(row, other) for other in others):
            return None
        return f"{_identifier(checkpoint)} {_is_of(others)}, not {row.name}"
    if architecture.model_type not in local.model_types:
        return f"{architecture}, and {row.name} is {' or '.join(local.model_types)}"
    if None in (architecture.multiple, local.multiple) or architecture.multiple == local.multiple:
        return None
    return (
        "its processor rounds the sides of images to multiples of "
        f"{architecture.multiple} pixels, and "
        f"that of {row.name} to multiples of {local.multiple}"
    )


def _share(row: ModelRow, other: ModelRow) -> bool:
    """Return whether checkpoints of two rows have the same architecture."""
    if row.local is None or other.local is None:
        return False
    shared = set(row.local.model_types) & set(other.local.model_types)
    return bool(shared) and row.local.multiple == other.local.multiple


def decided_rows(checkpoint: str) -> list[ModelRow]:
    """Return the rows that a checkpoint may be of: one where its files, or its name, decide.

    >>> [row.name for row in decided_rows("Qwen/Qwen2.5-VL-7B-Instruct")]
    ['Qwen2.5-VL']
    """
    if not checkpoint:
        return []
    architecture = architecture_of(checkpoint)
    by_name = rows_of_identifier(checkpoint)
    if architecture is None:
        return by_name
    fits = [row for row in MODELS.values() if _fits(row, architecture)]
    both = [row for row in by_name if row in fits]
    return both or fits


def _fits(row: ModelRow, architecture: Architecture) -> bool:
    local = row.local
    if local is None or architecture.model_type not in local.model_types:
        return False
    if architecture.multiple is None or local.multiple is None:
        return row.name not in SHIPPED  # small models of others' architectures
    return architecture.multiple == local.multiple


def rows_of_identifier(checkpoint: str) -> list[ModelRow]:
    """Return the rows whose checkpoint an identifier, or the base of an adapter, names."""
    adapter = adapter_of(checkpoint)
    if adapter is None and not HUB_IDENTIFIER.fullmatch(checkpoint):
        return []
    if adapter is None and Path(checkpoint).is_dir():
        return []
    identifier = _identifier(checkpoint)
    name = Path(identifier).name
    if not name:
        return []
    named: dict[str, ModelRow] = {}
    for row, known in local_names().values():
        is_whole = identifier.casefold() == known.casefold()
        if is_whole or (adapter is not None and name == Path(known).name):
            named[row.name] = row
    if named:
        return list(named.values())
    by_name = find_model(identifier)
    if by_name is None and adapter is not None:
        by_name = find_model(name)
    return [by_name] if by_name is not None and by_name.local is not None else []


def _identifier(checkpoint: str) -> str:
    adapter = adapter_of(checkpoint)
    return adapter.base if adapter is not None else checkpoint


def decided_row(checkpoint: str) -> ModelRow | None:
    """Return the row that a checkpoint's files or name decide for; None if they do not."""
    rows = decided_rows(checkpoint)
    return rows[0] if len(rows) == 1 else None


def named_model(name: str) -> str:
    """Return a model's name, or raise ValueError that says how to name a folder or identifier."""
    if "/" in name and "\n" not in name:
        raise ValueError(
            f"the model's name {name!r} should have no slash: it names files. "
            f"{_instead_of_path(name)}"
        )
    return check_model_name(name)


def name_taken(name: str, checkpoint: str) -> str:
    """Say that VLMEvalKit has a model of the name of somebody's checkpoint, and what to type."""
    return (
        f"{name}={checkpoint}: {name} is a model of VLMEvalKit's. Name your checkpoint otherwise: "
        f"--model NAME={checkpoint}"
    )


def _instead_of_path(path: str) -> str:
    ours = same_checkpoint(path) if HUB_IDENTIFIER.fullmatch(path) else []
    by_itself = f"--model NAME={path}"
    if not ours:
        return f"Type {by_itself}"
    return (
        f"Type --model {' or '.join(ours)}, which is the same checkpoint, asked as the protocol "
        f"says, or {by_itself}"
    )


def _is_of(rows: list[ModelRow]) -> str:
    return f"is {' or '.join(row.name for row in rows)}"


def _likes(rows: list[ModelRow]) -> str:
    return " or ".join(f"--like {_word(row.name)}" for row in rows)


def _word(name: str) -> str:
    return f"'{name}'" if " " in name else name


def _not_here(checkpoint: str) -> str:
    weights = _identifier(checkpoint)
    if Path(weights).is_dir():
        return ""
    # A folder begins it: then the rest is misspelt, and nobody means a model of the hub.
    near = near_path(Path(weights)) if Path(weights).parent.is_dir() else None
    if near is not None:
        return f" ({weights} does not exist: did you mean {near}?)"
    return f" (it is not on this machine: hf download {weights} config.json)"


def _refuse_unloadable(where: str, checkpoint: str, architecture: Architecture) -> None:
    """Refuse a checkpoint that :data:`ANY_CHECKPOINT` cannot run, before anything is loaded."""
    types = loadable_types()
    if types and architecture.model_type not in types:
        raise ValueError(
            f"{where}: {architecture}, which transformers' AutoModelForImageTextToText does not "
            "load. Serve it, and name the server: --base-url URL"
        )
    if lacks_chat_template(checkpoint):
        raise ValueError(
            f"{where}: it has no chat template (chat_template.jinja), so no prompt can be made. "
            "Save one with its processor, or serve it: --base-url URL"
        )
