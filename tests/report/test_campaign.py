"""A campaign in words."""

import ibpdist as ibp
from ibpdist.campaigns.directory import CampaignDirectory
from ibpdist.report.campaign import summary
from tests.support.grids import grid


def test_the_answer_comes_first(store, tmp_path):
    found = ibp.sweep(grid(store, restarts=3, steps=30, holdout=0.25), tmp_path / "run")
    lines = summary(found).splitlines()
    best = found.best_fit("heldout")
    active = int(found.number(best, "active"))
    assert lines[0].startswith(f"{active} feature")
    assert lines[0].endswith(
        f"by the held-out score the best: lg-vi-infinite, K = {best.labels['truncation']}, "
        f"restart {best.labels['restart']}"
    )
    stable = int((found.stability().stability >= 0.75).sum())
    assert lines[1].startswith(f"{stable} of {active} feature")
    assert " found again in at least 75% of 2 other restarts" in lines[1]
    similar = found.stability().similarity.values[found.stability().present.values]
    if similar.size:
        assert lines[1].endswith(f", with similarity {similar.min():.2f} to {similar.max():.2f}")
    assert lines[3].split() == [
        "system",
        "truncation",
        "objective",
        "held",
        "out",
        "features",
        "steps",
        "ended",
    ]
    assert lines[4].split()[:2] == ["lg-vi-infinite", "3"]
    assert f"{float(found.summary.objective.sel(truncation=3).max()):,.4f}" in lines[4]
    assert f"{float(found.summary.heldout.sel(truncation=4).max()):.4f}" in lines[5]
    assert lines[5].endswith("3 of 3")
    assert lines[7].startswith("6 of 6 fits ended, ")
    assert found.manifest.fingerprint[:12] in lines[8]


def test_without_scores_and_with_failures(store, tmp_path):
    keys = grid(store, restarts=1, truncation=3, set={"moves": False, "noise": ["one", 1e-100]})
    text = summary(ibp.sweep(keys, tmp_path / "run"))
    assert "by the objective the best: lg-vi-infinite, K = 3, noise one, restart 0" in text
    assert "held out" not in text
    assert "come back" not in text, "one restart says nothing of others"
    assert "1 of 2 fits ended" in text
    assert "1 failed:\n- lg-vi-infinite, K = 3, noise 1e-100, restart 0: " in text
    row = next(line for line in text.splitlines() if "1e-100" in line)
    assert row.split()[-6:] == ["-", "-", "-", "0", "of", "1"]


def test_hold_outs_are_not_ranked_against_each_other(store, tmp_path):
    found = ibp.sweep(grid(store, steps=30, holdout=[0.0, 0.25]), tmp_path / "run")
    lines = summary(found).splitlines()
    assert lines[0] == "fits with different hold-outs cannot be compared: the best of each"
    said = [line for line in lines if " the best: " in line]
    assert [line.split(", ")[1].partition(" the best")[0] for line in said] == [
        "by the objective",
        "by the held-out score",
    ]
    assert [f"holdout {one}" in line for one, line in zip((0.0, 0.25), said, strict=True)] == [True, True]
    assert sum("found again" in line for line in lines) == 2


def test_before_anything_has_ended(store, tmp_path):
    directory = CampaignDirectory(tmp_path / "run")
    from ibpdist.campaigns.run import spec_of

    directory.begin(spec_of(grid(store)), "f")
    directory.close()
    text = summary(ibp.open_campaign(tmp_path / "run"))
    assert text.startswith("no fit has ended\n")
    assert "0 of 4 fits ended, 0 s of steps" in text
