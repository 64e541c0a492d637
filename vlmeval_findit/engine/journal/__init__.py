"""Finished calls: appended, never changed, and the single source of all results.

===============  ==================================================================================
``lines``        one line of it; ``errors``: why replies cannot be kept
``segments``     what of a large one is compressed; ``keys``: where in it each call lies
``plain``        where the lines lie that are not
``reading``      how others read it while somebody writes; ``tail``: how they follow it
``side``         what workers keep beside it, until it is taken in
``sealed_view``  calls in the segments, ``sealed``: and more of them added
``lookup``       a call by its key, for whoever does not write
``writer``       the one that does
===============  ==================================================================================
"""
