"""The compose file, as far as it can be checked without containers: every name in it leads somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ibpdist.engine import cluster, remote

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXT = (DEPLOY / "compose.yaml").read_text("utf-8")
COMPOSE = yaml.safe_load(TEXT)
SERVICES = COMPOSE["services"]
OURS = {name: one for name, one in SERVICES.items() if one["image"].startswith("ibpdist:")}
ONCE = {"certificates", "deployments"}
EXAMPLE = dict(
    line.split("=", 1)
    for line in (DEPLOY / "env.example").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
)


def environment(service):
    return service.get("environment", {})


def test_what_a_service_waits_for_can_happen():
    for service in SERVICES.values():
        for name, wait in service.get("depends_on", {}).items():
            condition = wait["condition"]
            if condition == "service_healthy":
                assert "healthcheck" in SERVICES[name], name
            else:
                assert condition == "service_completed_successfully"
                assert name in ONCE


def test_nothing_waits_for_itself():
    waits = {name: set(one.get("depends_on", {})) for name, one in SERVICES.items()}
    while ready := {name for name, others in waits.items() if not others}:
        waits = {name: others - ready for name, others in waits.items() if name not in ready}
    assert waits == {}


def test_volumes_and_networks_are_declared():
    for service in SERVICES.values():
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        for volume in service.get("volumes", []):
            name, _, target = volume.partition(":")
            assert name in COMPOSE["volumes"] or (name == "/scratch" and not target), volume


def test_only_the_pages_of_prefect_can_be_reached_and_from_this_machine_only():
    assert {name: one["ports"] for name, one in SERVICES.items() if "ports" in one} == {
        "server": ["127.0.0.1:4200:4200"]
    }
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert [name for name, one in SERVICES.items() if one["networks"] != ["inside"]] == ["server"]


def test_long_runners_come_back_and_can_be_asked_how_they_are():
    for name, service in SERVICES.items():
        assert service["restart"] == ("no" if name in ONCE else "always"), name
        assert ("healthcheck" in service) == (name not in ONCE), name


def test_our_services_can_write_only_where_they_must():
    for name, service in OURS.items():
        assert service["read_only"] is True, name
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["build"] == {"context": "..", "dockerfile": "deploy/Dockerfile"}
        assert "tls:/tls" not in service.get("volumes", []) or name == "certificates"


def test_images_have_a_version():
    for service in SERVICES.values():
        assert re.fullmatch(r"[a-z]+:[0-9][\w.-]*", service["image"])


def test_every_variable_is_explained_in_the_example():
    named = set(re.findall(r"\$\{(\w+)", TEXT))
    assert named == set(EXAMPLE)
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", TEXT))
    assert {name: EXAMPLE[name] for name in defaults} == defaults


def test_secrets_come_from_outside():
    assert (EXAMPLE["POSTGRES_PASSWORD"], EXAMPLE["PREFECT_AUTH"]) == ("", "")
    for name in ("POSTGRES_PASSWORD", "PREFECT_AUTH"):
        assert f"${{{name}:?" in TEXT, "without it nothing starts"
    for service in SERVICES.values():
        said = " ".join(map(str, service.get("command", [])))
        assert "PASSWORD" not in said
        assert "AUTH" not in said, "command lines are seen by all"


def test_server_and_clients_have_the_same_secret():
    server = environment(SERVICES["server"])
    assert server["PREFECT_SERVER_CSRF_PROTECTION_ENABLED"] == "true"
    for name in ("deployments", "flows"):
        client = environment(SERVICES[name])
        assert client["PREFECT_API_AUTH_STRING"] == server["PREFECT_SERVER_API_AUTH_STRING"]
        assert client["PREFECT_API_URL"] == "http://server:4200/api"


def test_dask_is_set_up_as_the_library_sets_up_its_own():
    dask = environment(SERVICES["scheduler"])
    for name, value in cluster.SETTINGS.items():
        if name == "distributed.nanny.pre-spawn-environ":
            continue
        variable = "DASK_" + name.replace(".", "__").replace("-", "_").upper()
        assert dask[variable] == (str(value) if not isinstance(value, bool) else str(value).lower()), name
    worker = environment(SERVICES["workers"])
    assert dask.items() <= worker.items()
    assert (remote.MALLOC | cluster.ONE).items() <= worker.items()


def test_dask_speaks_tls_only():
    for name in ("scheduler", "workers"):
        service = SERVICES[name]
        assert environment(service)["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "true"
        assert environment(service)["DASK_CONFIG"] == "/tls/dask.yaml"
        assert "tls:/tls:ro" in service["volumes"]
        assert "--dashboard-address=127.0.0.1:8787" in service["command"]
    assert "--protocol=tls" in SERVICES["scheduler"]["command"]
    assert "tls://scheduler:8786" in SERVICES["workers"]["command"]
    assert environment(SERVICES["deployments"])["IBPDIST_SCHEDULER"] == "tls://scheduler:8786"


@pytest.mark.parametrize(
    ("service", "words"), [("scheduler", 2), ("workers", 2), ("server", 3), ("flows", 3)]
)
def test_commands_have_the_options_that_they_are_given(service, words):
    command = SERVICES[service]["command"]
    modules = {"dask": ["-m", "dask"], "prefect": ["-m", "prefect"]}
    asked = [sys.executable, *modules[command[0]], *command[1:words], "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120)
    given = [part.partition("=")[0] for part in command[words:] if part.startswith("--")]
    assert given
    assert [option for option in given if option not in done.stdout] == []


def test_health_checks_are_python():
    for service in OURS.values():
        if "healthcheck" in service:
            kind, program, flag, code = service["healthcheck"]["test"]
            assert (kind, program, flag) == ("CMD", "python", "-c")
            compile(code, "healthcheck", "exec")
