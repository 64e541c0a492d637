"""Where the package lies: in a clone, beside its ``configs/``, or in a wheel, which has a copy."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def clone() -> Path | None:
    """The folder of the clone that the package is imported from; None where it was installed.

    Folders beside an installed package are other packages' and none of ours.
    """
    beside = _PACKAGE.parent
    return beside if (beside / "run_findit.py").is_file() else None


def as_called(text: str) -> str:
    """A text that names our command, with the name that it has here: ``findit`` outside a clone."""
    if clone() is not None:
        return text
    return text.replace("python run_findit.py", "findit").replace("run_findit.py", "findit")


def shipped_configs() -> Path:
    """The folder of the configurations that come with the package."""
    beside = clone()
    return _PACKAGE / "configs" if beside is None else beside / "configs"


def config_here_or_shipped(path: Path) -> Path:
    """A configuration that is there, else the one of that name that comes with the package.

    ``configs/smoke.yaml`` of the pages is found from any folder; a path in another folder is only
    itself.

    Raises:
        FileNotFoundError: there is neither; the message lists those that come with the package.
    """
    if path.is_file():
        return path
    folder = shipped_configs()
    if path.parent == Path("configs") and (folder / path.name).is_file():
        return folder / path.name
    shipped = ", ".join(f"configs/{found.name}" for found in sorted(folder.glob("*.yaml")))
    raise FileNotFoundError(f"no file {path}; with the package come {shipped}")
