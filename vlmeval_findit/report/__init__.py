"""The report: one page that needs nothing else, to look at what stands behind the figures.

``material`` finds what a run was asked and what it answered; ``assigned`` which box was taken for
which object; ``plots`` draws; ``thumbnails`` shrinks pictures into a budget; ``gallery`` chooses
the answers that are shown; ``page`` puts it all into ``templates/``.
"""
