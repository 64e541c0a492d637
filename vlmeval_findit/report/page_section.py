"""Make the sections of a page one by one: an error in one does not cost the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from markupsafe import Markup

from ..core import error_line, missing_extra, raised_in, scrub
from ..scoring import RunError
from .board_charts import DrawnCharts
from .cost_charts import CostCharts
from .rendering import fill, json_in_html

T = TypeVar("T")
Source = TypeVar("Source")

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a section shows."""

    values: Mapping[str, Any]  # For its template
    script: Mapping[str, Any] = field(default_factory=dict)  # For the page's script
    charts: Sequence[DrawnCharts] = ()
    costs: Sequence[CostCharts] = ()
    options: Sequence[str] = ()  # Of its selects, but those that charts have


@dataclass(frozen=True, slots=True)
class Section(Generic[Source]):
    """A section of a kind of page; it is made of a ``Source``."""

    key: str  # Id of its element
    title: str
    template: str
    make: Callable[[Source], Contents | None]  # None: a page has nothing of it
    is_linked: bool = True  # From the navigation


@dataclass(frozen=True, slots=True)
class MadeSection:
    """A section as HTML, and its values for the page's script as JSON, by their keys."""

    key: str
    title: str
    html: Markup
    is_linked: bool
    script: Mapping[str, str] = field(default_factory=dict)
    charts: Mapping[str, str] = field(default_factory=dict)
    costs: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()  # Of its selects


def make_section(section: Section[Source], source: Source) -> MadeSection | None:
    """Make a section; None if the page has nothing of it."""
    contents = section.make(source)
    if contents is None:
        return None
    charts = {each.key: [spec for _, spec in each.charts] for each in contents.charts}
    options = [*contents.options]
    for drawn in contents.charts:
        options += [title for title, _ in drawn.charts]
    for costs in contents.costs:
        options += [panel.title for panel in costs.panels]
    return MadeSection(
        section.key,
        section.title,
        fill(section.template, contents.values),
        section.is_linked,
        script={key: json_in_html(value) for key, value in contents.script.items()},
        charts={key: json_in_html(specs) for key, specs in charts.items()},
        costs={each.key: json_in_html(each.values()) for each in contents.costs},
        options=options,
    )


# --- what fails -----------------------------------------------------------------------------------


def attempt(make: Callable[[], T], otherwise: Callable[[Exception], T]) -> T:
    """Return what ``make`` returns, or what ``otherwise`` makes of an error that it raises.

    Raises:
        RunError: files of a run are gone or damaged; nothing of the page would be true.
    """
    try:
        return make()
    except RunError:
        raise
    except Exception as error:  # Whatever it is: the rest is of use without it.
        return otherwise(error)


@dataclass(frozen=True, slots=True)
class SectionFailure:
    """A section that could not be made, and why."""

    title: str
    error: Exception

    @property
    def reason(self) -> str:
        """Say on one line what happened, and where."""
        error = self.error
        if isinstance(error, ImportError) and (line := missing_extra(error)):
            return line
        if place := raised_in(error):
            return f"plug-in {place} raised {error_line(error)}"
        if type(error).__module__.partition(".")[0] == __name__.partition(".")[0]:
            return scrub(str(error))  # Our errors say what is wrong, and what to type.
        return scrub(f"{error_line(error)} ({_place(error)})")


def _place(error: Exception) -> str:
    """Return the last line of this package that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    last = ours[-1] if ours else frames[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"
