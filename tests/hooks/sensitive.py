"""Corpus of texts holding one secret or piece of personal data each, and of near misses holding none.

Every sensitive value is built at import time from a seeded random generator, so no whole secret stands in
this file. `SENSITIVE_VALUES[i]` is the value that stands in `SENSITIVE[i]`.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
import string
import uuid
from collections.abc import Callable

_R = random.Random(20250611)
_ALNUM = string.ascii_letters + string.digits
_LOWNUM = string.ascii_lowercase + string.digits
_UPNUM = string.ascii_uppercase + string.digits
_B64 = _ALNUM + "+/"
_URL64 = _ALNUM + "-_"
_HEX = "0123456789abcdef"
_B32 = string.ascii_uppercase + "234567"

_Gen = Callable[[], str]
_MARK = "§"


def _s(alphabet: str, n: int) -> str:
    """Random string that starts and ends on a letter or digit and, if long enough, holds both."""
    free = n < 6 or not any(c.isdigit() for c in alphabet)
    while True:
        out = "".join(_R.choices(alphabet, k=n))
        mixed = any(c.isdigit() for c in out) and any(c.isalpha() for c in out)
        if out[0].isalnum() and out[-1].isalnum() and (mixed or free):
            return out


def _d(n: int) -> str:
    return str(_R.randint(1, 9)) + "".join(_R.choices(string.digits, k=n - 1))


def _one(*options: str) -> str:
    return options[int(_R.random() * len(options))]


def _gen(prefix: str, alphabet: str, n: int, suffix: str = "") -> _Gen:
    return lambda: prefix + _s(alphabet, n) + suffix


def _join(sep: str, *parts: _Gen) -> _Gen:
    return lambda: sep.join(p() for p in parts)


def _hex(n: int) -> _Gen:
    return _gen("", _HEX, n)


def _const(text: str) -> _Gen:
    return lambda: text


def _uuid() -> str:
    return str(uuid.UUID(int=_R.getrandbits(128), version=4))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _b64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _pem(label: str, lines: int, eol: str = "\n") -> _Gen:
    def make() -> str:
        body = [_s(_B64, 64) for _ in range(lines)] + [_s(_B64, 42) + "=="]
        dashes = "-" * 5
        return eol.join([f"{dashes}BEGIN {label}{dashes}", *body, f"{dashes}END {label}{dashes}"])

    return make


def _pgp() -> str:
    dashes = "-" * 5
    body = [_s(_B64, 64) for _ in range(8)]
    label = "PGP PRIVATE " + "KEY BLOCK"
    head, foot = f"{dashes}BEGIN {label}{dashes}", f"{dashes}END {label}{dashes}"
    return "\n".join([head, "", *body, "=" + _s(_B64, 4), foot])


def _jwt() -> str:
    alg = _one("HS256", "RS256", "ES256")
    head = '{"alg":"' + alg + '","typ":"JWT"}'
    scope = _one("read", "admin", "orders:write")
    body = '{"sub":"' + _d(8) + '","iat":17' + _d(8) + ',"scope":"' + scope + '"}'
    return ".".join([_b64url(head), _b64url(body), _s(_URL64, 342 if alg == "RS256" else 43)])


def _password() -> str:
    word = _one("Kestrel", "Zimtstern", "Orchard", "Lantern", "Magpie", "Quartz", "Tamarind", "Juniper")
    tail = _one("vault", "Gate", "rope", "Mint", "harbor", "Zeta")
    return word + _one("!", "-", "_", "$", ".") + _d(3) + tail + _one("!", "7", "x9", "Q")


def _urlpass() -> str:
    return _s(_ALNUM, int(_R.random() * 10) + 12)


def _basic() -> str:
    return _b64(_one("deploy", "svc-ci", "reporting", "admin") + ":" + _password())


def _aws_id(prefix: str) -> _Gen:
    return _gen(prefix, _B32, 16)


def _openai_new(prefix: str) -> _Gen:
    return lambda: prefix + _s(_URL64, 74) + "T3Blbk" + "FJ" + _s(_URL64, 74)


_SECRETS: list[tuple[_Gen, list[str]]] = [
    # OpenAI
    (
        lambda: "sk" + "-" + _s(_ALNUM, 20) + "T3Blbk" + "FJ" + _s(_ALNUM, 20),
        [
            "OPENAI_API_KEY=§",
            'curl https://api.openai.com/v1/models -H "Authorization: Bearer §"',
        ],
    ),
    (
        _openai_new("sk" + "-proj-"),
        [
            'client = OpenAI(api_key="§")',
            "openai.AuthenticationError: Error code: 401 - Incorrect API key provided: §.",
            "Hi team, the staging key for the summariser is § - please rotate after the demo.",
        ],
    ),
    (_openai_new("sk" + "-svcacct-"), ['{"provider": "openai", "key": "§", "model": "gpt-4o-mini"}']),
    # Anthropic
    (
        _gen("sk" + "-ant-api03-", _URL64, 93, "AA"),
        [
            "export ANTHROPIC_API_KEY=§",
            'curl https://api.anthropic.com/v1/messages -H "x-api-key: §" -H "anthropic-version: 2023-06-01"',
            "anthropic:\n  model: claude-sonnet\n  api_key: §\n  timeout: 30",
        ],
    ),
    (_gen("sk" + "-ant-oat01-", _URL64, 93, "AA"), ["CLAUDE_CODE_OAUTH_TOKEN=§ claude -p 'run the tests'"]),
    # GitHub
    (
        _gen("gh" + "p_", _ALNUM, 36),
        [
            "git remote set-url origin https://§@github.com/acme/billing.git",
            "GITHUB_TOKEN=§\nGITHUB_REPOSITORY=acme/billing",
            "remote: Invalid username or password. fatal: Authentication failed for token §",
            "I pasted my PAT (§) into the runner settings and it still says 404.",
        ],
    ),
    (
        lambda: "github" + "_pat_" + _s(_ALNUM, 22) + "_" + _s(_ALNUM, 59),
        [
            'gh auth login --with-token <<< "§"',
            '{"mcpServers": {"github": {"command": "npx", "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "§"}}}}',
        ],
    ),
    (_gen("gh" + "s_", _ALNUM, 36), ["2025-03-04T10:22:11Z INFO installation token issued token=§ ttl=3600"]),
    (_gen("gh" + "o_", _ALNUM, 36), ['{"access_token":"§","token_type":"bearer","scope":"repo,gist"}']),
    (_gen("gh" + "u_", _ALNUM, 36), ["DEBUG user-to-server exchange ok, access_token §, expires in 28800"]),
    (_gen("gh" + "r_", _ALNUM, 76), ['{"refresh_token": "§", "refresh_token_expires_in": 15811200}']),
    # GitLab
    (
        _gen("gl" + "pat-", _URL64, 20),
        [
            'curl --header "PRIVATE-TOKEN: §" "https://gitlab.acme.dev/api/v4/projects"',
            "[gitlab]\nurl = https://gitlab.acme.dev\nprivate_token = §",
        ],
    ),
    (_gen("gl" + "dt-", _URL64, 20), ["docker login images.acme.dev -u deployer -p §"]),
    (
        _gen("gl" + "rt-", _URL64, 20),
        [
            "[[runners]]\n  name = 'linux-1'\n  token = '§'\n  executor = 'docker'",
        ],
    ),
    (
        _gen("gl" + "ptt-", _HEX, 40),
        [
            "curl -X POST -F token=§ -F ref=main https://gitlab.com/api/v4/trigger",
        ],
    ),
    # AWS
    (
        _aws_id("AK" + "IA"),
        [
            "aws_access_key_id = §",
            "botocore.exceptions.ClientError: InvalidClientTokenId for §",
            "The old access key § still shows activity in us-east-1.",
        ],
    ),
    (
        _aws_id("AS" + "IA"),
        [
            "https://logs.s3.amazonaws.com/a.gz?X-Amz-Credential=§%2F20250301%2Feu-west-1%2Fs3",
        ],
    ),
    (
        _gen("", _B64, 40),
        [
            "AWS_SECRET_ACCESS_KEY=§",
            "[default]\nregion = eu-central-1\naws_secret_access_key = §",
            '{"Credentials": {"SecretAccessKey": "§", "Expiration": "2025-06-01T12:00:00Z"}}',
            'const s3 = new S3({ secretAccessKey: "§", region: "us-east-1" });',
        ],
    ),
    # Google
    (
        _gen("AI" + "za", _URL64, 35),
        [
            "https://maps.googleapis.com/maps/api/geocode/json?address=Bern&key=§",
            'var firebaseConfig = { apiKey: "§", projectId: "shop-4711" };',
            "GEMINI_API_KEY='§'",
        ],
    ),
    (_gen("GOC" + "SPX-", _URL64, 28), ['{"installed":{"project_id":"cal-sync","client_secret":"§"}}']),
    (_gen("ya" + "29.a0A", _URL64, 160), ["Authorization: Bearer §"]),
    (
        _pem("PRIVATE" + " KEY", 6, "\\n"),
        [
            '{"type": "service_account", "project_id": "etl-prod", "private_key": "§\\n"}',
            'GOOGLE_CREDENTIALS=\'{"type":"service_account","private_key":"§\\n","token_uri":"x"}\'',
        ],
    ),
    # Azure
    (
        _gen("", _B64, 86, "=="),
        [
            "DefaultEndpointsProtocol=https;AccountName=acmelogs;AccountKey=§;EndpointSuffix=core.windows.net",
            "AZURE_STORAGE_KEY=§",
            '"CosmosDb": "AccountEndpoint=https://acme.documents.azure.com:443/;AccountKey=§;"',
        ],
    ),
    (
        _gen("", _ALNUM, 42, "%3D"),
        [
            "https://acmelogs.blob.core.windows.net/raw/a.csv?sv=2022-11-02&sr=b&sp=r&se=2025-12-31&sig=§",
            "azcopy copy 'https://acme.blob.core.windows.net/b?sv=2021-08-06&ss=b&srt=co&sp=rl&sig=§' ./b",
        ],
    ),
    (
        _gen("", _B64, 43, "="),
        [
            "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=§",
        ],
    ),
    (
        lambda: _s(_ALNUM, 3) + "8" + "Q~" + _s(_ALNUM + "_-.", 34),
        [
            "AZURE_TENANT_ID=contoso\nAZURE_CLIENT_SECRET=§",
        ],
    ),
    (_gen("", _LOWNUM, 52), ["az devops login: export AZURE_DEVOPS_EXT_PAT=§"]),
    # Slack
    (
        lambda: "xo" + "xb-" + _d(12) + "-" + _d(13) + "-" + _s(_ALNUM, 24),
        [
            "SLACK_BOT_TOKEN=§",
            'curl -F channel=ops -H "Authorization: Bearer §" https://slack.com/api/chat.postMessage',
        ],
    ),
    (
        lambda: "xo" + "xp-" + "-".join([_d(12), _d(12), _d(12), _s(_HEX, 32)]),
        [
            '{"ok":true,"authed_user":{"scope":"search:read","access_token":"§"}}',
        ],
    ),
    (
        lambda: "xa" + "pp-1-A" + _s(_UPNUM, 10) + "-" + _d(13) + "-" + _s(_HEX, 64),
        [
            "slack:\n  app_token: §",
        ],
    ),
    (
        lambda: "/".join(
            [
                "https://hooks.slack.com",
                "services",
                "T" + _s(_UPNUM, 10),
                "B" + _s(_UPNUM, 10),
                _s(_ALNUM, 24),
            ]
        ),
        [
            "alertmanager: slack_api_url: '§'",
            'curl -X POST --data \'{"text":"deploy done"}\' §',
        ],
    ),
    # Stripe
    (_gen("sk" + "_live_", _ALNUM, 24), ["stripe.api_key = '§'", "STRIPE_SECRET_KEY=§"]),
    (_gen("sk" + "_live_51", _ALNUM, 97), ["curl https://api.stripe.com/v1/charges -u §:"]),
    (_gen("sk" + "_test_51", _ALNUM, 97), ["StripeInvalidRequestError: No such customer; key used was §"]),
    (_gen("rk" + "_live_", _ALNUM, 24), ['{"stripe": {"restricted": "§", "mode": "live"}}']),
    (_gen("wh" + "sec_", _ALNUM, 32), ["STRIPE_WEBHOOK_SECRET=§"]),
    # Twilio, SendGrid, Mailgun, Mailchimp, Brevo
    (_gen("S" + "K", _HEX, 32), ["TWILIO_API_KEY=§", 'client = Client("§", os.environ["TWILIO_SECRET"])']),
    (_hex(32), ["TWILIO_AUTH_TOKEN=§", '{"twilio": {"auth_token": "§"}}']),
    (
        lambda: "S" + "G." + _s(_URL64, 22) + "." + _s(_URL64, 43),
        [
            "SENDGRID_API_KEY: §",
            "smtp.sendgrid.net:587 AUTH failed for apikey / §",
        ],
    ),
    (_gen("key" + "-", _HEX, 32), ["curl -s --user 'api:§' https://api.mailgun.net/v3/mg.acme.dev/messages"]),
    (_join("-", _hex(32), _hex(8), _hex(8)), ["MAILGUN_API_KEY=§"]),
    (_join("-us", _hex(32), _const("14")), ["mailchimp_api_key: §"]),
    (lambda: "xkey" + "sib-" + _s(_HEX, 64) + "-" + _s(_ALNUM, 16), ["BREVO_KEY=§ node send.js"]),
    # Registries
    (
        _gen("np" + "m_", _ALNUM, 36),
        [
            "//packages.acme.dev/:_authToken=§",
            "npm publish failed, NPM_TOKEN was §",
        ],
    ),
    (lambda: "pypi-" + "AgEIcHlwaS5vcmc" + _s(_URL64, 150), ["[pypi]\nusername = __token__\npassword = §"]),
    (_gen("dckr" + "_pat_", _URL64, 27), ["echo § | docker login -u acmeci --password-stdin"]),
    (_gen("ruby" + "gems_", _HEX, 48), [":rubygems_api_key: §"]),
    (_gen("c" + "io", _ALNUM, 32), ["cargo login §"]),
    (lambda: _b64("acmeci:" + _password()), ['{"auths": {"https://images.acme.dev/v1/": {"auth": "§"}}}']),
    # AI and hosting
    (
        _gen("h" + "f_", string.ascii_letters, 34),
        [
            "huggingface-cli login --token §",
            'AutoModel.from_pretrained("acme/private", token="§")',
        ],
    ),
    (_gen("g" + "sk_", _ALNUM, 52), ["GROQ_API_KEY=§"]),
    (_gen("r" + "8_", _ALNUM, 37), ["REPLICATE_API_TOKEN=§"]),
    (_gen("sk" + "-or-v1-", _HEX, 64), ['{"baseURL": "https://openrouter.ai/api/v1", "apiKey": "§"}']),
    (_gen("pp" + "lx-", _ALNUM, 48), ["perplexity key: §"]),
    (
        _gen("dop" + "_v1_", _HEX, 64),
        [
            "doctl auth init -t §",
            'provider "digitalocean" {\n  token = "§"\n}',
        ],
    ),
    (_uuid, ["HEROKU_API_KEY=§"]),
    (_gen("HRKU" + "-AA", _URL64, 58), ["machine api.heroku.com\n  login ci\n  password §"]),
    (_gen("sb" + "p_", _HEX, 40), ["SUPABASE_ACCESS_TOKEN=§ supabase db push"]),
    (_gen("pscale" + "_tkn_", _URL64, 43), ["pscale service-token: §"]),
    (_gen("", _URL64, 40), ["CLOUDFLARE_API_TOKEN=§"]),
    # Commerce
    (_gen("shp" + "at_", _HEX, 32), ["X-Shopify-Access-Token: §", "shopify:\n  shop: acme\n  token: §"]),
    (_gen("shp" + "ss_", _HEX, 32), ["SHOPIFY_API_SECRET=§"]),
    (_gen("sq0" + "atp-", _URL64, 22), ["square.access_token=§"]),
    (_gen("sq0" + "csp-", _URL64, 43), ['{"square": {"application_secret": "§"}}']),
    (_gen("EAAA" + "E", _URL64, 59), ["SQUARE_ACCESS_TOKEN=§"]),
    # Messaging
    (
        lambda: "https://discord.com/api/" + "webhooks/" + _d(18) + "/" + _s(_URL64, 68),
        [
            "DISCORD_WEBHOOK=§",
            "requests.post('§', json={'content': 'build green'})",
        ],
    ),
    (
        lambda: _b64url(_d(18)) + "." + _s(_ALNUM, 6) + "." + _s(_URL64, 38),
        [
            "bot.run('§')",
            "discord:\n  prefix: '!'\n  token: §",
        ],
    ),
    (
        lambda: _d(10) + ":AA" + _s(_URL64, 33),
        [
            "https://api.telegram.org/bot§/sendMessage",
            "TELEGRAM_BOT_TOKEN=§",
        ],
    ),
    # Work tools
    (_gen("sec" + "ret_", _ALNUM, 43), ["NOTION_TOKEN=§"]),
    (
        _gen("nt" + "n_", _ALNUM, 46),
        [
            '{"headers": {"Authorization": "Bearer §", "Notion-Version": "2022-06-28"}}',
        ],
    ),
    (_gen("lin" + "_api_", _ALNUM, 40), ['curl -H "Authorization: §" https://api.linear.app/graphql']),
    (
        _gen("ATATT" + "3xFfGF0", _URL64, 172, "=1A2B3C4D"),
        [
            "JIRA_API_TOKEN=§",
            "confluence token (§) expires Friday",
        ],
    ),
    (_gen("ATBB", _ALNUM, 32), ["git clone https://x-token-auth:§@bitbucket.org/acme/web.git"]),
    (_gen("da" + "pi", _HEX, 32), ["[DEFAULT]\nhost = https://dbc-1.cloud.databricks.com\ntoken = §"]),
    (_gen("da" + "pi", _HEX, 32, "-2"), ["databricks configure: DATABRICKS_TOKEN=§"]),
    (_gen("fig" + "d_", _URL64, 40), ["X-Figma-Token: §"]),
    (lambda: "pat" + _s(_ALNUM, 14) + "." + _s(_HEX, 64), ["AIRTABLE_TOKEN=§"]),
    (lambda: "PM" + "AK-" + _s(_HEX, 24) + "-" + _s(_HEX, 34), ["newman run col.json --postman-api-key §"]),
    # Infrastructure
    (
        _gen("hv" + "s.", _URL64, 92),
        [
            "VAULT_TOKEN=§",
            'curl -H "X-Vault-Token: §" https://vault.acme.dev/v1/kv',
        ],
    ),
    (_gen("s" + ".", _ALNUM, 24), ["vault login §"]),
    (
        lambda: _s(_ALNUM, 14) + ".atlas" + "v1." + _s(_URL64, 67),
        [
            'credentials "app.terraform.io" {\n  token = "§"\n}',
            "TFE_TOKEN=§ terraform apply",
        ],
    ),
    (
        lambda: "gl" + "sa_" + _s(_ALNUM, 32) + "_" + _s(_HEX, 8),
        [
            "GRAFANA_SERVICE_TOKEN=§",
            "Authorization: Bearer §",
        ],
    ),
    (
        lambda: "gl" + "c_" + _b64('{"o":"' + _d(6) + '","n":"push","k":"' + _s(_ALNUM, 24) + '"}'),
        [
            "remote_write token §",
        ],
    ),
    (_gen("NR" + "AK-", _UPNUM, 27), ["NEW_RELIC_API_KEY=§", "API-Key: §"]),
    (_gen("", _HEX, 36, "NRAL"), ["license_key: '§'"]),
    (_hex(32), ["DD_API_KEY=§ bash -c install_agent.sh"]),
    (_gen("snt" + "rys_", _URL64, 120), ["SENTRY_AUTH_TOKEN=§"]),
    (_gen("dp" + ".pt.", _ALNUM, 43), ["doppler configure set token §"]),
    (_gen("pu" + "l-", _HEX, 40), ["PULUMI_ACCESS_TOKEN=§"]),
    (_gen("sq" + "u_", _HEX, 40), ["sonar-scanner -Dsonar.token=§"]),
    (_gen("AGE-SECRET" + "-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), ["# created: 2025-01-02\n§"]),
    (
        _gen("AKC" + "p8", _ALNUM, 68),
        [
            "curl -H 'X-JFrog-Art-Api: §' https://acme.jfrog.io/artifactory/api/system",
        ],
    ),
    # JWTs
    (
        _jwt,
        [
            "Authorization: Bearer §",
            '{"access_token": "§", "expires_in": 3600}',
            "Set-Cookie: session=§; HttpOnly; Secure; SameSite=Lax",
            "wss://live.acme.dev/socket?token=§",
            "jwt.exceptions.ExpiredSignatureError: Signature has expired: §",
        ],
    ),
    # Private keys
    (_pem("RSA PRIVATE" + " KEY", 12), ["§\n", "ssh_key: |\n§"]),
    (_pem("EC PRIVATE" + " KEY", 2), ["cat server.key\n§", "tls.key:\n§"]),
    (
        _pem("OPENSSH PRIVATE" + " KEY", 6),
        [
            "$ cat ~/.ssh/id_ed25519\n§",
            "Here is the deploy key you asked for:\n\n§",
        ],
    ),
    (_pem("PRIVATE" + " KEY", 8), ["§"]),
    (_pem("ENCRYPTED PRIVATE" + " KEY", 8), ["key file (pass phrase sent separately)\n§"]),
    (_pem("DSA PRIVATE" + " KEY", 5), ["legacy host key\n§"]),
    (_pgp, ["§", "gpg --import <<EOF\n§\nEOF"]),
    # Passwords in connection URLs
    (
        _urlpass,
        [
            "DATABASE_URL=postgres://app:§@db.internal:5432/orders",
            "postgresql+asyncpg://reporting:§@10.0.4.12/warehouse?sslmode=require",
            "mongodb+srv://svc:§@cluster0.ab1cd.mongodb.net/prod?retryWrites=true",
            "mongodb://root:§@mongo-0.mongo:27017,mongo-1.mongo:27017/?replicaSet=rs0",
            "REDIS_URL=redis://:§@cache.acme.dev:6379/0",
            "rediss://default:§@eu1-fast-12345.upstash.io:6380",
            "amqp://worker:§@rabbit:5672/jobs",
            "amqps://ingest:§@mq.acme.dev/%2F",
            "fatal: unable to access 'https://ci-bot:§@git.acme.dev/platform/api.git/': 403",
            "mysql://root:§@127.0.0.1:3306/shop",
            "sqlalchemy.exc.OperationalError: could not connect to mssql+pyodbc://sa:§@sql01/erp",
            "pip install --index-url https://build:§@packages.acme.dev/all acme-core",
            "ftp://upload:§@files.partner-portal.net/in/",
            "smtp://mailer:§@smtp.acme.dev:587",
            "http_proxy=http://jdoe:§@proxy.corp:3128",
            "elasticsearch: https://elastic:§@es.internal:9200",
        ],
    ),
    # Passwords in assignments
    (
        _password,
        [
            "password=§",
            "DB_PASSWORD=§",
            "spring.datasource.password=§",
            '{"username": "svc-report", "password": "§"}',
            "mysql:\n  user: root\n  password: §\n  port: 3306",
            "PGPASSWORD='§' pg_dump -h db.internal -U app orders > o.sql",
            "mysql -u root --password=§ shop",
            "Server=sql01;Database=erp;User Id=sa;Password=§;TrustServerCertificate=True",
            'smtp_password = "§"',
            "The Wi-Fi password is § and works in both buildings.",
            "Login: jmeier\nPasswort: §",
            "sshpass -p '§' ssh root@10.1.2.3",
            "curl -u admin:§ https://nexus.acme.dev/service/rest/v1/status",
            '<add key="SmtpPassword" value="§" />',
            "2025-02-11 09:12:01 DEBUG LoginForm(username='kim', password='§')",
            "ansible_become_pass: §",
            "login.php?user=kim&password=§",
            "wget --user=kim --password=§ https://files.acme.dev/dump.tgz",
            "define('DB_PASSWORD', '§');",
            "environment:\n  - POSTGRES_USER=app\n  - POSTGRES_PASSWORD=§",
            "Mot de passe : §",
            "passphrase: §",
        ],
    ),
    (
        _gen("", _ALNUM, 40),
        [
            '{"client_id": "web-portal", "client_secret": "§", "grant_type": "client_credentials"}',
            "OAUTH_CLIENT_SECRET=§",
            "grant_type=client_credentials&client_id=portal&client_secret=§",
            "api_key: §",
            "X-API-Key: §",
            'headers = {"X-Auth-Token": "§"}',
            "https://api.weather-hub.net/v2/forecast?city=Oslo&api_key=§",
            "SECRET_KEY = '§'",
            "jwt_secret=§",
            "curl -H 'Authorization: Token §' https://api.acme.dev/items",
            "access_token=§&token_type=bearer",
            'apikey="§" ./sync.sh',
            "Authorization: Bearer §",
            "> authorization: bearer §\n< HTTP/2 401",
            "encryption_key = §",
            '"refreshToken": "§"',
        ],
    ),
    (_hex(64), ["SESSION_SECRET=§", "signing_secret: §", "RAILS_MASTER_SECRET_KEY_BASE=§"]),
    (
        _basic,
        [
            "Authorization: Basic §",
            "curl -H 'Authorization: Basic §' https://api.acme.dev/v1/reports",
            "GET /admin HTTP/1.1\nHost: intranet\nAuthorization: Basic §\nAccept: */*",
            "Proxy-Authorization: Basic §",
        ],
    ),
]


# --- payment cards -----------------------------------------------------------------------------------------


def luhn_ok(digits: str) -> bool:
    total = 0
    for i, c in enumerate(reversed(digits)):
        n = int(c) * (2 if i % 2 else 1)
        total += n - 9 if n > 9 else n
    return total % 10 == 0


def _card_digits(prefix: str, length: int) -> str:
    body = prefix + "".join(_R.choices(string.digits, k=length - len(prefix) - 1))
    return next(body + c for c in string.digits if luhn_ok(body + c))


def _group(digits: str, sizes: tuple[int, ...], sep: str) -> str:
    out, at = [], 0
    for size in sizes:
        out.append(digits[at : at + size])
        at += size
    return sep.join(p for p in out if p)


def _card(prefix: str, length: int, sep: str = "") -> _Gen:
    def make() -> str:
        digits = _card_digits(prefix, length)
        if not sep:
            return digits
        sizes = (4, 6, 5) if length == 15 else (4, 6, 4) if length == 14 else (4, 4, 4, 4, 3)
        return _group(digits, sizes, sep)

    return make


_CARDS: list[tuple[_Gen, str]] = [
    (_card("4", 16), "card_number=§"),
    (_card("4", 16, " "), "Please charge my Visa § for the deposit."),
    (_card("4", 16, "-"), "PAN § exp 04/28"),
    (_card("4539", 16), '{"type": "visa", "number": "§", "exp_month": 4, "exp_year": 2028}'),
    (_card("4", 13), "old Visa on file: §"),
    (_card("4", 19), "virtual card § issued"),
    (_card("4916", 16, " "), "2025-01-12 ERROR payment declined for § (do_not_honor)"),
    (_card("51", 16), "INSERT INTO payments (pan) VALUES ('§');"),
    (_card("55", 16, " "), "MasterCard: §"),
    (_card("53", 16, "-"), "cc: § / 11-27"),
    (_card("2221", 16), "order 88: mastercard §"),
    (_card("2720", 16, " "), "Karte: §"),
    (_card("2315", 16, "-"), "card-on-file,§,active"),
    (_card("34", 15), "amex=§"),
    (_card("37", 15, " "), "My Amex is §, expiring in May."),
    (_card("37", 15, "-"), "AMEX § approved"),
    (_card("6011", 16), "<CardNumber>§</CardNumber>"),
    (_card("65", 16, " "), "Discover §"),
    (_card("644", 16, "-"), "Discover card § on the invoice"),
    (_card("3528", 16), "JCB §"),
    (_card("3566", 16, " "), "jcb card: §"),
    (_card("3589", 16, "-"), "payment.method=JCB payment.pan=§"),
    (_card("36", 14), "diners: §"),
    (_card("38", 14, " "), "Diners Club § valid thru 09/27"),
    (_card("305", 14), "DC,§,2027-09"),
    (_card("62", 16), "UnionPay §"),
    (_card("6225", 16, " "), "银联卡 §"),
    (_card("62", 19), "unionpay_pan: §"),
    (_card("62", 19, " "), "CUP card §"),
    (_card("5018", 16), "Maestro §"),
    (_card("6304", 16, " "), "maestro debit §"),
    (_card("6759", 18), "UK Maestro: §"),
    (_card("2200", 16), "Mir §"),
    (_card("2204", 16, " "), "MIR card §"),
    (_card("6521", 16), "RuPay card: §"),
    (_card("4", 16, " "), "Customer called, wants refund to card §, name Kim L."),
    (_card("52", 16), "https://pay.acme.dev/checkout?pan=§&step=2"),
    (_card("4026", 16), "card;brand\n§;visa-electron"),
]

# --- IBANs -------------------------------------------------------------------------------------------------


def iban_ok(text: str) -> bool:
    flat = text.replace(" ", "").replace("-", "").upper()
    return int("".join(str(int(c, 36)) for c in flat[4:] + flat[:4])) % 97 == 1


_BBAN = {
    "DE": "n18",
    "FR": "n10 a1 n10 n2",
    "GB": "u4 n14",
    "NL": "u4 n10",
    "BE": "n12",
    "ES": "n20",
    "IT": "u1 n22",
    "AT": "n16",
    "CH": "n17",
    "PL": "n24",
    "SE": "n20",
    "NO": "n11",
    "DK": "n14",
    "FI": "n14",
    "PT": "n21",
    "IE": "u4 n14",
    "LU": "n16",
    "CZ": "n20",
}


def _iban(country: str, spaced: bool) -> _Gen:
    def make() -> str:
        bban = ""
        for part in _BBAN[country].split():
            alphabet = string.digits if part[0] == "n" else string.ascii_uppercase
            bban += "".join(_R.choices(alphabet, k=int(part[1:])))
        check = next(f"{k:02d}" for k in range(2, 99) if iban_ok(f"{country}{k:02d}{bban}"))
        flat = country + check + bban
        return " ".join(flat[i : i + 4] for i in range(0, len(flat), 4)) if spaced else flat

    return make


_IBANS: list[tuple[_Gen, str]] = [
    (_iban("DE", True), "Bitte überweisen Sie den Betrag auf §."),
    (_iban("DE", False), "iban=§"),
    (_iban("FR", True), "Merci de virer la somme sur le compte §."),
    (_iban("FR", False), '{"holder": "Atelier Lune", "iban": "§"}'),
    (_iban("GB", True), "Account: § (GBP)"),
    (_iban("GB", False), "beneficiary_account: §"),
    (_iban("NL", True), "IBAN § t.n.v. Bakkerij Zon"),
    (_iban("NL", False), "ideal payout to § failed with AC04"),
    (_iban("BE", True), "Refund to § please."),
    (_iban("BE", False), "<IBAN>§</IBAN>"),
    (_iban("ES", True), "Cuenta: §"),
    (_iban("ES", False), "sepa_debit,§,RCUR"),
    (_iban("IT", True), "Il mio IBAN è §"),
    (_iban("IT", False), "bonifico verso § eseguito"),
    (_iban("AT", True), "Konto § bei der Hausbank"),
    (_iban("AT", False), "account_iban: §"),
    (_iban("CH", True), "Zahlbar auf §, Zweck: Miete"),
    (_iban("CH", False), "QR-bill creditor §"),
    (_iban("PL", True), "Numer rachunku: §"),
    (_iban("PL", False), "2025-04-02 INFO transfer target=§ amount=120.00"),
    (_iban("SE", True), "Utbetalning till §"),
    (_iban("SE", False), 'payout.iban = "§"'),
    (_iban("NO", True), "Konto: §"),
    (_iban("NO", False), "dest=§;ccy=NOK"),
    (_iban("DK", True), "Send the salary to §."),
    (_iban("DK", False), ":25:§"),
    (_iban("FI", True), "Tilinumero §"),
    (_iban("FI", False), "UPDATE vendors SET iban='§' WHERE id=7;"),
    (_iban("PT", True), "NIB/IBAN: §"),
    (_iban("PT", False), "iban: '§'"),
    (_iban("IE", True), "my bank details are § if you need them"),
    (_iban("IE", False), "https://pay.acme.dev/sepa?to=§&amount=50"),
    (_iban("LU", True), "Compte § à Luxembourg"),
    (_iban("CZ", False), "Účet §"),
]

# --- e-mail addresses --------------------------------------------------------------------------------------


def _mail(local: str, domain: str) -> str:
    return local + "@" + domain


_EMAILS: list[tuple[str, str, str]] = [
    ("anna.schmidt", "nordwind-logistik.de", "Contact § for the delivery slot."),
    ("j.okafor", "lagosprint.com.ng", "From: §"),
    ("maria+newsletter", "gmail.com", '{"user": {"id": 12, "email": "§"}}'),
    ("kim_lee88", "naver.com", "user § logged in"),
    ("o'brien", "dublinbooks.ie", "Reply to § by Monday."),
    ("li.wei", "qq.com", "邮箱:§"),
    ("support-lead", "helpdesk.acmetools.io", "escalate to § if unanswered"),
    ("x", "qz.net", "Short address: §."),
    ("first.middle.last", "students.uni-heidelberg.de", "Betreuer: §"),
    ("PETER.JONES", "HOTMAIL.CO.UK", "Sent by §"),
    ("sara", "mail.museum", "mailto:§"),
    ("hr-2024", "stadtwerke-linz.at", '<a href="mailto:§">HR</a>'),
    ("jean-luc.picard", "orange.fr", "Écrivez à §"),
    ("tomasz.nowak", "wp.pl", "tomasz;Nowak;§;PL"),
    ("d.silva", "empresa.com.br", "email=§&subscribe=1"),
    ("ana", "clinica-salud.es", "Paciente: Ana R., correo §"),
    ("user.name+tag+sorting", "fastmail.fm", "2025-05-01 12:00:03 INFO smtp: accepted recipient <§>"),
    ("billing", "kleinbrauerei.bayern", "Rechnung an § geschickt"),
    ("m.rossi", "libero.it", "git commit --author='Mario Rossi <§>'"),
    ("priya.n", "infratech.co.in", "Signed-off-by: Priya N <§>"),
    ("lars", "fjord.no", "550 5.1.1 <§>: Recipient address rejected"),
    ("eva.k", "seznam.cz", "UPDATE users SET email = '§' WHERE id = 9"),
    ("b_wayne", "outlook.com", "https://app.acme.dev/invite?email=§&role=viewer"),
    ("yuki", "docomo.ne.jp", "連絡先: §"),
    ("a1b2c3", "protonmail.com", "KeyError: '§'\n  File \"mailer.py\", line 12, in send"),
    ("office", "kanzlei-berger.ch", "Bitte schicken Sie die Unterlagen an §, danke."),
    ("nina.petrova", "yandex.ru", "cc: §"),
    ("ceo", "startup.ai", "attendees:\n  - §\n  - room-4"),
    ("dr.hassan", "klinik-nord.health", "Überweisung an §"),
    ("team", "sub.domain.example-shop.shop", "Got your order! Questions? §"),
    ("karen%40home", "icloud.com", "raw login: §"),
    ("jürgen", "müller-bau.de", "Mail: §"),
    ("oleg", "mail.kyiv.ua", "whois: Registrant Email: §"),
    ("frida", "konst.se", "(§)"),
    ("sam.taylor", "nhs.net", "Referral sent to §;"),
    ("zoe", "x.org", '"Zoe" <§>'),
    ("pm.lead", "contoso-consulting.com", "assignee: §\nstatus: open"),
]

# --- phone numbers -----------------------------------------------------------------------------------------

_PHONES: list[tuple[tuple[str, ...], str]] = [
    (("+1 ", "415 ", "555 ", "0132"), "Call me at §."),
    (("+1-", "212-", "555-", "0178"), '{"phone": "§"}'),
    (("+1", "646", "555", "0119"), "phone=§"),
    (("(415) ", "555-", "0164"), "Office: §"),
    (("(303)", "555-", "0121"), "fax or phone § works"),
    (("212.", "555.", "0147"), "Tel. §"),
    (("312-", "555-", "0190"), "Please ring § after six."),
    (("1-", "617-", "555-", "0155"), "Customer callback: §"),
    (("+1 (", "702) ", "555-", "0143"), "emergency contact § (sister)"),
    (("+1 (", "206) ", "555-", "0188 ext. 12"), "Reach Dana at §"),
    (("+49 ", "30 ", "23125 ", "114"), "Rufen Sie uns an: §"),
    (("+49 ", "(0)", "89 ", "99998 ", "42"), "Telefon §"),
    (("+49", "171", "3920", "044"), "mobil: §"),
    (("+49-", "151-", "5557-", "8812"), "whatsapp §"),
    (("0049 ", "40 ", "66969 ", "123"), "Tel.: §"),
    (("0049", "176", "0400", "1234"), "Handynummer §"),
    (("030 ", "23125 ", "208"), "Praxis: Tel. §"),
    (("030/", "23125-", "77"), "Telefon: §"),
    (("(0221) ", "4710 ", "333"), "Bürgertelefon §"),
    (("0171 ", "3920", "071"), "Meine Handynummer ist §."),
    (("0151-", "2345", "6789"), "Handy: §"),
    (("+33 ", "1 ", "99 ", "00 ", "45 ", "67"), "Tél. : §"),
    (("+33", "6", "39", "98", "12", "34"), "sms envoyé au §"),
    (("0033 ", "6 ", "39 ", "98 ", "44 ", "10"), "Appelez le §"),
    (("01 ", "99 ", "00 ", "12 ", "34"), "Téléphone : §"),
    (("06.", "39.", "98.", "76.", "54"), "portable §"),
    (("06 ", "39 ", "98 ", "55 ", "21"), "Mon numéro est le §."),
    (("05-", "36-", "49-", "11-", "22"), "tel: §"),
    (("+44 ", "20 ", "7946 ", "0123"), "London office §"),
    (("+44 ", "7700 ", "900", "456"), "text me on §"),
    (("+44", "7700", "900", "781"), '{"mobile": "§", "verified": true}'),
    (("0044 ", "7700 ", "900 ", "222"), "Phone: §"),
    (("020 ", "7946 ", "0958"), "Reception: §"),
    (("07700 ", "900", "118"), "My mobile number is §."),
    (("(0161) ", "496 ", "0345"), "Call the surgery on §"),
    (("01632 ", "960", "983"), "Landline: §"),
    (("+41 ", "44 ", "668 ", "18 ", "00"), "Hotline Zürich §"),
    (("+43 ", "1 ", "50165 ", "0"), "Wien: §"),
    (("+31 ", "20 ", "794 ", "0801"), "bel §"),
    (("+34 ", "612 ", "345 ", "678"), "móvil §"),
    (("+39 ", "06 ", "698 ", "12345"), "chiamare §"),
    (("+48 ", "601 ", "234 ", "567"), "tel. §"),
    (("+91 ", "98765 ", "43210"), "Contact number: §"),
    (("+81 ", "3-", "5555-", "0123"), "電話 §"),
    (("+86 ", "138 ", "0013 ", "8000"), "手机 §"),
    (("+61 ", "491 ", "570 ", "156"), "2025-03-01 INFO sms queued to=§ id=8"),
    (("+55 ", "11 ", "95555-", "0123"), "celular: §"),
    (("+46", "70", "174", "0605"), "tel:§"),
    (("+353 ", "20 ", "915 ", "1234"), "Dublin desk, §"),
    (("+7 ", "495 ", "555-", "35-", "35"), "тел. §"),
]


def _build() -> tuple[list[tuple[str, str]], list[str]]:
    pairs: list[tuple[str, str, str]] = []
    for make, templates in _SECRETS:
        pairs += [("secret", t, make()) for t in templates]
    pairs += [("card", t, make()) for make, t in _CARDS]
    pairs += [("iban", t, make()) for make, t in _IBANS]
    pairs += [("email", t, _mail(local, domain)) for local, domain, t in _EMAILS]
    pairs += [("phone", t, "".join(parts)) for parts, t in _PHONES]
    return [(k, t.replace(_MARK, v)) for k, t, v in pairs], [v for _, _, v in pairs]


_BUILT = _build()
SENSITIVE: list[tuple[str, str]] = _BUILT[0]
SENSITIVE_VALUES: list[str] = _BUILT[1]


# --- near misses -------------------------------------------------------------------------------------------


def _md5(word: str) -> str:
    return hashlib.md5(word.encode(), usedforsecurity=False).hexdigest()


def _sha1(word: str) -> str:
    return hashlib.sha1(word.encode(), usedforsecurity=False).hexdigest()


def _sha256(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


def _sri(word: str) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(word.encode()).digest()).decode()


def _no_luhn(prefix: str, length: int, sep: str = "") -> str:
    digits = _card_digits(prefix, length)
    digits = digits[:-1] + str((int(digits[-1]) + 3) % 10)
    return _group(digits, (4, 4, 4, 4, 3), sep) if sep else digits


def _bad_iban(country: str, spaced: bool = False) -> str:
    """IBAN with a wrong checksum, in which no run of whole groups is a card number either."""
    while True:
        flat = _iban(country, False)()
        wrong = f"{(int(flat[2:4]) + 11) % 90 + 5:02d}"
        flat = flat[:2] + wrong + flat[4:]
        cuts = [2, *range(4, len(flat), 4), len(flat)]
        runs = [flat[a:b] for a in cuts for b in cuts if 13 <= b - a <= 19 and flat[a:b].isdigit()]
        if not iban_ok(flat) and not any(luhn_ok(r) for r in runs):
            return " ".join(flat[i : i + 4] for i in range(0, len(flat), 4)) if spaced else flat


def _slug(prefix: str, n: int) -> str:
    return prefix + _s(_ALNUM, n)


_DASH = "-" * 5

NEAR_MISSES: list[str] = [
    # UUIDs
    f"request_id={_uuid()}",
    f'{{"id": "{_uuid()}", "status": "done"}}',
    f"GET /v1/orders/{_uuid()} 200 12ms",
    f"urn:uuid:{_uuid()}",
    f"Correlation-Id: {_uuid()}",
    f"device {_uuid().upper()} paired",
    f"tenant_id: {_uuid()}",
    f"s3://acme-raw/{_uuid()}/part-0001.parquet",
    f"/dev/disk/by-uuid/{_uuid()} / ext4 defaults 0 1",
    # git SHAs and digests
    f"commit {_sha1('one')}",
    f"HEAD is now at {_sha1('two')[:7]} fix paging",
    f"Merge {_sha1('a')[:10]} into {_sha1('b')[:10]}",
    f"https://github.com/acme/web/commit/{_sha1('three')}",
    f"index {_sha1('x')[:7]}..{_sha1('y')[:7]} 100644",
    f"uses: actions/checkout@{_sha1('checkout')} # v4.1.1",
    f"{_md5('iso')}  debian-12.iso",
    f'ETag: "{_md5("etag")}"',
    f"Content-MD5: {base64.b64encode(hashlib.md5(b'body', usedforsecurity=False).digest()).decode()}",
    f"{_sha256('tar')}  release.tar.gz",
    f"sha256:{_sha256('layer')}",
    f"image: nginx@sha256:{_sha256('nginx')}",
    f"FROM python:3.12-slim@sha256:{_sha256('python')}",
    f"ghcr.io/acme/api@sha256:{_sha256('api')}",
    f"k8s.gcr.io/pause:3.9@sha256:{_sha256('pause')}",
    f"Digest: sha256:{_sha256('pull')}\nStatus: Downloaded newer image for redis:7",
    f'"integrity": "{_sri("lodash")}"',
    f"integrity {_sri('react')}",
    f"    resolution: {{integrity: {_sri('vite')}}}",
    f'<script src="/app.js" integrity="{_sri("app")}" crossorigin="anonymous"></script>',
    f"requests==2.32.3 --hash=sha256:{_sha256('requests')}",
    f'checksum = "{_sha256("serde")}"',
    f"github.com/pkg/errors v0.9.1 h1:{base64.b64encode(hashlib.sha256(b'go').digest()).decode()}",
    f"file hash {_sha1('blob')} did not match {_sha1('blob2')}",
    f"cache key: node-modules-{_sha256('lock')}",
    f"app.{_md5('bundle')[:20]}.js 214 kB",
    f"/static/media/logo.{_md5('logo')}.svg",
    f"gravatar.com/avatar/{_md5('avatar')}?s=80",
    f"txid {_sha256('tx')} confirmed in block 840000",
    f"trace_id={_md5('trace')} span_id={_md5('span')[:16]}",
    f"traceparent: 00-{_md5('tp')}-{_md5('sp')[:16]}-01",
    # versions
    "Upgrade to 10.15.7.19H2 first",
    "numpy 1.26.4, scipy 1.11.3, pandas 2.2.2",
    "Chrome/125.0.6422.141 Safari/537.36",
    "go1.22.4 linux/amd64",
    "openssl-3.0.13-1.el9.x86_64",
    "v2025.06.11-rc.4+build.8871",
    "kernel 6.8.0-35-generic #35-Ubuntu SMP",
    "Requires: glibc >= 2.34, libssl3 >= 3.0.7",
    # timestamps and dates
    "2025-06-11T08:15:22.123456Z",
    "ts=1718092522",
    "created_at: 1718092522124",
    "time 20250611081522 node-3 restarted",
    "Wed, 11 Jun 2025 08:15:22 GMT",
    "expires 31.12.2026 23:59",
    "backup-2025-06-11-0815.tar.zst",
    "valid from 01/02/2024 to 28/02/2025",
    "1990-2024 annual report",
    "last-modified: 1717999999999999",
    "cron: 0 3 * * 1-5",
    "Open Mon-Fri 08:00-17:30, Sat 09.00-12.00",
    # order and tracking numbers
    "Order 302-1844571-7754325 has shipped",
    "UPS tracking 1Z999AA10123456784",
    "DHL Sendungsnummer JJD000390007882819274",
    "Royal Mail RM123456789GB",
    "FedEx 7712 8834 9921",
    "Bestellnummer 4500128837-10",
    "invoice INV-2025-000481",
    "ticket #884213 closed",
    "PO 4711-0815-22",
    "customer number 10023944",
    "SKU 8841-22-XL",
    "serial C02XK1ZZJGH5",
    "VIN WVWZZZ1JZXW000001",
    "flight LH 2034, seat 12A, ref K7Q2ZP",
    "case id 0042-118-77",
    "EAN 4006381333930",
    # ISBNs
    "ISBN 978-3-16-148410-0",
    "ISBN-10: 0-306-40615-2",
    "isbn: 9780262033848",
    "ISBN 978-0-13-468599-1, 2nd edition",
    "DOI 10.1145/3292500.3330701",
    "arXiv:2310.06825v1",
    "ISSN 2049-3630",
    "ORCID 0000-0002-1825-0099",
    # long numbers that fail Luhn
    f"job {_no_luhn('4', 16)} finished",
    f"{_no_luhn('4', 16, ' ')} is not a valid number",
    f"ref {_no_luhn('51', 16)}",
    f"shipment {_no_luhn('55', 16, '-')}",
    f"tweet/{_no_luhn('18', 19)}",
    f"message id {_no_luhn('11', 18)} in channel {_no_luhn('98', 18)}",
    f"row key {_no_luhn('37', 15)}",
    f"sequence {_no_luhn('6011', 16)}",
    f"offset={_no_luhn('62', 17)}",
    f"batch {_no_luhn('36', 14)}",
    f"snowflake {_no_luhn('14', 19)}",
    f"account reference {_no_luhn('35', 16, ' ')}",
    f"nanos={_no_luhn('17', 19)}",
    f"meter reading id {_no_luhn('49', 13)}",
    f"parcel {_no_luhn('22', 16)} at depot",
    f"project number {_no_luhn('53', 16)}",
    "pi is 3.14159265358979 approximately",
    "population 8118835999, area 510072000 km2",
    "max safe integer 9007199254740991",
    # IBAN-like with wrong checksum, or merely alike
    f"IBAN check failed for {_bad_iban('DE')}",
    f"example of a rejected account: {_bad_iban('DE', True)}",
    f"invalid: {_bad_iban('FR')}",
    f"test vector (wrong checksum) {_bad_iban('GB', True)}",
    f"assert not valid('{_bad_iban('NL')}')",
    f"{_bad_iban('ES', True)} fails mod 97",
    f"bad_iban = '{_bad_iban('IT')}'",
    f"part number {_bad_iban('AT')}",
    f"{_bad_iban('CH')} -> checksum mismatch",
    f"{_bad_iban('PL', True)} was mistyped",
    f"fixture {_bad_iban('BE')} must raise",
    f"rejects {_bad_iban('SE')}",
    "USt-IdNr. DE811907980",
    "BIC COBADEFFXXX",
    "GLN 4012345000009 not on file",
    "license plate B MW 2043",
    # IPs, coordinates, network
    "Server 192.168.178.21 answered in 3 ms",
    "10.0.0.0/8, 172.16.0.0/12 and fc00::/7 are private",
    "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    "listening on 0.0.0.0:8080",
    "MAC 00:1A:2B:3C:4D:5E",
    "SHA256:" + _s(_B64, 43) + " host key fingerprint (ED25519)",
    "fingerprint 3f:a2:91:0c:5e:77:d1:28:9b:64:f0:13:aa:8e:42:c7",
    "52.520008, 13.404954",
    "POINT(-0.127758 51.507351)",
    "bbox=5.8663,47.2701,15.0419,55.0992",
    "geo:48.8584,2.2945;u=35",
    "8.8.8.8 -> 1.1.1.1 ttl 57",
    "N 47° 22' 36\" E 8° 32' 30\"",
    # prices and quantities
    "Total: 1.299,00 EUR incl. 19% VAT",
    "$4,532.10 per year, 12 months",
    "USD 1 234 567.89",
    "0.00000123 BTC",
    "Umsatz 12 345 678 Euro, +4,5 % zum Vorjahr",
    "1000 + 2000 + 3000 = 6000",
    "size 2048 x 1536, 300 dpi",
    "-12 / +49 degrees, n = 1200",
    "scored 212 of 555 points in 0147 rounds",
    "rows 100-200 of 5500",
    "pages 212-219",
    "(2024) 12, 555-562",
    "ratio 16:9, bitrate 4500 kbit/s",
    "score: 3 - 2 (1 - 1)",
    "phone support is available in 24 countries",
    # base64 of harmless text
    _b64("Hello world, this is a harmless sentence."),
    f"data:text/plain;base64,{_b64('The quick brown fox jumps over the lazy dog')}",
    f'{{"content": "{_b64("# README - how to build this project")}", "encoding": "base64"}}',
    f"Subject: =?UTF-8?B?{_b64('Einladung zum Sommerfest')}?=",
    "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
    f"echo {_b64('make build')} | base64 -d",
    f"X-Debug-Info: {_b64('cache=hit;node=3;zone=b')}",
    # placeholders
    "OPENAI_API_KEY=YOUR_API_KEY",
    "export GITHUB_TOKEN=<token>",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: Bearer <your-access-token>",
    "Authorization: Bearer $ACCESS_TOKEN",
    "Authorization: Basic <base64 of user:password>",
    "password=****",
    "password: ********",
    "api_key: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-...",
    "sk-ant-...",
    "STRIPE_KEY=sk_live_XXXXXXXXXXXXXXXXXXXXXXXX",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    'token: "{{ secrets.DEPLOY_TOKEN }}"',
    "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
    "password: {{ vault_db_password }}",
    "DB_PASSWORD=changeme",
    "client_secret: <client-secret>",
    '"apiKey": "YOUR-API-KEY-HERE"',
    "postgres://USER:PASSWORD@HOST:5432/DB",
    "postgres://user:password@localhost/db",
    "redis://:${REDIS_PASSWORD}@cache:6379/0",
    "mongodb://<username>:<password>@<host>/<db>",
    "https://hooks.slack.com/services/XXX/YYY/ZZZ",
    "AWS_SECRET_ACCESS_KEY=",
    "SECRET_KEY=[REDACTED]",
    "token=***",
    "password=%s",
    "api_key=None",
    "secret: null",
    "xoxb-your-token-here",
    "AKIAXXXXXXXXXXXXXXXX",
    "card number: XXXX XXXX XXXX 1234",
    "**** **** **** 4242",
    "IBAN: DEXX XXXX XXXX XXXX XXXX XX",
    "Enter your number as +XX XXX XXXXXXX",
    "name@domain",
    # documentation about secrets
    "Set the password field to the value you were given.",
    "The api_key parameter is required.",
    "Tokens start with `xoxb-` for bots and `xoxp-` for users.",
    "A classic token begins with ghp_, a fine-grained one with github_pat_.",
    "AWS access key ids begin with AKIA and are 20 characters long.",
    "Store the client secret in your vault, never in the repository.",
    "Pass the bearer token in the Authorization header.",
    "Passwords must hold at least 12 characters, one digit and one symbol.",
    "password: string, required, at most 128 characters",
    "secret_key: the key used to sign cookies (see settings)",
    "Use `--password-stdin` so that the password does not show in the process list.",
    "If the token is missing, the server answers 401 with `WWW-Authenticate: Bearer`.",
    "The private key must start with BEGIN RSA PRIVATE KEY in the PEM file.",
    "Basic authentication is deprecated; use Bearer tokens.",
    "Authorization: Bearer authentication is described in RFC 6750.",
    "token: the opaque string returned by /login",
    "The secret: practise every day.",
    "Forgot your password? Reset it on the login page.",
    "Password reset link sent",
    "Credit cards accepted: Visa, Mastercard, Amex",
    "An IBAN has up to 34 characters and starts with a country code.",
    "Phone numbers are stored in E.164 format.",
    "The e-mail address must contain an @ sign.",
    # pagination tokens and opaque ids that are no secret
    '{"nextPageToken": "' + _s(_ALNUM, 32) + '"}',
    '"next_page_token": "' + _b64("offset:200;limit:100") + '"',
    "NextToken: " + _b64("page=3&size=50"),
    "?pageToken=" + _s(_ALNUM, 24) + "&maxResults=50",
    '"endCursor": "' + _b64("cursor:v2:8841") + '"',
    "continuationToken=" + _b64("container/blob-00017"),
    "sync_token: 118827",
    "max_tokens=4096, prompt_tokens: 812, completion_tokens: 96",
    "tokenizer: cl100k_base, total_tokens=18273645",
    "chatcmpl-" + _s(_ALNUM, 29) + " finished with stop",
    '{"id": "msg_01' + _s(_ALNUM, 22) + '", "type": "message"}',
    "tool_use_id: toolu_01" + _s(_ALNUM, 22),
    "call_" + _s(_ALNUM, 24),
    _slug("cus_", 14) + " subscribed to plan pro",
    _slug("pi_3", 23) + " requires_action",
    "price_1" + _s(_ALNUM, 23),
    "i-0" + _s(_HEX, 16) + " running t3.micro eu-central-1a",
    "arn:aws:iam::123456789012:role/deploy-role",
    "subnet-0" + _s(_HEX, 16),
    "channel C04" + _s(_UPNUM, 8) + " team T02" + _s(_UPNUM, 8),
    "projects/etl-prod/locations/europe-west1/keyRings/main/cryptoKeys/app",
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "https://docs.google.com/document/d/" + _s(_ALNUM, 44) + "/edit",
    "https://www.figma.com/file/" + _s(_ALNUM, 22) + "/Home",
    "notion.so/Roadmap-" + _md5("roadmap"),
    "X-Amz-Request-Id: " + _s(_UPNUM, 16),
    "x-amz-id-2: " + _s(_B64, 75) + "=",
    "cf-ray: " + _s(_HEX, 16) + "-FRA",
    # log lines with request ids
    f"2025-06-11 08:15:22,124 INFO [req-{_uuid()}] GET /health 200",
    f'level=warn rid={_s(_LOWNUM, 20)} msg="slow query" ms=812',
    f'nginx: 10.2.3.4 - - [11/Jun/2025:08:15:22 +0200] "GET / HTTP/1.1" 200 612 rid={_md5("n")}',
    f"worker[{_d(5)}]: job {_s(_HEX, 24)} took 4.2s",
    f"kubelet: pod web-{_s(_HEX, 9)}-{_s(_LOWNUM, 5)} evicted",
    f"container {_sha256('c')[:12]} exited with code 137",
    "sshd[812]: Failed password for invalid user oracle from 203.0.113.9 port 51122 ssh2",
    "auth: token expired, refreshing",
    "WARN password authentication is disabled",
    "session opened for user root by (uid=0)",
    "Jun 11 08:15:22 host systemd[1]: Started getty@tty1.service",
    "user@1000.service: Deactivated successfully",
    # CSS and markup
    ".token.keyword { color: #07a; }",
    "a:hover { color: #c0ffee; background: #deadbeef; }",
    "@media (min-width: 1200px) { .password-field { width: 50%; } }",
    "@keyframes pulse { 0% { opacity: 1 } }",
    '<input type="password" name="password" autocomplete="current-password">',
    '<input type="hidden" name="csrf_token" value="">',
    '<label for="secret">Secret question</label>',
    ".sk-toggleable__control:checked~div.sk-toggleable__content",
    "background: url(icon@2x.png)",
    "grid-template-columns: 1fr 2fr 1fr; margin: 0 0 12px 4px",
    # code
    "password = get_password()",
    "token: str",
    "if secret is None:\n    raise ValueError('secret')",
    "def login(username: str, password: str) -> Token: ...",
    'api_key = os.environ["API_KEY"]',
    "const token = process.env.AUTH_TOKEN;",
    "password = input('Password: ')",
    "secret = secrets.token_urlsafe(32)",
    "self.password_hash = generate_password_hash(password)",
    'headers = {"Authorization": f"Bearer {token}"}',
    "client_secret=settings.client_secret,",
    "val apiKey: String = BuildConfig.API_KEY",
    "$password = $_POST['password'];",
    "assert user.password != other.password",
    "token = tokens[i + 1]",
    "for token in tokenizer.tokenize(text):",
    "private_key = load_pem_private_key(data, password=None)",
    "req.headers['x-api-key'] === expectedKey",
    'String password = request.getParameter("password");',
    "auth: { user: cfg.user, pass: cfg.pass }",
    "read -s -p 'Password: ' PASSWORD",
    "export TOKEN=$(gcloud auth print-access-token)",
    "PGPASSWORD=$DB_PASS psql -h db",
    "@pytest.fixture(scope='session')",
    "@app.get('/users/{user_id}')",
    "@dataclass(frozen=True)",
    "@Override public String toString()",
    "@Autowired private TokenService tokens;",
    "class PasswordField(CharField): pass",
    "enum TokenKind { Ident, Number, Secret }",
    "re.compile(r'[A-Za-z0-9_]{36}')",
    "from secrets import compare_digest",
    "AbstractSingletonProxyFactoryBeanAuthenticationTokenProvider",
    "test_password_reset_token_is_invalidated_after_first_use_2024",
    # user@host and npm scopes
    "scp build.tgz deploy@web01:/srv/app/",
    "rsync -a ./site/ www@staging:/var/www",
    "ssh root@bastion",
    "pi@raspberrypi:~ $ ls",
    "git clone git@github.com:acme/web.git",
    "npm install @scope/pkg@1.2.3",
    "@types/node@20.12.7",
    "yarn add lodash@4.17.21 react@^18.3.1",
    '"@babel/core@npm:^7.24.0":',
    "uses: docker/build-push-action@v5",
    "go install golang.org/x/tools/gopls@latest",
    "pip install 'acme @ git+https://github.com/acme/acme@main'",
    "thanks @maria and @jo for the review",
    "oracle: scott@orcl",
    "logo@3x.png, hero@2x.webp",
    # CSRF, schema, keys that are public
    "csrfmiddlewaretoken is missing from the form",
    "X-CSRF-Token header name: configurable",
    '{"type": "object", "properties": {"password": {"type": "string", "format": "password"}}}',
    '{"required": ["api_key", "client_secret"], "additionalProperties": false}',
    '"token": {"type": "string", "description": "The access token of the account", "minLength": 20}',
    '{"name": "secret", "in": "header", "required": true, "schema": {"type": "string"}}',
    "securitySchemes:\n  bearerAuth:\n    type: http\n    scheme: bearer\n    bearerFormat: JWT",
    '"email": {"type": "string", "format": "email"}',
    "CREATE TABLE users (id int, password varchar(255), token char(64));",
    f"{_DASH}BEGIN CERTIFICATE{_DASH}\n{_s(_B64, 64)}\n{_s(_B64, 64)}\n{_DASH}END CERTIFICATE{_DASH}",
    f"{_DASH}BEGIN PUBLIC KEY{_DASH}\n{_s(_B64, 64)}\n{_DASH}END PUBLIC KEY{_DASH}",
    f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_s(_B64, 43)} kim@laptop",
    f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{_s(_B64, 120)} build@ci",
    'ACME TXT record: _acme-challenge 300 IN TXT "pending"',
    "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQ" + _s(_B64, 60),
    "google-site-verification=" + _s(_URL64, 43),
    "password_changed_at: 2025-01-01",
    "token_count: 1024",
    "secret_santa: Maria",
    "passwordPolicy: strict",
    "auth_method=password",
    "authorization: none",
    "api_key_rotation_days = 90",
]


def _check() -> None:
    assert len(SENSITIVE) >= 260, len(SENSITIVE)
    assert len(NEAR_MISSES) >= 260, len(NEAR_MISSES)
    texts = [t for _, t in SENSITIVE]
    assert len(set(texts)) == len(texts)
    assert len(set(NEAR_MISSES)) == len(NEAR_MISSES)
    assert not set(texts) & set(NEAR_MISSES)
    assert all(_MARK not in t for t in texts)
    for (kind, text), value in zip(SENSITIVE, SENSITIVE_VALUES, strict=True):
        assert text.count(value) == 1, (kind, text)
        if kind == "card":
            assert luhn_ok(re.sub(r"\D", "", value)), text
        if kind == "iban":
            assert iban_ok(value), text
    for text in NEAR_MISSES:
        for run in re.findall(r"(?<![0-9A-Za-z])\d(?:[ -]?\d){12,18}(?![0-9A-Za-z])", text):
            assert not luhn_ok(re.sub(r"\D", "", run)), text
        for run in re.findall(r"\b[A-Z]{2}\d\d(?: ?[A-Z0-9]){11,30}\b", text):
            assert not iban_ok(run), text
    kinds = {k: sum(1 for kk, _ in SENSITIVE if kk == k) for k, _ in SENSITIVE}
    print(f"SENSITIVE {len(SENSITIVE)} {kinds}, NEAR_MISSES {len(NEAR_MISSES)}")


if __name__ == "__main__":
    _check()
