"""``run_findit.py data show``: a query's message, and the input of a model."""

from __future__ import annotations

import json

import click

from ..benchmarks import benchmark_of, load
from ..benchmarks.findit.findit_query import FindItQuery as FindItQuery
from ..benchmarks.findit.variant import Variant
from ..boxes.spaces import reference
from ..core.custom_prompt import custom_prompt, prompt_set
from ..core.folders import image_folder
from ..core.identity import Answering, Described
from ..core.question import Message, PartKind, Query, Question, located
from ..core.settings import Settings
from ..models.model_row import LocalFamily, ModelRow
from ..models.model_table import find_model, row_of_base
from .model_options import prompt_options
from .options import Command, complete_datasets, complete_models
from .printing import print_folded, print_text


@click.command(
    cls=Command,
    examples=["python run_findit.py data show FindIt_Scenes_mini_xyxy_json --index 3"],
)
@click.argument("data", metavar="DATASET", shell_complete=complete_datasets)
@click.option("--index", type=int, metavar="N", help="The row (else the first).")
@click.option(
    "--model",
    metavar="NAME[=CHECKPOINT]",
    shell_complete=complete_models,
    help="Also say in which space this model answers, and what it is shown.",
)
@prompt_options
def command(
    data: str, index: int | None, model: str | None, system: str | None, prompt_template: str | None
) -> int:
    """Print a query: its message with images at their places, its sizes, its boxes."""
    benchmark, task = benchmark_of(data), load(data)
    if model:
        task = benchmark.for_model(task, model.partition("=")[0])
    index = next(iter(task.queries), 0) if index is None else index
    if index not in task.queries:
        raise ValueError(f"{data} has no row {index} (it has {len(task.queries)})")
    query, question = task.queries[index], task.question
    folder = image_folder(question.images)
    words = prompt_set(benchmark, custom_prompt(system, prompt_template))
    message = words.message(query, question)
    print(f"{question.name}, row {query.index}, prompts {words.name}")
    print_folded(f"images in {folder.path}")
    print()
    for part in message:
        system_mark = "system: " * (part.kind is PartKind.SYSTEM)
        is_image = part.kind is PartKind.IMAGE
        print_text(f"<{part.value}>" if is_image else f"{system_mark}{part.value}")
    if query.width:
        print(f"\nimage: {query.width} x {query.height} pixels")
    if isinstance(query, FindItQuery):
        for frame, box in zip(query.truth.frames, query.truth.boxes, strict=True):
            which = f", frame {frame + 1}" if question.frames > 1 else ""
            print(f"ground truth{which}: {list(box)}")
        for ignored in query.truth.ignored:
            which = f", frame {ignored.frame + 1}" if question.frames > 1 else ""
            print(f"{'a crowd' if ignored.crowd else 'ignored'}{which}: {list(ignored.box)}")
    if model:
        _print_model(model, query, question, located(message, folder.path))
    return 0


def _print_model(model: str, query: Query, question: Question, message: Message) -> None:
    """Print the space in which a model answers, and its request or input."""
    named, _, checkpoint = model.partition("=")
    row = find_model(named) or row_of_base(checkpoint)
    if row is None:
        # An unknown model can answer questions whose answers have no space.
        nobody = Described(Answering(), None)
        benchmark_of(question).space(named, question, Settings(), nobody)
        return
    space = row.space(question)
    if query.width:
        w, h, left, top = reference(space, query.width, query.height)
        upto = f"{left + w:g} x {top + h:g}" + (f" from {left:g}, {top:g}" if left or top else "")
        print_folded(f"{named} answers in {space.as_dict()}: numbers up to {upto}")
    if isinstance(question, Variant):
        form = row.reads(question.reply)
        words = filter(None, (form.output, form.representation, form.key, form.structure))
        print(f"replies are read as {' '.join(words)}")
    if row.api is not None:
        _print_request(message, question, row.entry)
    if row.local is not None:
        _print_shown(row, checkpoint or _checkpoint(named, row.local), question, message)


def _checkpoint(named: str, family: LocalFamily) -> str:
    """Return the checkpoint of a name; for another name of the row, the first."""
    return family.checkpoints.get(named, next(iter(family.checkpoints.values())))


def _print_shown(row: ModelRow, checkpoint: str, question: Question, message: Message) -> None:
    """Print the text after the chat template and the sizes of images; nothing is downloaded."""
    from ..models.local.local_runner import ProcessorMissingError, shown

    try:
        inputs = shown(row, checkpoint, question, message)
    except ProcessorMissingError as error:
        print()
        print_folded(f"The model's input cannot be shown here: {error}")
        print(f"--model {row.name.replace(' ', '')}=FOLDER names a checkpoint that is here.")
        return
    print(f"\nthe text after the chat template of {checkpoint}:")
    print_text(inputs.text)
    print()
    for number, image in enumerate(inputs.images, 1):
        sizes = ", ".join(
            f"{what} {image[what][0]} x {image[what][1]}"
            for what in ("original", "sent", "processed")
            if what in image
        )
        print_folded(f"image {number}: {sizes}; bounds {image['bounds']}")
    print(f"{len(inputs.ids)} tokens, {sum(inputs.types)} of them image features")


def _print_request(message: Message, question: Question, model: str) -> None:
    """Print the request for a message: fields as they are, images as their sizes."""
    from ..models.http.chat import chat_model
    from ..models.http.providers.provider_table import OPENROUTER

    try:
        request = chat_model(model, OPENROUTER).request(message, question)
    except OSError as error:
        print(f"\nwhat is sent cannot be shown without the images: {error}")
        return
    print("\nsent to OpenRouter:")
    for name, value in request.body.items():
        if name != "messages":
            print_folded(f"  {name}: {json.dumps(value)}")
    for image in request.images:
        original, sent = ("{} x {}".format(*size) for size in (image.original, image.sent))
        print(f"  image: {original}, sent as {sent}, {image.mime}, {len(image.data):,} bytes")
