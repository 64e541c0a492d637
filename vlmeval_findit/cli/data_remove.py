"""``data remove``: delete what the import of a dataset wrote."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from ..benchmarks.findit import custom_rows
from ..core import as_called, counted
from ..data import WrittenByImport, imports_called, remove_import, runs_about, written_by_import
from .command_base import PATH, Command, completion, option, switch
from .printing import print_folded


@click.command(cls=Command, examples=["python run_findit.py data remove MyData  # yours"])
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion(custom_rows)
)
@option(
    "--work-dir",
    "DIR",
    "Folder of results that is searched for runs.  [default: outputs]",
    multiple=True,
    type=PATH,
)
@switch("--yes", "Delete it although there are runs, or a table was edited.")
def command(names: tuple[str, ...], work_dir: tuple[Path, ...], yes: bool) -> int:
    """Delete imported datasets: their tables, their names, and images that the import unpacked.

    Your annotations, your images and the results of runs stay. It is refused if runs in --work-dir
    are about them.
    """
    for folder in work_dir:
        if not folder.is_dir():
            raise ValueError(f"--work-dir {folder}: no such folder")
    imported = list(dict.fromkeys(chain.from_iterable(map(imports_called, names))))
    written = [written_by_import(name) for name in imported]
    if not yes:
        _refuse_what_is_used(names, written, work_dir or (Path("outputs"),))
    for each in written:
        remove_import(each)
        listed = ", ".join(file.name for file in each.files) or "no file was left"
        print_folded(f"{each.name} is removed from {_folder_of(each)}: {listed}")
        if each.unpacked and not each.used_by:
            print_folded(f"{counted(len(each.unpacked), 'image')} that it unpacked went, too")
        if each.images is not None and each.images.is_dir():
            print_folded(f"its images stay in {each.images}")
    return 0


def _folder_of(written: WrittenByImport) -> Path | str:
    return written.files[0].parent if written.files else "the list of datasets"


def _refuse_what_is_used(
    names: tuple[str, ...], written: list[WrittenByImport], folders: tuple[Path, ...]
) -> None:
    whys = []
    runs = list(runs_about([each.name for each in written], folders))
    if runs:
        whys.append(
            f"{counted(len(runs), 'run')} in {', '.join(map(str, folders))} asked about it (the "
            f"first: {runs[0]}): without the table they cannot go on, be scored or be shown, until "
            "the same files are imported under the same name"
        )
    for table in chain.from_iterable(each.edited for each in written):
        whys.append(f"{table} was edited after the import, and the edits would be lost")
    for each in written:
        if each.unpacked and each.used_by:
            whys.append(
                f"the {counted(len(each.unpacked), 'image')} that it unpacked may be those of "
                f"{', '.join(each.used_by)}, too, and would stay"
            )
    if whys:
        typed = as_called(f"python run_findit.py data remove {' '.join(names)} --yes")
        raise ValueError("\n".join([*whys, f"Nothing was deleted. To delete it: {typed}"]))
