"""Images of chosen sizes with one object each: what a deployment is probed with.

``scenes`` → ``tables``.
"""
