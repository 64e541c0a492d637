"""A library that draws visual marks on pictures, in the eight shapes of VP-Bench.

``style`` says what there is, ``region`` where a mark belongs, ``render`` draws.  Only the modules
below ``render`` import OpenCV; import it where marks are drawn, not where they are named.
"""
