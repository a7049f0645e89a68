"""What the doors over HTTP share: the guard, limited bodies, server-sent events, JSON, errors as statuses.

Knows no route, no page and no protocol of a door.
"""
