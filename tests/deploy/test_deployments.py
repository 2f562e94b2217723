"""deploy/prefect.yaml and deploy/README.md: what they name exists."""

import importlib
import re
import tomllib
from pathlib import Path

import yaml
from prefect.client.schemas.schedules import construct_schedule

from ibpdist.engine import remote

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "deploy" / "prefect.yaml").read_text("utf-8")
FILE = yaml.safe_load(TEXT)
DEPLOYMENTS = {one["entrypoint"]: one for one in FILE["deployments"]}
README = (ROOT / "deploy" / "README.md").read_text("utf-8")


def test_every_flow_has_a_deployment():
    flows = {f"flows.{name}.{name}" for name in ("ingest", "fit", "sweep", "evaluate", "report", "campaign")}
    assert set(DEPLOYMENTS) == flows
    for entrypoint in flows:
        module, _, name = entrypoint.rpartition(".")
        assert getattr(importlib.import_module(module), name).name == name


def test_all_run_in_one_pool():
    assert {one["work_pool"]["name"] for one in DEPLOYMENTS.values()} == {"ibpdist"}
    compose = (ROOT / "deploy" / "compose.yaml").read_text("utf-8")
    assert "work-pool create ibpdist --type process" in compose
    assert "--pool, ibpdist, --type, process" in compose


def test_the_campaign_comes_round_and_never_twice_at_a_time():
    nightly = DEPLOYMENTS["flows.campaign.campaign"]
    (schedule,) = nightly["schedules"]
    made = construct_schedule(cron=schedule["cron"], timezone=schedule["timezone"])
    assert (made.cron, made.timezone) == ("0 2 * * *", "UTC")
    assert nightly["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    assert all(
        "schedules" not in one for name, one in DEPLOYMENTS.items() if name != "flows.campaign.campaign"
    )


def test_its_parameters_are_those_of_the_flow():
    flow = importlib.import_module("flows.campaign").campaign
    given = DEPLOYMENTS["flows.campaign.campaign"]["parameters"]
    assert set(given) <= set(flow.parameters.properties)
    assert flow.validate_parameters(given)["where"].scheduler == given["where"]["scheduler"]


def test_variables_are_set_where_it_is_deployed():
    named = set(re.findall(r"\$(\w+)", TEXT))
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
    assert named <= set(compose["services"]["deployments"]["environment"])
    assert all(name in README for name in named)


def test_the_version_of_prefect_is_one_that_we_take():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (wanted,) = [one for one in project["dependencies"] if one.startswith("prefect")]
    assert wanted == "prefect>=3.8,<4"
    assert FILE["prefect-version"].startswith("3.8.")


def test_what_the_page_names_exists():
    for name in re.findall(r"`((?:deploy|flows)/[\w./-]+)`", README):
        assert (ROOT / name).exists() or name == "deploy/.env", name
    assert {"SLURM", "Kubernetes", "TLS"} <= set(re.findall(r"\w+", README))
    for title in ("SLURM", "Kubernetes"):
        _, _, section = README.partition(f"## {title}\n")
        section = section.partition("\n## ")[0]
        assert "not been run" in section, "nobody may think that it was tried"


def test_blocks_of_python_and_yaml_can_be_parsed():
    blocks = re.findall(r"```(python|yaml)\n(.*?)```", README, re.DOTALL)
    assert {kind for kind, _ in blocks} == {"python", "yaml"}
    for kind, text in blocks:
        if kind == "python":
            compile(text, "deploy/README.md", "exec")
            assert all(name in text for name in remote.MALLOC)
        else:
            assert all(isinstance(one, dict) for one in yaml.safe_load_all(text))
