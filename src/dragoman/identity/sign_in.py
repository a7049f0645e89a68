"""Signing people in at the outside issuer: authorization code with PKCE, and the ID token that it brings.

Keeps nothing between the two halves: what `begin` makes, whoever asked keeps for `finish`.
"""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from dragoman.errors import Unauthenticated, Unreachable
from dragoman.identity.authenticated import AuthenticatedCaller
from dragoman.identity.issuer import Issuer, ask, is_safe, read_document
from dragoman.identity.tokens import TokenVerifier
from dragoman.loading import LateModule
from dragoman.telemetry.logs import get_logger

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")


SCOPE = "openid profile email"
log = get_logger()


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """`address` is where the browser goes; the rest is secret until it is back."""

    address: str
    state: str
    nonce: str
    verifier: str


class SignIn:
    """`tokens` accepts ID tokens for us alone. The session is its opener's."""

    def __init__(self, issuer: Issuer, session: "aiohttp.ClientSession", tokens: TokenVerifier) -> None:
        self._issuer = issuer
        self._session = session
        self._tokens = tokens

    @property
    def name(self) -> str:
        """How people may know the issuer."""
        return urlsplit(self._issuer.url).netloc

    async def begin(self, back: str) -> StartedSignIn:
        """`back` is the address of ours to which the issuer sends the browser afterwards."""
        state, nonce, verifier = token_urlsafe(24), token_urlsafe(24), token_urlsafe(48)
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._issuer.client_id or "",
            "redirect_uri": back,
            "scope": SCOPE,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = await self._endpoint("authorization_endpoint")
        return StartedSignIn(
            f"{address}{'&' if '?' in address else '?'}{urlencode(query)}", state, nonce, verifier
        )

    async def finish(self, code: str, back: str, begun: StartedSignIn) -> AuthenticatedCaller:
        """`Unauthenticated` when the issuer does not take the code, or what it gives is not for us."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": self._issuer.client_id or "",
            "code_verifier": begun.verifier,
        }
        answer = await self._ask(await self._endpoint("token_endpoint"), form)
        token = answer.get("id_token")
        found = await self._tokens.find_signed_in(token, begun.nonce) if isinstance(token, str) else None
        if found is None:
            raise _not_let_in()
        return found

    def is_from(self, issuer: str) -> bool:
        """Whether an answer that names its issuer (RFC 9207) is from this one."""
        return issuer == self._issuer.url

    async def _endpoint(self, name: str) -> str:
        try:
            found = (await read_document(self._issuer, self._session)).get(name)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise self._silent(error) from None
        if not isinstance(found, str) or not is_safe(found):
            raise self._silent(ValueError(f"its document has no safe {name}"))
        return found

    async def _ask(self, address: str, form: dict[str, str]) -> dict[str, Any]:
        headers: dict[str, str] = {}
        if secret := self._issuer.client_secret:
            # As RFC 6749 2.3.1 wants it: both are encoded before they are joined.
            name, word = quote(form["client_id"], safe=""), quote(secret, safe="")
            headers["Authorization"] = aiohttp.encode_basic_auth(name, word)
        try:
            return await ask(self._issuer, self._session, address, form, headers)
        except ValueError as error:
            log.warning("sign_in.refused", issuer=self._issuer.url, error=str(error)[:300])
            raise _not_let_in() from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._silent(error) from None

    def _silent(self, error: Exception) -> Unreachable:
        log.warning("sign_in.failed", issuer=self._issuer.url, error=str(error)[:300])
        return Unreachable(
            "the issuer that signs people in cannot be reached", hint="try again in a moment, or use a key"
        )


def _not_let_in() -> Unauthenticated:
    return Unauthenticated("the issuer's answer opens nothing here", hint="sign in again")
