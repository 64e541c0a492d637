"""Our command: its name, the extras it needs, its exit statuses."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from .files import modules_sha256
from .formatting import TYPING_ERROR, closest
from .near_path import near_path, not_there

_PACKAGE = Path(__file__).resolve().parents[1]


def clone_folder() -> Path | None:
    """Return the clone that the package is imported from; None if it was installed."""
    # Neighbours of an installed package are other packages.
    folder = _PACKAGE.parent
    return folder if (folder / "run_findit.py").is_file() else None


@cache
def program() -> str:
    """Return our command as it was typed: ``findit``, or ``python`` with the path of the file."""
    typed = Path(sys.argv[0])
    if typed.name == "run_findit.py":
        return f"python {shlex.quote(str(typed))}"
    is_script = typed.stem in ("findit", "vlmeval-findit")
    return "findit" if is_script or clone_folder() is None else "python run_findit.py"


def is_under_vlmevalkit() -> bool:
    """Return whether VLMEvalKit's runner is running: it has none of our flags.

    ``run`` names the runner like this, too, when it starts it.
    """
    started = Path(sys.argv[0])
    return started.name == "run.py" or started.parent.name == "vlmeval"


def as_called(text: str) -> str:
    """Name our command in a text as it was typed; twice is as once."""
    # What a slash precedes is a path, from the first time.
    # A line may have been folded between the two words.
    return re.sub(r"(python\s+)?(?<!/)run_findit[.]py", lambda _: program(), text)


def activation() -> str:
    """Return what to type first where ``python`` is another than the one that runs; "" if nothing.

    Only a virtual environment can be activated.
    """
    script = Path(sys.prefix, "bin", "activate")
    found = shutil.which("python")
    is_first = found is not None and Path(found).parent.resolve() == script.parent.resolve()
    if sys.prefix == sys.base_prefix or is_first or not script.is_file():
        return ""
    here = Path.cwd()
    shown = script.relative_to(here) if script.is_relative_to(here) else script
    return f". {shlex.quote(str(shown))}"


def shipped_folder(name: str) -> Path:
    """Return a folder that clones and wheels hold: ``configs``, ``datasets_tsv``, ``weights``.

    A released wheel holds no ``weights``.
    """
    return (clone_folder() or _PACKAGE) / name


@cache
def package_sha256(rooms: tuple[str, ...] = ("",)) -> str:
    """Return the SHA-256 of the package's modules: in a clone they change under one version.

    ``rooms`` are the folders whose modules count; by default all modules do.
    """
    return modules_sha256(_PACKAGE, rooms)


def config_here_or_shipped(path: Path) -> Path:
    """Return a configuration, else the package's ``configs/<name>``, or raise FileNotFoundError."""
    if path.is_file():
        return path
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file (docs/reference/sweep-files.md)")
    folder = shipped_folder("configs")
    if path.parent == Path("configs") and (folder / path.name).is_file():
        return folder / path.name
    # datasets.yaml names folders of images.
    names = sorted({path.name for path in folder.glob("*.yaml")} - {"datasets.yaml"})
    sweeps = ", ".join(f"configs/{name}" for name in names)
    near = closest(path.name, names, TYPING_ERROR)
    if near_path(path) is None and near is not None:
        raise FileNotFoundError(f"{path}: the file does not exist: did you mean configs/{near}?")
    why = not_there(path, f"; the package has {sweeps}")
    raise FileNotFoundError(f"{path}: the file {why}")


# Imported name -> the extra that brings it (pyproject.toml)
EXTRAS = {
    "av": "data",
    "cv2": "data",
    "huggingface_hub": "local",
    "mlflow": "mlflow",
    "pycocotools": "data",
    "ray": "cluster",
    "torch": "local",
    "trackio": "trackio",
    "transformers": "local",
    "vlmeval": "run",
    "wandb": "wandb",
}


def install_command(extra: str) -> str:
    """Return the command that installs an extra, in the clone if it is imported from a clone.

    >>> install_command("run").endswith("[run]'")
    True
    """
    folder = clone_folder()
    if folder is None:
        return f"pip install 'vlmeval-findit[{extra}]'"
    where = "." if folder == Path.cwd() else str(folder)
    return f"pip install -e {shlex.quote(f'{where}[{extra}]')}"


def missing_extra(error: ImportError) -> str | None:
    """Return one line for an import that lacks an extra; None for other errors.

    >>> str(missing_extra(ModuleNotFoundError("No module named 'cv2'", name="cv2")))[:34]
    'cv2 is not installed: pip install '
    """
    module = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or module not in EXTRAS:
        return None
    return f"{module} is not installed: {install_command(EXTRAS[module])}"


def installed(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed, without importing them."""
    result = {package: _version(package) for package in packages}
    return {package: version for package, version in result.items() if version is not None}


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# --- exit statuses, of VLMEvalKit's runner too where it ran our datasets --------------------------

EXIT_SOME_FAILED = 1  # Something failed: run again to go on
EXIT_REFUSED = 2  # Nothing was run
EXIT_LIMIT_REACHED = 3  # The spending limit is reached, or the disk is full
EXIT_LATER = 4  # A batch service could not be reached: run again to go on
EXIT_INTERRUPTED = 130  # Somebody stopped it
