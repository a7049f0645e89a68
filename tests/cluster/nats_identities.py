"""What a NATS server and its clients show each other in tests: certificates, and JWTs signed by nkeys."""

import base64
import hashlib
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

_KINDS = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
_SEED = 18 << 3


@dataclass
class Authority:
    """Signs certificates. `path` is its own, in PEM."""

    folder: Path
    name: str = "authority"

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(self.name)
        self._certificate = self._signed(self._subject, self._key.public_key(), is_authority=True)
        self.path = self.folder / f"{self.name}.pem"
        self.path.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def issue(self, name: str, *addresses: str) -> Path:
        """A certificate with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_name(name), key.public_key(), addresses)
        path = self.folder / f"{name}.pem"
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(certificate.public_bytes(Encoding.PEM) + secret)
        return path

    def _signed(
        self, subject: x509.Name, key: Any, addresses: tuple[str, ...] = (), is_authority: bool = False
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            # Since Python 3.13 a chain without them is not trusted.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if is_authority:
            others = (
                *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
                *("key_agreement", "encipher_only", "decipher_only"),
            )
            usage = x509.KeyUsage(**dict.fromkeys(others, False), key_cert_sign=True, crl_sign=True)
            builder = builder.add_extension(usage, critical=True)
        if addresses:
            names = [x509.IPAddress(ip_address(one)) for one in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


class Identity:
    """An operator, account or user of NATS, known by its nkey."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._key = Ed25519PrivateKey.generate()
        public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.id = _base32(bytes([_KINDS[kind]]) + public)

    @property
    def seed(self) -> str:
        prefix = _KINDS[self._kind]
        raw = self._key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        return _base32(bytes([_SEED | prefix >> 5, (prefix & 31) << 3]) + raw)

    def signs(self, other: "Identity", **facts: Any) -> str:
        claims = {
            "iat": int(time.time()),
            "iss": self.id,
            "sub": other.id,
            "name": other._kind,
            "nats": {"type": other._kind, "version": 2, **facts},
        }
        digest = hashlib.sha256(json.dumps(claims).encode()).digest()
        claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
        parts = [{"typ": "JWT", "alg": "ed25519-nkey"}, claims]
        text = ".".join(_base64(json.dumps(part).encode()) for part in parts)
        return f"{text}.{_base64(self._key.sign(text.encode()))}"


class Realm:
    """An operator with an account that may use JetStream, and the lines of a server that knows both."""

    def __init__(self) -> None:
        self._operator, self._account, system = Identity("operator"), Identity("account"), Identity("account")
        room = {"subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1}
        stored = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1, "wildcards": True}
        account = self._operator.signs(self._account, limits={**room, **stored})
        preloaded = {self._account.id: account, system.id: self._operator.signs(system, limits=room)}
        accounts = "\n".join(f"{name}: {jwt}" for name, jwt in preloaded.items())
        self.lines = (
            f"operator: {self._operator.signs(self._operator, system_account=system.id)}\n"
            f"system_account: {system.id}\nresolver: MEMORY\nresolver_preload: {{\n{accounts}\n}}"
        )

    def credentials(self, path: Path) -> Path:
        """A .creds file of a user of the account."""
        user = Identity("user")
        jwt = self._account.signs(user, subs=-1, data=-1, payload=-1)
        path.write_text(
            f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
        return path


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _base32(raw: bytes) -> str:
    check = 0
    for byte in raw:
        check ^= byte << 8
        for _ in range(8):
            check = (check << 1 ^ 0x1021 if check & 0x8000 else check << 1) & 0xFFFF
    return base64.b32encode(raw + check.to_bytes(2, "little")).decode().rstrip("=")


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
