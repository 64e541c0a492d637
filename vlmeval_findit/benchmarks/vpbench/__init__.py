"""VP-Bench (arXiv 2511.11438): questions about marks drawn into images, answered by a letter.

``stage1_release`` reads stage 1, ``stage2_…`` asks stage 2 (about a region, by a mark or in words)
with the marks that each model sees best (``mark_choices``).
"""

PREFIX = "VPBench_"
