"""Ref-L4 (arXiv 2406.16866): long referring expressions, one box each, strict IoU thresholds.

``reviews`` joins results on RefCOCO/+/g with the authors' reviews.
"""

PREFIX = "FindIt_RefL4Full_"
