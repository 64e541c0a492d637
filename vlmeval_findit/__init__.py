"""FindIt on VLMEvalKit: where does a multimodal model put its boxes?

The package reads in the order in which the data flows, and imports only against that order:

====================  ===========================================================================
``representation``    what the four or eight numbers of a box mean: one row a representation
``data_root``         VLMEvalKit's data folder
``datasets``          the benchmark's datasets and one's own: one row a dataset
``variant``           one cell of the grid, its name and the parsing of names
``records``           the frozen records that travel between the stages
``tables``            annotation tables, one TSV a dataset; ``subsets``: the release's Parquet files
``places``            where tables and images lie; ``images``: whether they are there, and usable
``prompts``           our words for a variant; ``release_prompts`` asks in the release's own
``models``            what is known of a model: one row a model; the baselines that ship with us
``reading``           from a reply to numbers, labels, frames and a reason; ``writing``: back
``spaces``            from a model's numbers to pixels of the original image
``matching``          IoU and assignment
``metrics``           F1@0.5, mIoU, format adherence
``predictions``       prediction files of VLMEvalKit runs; ``prediction_files``: finding, writing
``identity``          what a run is, and what contradicts it
``tasks``             what a run asks
``answers``           what goes to a model and what comes back
``scoring``           replies and a task in, a score out; ``results``: the files it leaves
``scene_cache``       large scenes, decoded and resized once
``fetch``             the data: annotations, and only those images that they name
``own``               datasets of one's own in, COCO files out
``runs``              scored runs as frozen records
``statistics``        intervals and paired tests over pictures
``best_format``       which format is the best: one rule for all that name one
``leaderboard``       models x datasets, only of runs that can be compared
``report``            one page with plots and every answer on its picture
``engine``            runs and sweeps: cells, calls, the journal, who answers
``search``            the format that a model answers best in
``host``              the one place that touches VLMEvalKit
``cli``               the command line
``plain``             names from outside, as they are shown; ``redaction``: secrets, as they are not
``files``             files that appear whole; ``paths``: names from outside that name files
====================  ===========================================================================

``demo`` and ``rendered`` make datasets that need no download, ``nano`` trains the model that ships
with the package, ``conformance`` holds the scorer against the release's.
Importing this package costs nothing: no submodule is imported here.
"""

__version__ = "0.2.0"
