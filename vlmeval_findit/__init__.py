"""Measure where multimodal models put boxes: FindIt and other benchmarks, on VLMEvalKit.

``import vlmeval_findit as findit`` is for notebooks and training loops
(docs/how-to/python.md): ``read``, ``score``, ``reward``, ``prompt``, ``draw``, ``load_runs``,
``load_scores``, ``compare``, ``open_model``.

Folders are rooms.  A room imports only itself and those above it in this table
(``tests/repository/test_rooms.py``):

===============  ================================================================================
``core``         what every room needs: texts, files, configuration, secrets, plug-ins
``protocol``     what a benchmark is: variants, queries, messages, metrics, replies, their costs
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

__version__ = "1.1.0.dev0"


def __getattr__(name: str) -> object:
    # Not at the top: the start-up hook imports this module in every interpreter.
    import lazy_loader

    attribute, _, names = lazy_loader.attach_stub(__name__, __file__)
    if name == "__all__":
        return names
    if name not in names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = attribute(name)
    return value


def __dir__() -> list[str]:
    from lazy_loader import attach_stub

    return sorted({*globals(), *attach_stub(__name__, __file__)[2]})
