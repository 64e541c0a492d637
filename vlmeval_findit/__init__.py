"""Where does a multimodal model put its boxes?  Benchmarks of that on VLMEvalKit, FindIt first.

``import vlmeval_findit as findit`` is for notebooks and training loops (``docs/api.md``): ``read``,
``score``, ``reward``, ``prompt``, ``load_runs``, ``load_scores``, ``compare``, ``draw``,
``open_model``.

Folders are rooms.  A room imports only itself and those above it
(``tests/repository/test_rooms.py``):

===============  ================================================================================
``core``         what all share: files, locks, images, replies, identity, figures, the seams
``boxes``        boxes: what their numbers mean, reading, writing, coordinate spaces, matching
``marks``        a library of its own: visual marks, drawn on pictures
``models``       who answers: one row a model; on this machine, or over HTTP
``benchmarks``   one folder a benchmark, found by the prefix of its names
``coords``       in which coordinates a deployment really answers
``data``         downloads, datasets of one's own, the demonstration, rendered scenes
``runs``         scoring one run, the files that it leaves, reading them back
``engine``       who answers calls and when, the journal, the files of a cell
``sweeps``       models x tables x formats: settings, stages, races, dry runs
``leaderboard``  models x datasets, only of runs that can be compared
``report``       one page with plots and every answer on its picture
``api``          what other people's code imports
``publish``      runs to the hub, trackers, FiftyOne and COCO
``host``         the one place that touches VLMEvalKit
``cli``          the command line
===============  ================================================================================

Importing this package costs nothing: no room is imported before one of its names is asked for.
"""

# The start-up hook imports this module in every interpreter: it imports nothing, not even typing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api.detections import from_supervision as from_supervision
    from .api.detections import to_supervision as to_supervision
    from .api.drawing import draw as draw
    from .api.frames import compare as compare
    from .api.frames import load_runs as load_runs
    from .api.frames import load_scores as load_scores
    from .api.frames import open_runs as open_runs
    from .api.given import Ignored as Ignored
    from .api.given import Truth as Truth
    from .api.given import truth as truth
    from .api.models import Answered as Answered
    from .api.models import Model as Model
    from .api.models import open_model as open_model
    from .api.prompts import prompt as prompt
    from .api.questions import Family as Family
    from .api.reading import Kind as Kind
    from .api.reading import Read as Read
    from .api.reading import read as read
    from .api.rewards import reward as reward
    from .api.scoring import Score as Score
    from .api.scoring import score as score

__version__ = "0.2.0"

_HOMES = {
    "Family": "api.questions",
    "Kind": "api.reading",
    "Model": "api.models",
    "Answered": "api.models",
    "Read": "api.reading",
    "Score": "api.scoring",
    "Ignored": "api.given",
    "Truth": "api.given",
    "compare": "api.frames",
    "draw": "api.drawing",
    "from_supervision": "api.detections",
    "load_runs": "api.frames",
    "load_scores": "api.frames",
    "open_model": "api.models",
    "open_runs": "api.frames",
    "prompt": "api.prompts",
    "read": "api.reading",
    "reward": "api.rewards",
    "score": "api.scoring",
    "to_supervision": "api.detections",
    "truth": "api.given",
}
"""The module of every public name."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
