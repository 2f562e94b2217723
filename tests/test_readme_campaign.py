"""The campaign of the README is one, and what it calls exists."""

import ast
import re
from pathlib import Path

from ibpdist.campaigns import summary as table
from ibpdist.campaigns.campaign import Campaign
from ibpdist.campaigns.spec import CampaignSpec

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_the_file_is_a_campaign() -> None:
    (text,) = re.findall(r"```yaml\n(# campaign.yaml\n.*?)```", README, re.DOTALL)
    spec = CampaignSpec.parse(text)
    assert len(list(spec.cells())) == 2 * 3 * 2 * 8
    assert list(spec.dims()) == ["system", "truncation", "noise", "restart"]


def test_its_keys_are_those_of_a_campaign() -> None:
    _, _, rest = README.partition("Keys are `data, system")
    told = [
        "data",
        *re.findall(r"\w+", "system" + rest.partition("`; all")[0].partition("` and `")[0]),
        "set",
    ]
    assert set(told) == set(CampaignSpec.model_fields) - {"checkpoint"}


def test_what_it_calls_exists() -> None:
    (code,) = re.findall(r"```py\n(campaign = .*?)```", README, re.DOTALL)
    used = {
        node.attr
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "campaign"
    }
    assert used - {"run"} <= set(dir(Campaign)) | set(Campaign.__dataclass_fields__)
    assert used >= {"summary", "best", "fit", "stability", "aligned"}
    _, _, rest = README.partition("is the same table for `xarray.open_zarr`:")
    named = set(re.findall(r"`(\w+)`", rest.partition(", the name of a folder")[0]))
    assert named <= set(table.NUMBERS) | set(table.WORDS)
    assert len(named) >= 8
