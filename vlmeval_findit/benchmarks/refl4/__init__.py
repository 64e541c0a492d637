"""Ref-L4 (arXiv 2406.16866): long referring expressions, one box each, strict IoU thresholds."""

PREFIX = "FindIt_RefL4Full_"
