"""VP-Bench (arXiv 2511.11438): questions about marks drawn into images, answered by a letter.

``release`` and ``reading`` are of stage 1; ``stage2_…`` asks about one region, by a mark or in
words; ``best_marks`` says which marks models see best, for stage 2.
"""

PREFIX = "VPBench_"
