"""`/settings?tab=models`: keys of model providers, a test, and the default. Keys go in and never come out."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.agents.providers import KINDS
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.submitted_form import SubmittedForm, filled
from dragoman.errors import InvalidArguments
from dragoman.hub.models import ProviderTier

NOTES: Mapping[str, str] = {
    "openai-compatible": "vLLM, LiteLLM, LM Studio, llama.cpp: any server that speaks chat completions.",
    "ollama": "An Ollama on another machine. One on this machine is found by itself.",
}
_PAGE = "settings/models.html"


async def facts(request: Request) -> dict[str, Any]:
    """What the page shows at once; what was found is asked for by itself, for it takes a second or two."""
    hub = hub_of(request)
    return {
        "providers": await hub.models.providers(),
        "kinds": KINDS,
        "notes": NOTES,
        "chosen": await hub.models.default(),
        "choice": await hub.models.choose(),
        "has_tiers": hub.caller.role == "operator" and hub.settings.multi_user,
    }


async def show_found(request: Request) -> Response:
    found = await hub_of(request).models.list()
    return pages_of(request).part(request, "settings/found_models.html", models=found)


async def show_form(request: Request) -> Response:
    """What a kind of provider needs; of one that is there, what is set."""
    asked = request.query_params
    provider = None
    if name := asked.get("name"):
        provider = await hub_of(request).models.get_provider(name, _tier(asked.get("tier", "")))
    kind = KINDS.get(provider.kind if provider else asked.get("kind", ""))
    if kind is None:
        raise InvalidArguments("there is no such kind of provider")
    return pages_of(request).part(
        request, "settings/model_form.html", **await facts(request), kind=kind, provider=provider
    )


async def save(request: Request) -> Response:
    """Sets it and, where it has a model, asks that one question."""
    form, hub = await filled(request), hub_of(request)
    kind = KINDS.get(form.text("kind"))
    if kind is None:
        raise InvalidArguments("there is no such kind of provider")
    name = form.text("name") or kind.name
    view = await hub.models.set_provider(name, kind=kind.name, **_given(form))
    if view.default is None:
        return await _shown(request, f"{view.title} is saved. Name one of its models to use it.")
    tested = await hub.models.test(view.default)
    return await _shown(request, f"{view.title} is saved.", tested=tested)


async def remove(request: Request) -> Response:
    name = request.path_params["name"]
    await hub_of(request).models.remove_provider(name, _tier(request.query_params.get("tier", "")))
    return await _shown(request, f"{name} is removed, with its key.")


async def test(request: Request) -> Response:
    form = await filled(request)
    return await _shown(request, "", tested=await hub_of(request).models.test(form.text("model") or None))


async def set_default(request: Request) -> Response:
    choice = await hub_of(request).models.set_default((await filled(request)).text("model") or None)
    return await _shown(request, f"{choice.name} answers from now on, because {choice.reason}.")


def _given(form: SubmittedForm) -> dict[str, Any]:
    """A key that was not typed stays as it is."""
    tier = _tier(form.text("tier")) or "workspace"
    return {
        "key": form.text("key") or None,
        "url": form.text("url"),
        "model": form.text("model"),
        "tier": tier,
    }


def _tier(text: str) -> ProviderTier | None:
    return "app" if text == "app" else "workspace" if text == "workspace" else None


async def _shown(request: Request, told: str, **more: Any) -> Response:
    return pages_of(request).part(request, _PAGE, told=told, **{**await facts(request), **more})


routes = [
    Route("/settings/models", show_found),
    Route("/settings/models/form", show_form),
    Route("/settings/models/default", set_default, methods=["POST"]),
    Route("/settings/models/test", test, methods=["POST"]),
    Route("/settings/models/providers", save, methods=["POST"]),
    Route("/settings/models/providers/{name}/remove", remove, methods=["POST"]),
]
