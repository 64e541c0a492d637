"""Calls over a Ray cluster: replicas keep their own answers, cells are scored where there is room.

==============  =================================================================================
``replica``     what runs elsewhere: it asks, keeps and scores, and knows nothing of Ray
``spreading``   which replica is asked what, and when
``ray``         the cluster that is there, or one on this machine
``executor``    the three together
==============  =================================================================================
"""
