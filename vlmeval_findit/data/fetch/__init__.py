"""Fetch annotations, and only the images that their queries name.

Annotations are compared with their checksums.  Single files are fetched in parallel, members are
read out of archives, frames are cut out of videos.  Downloads are resumed where they broke.  Every
image is decoded and measured before it is accepted, and nothing is written outside its folder.
"""
