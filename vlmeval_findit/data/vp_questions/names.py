"""The name of a set of questions, ``VPBench_<name>``."""

from __future__ import annotations

import re

from ...benchmarks.vpbench import PREFIX
from ...benchmarks.vpbench.tables import TABLES, own_tables


class SetNameError(ValueError):
    """A name that no set can be given; the message says why."""


_STAGES = ("stage1", "stage2")


def table_of_new(name: str, replace: bool) -> str:
    """The table of a set that is to be made.

    Args:
        name: what the set is to be called.
        replace: whether a set of one's own of this name may be replaced.

    Raises:
        SetNameError: the name cannot be used, or is in use.
    """
    if not re.fullmatch(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)*", name):
        raise SetNameError(f"name {name!r}: only letters, digits, and single '_' between them")
    if name.lower().startswith(PREFIX.lower()):
        raise SetNameError(f"name {name!r}: {PREFIX} stands before it anyway")
    if name.lower().split("_")[0] in _STAGES:
        raise SetNameError(f"name {name!r}: begins as the authors' own tables do")
    table = f"{PREFIX}{name}"
    # Letters of both cases: tables are files, and some file systems do not tell them apart.
    for ours in TABLES:
        if ours.lower() == table.lower():
            raise SetNameError(f"name {name!r}: {ours} is a set of ours")
    for own in own_tables():
        if own.lower() == table.lower() and not (replace and own == table):
            raise SetNameError(f"name {name!r}: {own} was made before (--replace)")
    return table
