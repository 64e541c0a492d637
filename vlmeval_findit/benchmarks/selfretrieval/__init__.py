"""D3 self-retrieval (arXiv 2409.15125): captions that tell two like pictures apart.

Not FindIt's dataset ``D3``, which is D-cube.  A model sees two pictures and writes a caption of
each; a dual encoder then says whether every caption is nearer its own picture than the other.

The folder reads in the order in which the data flows:

``pairs``         a pair, the names of tables, how they are written and read
``release``       the authors' dataset.json, as a table
``prompts``       what is asked
``captions``      a reply in, two captions out, or why there is none
``caption_files`` the same of files of others
``retrieval``     features in, similarities and what is right out
``encoders``      which dual encoder scores, and who says so
``judging``       captions and pictures of pairs through the encoder
``metrics``       the figures as ratios of sums
``scoring``       replies as rows, and what is drawn of them
``baselines``     an honest describer of rendered scenes
``benchmark``     all of it as the house wants it
``rescoring``     caption files of others, as one record to print or write
``conformance``   case files: do we agree?
"""

PREFIX = "SelfRetrieval"

PROTOCOL = "self-retrieval"
"""What its protocol is called on the command line."""
