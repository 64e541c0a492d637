"""``run_findit.py --dry-run``: what a run over an API would send, without a network or a key."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence

from ..images import rows_to_leave_out, skips_missing
from ..models.estimate import Load, load
from ..models.payload import Manner, located, openrouter_manner, server_manner
from ..models.services import extra_fields, proprietary, server_name, server_space, template_fields
from ..places import image_folder
from ..prompts import Part
from ..release_prompts import prompt_set
from ..scoring import settings_from
from ..spaces import Space
from ..tasks import Task, load_task
from ..variant import Variant

Asking = Callable[[Variant], tuple[Space, Manner]]
"""The space and the manner in which a model is asked a variant."""


def count(names: Sequence[str], args: argparse.Namespace) -> int:
    """Count what the models of a command line would be sent for these datasets."""
    if not names or not args.model:
        raise ValueError("--dry-run needs --data FindIt_… and --model …")
    total = Load()
    for model in args.model:
        asking = _asking(model, args)
        for name in names:
            task = load_task(name)
            space, manner = asking(task.variant)
            one = load(_messages(task, args.limit), task.variant, space, manner)
            print(f"{model}  {name}  as {manner.model}, {space.as_dict()}\n  {_line(one)}")
            total += one
    print(f"all\n  {_line(total)}")
    print("Tokens are estimates. Replies that an earlier run left are not taken off.")
    return 0


def _asking(model: str, args: argparse.Namespace) -> Asking:
    if args.base_url:
        name, served = server_name(model)
        extra = {**template_fields(name), **extra_fields(args.extra_body)}
        said = settings_from(json.loads(args.judge_args) if args.judge_args else {}).space
        rule = server_space(name, said)
        return lambda variant: (rule(variant), server_manner(served, rule(variant), extra))
    row, facts = proprietary(model)
    return lambda variant: (row.space(variant.row), openrouter_manner(facts))


def _messages(task: Task, limit: int | None) -> Iterator[list[Part]]:
    """The messages of a run, images as paths of files; as many rows as the host would take."""
    folder = image_folder(task.variant.row.images)
    queries = list(task.queries.values())
    left_out = rows_to_leave_out(queries, folder, skips_missing())
    _, make = prompt_set()
    kept = [query for query in queries if query.index not in left_out]
    for query in kept[: limit or None]:
        yield located(make(query, task.variant), folder.path)


def _line(sums: Load) -> str:
    return (
        f"{sums.calls:,} calls, {sums.images:,} images, {sums.size:,} bytes, about "
        f"{sums.tokens_in:,} tokens in, at most {sums.tokens_out_at_most:,} out"
    )
