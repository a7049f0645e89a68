"""Whose accounts the samples are. One person for all of them, so that "mine" means the same everywhere."""

ME = "octocat"


def person(name: str) -> str:
    """A login as it is kept: `@Octocat` and `me` are octocat."""
    login = name.strip().removeprefix("@").lower()
    return ME if login == "me" else login
