"""Private keys as the secret of an OAuth client. Loaded where there is one: it takes what reads such keys."""

import json
from secrets import token_hex
from time import time
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey

from dragoman.errors import InvalidConfig

_ALGORITHMS: dict[type[RSAKey | ECKey | OKPKey], str] = {RSAKey: "RS256", ECKey: "ES256", OKPKey: "EdDSA"}
_KINDS: dict[type[Any], type[RSAKey | ECKey | OKPKey]] = {
    RSAPrivateKey: RSAKey,
    EllipticCurvePrivateKey: ECKey,
    Ed25519PrivateKey: OKPKey,
}


def private_key(text: str) -> RSAKey | ECKey | OKPKey:
    """`InvalidConfig` for what is no private key in PEM or as a JWK. Its words are never repeated."""
    try:
        if text.lstrip().startswith("{"):
            key = JWKRegistry.import_key(json.loads(text))
        else:
            loaded = load_pem_private_key(text.strip().encode(), None)
            kind = next(kind for known, kind in _KINDS.items() if isinstance(loaded, known))
            key = kind.import_key(text.strip())
        if isinstance(key, RSAKey | ECKey | OKPKey) and key.is_private:
            return key
    except (JoseError, ValueError, TypeError, KeyError, StopIteration, UnsupportedAlgorithm):
        pass
    raise InvalidConfig(
        "the secret of the OAuth client is no private key that can be used",
        hint="give it in PEM without a passphrase, or as a JWK: RSA, P-256 or Ed25519",
    )


def assertion(client: str, secret: str, issuer: str) -> str:
    """Proves to the issuer, and to nobody else, who asks (RFC 7523)."""
    key, now = private_key(secret), int(time())
    algorithm = next(name for kind, name in _ALGORITHMS.items() if isinstance(key, kind))
    header = {"alg": algorithm, "kid": key.kid} if key.kid else {"alg": algorithm}
    claims = {"iss": client, "sub": client, "aud": issuer, "iat": now, "exp": now + 60, "jti": token_hex(16)}
    return jwt.encode(header, claims, key, algorithms=[algorithm])
