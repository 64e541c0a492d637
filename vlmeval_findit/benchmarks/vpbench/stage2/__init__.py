"""VP-Bench stage 2: questions about one region, asked with a mark or in words.

The folder reads in the order in which the data flows:

``row``        one row: pictures, regions, question, options
``values``     what stands in a cell of the authors' files, which hold lists or JSON
``regions``    which box and outline belong to which picture and role
``boxes``      which of two readings the boxes of a source have
``release``    the authors' Parquet files, read as they are
``table``      annotation tables
``question``   the six ways of asking
``phrases``    what a mark or a place is called, and the question with that in it
``marking``    rows as a model is asked them; ``pictures``: the marked pictures
``task``       tables as tasks, and as one model's
``published``  figures of others
"""
