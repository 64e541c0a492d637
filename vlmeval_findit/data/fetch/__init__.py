"""Getting the data: annotations, and only those images that the queries name.

What is wanted follows from the annotations, which are checked against their checksums.  Single
files come in parallel and go on where they broke, large archives are read by ranges and give up
only the members that are named, frames are cut out of videos.  Every file is decoded and measured
before it counts as there, and nothing is written outside its folder.
"""
