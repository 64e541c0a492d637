"""Who answers: what is known of each model, and how each kind of them is asked.

One table holds a row a model: its names, coordinate space, image bounds, and how it is run.  What
stands beside it is of three kinds:

* models on this machine: pictures and text as the checkpoint's own processor wants them, batches,
  a prefix that variants of an image share, thoughts kept apart from replies;
* models over HTTP, proprietary or on a server of one's own: the request, one attempt at a server,
  the services' own formats, batches, and a limit on what calls may cost;
* for all of them, what is recorded with a reply: sizes, tokens, revision, cost.

Whatever a model is, it gets a message and gives a reply; who runs it is not known here.
"""
