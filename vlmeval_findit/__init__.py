"""Measure where multimodal models put boxes: FindIt and other benchmarks, on VLMEvalKit.

``import vlmeval_findit as findit`` is for notebooks and training loops
(docs/how-to/python.md): ``read``, ``score``, ``reward``, ``prompt``, ``draw``, ``load_runs``,
``load_scores``, ``compare``, ``open_model``.

Folders are rooms.  A room imports only itself and those above it in this table
(``tests/repository/test_rooms.py``):

===============  ================================================================================
``core``         what every room needs: texts, files, configuration, secrets, plug-ins
``protocol``     what a benchmark is: variants, queries, messages, metrics, how replies are read
``statistics``   influences, intervals and tests: arrays in, numbers out
``storage``      what lies on disk: tables, images, prediction files, identities, locks
``boxes``        boxes: representations, reading, writing, coordinate spaces, matching
``marks``        visual marks drawn on images
``serving``      starts model servers on this machine
``models``       who answers: a row a model, on this machine or over HTTP
``benchmarks``   a folder a benchmark, by the prefix of its names
``coords``       in which coordinates a deployment really answers
``data``         downloads, custom datasets, the demonstration, rendered scenes
``scoring``      the way from a prediction file to its score
``analysis``     what scored runs say: errors, calibration, samples, the best format
``engine``       who answers calls and when, the journal, the files of a cell
``sweeps``       models x tables x formats: settings, stages, races, dry runs
``reproduction`` whether a setup gives the published number, and if not, why
``leaderboard``  models x datasets, of runs that can be compared
``report``       a page with plots and every answer on its image
``api``          the public Python API
``export``       runs for the hub, trackers, FiftyOne and COCO
``host``         the only room that touches VLMEvalKit
``cli``          the command line
===============  ================================================================================

Importing this package costs nothing: a room is imported when a name of it is used.
"""

# The start-up hook imports this module in every interpreter: it imports nothing, not even typing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api.answer_drawing import draw as draw
    from .api.answer_drawing import draw_answer as draw_answer
    from .api.custom_variants import Family as Family
    from .api.custom_variants import prompt as prompt
    from .api.dataframes import compare as compare
    from .api.dataframes import load_runs as load_runs
    from .api.dataframes import load_scores as load_scores
    from .api.dataframes import open_runs as open_runs
    from .api.inputs import Ignored as Ignored
    from .api.inputs import Truth as Truth
    from .api.inputs import truth as truth
    from .api.open_models import Model as Model
    from .api.open_models import ModelAnswer as ModelAnswer
    from .api.open_models import open_model as open_model
    from .api.reply_scores import ReplyBoxes as ReplyBoxes
    from .api.reply_scores import ReplyKind as ReplyKind
    from .api.reply_scores import Score as Score
    from .api.reply_scores import read as read
    from .api.reply_scores import score as score
    from .api.rewards import reward as reward
    from .api.trainers import checkpoint_callback as checkpoint_callback
    from .api.trainers import reward_function as reward_function

__version__ = "1.1.0.dev0"

_HOMES = {
    "Family": "api.custom_variants",
    "ReplyKind": "api.reply_scores",
    "Model": "api.open_models",
    "ModelAnswer": "api.open_models",
    "ReplyBoxes": "api.reply_scores",
    "Score": "api.reply_scores",
    "Ignored": "api.inputs",
    "Truth": "api.inputs",
    "checkpoint_callback": "api.trainers",
    "compare": "api.dataframes",
    "draw": "api.answer_drawing",
    "draw_answer": "api.answer_drawing",
    "load_runs": "api.dataframes",
    "load_scores": "api.dataframes",
    "open_model": "api.open_models",
    "open_runs": "api.dataframes",
    "prompt": "api.custom_variants",
    "read": "api.reply_scores",
    "reward": "api.rewards",
    "reward_function": "api.trainers",
    "score": "api.reply_scores",
    "truth": "api.inputs",
}
"""The module of every public name."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
