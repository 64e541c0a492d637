"""Questions about marks on rendered scenes, as VP-Bench asks them: plan, asking, marking, making.

The same images, number and seed give the same bytes.
"""
