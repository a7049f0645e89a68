"""Durable execution of agents: accepted once on disk, journaled as it goes, resumed after a crash.

Nothing here is imported by a door at start: pydantic-ai is heavy. Names are imported from their modules.
"""
