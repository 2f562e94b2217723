"""The grid of a campaign: what is refused and how, what it expands to, the round trip through YAML."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.base.errors import UsageError
from ibpdist.campaigns.spec import CampaignSpec, in_words
from ibpdist.catalog.spec import FitSpec
from ibpdist.runs.restarts import seed_of

TEXT = """\
# a campaign
data: big.zarr
system: [lg-vi-infinite, lg-vi-infinite-hard]
truncation: [10, 20]
restarts: 3
seed: 7
set:
  noise: [one, column]
  mass: 5
"""
LAST = len(TEXT.splitlines())


def refused(text: str, tmp_path: Path) -> str:
    """The sentence with which a file is refused, without its name."""
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        CampaignSpec.read(path)
    assert caught.value.code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


def test_a_grid_is_every_combination() -> None:
    spec = CampaignSpec.parse(TEXT)
    cells = list(spec.cells())
    assert spec.dims() == {
        "system": ["lg-vi-infinite", "lg-vi-infinite-hard"],
        "truncation": [10, 20],
        "noise": ["one", "column"],
        "restart": [0, 1, 2],
    }
    assert len(cells) == 2 * 2 * 2 * 3
    assert len({tuple(cell.labels.items()) for cell in cells}) == len(cells)
    first = FitSpec.make(
        data="big.zarr", system="lg-vi-infinite", truncation=10, seed=7, set={"noise": "one", "mass": 5}
    )
    assert cells[0].spec == first
    assert cells[1].labels == {"system": "lg-vi-infinite", "truncation": 10, "noise": "one", "restart": 1}
    assert [cell.spec.seed for cell in cells[:3]] == [seed_of(7, restart) for restart in range(3)]


def test_a_single_value_is_a_list_of_it() -> None:
    single = "data: a\nsystem: lg-vi-finite\ntruncation: 4\nsteps: 9\nset:\n  mass: 2\n"
    listed = "data: a\nsystem: [lg-vi-finite]\ntruncation: [4]\nsteps: [9]\nset:\n  mass: [2]\n"
    assert CampaignSpec.parse(single) == CampaignSpec.parse(listed)
    assert list(CampaignSpec.parse(single).dims()) == ["system", "truncation", "restart"]


@pytest.mark.parametrize(
    ("key", "dim"),
    [
        ("steps: [5, 9]", "step_limit"),
        ("rtol: [1e-3, 1e-4]", "rtol"),
        ("inner: [1, 2]", "inner"),
        ("holdout: [0.1, 'rows:share=0.1']", "holdout"),
        ("start: [random, spectral]", "start"),
    ],
)
def test_a_key_with_several_values_is_a_dim(key: str, dim: str) -> None:
    spec = CampaignSpec.parse(TEXT + key)
    assert len(spec.dims()[dim]) == 2
    assert {cell.labels[dim] for cell in spec.cells()} == set(spec.dims()[dim])
    specs = [cell.spec for cell in spec.cells()]
    assert len({one.id("f") for one in specs}) == len(specs) == 48


def test_the_start_is_a_setting_of_each_fit() -> None:
    spec = CampaignSpec.parse(TEXT + "start: random")
    assert {cell.spec.set["start"] for cell in spec.cells()} == {"random"}
    assert "start" not in next(CampaignSpec.parse(TEXT).cells()).spec.set


def test_adding_a_value_keeps_the_ids_of_what_was_there() -> None:
    def ids(spec: CampaignSpec) -> set[str]:
        return {cell.spec.id("f") for cell in spec.cells()}

    small = CampaignSpec.parse(TEXT)
    for old, new in (
        ("[10, 20]", "[10, 20, 30]"),
        ("mass: 5", "mass: [5, 6]"),
        ("restarts: 3", "restarts: 4"),
    ):
        assert ids(small) < ids(CampaignSpec.parse(TEXT.replace(old, new)))


def test_a_dumped_grid_is_parsed() -> None:
    spec = CampaignSpec.parse(TEXT + "start: [random, auto]\nholdout: 0.2\n")
    assert CampaignSpec.parse(spec.dump()) == spec
    assert CampaignSpec.make(**spec.model_dump()) == spec


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("trunction: 4", "trunction: unknown key; did you mean truncation?"),
        ("seed: 8", "seed stands twice, first in line 6"),
        ("seed: [1, 2]", "seed stands twice"),
        ("steps: [10, many]", "steps: expected integer, got 'many'"),
        ("steps: [10, 0]", "steps: expected greater than 0, got 0"),
        ("steps: []", "steps: expected a value, or a list of at least one, got []"),
        ("steps: [[5]]", "steps: expected integer, got [5]"),
        ("steps: [5, 6, 5]", "steps: 5 occurs twice in the list"),
        ("holdout: [0.1, 1]", "holdout: expected less than 1, got 1"),
        ("rtol: x", "rtol: expected number, got 'x'"),
        ("start: nowhere", "start: 'nowhere' is not known; expected one of auto, random"),
        ("inner: *a", "anchors are not read"),
        (
            "holdout: 'cells:foo=2'",
            "holdout: unknown key 'foo', expected one of share, rows, seed, fresh, got",
        ),
        ("holdout: [0.1, 'rows:share=2']", "holdout: held-out share is 2.0: expected more than 0 and less"),
        ("holdout: 'cells:share=x'", "holdout: share is 'x', which is not a float, got 'cells:share=x'"),
        ("holdout: 'rows:seed=-1'", "holdout: expected a seed of 0 or greater, got 'rows:seed=-1'"),
        (
            "start: empty",
            "start: lg-vi-infinite: expected auto, random, rows, svd, spectral, principal, independent, best",
        ),
    ],
)
def test_a_fault_is_named_with_its_line(line: str, sentence: str, tmp_path: Path) -> None:
    found = refused(TEXT + line, tmp_path)
    assert found.startswith(f"line {LAST + 1}: {sentence}"), found


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mass: 5", "mass: [5, -1]", "line 9: set.mass: expected greater than 0, got -1"),
        ("mass: 5", "mas: 5", "line 9: set.mas: lg-vi-infinite has no such setting; known: mass"),
        ("mass: 5", "mass: 5\nmass: 6", "line 10: mass: unknown key"),
        ("mass: 5", "mass: 5\n  mass: 6", "line 10: set.mass stands twice, first in line 9"),
        ("mass: 5", "mass: .nan", "line 9: set.mass: a setting is a finite number"),
        ("mass: 5", "start: rows\nstart: random", "line 9: set.start: sets the same option as the key start"),
        ("restarts: 3", "restarts: [3]", "line 5: restarts: expected integer, got [3]"),
        ("restarts: 3", "restarts: 0", "line 5: restarts: expected greater than 0, got 0"),
        ("[10, 20]", "[10, auto, 0]", "line 4: truncation: expected greater than 0, got 0"),
        ("infinite-hard]", "infinite-hart]", "line 3: system: 'lg-vi-infinite-hart' is not known"),
        ("restarts: 3", "chains: 3", "line 5: chains: is for samplers, and no system is one"),
        ("restarts: 3", "burn: 10", "line 5: burn: is for samplers, and no system is one"),
        ("restarts: 3", "thin: 0", "line 5: thin: expected greater than 0, got 0"),
        ("lg-vi-infinite-hard]", "lg-vi-finite]\nset:\n  bound: taylor", "line 9: set stands twice"),
        ("data: big.zarr\n", "", "data: this key is required"),
        ("mass: 5", "moves: yes", "line 9: set.moves: lg-vi-infinite: expected true or false, got 'yes'"),
        ("mass: 5", "moves: [true, 2]", "line 9: set.moves: lg-vi-infinite: expected true or false, got 2"),
        (
            "[one, column]",
            "[one, blue]",
            "line 8: set.noise: lg-vi-infinite: expected one, column, auto or a number",
        ),
        (
            "[one, column]",
            "[blue, one]",
            "line 8: set.noise: lg-vi-infinite: expected one, column, auto or a number",
        ),
        (
            "mass: 5",
            "anneal: 0.5",
            "line 9: set.anneal: lg-vi-infinite: expected a number of at least 1, got",
        ),
        ("mass: 5", "mass: much", "line 9: set.mass: lg-vi-infinite: expected a positive number or"),
        (
            "[lg-vi-infinite, lg-vi-infinite-hard]",
            "lg-particle",
            "line 3: system: a particle filter learns nothing: set a number for noise and scale",
        ),
        (
            "restarts: 3",
            "restarts: 1000000000",
            "line 5: restarts: makes a grid of 8,000,000,000 fits; expected at most 100,000, in several",
        ),
        (
            "[10, 20]",
            f"{list(range(1, 10_001))}",
            "line 4: truncation: makes a grid of 120,000 fits; expected at most 100,000, in several",
        ),
        (
            "mass: 5",
            f"mass: {list(range(1, 10_001))}",
            "line 9: set.mass: makes a grid of 240,000 fits; expected",
        ),
    ],
)
def test_a_changed_line_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    assert refused(TEXT.replace(old, new), tmp_path).startswith(sentence)


def test_a_setting_must_be_one_of_every_system(tmp_path: Path) -> None:
    text = TEXT.replace("lg-vi-infinite-hard", "lg-vi-finite").replace("mass: 5", "bound: taylor")
    assert refused(text, tmp_path).startswith("line 9: set.bound: lg-vi-finite has no such setting")


def test_settings_are_tried_together() -> None:
    """Of a particle filter noise and scale are numbers: none of the two is enough."""
    spec = CampaignSpec.make(
        data="a", system="lg-particle", truncation=4, set={"noise": [0.1, 0.2], "scale": 1, "mass": 2}
    )
    assert len(list(spec.cells())) == 2
    with pytest.raises(
        UsageError,
        match=r"^system: a particle filter learns nothing: set a number for noise and scale and mass",
    ):
        CampaignSpec.make(data="a", system="lg-particle", truncation=4)
    with pytest.raises(UsageError, match=r"^set\.scale: lg-gibbs-infinite: anchored: scale=feature"):
        CampaignSpec.make(data="a", system="lg-gibbs-infinite", truncation=4, set={"scale": "feature"})


def test_only_samplers_have_chains() -> None:
    grid = {"data": "a.zarr", "system": ["lg-vi-infinite", "lg-gibbs-infinite"], "truncation": 4, "steps": 50}
    spec = CampaignSpec.make(**grid, chains=3, burn=10, thin=2)
    found = {cell.labels["system"]: cell.spec for cell in spec.cells()}
    told = {name: (one.chains, one.burn, one.thin) for name, one in found.items()}
    assert told == {"lg-vi-infinite": (1, None, 1), "lg-gibbs-infinite": (3, 10, 2)}
    assert list(spec.dims()) == ["system", "truncation", "restart"]
    assert CampaignSpec.parse(spec.dump()) == spec


def test_fits_are_named_in_words() -> None:
    labels = {"system": "lg-vi-finite", "truncation": 20, "mass": 5, "restart": 3}
    assert in_words(labels) == "lg-vi-finite, K = 20, mass 5, restart 3"


@given(
    levels=st.lists(st.integers(1, 99), min_size=1, max_size=4, unique=True),
    masses=st.lists(st.floats(0.1, 99), min_size=1, max_size=3, unique=True),
    restarts=st.integers(1, 3),
    seed=st.integers(0, 2**70),
)
def test_every_cell_has_its_own_id_and_labels(levels, masses, restarts, seed) -> None:
    keys = {"data": "a", "system": "lg-vi-finite", "truncation": levels, "set": {"mass": masses}}
    spec = CampaignSpec.make(**keys, restarts=restarts, seed=seed)
    cells = list(spec.cells())
    assert len({cell.spec.id("f") for cell in cells}) == len(levels) * len(masses) * restarts
    assert CampaignSpec.parse(spec.dump()) == spec
    for cell in cells:
        assert list(cell.labels) == list(spec.dims())
        assert cell.labels["truncation"] == cell.spec.truncation
