"""VP-Bench (arXiv 2511.11438): questions about marks drawn into pictures, answered by a letter.

The folder reads in the order in which the data flows:

``query``          one row: pictures, question, options, and what is known of the marks
``table``          annotation tables
``release_files``  rows of the authors' stage 1 files; ``cells``: what stands in them
``release``        a table made of them
``kinds``          what a question asks, from its wording
``question``       names and ways of asking; ``tables``: which tables there are and who makes them
``prompts``        messages
``extraction``     the letter of a reply as the authors take it
``reading``        the letter of a reply as a reader would
``scoring``        a reply as a row of sums; ``metrics``: the figures as ratios of them
``benchmark``      all of it as the house wants it
``baselines``      what needs no model: the first option, any option
``published``      figures of others
``stage2``         questions about one region, by a mark or in words
``best_marks``     which marks models see best, for stage 2
``render_cases``   cases of drawn marks
``conformance``    case files: do we agree?
"""

PREFIX = "VPBench_"

PROTOCOL = "vp-bench"
"""What the protocol of its letters is called on the command line."""

RENDER_PROTOCOL = "vp-bench-render"
"""The same for drawn marks."""
