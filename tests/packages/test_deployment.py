"""What deploys Dragoman: Containerfile, compose files and chart, judged by published programs and schemas.

Nothing here starts a container: `scripts/bare_debian` does the image's work in an empty Debian.
"""

import asyncio
import re
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.nats_server import NatsServer
from cluster.processes import ServiceProcess
from dragoman.settings import PREFIX, Settings
from identity.issuer_server import open_issuer
from packages import deployment_tools
from patience import patient
from snippets import snippets

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm"
COMPOSE = ("compose.yaml", "compose.cluster.yaml")
NEEDED = ("DRAGOMAN_DATABASE_URL", "DRAGOMAN_CLUSTER_URL", "DRAGOMAN_KEY", "DRAGOMAN_OPERATOR_TOKEN")
SECRETS = [word for name in NEEDED for word in ("--set-string", f"secrets.{name}=of-{name}")]
EVERYTHING = (
    "ingress.enabled=true,ingress.host=tools.example.com,ingress.tlsSecret=tls,autoscaling.enabled=true"
)
VARIABLES = {f"{PREFIX}{field.name.upper()}" for field in fields(Settings)}


@pytest.fixture(scope="module")
def programs() -> Path:
    found = deployment_tools.find_folder()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def done(*words: object, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(
        command, cwd=ROOT, input=given, capture_output=True, text=True, check=False, timeout=patient(60)
    )


def rendered(programs: Path, *words: str) -> str:
    made = done(programs / "helm", "template", "it", CHART, *words)
    assert made.returncode == 0, made.stderr
    return made.stdout


def documents(text: str) -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all(text) if one}


@pytest.mark.real
def test_hadolint_has_nothing_to_say(programs: Path) -> None:
    judged = done(programs / "hadolint", "Containerfile")
    assert (judged.returncode, judged.stdout) == (0, ""), judged.stdout


@pytest.mark.real
def test_compose_files_fit_the_schema_of_compose(programs: Path) -> None:
    judged = done(programs / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *COMPOSE)
    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.real
@pytest.mark.parametrize(
    "words", [SECRETS, [*SECRETS, "--set", EVERYTHING], ["--set", "existingSecret=mine"]]
)
def test_the_chart_makes_what_kubernetes_takes(programs: Path, words: list[str], tmp_path: Path) -> None:
    assert done(programs / "helm", "lint", "--strict", CHART, *words).returncode == 0
    file = tmp_path / "rendered.yaml"
    file.write_text(rendered(programs, *words))
    for version in ("1.27", "1.37"):
        judged = done(programs / "kubernetes-validate", "--strict", "-k", version, file)
        assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.real
def test_the_chart_has_replicas_that_stay_up_and_a_migration_before_them(programs: Path) -> None:
    made = documents(rendered(programs, *SECRETS, "--set", EVERYTHING))
    pod = made["Deployment"]["spec"]["template"]["spec"]
    assert made["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    assert made["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert made["Ingress"]["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-buffering"] == "off"
    assert made["Secret"]["stringData"] == {name: f"of-{name}" for name in NEEDED}
    migration = made["Job"]["spec"]["template"]["spec"]
    assert made["Job"]["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    assert migration["containers"][0]["args"] == ["migrate"]
    for one in (pod, migration):
        assert one["securityContext"]["runAsUser"] == 10001
        assert one["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
        assert {mount["mountPath"] for mount in one["containers"][0]["volumeMounts"]} == {"/data", "/tmp"}


@pytest.mark.real
def test_the_chart_says_what_is_missing_and_takes_settings_of_dragoman_alone(programs: Path) -> None:
    without = done(programs / "helm", "template", "it", CHART)
    assert "secrets.DRAGOMAN_DATABASE_URL is missing" in without.stderr
    other = done(programs / "helm", "template", "it", CHART, *SECRETS, "--set-string", "settings.PATH=/")
    assert other.returncode != 0
    assert "PATH" in other.stderr


def test_whatever_deploys_it_sets_settings_that_there_are() -> None:
    files = ["Containerfile", *COMPOSE, *(str(one.relative_to(ROOT)) for one in CHART.rglob("*.yaml"))]
    named = {name for file in files for name in re.findall(r"DRAGOMAN_[A-Z_]+", (ROOT / file).read_text())}
    assert {name for name in named if not name.endswith("_")} <= VARIABLES


def test_containers_of_the_compose_files_write_nowhere_but_in_their_volume() -> None:
    for file in COMPOSE:
        services = yaml.safe_load((ROOT / file).read_text())["services"]
        for name in {"dragoman", "migrate"} & services.keys():
            service = services[name]
            assert service["read_only"] is True
            assert service["tmpfs"] == ["/tmp"]
            assert service["cap_drop"] == ["ALL"]
            assert [one.rpartition(":")[2] for one in service["volumes"]] == ["/data"]


def interpolated(value: str, variables: dict[str, str]) -> str:
    """As compose does it, for the two forms that are used."""
    return re.sub(r"\$\{(\w+):(?:\?|-(.*?))\}", lambda one: variables.get(one[1]) or one[2] or "", value)


@pytest.mark.anyio
async def test_fifteen_lines_make_a_team_with_single_sign_on_on_two_replicas(
    postgres_url: str, tmp_path: Path
) -> None:
    """The lines of the guide, through the compose file, to processes; only addresses are of this test."""
    page = snippets(ROOT / "docs" / "guides" / "install.md", "sh")
    (written,) = (one.text for one in page if "team.env <<" in one.text)
    subprocess.run(["bash", "-ec", written], cwd=tmp_path, check=True)
    lines = (tmp_path / "team.env").read_text().splitlines()
    assert len(lines) <= 15
    compose = yaml.safe_load((ROOT / "compose.cluster.yaml").read_text())["services"]["dragoman"]
    assert compose["deploy"]["replicas"] == 2
    async with NatsServer(tmp_path / "nats") as nats, open_issuer() as issuer:
        key = issuer.make_key()
        issuer.publish(key)
        given = {**dict(line.split("=", 1) for line in lines), "DRAGOMAN_OIDC_ISSUER": issuer.url}
        team = {name: interpolated(value, given) for name, value in compose["environment"].items()}
        team |= {"DRAGOMAN_CLUSTER_URL": nats.url}
        replicas = [
            ServiceProcess(tmp_path / name, postgres_url, environment=team) for name in ("one", "two")
        ]
        with replicas[0] as one, replicas[1] as two:
            token = issuer.token(key, preferred_username="ada", aud=team["DRAGOMAN_OIDC_AUDIENCE"])
            people = [await asyncio.to_thread(node.get, "/api/me", token) for node in (one, two)]
            assert [status for status, _ in people] == [200, 200]
            assert people[0][1]["user"] == people[1][1]["user"]
            assert people[0][1]["user"]["name"] == "ada"
            operator = team["DRAGOMAN_OPERATOR_TOKEN"]
            _, cluster = await asyncio.to_thread(two.get, "/api/cluster", operator)
            assert len(cluster["nodes"]) == 2
            assert (await asyncio.to_thread(one.get, "/api/me", "nobody"))[0] == 401
