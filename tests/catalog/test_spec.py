"""The spec of a fit: what is refused and how, the round trip through YAML, the id."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ibpdist.base.errors import UsageError
from ibpdist.catalog.spec import FitSpec, scalar

GOOD = {"data": "big.zarr", "system": "lg-vi-infinite", "truncation": 40, "seed": 7}
TEXT = """\
# a fit
data: big.zarr
system: lg-vi-infinite
truncation: 40
seed: 7
rtol: 1e-7
set:
  noise: column
  mass: 5
"""


def refused(text: str, tmp_path: Path) -> str:
    """The sentence with which a file is refused, without its name."""
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        FitSpec.read(path)
    assert caught.value.code == 2
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path}: ")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(TEXT)
    spec = FitSpec.read(path)
    assert spec == FitSpec.make(**GOOD, rtol=1e-7, set={"noise": "column", "mass": 5})
    assert isinstance(spec.set["mass"], int)


def test_a_dumped_spec_is_parsed() -> None:
    spec = FitSpec.make(**GOOD, rtol=1e-7, set={"noise": "column", "mass": 5})
    assert FitSpec.parse(spec.dump()) == spec
    with pytest.raises(UsageError, match=r"^kept: line 1: nonsense: unknown key"):
        FitSpec.parse("nonsense: 1\n" + spec.dump(), "kept")


def test_a_spec_does_not_change() -> None:
    spec = FitSpec.make(**GOOD)
    with pytest.raises(ValueError, match="frozen"):
        spec.truncation = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("trunction: 4", "line 10: trunction: unknown key; did you mean truncation?"),
        ("colour: red", "line 10: colour: unknown key; expected one of data, system, truncation"),
        ("seed: 8", "line 10: seed stands twice, first in line 5"),
        ("steps: many", "line 10: steps: expected integer, got 'many'"),
        ("steps: 10.5", "line 10: steps: expected integer, got 10.5"),
        ("steps: '10'", "line 10: steps: expected integer, got '10'"),
        ("steps: true", "line 10: steps: expected integer, got True"),
        ("steps: 012", "line 10: steps: expected integer, got '012'"),
        ("steps: 0", "line 10: steps: expected greater than 0, got 0"),
        ("inner: -1", "line 10: inner: expected greater than 0, got -1"),
        ("restarts: 0", "line 10: restarts: expected greater than 0, got 0"),
        ("holdout: 1", "line 10: holdout: expected less than 1, got 1"),
        ("holdout: -0.1", "line 10: holdout: expected 0 or greater, got -0.1"),
        ("holdout: some", "line 10: holdout: expected a share of the columns, or a recipe"),
        ("holdout: .nan", "line 10: holdout: expected finite number, got nan"),
        ("inner: &a 2", "line 10: anchors are not read"),
        ("inner: *a", "line 10: anchors are not read"),
        ("inner: !!python/name:os.system", "line 10: could not determine a constructor for the tag"),
        ("7: 8", "line 10: a key must be a word"),
        ("<<: {inner: 2}", "line 10: <<: unknown key"),
        ("inner: [1, 2]", "line 10: inner: expected integer, got [1, 2]"),
        ("inner: {a: 1, a: 2}", "line 10: inner.a stands twice, first in line 10"),
        ("inner: [1", "line 11: expected ',' or ']', but got"),
    ],
)
def test_a_fault_is_named_with_its_line(line: str, sentence: str, tmp_path: Path) -> None:
    assert refused(TEXT + line + "\n", tmp_path).startswith(sentence)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("truncation: 40", "truncation: 0", "line 4: truncation: expected greater than 0, got 0"),
        ("truncation: 40", "truncation: -3", "line 4: truncation: expected greater than 0, got -3"),
        ("seed: 7", "seed: -1", "line 5: seed: expected greater than or equal to 0, got -1"),
        ("seed: 7", "seed:", "line 5: seed: expected integer, got None"),
        ("seed: 7", "", "seed: this key is required"),
        ("rtol: 1e-7", "rtol: -1", "line 6: rtol: expected greater than or equal to 0, got -1"),
        ("mass: 5", "mass: 0", "line 9: set.mass: expected greater than 0, got 0"),
        ("mass: 5", "mass: -0.5", "line 9: set.mass: expected greater than 0, got -0.5"),
        ("mass: 5", "mass: true", "line 9: set.mass: expected greater than 0, got True"),
        ("mass: 5", "mass: .nan", "line 9: set.mass: a setting is a finite number, true, false or a word"),
        ("mass: 5", "mass: .inf", "line 9: set.mass: a setting is a finite number, true, false or a word"),
        ("mass: 5", "mass: [5]", "line 9: set.mass: a setting is a finite number, true, false or a word"),
        ("mass: 5", "noise: 1", "line 9: set.noise stands twice, first in line 8"),
        ("noise: column", "noise: 0.0", "line 8: set.noise: expected greater than 0, got 0.0"),
        ("noise: column", "noise: 1e-300", "line 8: set.noise: expected between 1e-120 and 1e+120; give"),
        ("noise: column", "noise: 5e-324", "line 8: set.noise: expected between 1e-120 and 1e+120; give"),
        ("noise: column", "scale: 1e-121", "line 8: set.scale: expected between 1e-120 and 1e+120; give"),
        ("mass: 5", "mass: 1e200", "line 9: set.mass: expected between 1e-120 and 1e+120; give"),
        ("mass: 5", "mass: 1" + "0" * 400, "line 9: set.mass: expected between 1e-120 and 1e+120; give"),
        ("data: big.zarr", 'data: "a\\0b"', "line 2: data: a name has no control characters, got 'a\\x00b'"),
        ("data: big.zarr", 'data: "a\\nb"', "line 2: data: a name has no control characters"),
        ("data: big.zarr", 'data: ""', "line 2: data: String should have at least 1 character"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    assert old in TEXT
    assert refused(TEXT.replace(old, new), tmp_path).startswith(sentence)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "word\n", "# nothing\n"])
def test_a_file_without_keys_is_refused(text: str, tmp_path: Path) -> None:
    assert refused(text, tmp_path) == "expected keys and values"


def test_two_documents_are_refused(tmp_path: Path) -> None:
    assert "expected a single document" in refused(TEXT + "---\n" + TEXT, tmp_path)


def test_an_alias_bomb_is_refused_at_its_first_anchor(tmp_path: Path) -> None:
    layers = "".join(f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 9)}]\n" for i in range(1, 30))
    assert refused("k0: &k0 lol\n" + layers, tmp_path) == "line 1: anchors are not read"


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    assert refused("set: " + "[" * 100_000, tmp_path) == "nested too deeply; a configuration has two levels"


def test_files_that_are_no_text_of_a_sane_size(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        FitSpec.read(path)
    path.write_text("# " + "x" * (1 << 20))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        FitSpec.read(path)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        FitSpec.read(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        FitSpec.read(tmp_path)


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("truncation", 0, "truncation: expected greater than 0, got 0"),
        ("truncation", 40.0, "truncation: expected integer or auto, got 40.0"),
        ("rtol", float("nan"), "rtol: expected finite number, got nan"),
        ("set", {"mass": -1}, "set.mass: expected greater than 0, got -1"),
        ("sead", 1, "sead: unknown key; did you mean seed?"),
    ],
)
def test_a_wrong_option_is_named(option: str, value: object, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        FitSpec.make(**{**GOOD, option: value})
    assert str(caught.value) == sentence


def test_a_seed_may_have_any_size() -> None:
    assert FitSpec.make(**{**GOOD, "seed": 2**70}).seed == 2**70


def test_numbers_of_numpy_are_settings() -> None:
    given = {"noise": np.float64(0.3), "mass": np.float32(2), "anneal": np.int64(1), "moves": np.bool_(False)}
    spec = FitSpec.make(data="x.npy", system="lg-vi-infinite", truncation=np.int64(3), seed=1, set=given)
    assert spec.set == {"noise": 0.3, "mass": 2.0, "anneal": 1, "moves": False}
    assert [type(value) for value in spec.set.values()] == [float, float, int, bool]
    assert FitSpec.parse(spec.dump()) == spec
    with pytest.raises(UsageError, match="a setting is a finite number"):
        FitSpec.make(
            data="x.npy", system="lg-vi-infinite", truncation=3, seed=1, set={"noise": np.float64("nan")}
        )


def test_a_whole_number_is_a_tolerance_too() -> None:
    assert FitSpec.make(**GOOD, rtol=0).rtol == 0.0


settings = st.dictionaries(
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(
        lambda name: name not in ("mass", "noise", "scale", "concentration")
    ),
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.sampled_from(
            ["no", "yes", "null", "~", "1e5", "012", "0x1F", "1_000", "2020-01-01", "1:30", "=", "<<"]
        ),
    ),
    max_size=4,
)


@given(
    seed=st.integers(0, 2**80),
    rtol=st.floats(0, 1, exclude_max=True),
    settings=settings,
)
def test_dump_and_read_give_the_same_spec(
    seed: int, rtol: float, settings: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    spec = FitSpec.make(**{**GOOD, "seed": seed}, rtol=rtol, set=settings)
    path = tmp_path_factory.mktemp("spec") / "spec.yaml"
    path.write_text(spec.dump(), "utf-8")
    again = FitSpec.read(path)
    assert again == spec
    assert again.dump() == spec.dump()
    assert [type(again.set[name]) for name in settings] == [type(value) for value in settings.values()]
    assert yaml.safe_load(spec.dump()) == spec.written()


def test_the_id_follows_what_decides_the_result() -> None:
    first = FitSpec.make(**GOOD, set={"mass": 5, "noise": "column"})
    assert len(first.id("f")) == 16
    assert first.id("f") == FitSpec.make(**GOOD, set={"noise": "column", "mass": 5}).id("f")
    assert first.id("f") == first.model_copy(update={"data": "elsewhere.zarr"}).id("f")
    assert first.id("f") == first.model_copy(update={"checkpoint": 3}).id("f")
    changes = {
        "system": "fa-vi-infinite", "truncation": 41, "seed": 8, "steps": 201, "rtol": 1e-5,
        "inner": 2, "restarts": 2, "chains": 2, "burn": 5, "thin": 2, "holdout": 0.1,
        "stability": 4, "subsample": 0.9, "member": 0, "set": {"mass": 5.5, "noise": "column"},
    }  # fmt: skip
    others = {first.model_copy(update={name: value}).id("f") for name, value in changes.items()}
    assert len(others | {first.id("f"), first.id("g")}) == len(changes) + 2
    assert {*changes, "data", "checkpoint"} == set(FitSpec.model_fields)


def test_keys_of_subsamples_are_written_where_they_are_asked_for() -> None:
    assert {"stability", "subsample", "member"}.isdisjoint(yaml.safe_load(FitSpec.make(**GOOD).dump()))
    asked = yaml.safe_load(FitSpec.make(**GOOD, stability=8, subsample=0.9).dump())
    assert (asked["stability"], asked["subsample"]) == (8, 0.9)
    assert "member" not in asked


def test_specs_without_subsamples_keep_their_ids() -> None:
    assert FitSpec.make(**GOOD).id("f") == "d89f0adfe6a8feef"


@pytest.mark.parametrize("text", ["stability: 1", "stability: 0", "subsample: 0.0", "subsample: 1.0"])
def test_subsamples_out_of_range_are_refused(text: str, tmp_path: Path) -> None:
    assert text.partition(":")[0] in refused(TEXT + text, tmp_path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("-3", -3), ("0", 0), ("1e-6", 1e-6), (".5", 0.5), ("5.", 5.0), ("true", True),
        ("false", False), ("column", "column"), ("012", "012"), ("no", "no"), ("1_000", "1_000"),
        ("", ""), ("True", "True"), ("5 ", "5 "), ("0x1F", "0x1F"), (str(2**80), 2**80),
        (".inf", float("inf")), ("-.inf", float("-inf")),
    ],
)  # fmt: skip
def test_a_word_on_the_command_line_reads_as_in_yaml(text: str, value: object) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)
