"""Ref-L4 (arXiv 2406.16866): long referring expressions, one box each, strict IoU thresholds.

The folder reads in the order in which the data flows.  First the protocol, which knows nothing of
this package's runs:

``refusals``       what cannot be scored, and why
``classes``        classes, with the authors' table and the corrected one; ``categories``: names
``annotations``    the truth, from Parquet files or case files
``predictions``    a model's boxes, from prediction files; which annotation has which
``overlap``        IoU in 32-bit floats and what counts as a hit
``judging``        an annotation and its answer in, ten hits out
``sums``           counts by size, class and so on, that add up over shards
``figures``        the twelve figures; ``slices``: tables by class, source, words and so on
``scoring``        all of it in one call
``published``      the rows that the authors published
``cleaned``        RefCOCO/+/g without the expressions that the authors found wrong
``conformance``    case files: do we agree?

Then Ref-L4 as a benchmark of the house:

``variant``        names and ways of asking: FindIt's grammar
``table``          annotation tables
``metrics``        the figures as ratios of sums
``replies``        replies of our runs, judged by the protocol: of Ref-L4 or any one-box dataset
``benchmark``      all of it as the house wants it
``rescoring``      prediction files of others, as one record to print or write
"""

PREFIX = "FindIt_RefL4Full_"

PROTOCOL = "ref-l4"
"""What its protocol is called on the command line."""
