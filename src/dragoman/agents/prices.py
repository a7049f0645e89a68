"""What a model's work costs and how much it reads, by the list that is installed; none is ever fetched."""

from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import AbstractUsage

# What pydantic-ai calls a provider, where the price list calls it otherwise.
_LISTED = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "xai": "x-ai",
    "google-cloud": "google",
    "bedrock": "aws",
}
_FREE = frozenset({"offline", "ollama"})


def cost_of(model_name: str, usage: AbstractUsage) -> float | None:
    """In US dollars, for `usage` of "openai:gpt-5" or plain "gpt-5"; None when nobody knows the price.

    pydantic-ai prices every response as it comes: where it did, its sum is the truth, since some prices
    depend on the size of a single request. What runs on one's own machine costs nothing.
    """
    known = getattr(usage, "cost", None)
    if known is not None:
        return float(known)
    provider, colon, model = model_name.partition(":")
    if provider in _FREE:
        return None if model.endswith("cloud") else 0.0
    try:
        price = calc_price(usage, model if colon else model_name, provider_id=_listed(model_name))
    except (LookupError, ValueError):
        return None
    return float(price.total_price)


def window_of(model_name: str) -> int | None:
    """The tokens that it reads at once; None when nobody knows."""
    model = model_name.rpartition(":")[2]
    try:
        return get_snapshot().find_provider_model(model, None, _listed(model_name), None)[1].context_window
    except (LookupError, ValueError):
        return None


def _listed(model_name: str) -> str | None:
    provider, colon, _ = model_name.partition(":")
    return _LISTED.get(provider, provider) if colon else None
