"""Secrets, encrypted from the first day: the master key, and values sealed with it.

Knows the store by its Protocols only; reads no environment.
"""

from dragoman.vault.keys import Key, KeyFile, KeyRing, KeySupply
from dragoman.vault.vault import Vault, sealing_keys

__all__ = ["Key", "KeyFile", "KeyRing", "KeySupply", "Vault", "sealing_keys"]
