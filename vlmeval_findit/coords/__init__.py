"""The coordinate check: which coordinates does a deployment really answer in?"""
