"""The report: one page that needs nothing else, to look at what stands behind the figures.

``transcripts`` finds what a run was asked and what it answered; ``drawn`` turns what a benchmark
draws into values for the page; ``losses`` are the stacked bars of what scores lost; ``plots`` and
``sections`` draw figures; ``pairs`` says which runs stand side by side, ``differences`` what they
differ in; ``cards`` chooses the answers that are shown, ``gallery`` makes values of them;
``thumbnails`` shrinks pictures into a budget; ``page`` puts it all into ``templates/``.
"""
