"""Servers to try Dragoman with. Nothing of Dragoman imports them."""
