"""Ref-L4 (arXiv 2406.16866): long referring expressions, one box each, strict IoU thresholds.

The folder reads in the order in which the data flows:

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
"""
