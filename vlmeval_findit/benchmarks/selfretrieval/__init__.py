"""D3 self-retrieval (arXiv 2409.15125): captions that tell two like images apart.

Not FindIt's dataset ``D3``, which is D-cube.  A model captions two images; a dual encoder then says
whether each caption is nearer its own image.  See ``pairs`` first, then ``judging``.
"""

PREFIX = "SelfRetrieval"
