"""One short question to a model: whether its key, its address and its name are right."""

from typing import TYPE_CHECKING

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, TextPart
from pydantic_ai.settings import ModelSettings

from dragoman.agents.provider_errors import explained
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_ROOM = 256  # tokens: models that think first need some of them for that


async def try_model(model: "Model", name: str, question: str) -> str:
    """What it answers, which may be nothing; one of our errors says why it does not."""
    try:
        answer = await model_request(
            model,
            [ModelRequest.user_text_prompt(question)],
            model_settings=ModelSettings(max_tokens=_ROOM),
        )
    except (DragomanError, TimeoutError):
        raise
    except Exception as error:  # boundary: SDKs raise what they like
        raise explained(error, name) from error
    return "".join(part.content for part in answer.parts if isinstance(part, TextPart)).strip()
