"""``run_findit.py data show``: what a query asks, and what a model is shown of it."""

from __future__ import annotations

from collections.abc import Sequence

from ..benchmarks import benchmark_of, load
from ..benchmarks.findit.query import Query as FindItQuery
from ..benchmarks.findit.variant import Variant
from ..boxes.spaces import reference
from ..core.identity import Answering, Described
from ..core.messages import Message, PartKind, located
from ..core.places import image_folder
from ..core.question import Query, Question
from ..core.settings import Settings
from ..models.row import LocalFamily, ModelRow
from ..models.table import find_model
from .parsing import Parser


def main(argv: Sequence[str]) -> int:
    """What a query asks: its message with images at their places, its sizes, its boxes."""
    parser = Parser(prog="run_findit.py data show", description=__doc__)
    parser.add_argument("--data", required=True, help="a dataset's name")
    parser.add_argument("--index", type=int, default=0, help="the row (default 0)")
    parser.add_argument(
        "--model",
        help="also say in which space this model answers, and what it is shown: NAME, or "
        "NAME=CHECKPOINT for one of another folder or identifier",
    )
    args = parser.parse_args(argv)
    benchmark, task = benchmark_of(args.data), load(args.data)
    if args.model:
        task = benchmark.for_model(task, args.model.partition("=")[0])
    if args.index not in task.queries:
        raise ValueError(f"{args.data} has no row {args.index} (it has {len(task.queries)})")
    query, question = task.queries[args.index], task.question
    folder = image_folder(question.images)
    words = benchmark.prompts()[0]
    message = words.message(query, question)
    print(f"{question.name}, row {query.index}, prompts {words.name}, images in {folder.path}\n")
    for part in message:
        print(f"<{part.value}>" if part.kind is PartKind.IMAGE else part.value)
    if query.width:
        print(f"\nimage: {query.width} x {query.height} pixels")
    if isinstance(query, FindItQuery):
        for frame, box in zip(query.truth.frames, query.truth.boxes, strict=True):
            which = f", frame {frame + 1}" if question.frames > 1 else ""
            print(f"ground truth{which}: {list(box)}")
        for one in query.truth.ignored:
            which = f", frame {one.frame + 1}" if question.frames > 1 else ""
            print(f"{'a crowd' if one.crowd else 'ignored'}{which}: {list(one.box)}")
    if args.model:
        _print_model(args.model, query, question, located(message, folder.path))
    return 0


def _print_model(model: str, query: Query, question: Question, message: Message) -> None:
    """The space in which a model answers, and what it is sent or shown."""
    named, _, checkpoint = model.partition("=")
    row = find_model(named)
    if row is None:
        # A model that nobody knows can answer where answers have no space.
        nobody = Described(Answering(), None)
        benchmark_of(question).space(named, question, Settings(), nobody)
        return
    space = row.space(question)
    if query.width:
        w, h, left, top = reference(space, query.width, query.height)
        upto = f"{left + w:g} x {top + h:g}" + (f" from {left:g}, {top:g}" if left or top else "")
        print(f"{named} answers in {space.as_dict()}: numbers up to {upto}")
    if isinstance(question, Variant):
        print(f"replies are read as {row.reads(question.reply)}")
    if row.api is not None:
        from .request import print_request

        print_request(message, question, row.entry)
    if row.local is not None:
        _print_shown(row, checkpoint or _checkpoint(named, row.local), question, message)


def _checkpoint(named: str, family: LocalFamily) -> str:
    """The checkpoint that a name stands for; of another name of the row, its first."""
    return family.checkpoints.get(named, next(iter(family.checkpoints.values())))


def _print_shown(row: ModelRow, checkpoint: str, question: Question, message: Message) -> None:
    """The text after the chat template and the sizes of each image; nothing is downloaded."""
    from ..models.local.runner import NotHereError, shown

    try:
        seen = shown(row, checkpoint, question, message)
    except NotHereError as error:
        print(f"\nWhat it is shown cannot be said here: {error}")
        print(f"--model {row.name.replace(' ', '')}=FOLDER names a checkpoint that is here.")
        return
    print(f"\nthe text after the chat template of {checkpoint}:\n{seen.text}\n")
    for number, image in enumerate(seen.images, 1):
        sizes = ", ".join(
            f"{what} {image[what][0]} x {image[what][1]}"
            for what in ("original", "sent", "processed")
            if what in image
        )
        print(f"image {number}: {sizes}; bounds {image['bounds']}")
    print(f"{len(seen.ids)} tokens, {sum(seen.types)} of them image features")
