"""The shapes by which tokens and keys of known services are recognised, wherever they stand.

Each has words without which it cannot be there: looking for those is a hundred times as fast as the pattern.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dragoman.word_finder import WordFinder

_START = r"(?:(?<![A-Za-z0-9])|(?<=/bot))"


@dataclass(frozen=True)
class SecretShape:
    name: str
    words: tuple[str, ...]
    pattern: str
    before: int = 0

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(_START + f"(?:{self.pattern})")

    def around(self, text: str, place: int, length: int) -> re.Match[str] | None:
        """At one of its words: it begins there, after it, or at most `before` characters earlier."""
        starts = (place, place + length, *range(place - 1, max(-1, place - 1 - self.before), -1))
        return next((match for start in starts if (match := self._compiled.match(text, start))), None)


SHAPES: tuple[SecretShape, ...] = (
    SecretShape("API key", ("sk-", "sk_", "rk-", "rk_"), r"(?=[\w-]*\d)[sr]k[-_][A-Za-z0-9_-]{16,}"),
    SecretShape(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
    ),
    SecretShape("Slack token", ("xox", "xapp-"), r"xox[abceprs](?:\.xox[a-z])?-[\w-]{10,}|xapp-[\w-]{10,}"),
    SecretShape("AWS access key", ("AKIA", "ASIA"), r"A[KS]IA[0-9A-Z]{16}"),
    SecretShape("Google API key", ("AIza",), r"AIza[\w-]{30,}"),
    SecretShape("Google token", ("ya29.", "GOCSPX-"), r"ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"),
    SecretShape(
        "GitLab token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-"),
        r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat)-[\w-]{16,}",
    ),
    SecretShape("Hugging Face token", ("hf_", "api_org_"), r"hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z]{30,}"),
    SecretShape("npm token", ("npm_",), r"npm_[A-Za-z0-9]{20,}"),
    SecretShape("PyPI token", ("pypi-",), r"pypi-[\w-]{32,}"),
    SecretShape("Docker Hub token", ("dckr_",), r"dckr_[po]at_[\w-]{20,}"),
    SecretShape("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[opr]_v1_[0-9a-f]{32,}"),
    SecretShape("Notion token", ("ntn_", "secret_"), r"ntn_[A-Za-z0-9]{20,}|secret_[A-Za-z0-9]{40,}"),
    SecretShape("SendGrid key", ("SG.",), r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    SecretShape("Mailgun key", ("key-",), r"key-[0-9a-f]{32}(?![0-9a-f])"),
    SecretShape("Mailchimp key", ("-us",), r"[0-9a-f]{32}-us\d{1,2}(?!\w)", 32),
    SecretShape("Twilio key", ("SK", "AC"), r"(?:SK|AC)[0-9a-f]{32}(?![0-9a-f])"),
    SecretShape("Linear key", ("lin_",), r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}"),
    SecretShape("Atlassian token", ("ATATT", "ATCTT", "ATBB"), r"AT(?:ATT|CTT|BB)[\w=-]{20,}"),
    SecretShape(
        "Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    ),
    SecretShape("Square token", ("EAAA", "sq0"), r"EAAA[\w-]{40,}|sq0(?:atp|csp)-[\w-]{20,}"),
    SecretShape("Stripe webhook secret", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{20,}"),
    SecretShape("Databricks token", ("dapi",), r"dapi[0-9a-f]{32}(?:-\d)?(?![0-9a-f])"),
    SecretShape("Vault token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[\w-]{20,}"),
    SecretShape("Terraform token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}", 14),
    SecretShape("Grafana token", ("glsa_", "glc_"), r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[\w+/=-]{32,}"),
    SecretShape(
        "New Relic key",
        ("NRAK-", "NRJS-", "NRII-", "NRRA-", "NRBR-"),
        r"NR(?:AK|JS|II|RA|BR)-[A-Za-z0-9]{20,}",
    ),
    SecretShape("Heroku key", ("HRKU-",), r"HRKU-[\w-]{30,}"),
    SecretShape("Airtable token", ("pat",), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    SecretShape("Figma token", ("figd_",), r"figd_[\w-]{30,}"),
    SecretShape("Fly token", ("fo1_", "FlyV1 "), r"fo1_[\w-]{30,}|(?<=FlyV1 )fm\d[\w+/=,-]{30,}"),
    SecretShape("Supabase key", ("sbp_", "sb_secret_"), r"sb(?:p|_secret)_[\w-]{20,}"),
    SecretShape("Postman key", ("PMAK-",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    SecretShape(
        "Azure key",
        ("AccountKey=", "SharedAccessKey="),
        r"(?<=AccountKey=)[A-Za-z0-9+/]{40,}={0,2}|(?<=SharedAccessKey=)[A-Za-z0-9+/]{40,}={0,2}",
    ),
    SecretShape("SAS signature", ("sig=",), r"(?<=[?&]sig=)[\w%+/-]{30,}={0,2}"),
    SecretShape("JSON Web Token", ("eyJ",), r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+"),
    SecretShape("Telegram token", (":AA",), r"\d{8,10}:AA[\w-]{30,}", 10),
    SecretShape("Groq key", ("gsk_",), r"gsk_[A-Za-z0-9]{20,}"),
    SecretShape("Replicate token", ("r8_",), r"r8_[A-Za-z0-9]{30,}"),
    SecretShape("Perplexity key", ("pplx-",), r"pplx-[A-Za-z0-9]{30,}"),
    SecretShape("PlanetScale token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}"),
    SecretShape("Doppler token", ("dp.",), r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}"),
    SecretShape("SonarQube token", ("squ_", "sqp_", "sqa_"), r"sq[upa]_[0-9a-f]{40}"),
    SecretShape("age key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[0-9A-Z]{40,}"),
    SecretShape("JFrog key", ("AKCp",), r"AKCp[A-Za-z0-9]{50,}"),
    SecretShape("RubyGems key", ("rubygems_",), r"rubygems_[0-9a-f]{48}"),
    SecretShape("Brevo key", ("xkeysib-",), r"xkeysib-[0-9a-f]{64}-\w{16}"),
    SecretShape("New Relic licence key", ("NRAL",), r"[0-9a-f]{32,36}NRAL", 36),
    SecretShape(
        "Discord token",
        ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        r"[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,}",
    ),
    SecretShape(
        "private key",
        ("PRIVATE KEY",),
        r"-----BEGIN[A-Z ]* PRIVATE KEY(?: BLOCK)?-----[^-]+(?:-----END[A-Z ]* PRIVATE KEY(?: BLOCK)?-----)?",
        40,
    ),
    SecretShape(
        "webhook address",
        ("hooks.slack.com/services/", "/api/webhooks/"),
        r"(?<=hooks\.slack\.com/services/)[\w/]{20,}|(?<=/api/webhooks/)\d+/[\w-]{20,}",
    ),
    SecretShape("bearer token", ("earer ",), r"(?<=[Bb]earer )(?=\S*\d)[\w.~+/-]{8,}=*"),
    SecretShape(
        "basic authorisation",
        ("Authorization: Basic ", "authorization: basic "),
        r"(?<=Authorization: Basic )[A-Za-z0-9+/]{8,}={0,2}"
        r"|(?<=authorization: basic )[A-Za-z0-9+/]{8,}={0,2}",
    ),
)
ANY_SHAPE = re.compile(_START + "(?:" + "|".join(shape.pattern for shape in SHAPES) + ")")
_WORDS = tuple(dict.fromkeys(word for shape in SHAPES for word in shape.words))
_BY_WORD = tuple(tuple(shape for shape in SHAPES if word in shape.words) for word in _WORDS)
_FINDER = WordFinder(_WORDS)


def shapes_in(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """All that is found, with what it is."""
    for number, place in _FINDER.find(text):
        for shape in _BY_WORD[number]:
            if (match := shape.around(text, place, len(_WORDS[number]))) is not None:
                yield match, shape.name
