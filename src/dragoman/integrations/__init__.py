"""Dragoman's tools in the words of other libraries, for programs that talk to a model by themselves.

A module for each library, which is the only one that knows it; each says which extra it needs.
"""
