"""``data list``, and ``data show``: a query's message, and the input of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import fill

import click

from ..benchmarks import benchmark_of, listed_names, parse
from ..benchmarks.findit import BENCHMARK_DATASETS, DATASETS, FindItQuery, FindItVariant
from ..boxes import SpaceError, reply_extent
from ..core import as_called, counted, ended
from ..data import (
    MAKERS,
    SHIPPED_LICENCE,
    SOURCES,
    fetched_tables,
    images_of,
    load_dataset,
    published_sets,
)
from ..models import ModelRow, find_model, meant_model, row_of_checkpoint
from ..protocol import (
    Answering,
    DatasetVariant,
    Described,
    Message,
    PartKind,
    Query,
    Settings,
    custom_prompt,
    located,
    prompt_set,
)
from ..storage import TableError, image_folder, table_folders
from .command_base import Command, complete_datasets, complete_models, option, say
from .early_checks import note_unknown_image_keys
from .model_options import prompt_options
from .printing import print_columns, print_folded, print_text


@click.command(
    cls=Command, examples=["python run_findit.py data show FindIt_Scenes_mini_xyxy_json --index 3"]
)
@click.argument("data", metavar="DATASET", shell_complete=complete_datasets)
@option("--index", "N", "The row (else the first).", type=int)
@option(
    "--model",
    "NAME[=CHECKPOINT]",
    "Also say in which space this model answers, and what it is shown.",
    shell_complete=complete_models,
)
@prompt_options
def command(
    data: str, index: int | None, model: str | None, system: str | None, prompt_template: str | None
) -> int:
    """Print a query: its message with images at their places, its sizes, its boxes."""
    benchmark = benchmark_of(data)
    dataset = load_dataset(data)
    if model:
        dataset = benchmark.for_model(dataset, model.partition("=")[0])
    index = next(iter(dataset.queries), 0) if index is None else index
    if index not in dataset.queries:
        raise ValueError(
            f"--index {index}: no such row; {data} has {counted(len(dataset.queries), 'row')}, "
            f"from {min(dataset.queries)} to {max(dataset.queries)}"
        )
    query = dataset.queries[index]
    variant = dataset.variant
    note_unknown_image_keys()
    folder = image_folder(variant.images)
    words = prompt_set(benchmark, custom_prompt(system, prompt_template))
    message = words.message(query, variant)
    say(f"{variant.name}, row {query.index}, prompts {words.name}")
    print_folded(f"images in {folder.path}")
    say()
    for part in message:
        if part.kind is PartKind.IMAGE:
            print_text(f"<{part.value}>")
        elif part.kind is PartKind.SYSTEM:
            print_text(f"system: {part.value}")
        else:
            print_text(part.value)
    if query.width:
        say(f"\nimage: {query.width} x {query.height} pixels")
    if isinstance(query, FindItQuery):
        truth = query.truth
        boxes = [("ground truth", *pair) for pair in zip(truth.frames, truth.boxes, strict=True)]
        boxes += [("a crowd" if x.crowd else "ignored", x.frame, x.box) for x in truth.ignored]
        for what, frame, box in boxes:
            which = f", frame {frame + 1}" if variant.frames > 1 else ""
            say(f"{what}{which}: {list(box)}")
    if model:
        _print_model(model, query, variant, located(message, folder.path))
    return 0


def _print_model(model: str, query: Query, variant: DatasetVariant, message: Message) -> None:
    named, _, checkpoint = model.partition("=")
    row = row_of_checkpoint(named, checkpoint) if checkpoint else find_model(named)
    if row is None:
        # An unknown model can answer variants whose answers have no space.
        nobody = Described(Answering(), None)
        try:
            benchmark_of(variant).space(named, variant, Settings(), nobody)
        except SpaceError:
            raise ValueError(
                f"--model {named}: {ended(f'unknown model{meant_model(named)}')} A checkpoint is "
                "named with its folder: --model NAME=FOLDER"
            ) from None
        return
    space = row.space(variant)
    if query.width:
        w, h, left, top = reply_extent(space, query.width, query.height)
        upto = f"{left + w:g} x {top + h:g}" + (f" from {left:g}, {top:g}" if left or top else "")
        print_folded(f"{named} answers in {space.as_dict()}: numbers up to {upto}")
    if isinstance(variant, FindItVariant):
        form = row.reads(variant.reply)
        words = filter(None, (form.output, form.representation, form.key, form.structure))
        say(f"replies are read as {' '.join(words)}")
    if row.api is not None:
        _print_request(message, variant, row.entry)
    if row.local is not None:
        known = row.local.checkpoints
        checkpoint = checkpoint or known.get(named, next(iter(known.values())))
        _print_shown(row, checkpoint, variant, message)


def _print_shown(row: ModelRow, checkpoint: str, variant: DatasetVariant, message: Message) -> None:
    """Print the text after the chat template and the sizes of images; nothing is downloaded."""
    from ..models import ProcessorMissingError, encode_as_shown

    try:
        inputs = encode_as_shown(row, checkpoint, variant, message)
    except ProcessorMissingError as error:
        say()
        print_folded(f"The model's input cannot be shown here: {error}")
        say(f"--model {row.name.replace(' ', '')}=FOLDER names a checkpoint that is here.")
        return
    say(f"\nthe text after the chat template of {checkpoint}:")
    print_text(inputs.text)
    say()
    for number, image in enumerate(inputs.images, 1):
        stages = [what for what in ("original", "sent", "processed") if what in image]
        sizes = ", ".join("{} {} x {}".format(what, *image[what]) for what in stages)
        print_folded(f"image {number}: {sizes}; bounds {image['bounds']}")
    say(f"{len(inputs.ids)} tokens, {sum(inputs.types)} of them image features")


def _print_request(message: Message, variant: DatasetVariant, model: str) -> None:
    """Print the request for a message: fields as they are, images as their sizes."""
    from ..models import OPENROUTER, chat_model

    try:
        request = chat_model(model, OPENROUTER).request(message, variant)
    except OSError as error:
        say(f"\nwhat is sent cannot be shown without the images: {error}")
        return
    say("\nsent to OpenRouter:")
    for name, value in request.body.items():
        if name != "messages":
            print_folded(f"  {name}: {json.dumps(value)}")
    for image in request.images:
        original = "{} x {}".format(*image.original)
        sent = "{} x {}".format(*image.sent)
        say(f"  image: {original}, sent as {sent}, {image.mime}, {len(image.data):,} bytes")


# --- data list ---

_NONE = "–"
_MADE = ("made", "on first use")  # table and images


Row = tuple[str, str, str, str]
"""A dataset, whether its table is on disk, its images on disk, and its licence."""


@click.command(cls=Command)
def list_datasets() -> int:
    """List the datasets: what of each is on disk, and the licence of its images."""
    rows = [*_findit(), *_others()]
    columns = ("dataset", "table", "images", "licence of the images")
    print_columns(rows, *columns, numbers=["images"])
    say(as_called("get a dataset: python run_findit.py data get NAME"))
    say(as_called("from files that you have: python run_findit.py data get NAME --from DIR"))
    say(fill(f"made from your files: {', '.join(published_sets())}", 80, subsequent_indent="  "))
    return 0


def _findit() -> Iterator[Row]:
    """Yield FindIt's datasets; rendered datasets have a row for each image folder."""
    rendered = {row.images for row in BENCHMARK_DATASETS.values() if row.is_made}
    for row in DATASETS.values():
        if row.folder is not None:
            yield row.name, _has_table(row.name), "yours", "yours"
        elif row.images not in rendered:
            yield row.name, *_on_disk(row.name), SOURCES[row.images].licence
        elif row.name == row.images:
            several = (
                len([each for each in BENCHMARK_DATASETS.values() if each.images == row.images]) > 1
            )
            licence = SOURCES[row.images].licence if row.images in SOURCES else SHIPPED_LICENCE
            name = f"{row.name}, {row.name}_…" if several else row.name
            yield name, *_MADE, licence


def _on_disk(name: str) -> tuple[str, str]:
    """Return whether the table of a dataset exists, and how many of its images exist."""
    table = fetched_tables([name])[0]
    with suppress(OSError, TableError):
        if (path := table.ready()) is not None:
            folder = image_folder(table.folder).path
            images = images_of(table.queries(path))
            existing = sum((folder / image).is_file() for image in images)
            return "yes", f"{existing:,}/{len(images):,}"
    return _NONE, _NONE


def _others() -> Iterator[Row]:
    """Yield the tables of the other benchmarks, plug-ins' too."""
    for variant in map(parse, listed_names()):
        if variant.table not in DATASETS and not variant.table.endswith("_multilabel"):
            licence = SOURCES[variant.images].licence if variant.images in SOURCES else _NONE
            if variant.table in MAKERS:
                yield variant.table, *_MADE, SHIPPED_LICENCE
                continue
            images = "yes" if image_folder(variant.images).path.is_dir() else _NONE
            yield variant.table, _has_table(variant.table), images, licence


def _has_table(table: str) -> str:
    exists = any(Path(folder, f"{table}.tsv").is_file() for folder in table_folders())
    return "yes" if exists else _NONE
