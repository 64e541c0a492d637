"""The report: one page that needs nothing else, to look at what stands behind the figures.

``transcripts`` finds what a run was asked and what it answered; ``drawn`` turns what a benchmark
draws into values for the page; ``plots`` and ``sections`` draw figures; ``thumbnails`` shrinks
pictures into a budget; ``gallery`` chooses the answers that are shown; ``page`` puts it all into
``templates/``.
"""
