"""The form that Prefect shows for each flow: every parameter is typed and explained."""

import pytest
from prefect.utilities.callables import parameter_schema

from flows import campaign, evaluate, fit, ingest, report, sweep
from ibpdist.catalog.systems import SYSTEMS

FLOWS = (ingest.ingest, fit.fit, sweep.sweep, evaluate.evaluate, report.report, campaign.campaign)


def schema(flow):
    return parameter_schema(flow).model_dump()


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_every_parameter_has_a_type_and_a_description(flow):
    form = schema(flow)
    for name, one in form["properties"].items():
        assert one.get("description", "").endswith("."), name
        assert {"type", "anyOf", "$ref"} & set(one), name
    for model in form["definitions"].values():
        assert all(one.get("description") for one in model["properties"].values())


@pytest.mark.parametrize(
    ("flow", "required"),
    [
        (ingest.ingest, ["source", "store"]),
        (fit.fit, ["store", "run"]),
        (sweep.sweep, ["campaign", "run"]),
        (evaluate.evaluate, ["run"]),
        (report.report, ["run"]),
        (campaign.campaign, ["campaign", "run"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_must_be_filled_in(flow, required):
    assert schema(flow)["required"] == required


def test_systems_are_a_list_to_choose_from():
    assert schema(fit.fit)["properties"]["system"]["enum"] == list(SYSTEMS)


def test_numbers_have_limits():
    form = schema(fit.fit)["properties"]
    assert form["seed"]["minimum"] == 0
    assert form["restarts"]["minimum"] == 1
    assert {"minimum": 1, "type": "integer"} in form["features"]["anyOf"]


@pytest.mark.parametrize(
    ("flow", "given", "read"),
    [
        (fit.fit, {"features": "12", "where": {"workers": "2"}}, {"features": 12}),
        (fit.fit, {"features": "auto", "settings": {"noise": 0.5, "moves": False, "missing": "rows"}}, {}),
        (fit.fit, {"holdout": "rows:share=0.1"}, {"holdout": "rows:share=0.1"}),
        (fit.fit, {"holdout": 0.1}, {"holdout": 0.1}),
    ],
)
def test_what_a_form_sends_is_read(flow, given, read):
    found = flow.validate_parameters({"store": "x.zarr", "run": "run", **given})
    assert {name: found[name] for name in read} == read
    if "settings" in given:
        assert found["settings"] == given["settings"]
    assert found.get("where", fit.Where()) in (fit.Where(), fit.Where(workers=2))


@pytest.mark.parametrize(
    "wrong", [{"features": 0}, {"features": "many"}, {"seed": -1}, {"where": {"wrokers": 1}}]
)
def test_what_is_wrong_in_a_form_is_refused_before_anything_runs(wrong):
    from prefect.exceptions import ParameterTypeError

    with pytest.raises(ParameterTypeError):
        fit.fit.validate_parameters({"store": "x.zarr", "run": "run", **wrong})
