"""``data import --vp-questions``: questions about marks on the images of a dataset."""

from __future__ import annotations

from ..core.command import as_called
from ..data.vp_questions.building import build, counts
from ..data.vp_questions.names import table_of_new
from ..data.vp_questions.sources import source_of
from .printing import where_tables_are

COUNT = 400
SEED = 0


def make(source: str, name: str, count: int | None, seed: int | None, replace: bool) -> int:
    """Make a set of questions, and say what is in it.

    Raises:
        ValueError: source, name, count or seed cannot be used; the message says why.
        OSError: a table or a picture is not there.
    """
    count = COUNT if count is None else count
    seed = SEED if seed is None else seed
    if not 8 <= count < 100_000:
        raise ValueError(f"--count {count}: 8 to 99999; one of eight asks for an absent mark")
    if not 0 <= seed < 2**32:
        raise ValueError(f"--seed {seed}: 0 to {2**32 - 1}")
    table = table_of_new(name, replace)
    found = source_of(source, count)
    built = build(table, found, count, seed)
    for note in found.notes:
        print(note)
    if len(built.queries) < built.wanted:
        print(f"left out: {built.wanted - len(built.queries)} for which no picture does")
    for what, many in counts(built.queries).items():
        print(f"{what:<12}" + ", ".join(f"{value} {number}" for value, number in many.items()))
    print(
        f"{built.table.stem}: {len(built.queries)} questions, images: {built.images}\n"
        f"{where_tables_are([built.table])}\n"
        + as_called(f"Run it: python run_findit.py --data {built.table.stem} --model MODEL")
    )
    return 0
