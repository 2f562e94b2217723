"""How a campaign stands: a fit either runs, has ended, or waits, whatever becomes of its group."""

from types import SimpleNamespace

import pytest

from ibpdist.campaigns import progress as campaign_progress
from ibpdist.campaigns.directory import CampaignDirectory, Fit
from ibpdist.campaigns.progress import CampaignProgress
from ibpdist.campaigns.spec import CampaignSpec
from tests.support.grids import grid


class Clock:
    """Stands for the module `time`."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A teller of four fits of at most six steps, what it told, and their campaign."""
    monkeypatch.setattr(campaign_progress, "time", Clock())
    directory = CampaignDirectory(tmp_path / "run")
    fits = directory.begin(CampaignSpec.make(**grid("d.zarr")), "f").fits
    seen = []
    yield CampaignProgress(directory.path, fits, seen.append), seen, directory
    directory.close()


def step(fits, number, stopped=()):
    """A step that all fits of a group made but those that have stopped."""
    going = [at for at, fit in enumerate(fits) if fit not in stopped]
    trace = {f"{at}/{name}": 3.0 for at in going for name in ("objective", "active")}
    members = [SimpleNamespace(stop=None if at in going else "it") for at in range(len(fits))]
    return SimpleNamespace(step=number, trace=trace, params=SimpleNamespace(members=members))


def counts(now):
    return now.ended, now.failed, len(now.running)


def test_fits_run_and_end(made):
    teller, seen, _ = made
    fits = teller.fits
    teller.rest()
    teller.step(fits, step(fits, 1))
    teller.step(fits, step(fits, 2, fits[:1]))
    assert [counts(now) for now in seen] == [(0, 0, 0), (0, 0, 4), (1, 0, 3)]
    assert [now.left for now in seen[:2]] == [None, None], "no step was timed"
    assert seen[2].left.about > 0


def test_what_fails_with_its_group_runs_no_more(made):
    teller, seen, directory = made
    fits = teller.fits
    teller.step(fits, step(fits, 1))
    teller.step(fits, step(fits, 5, fits[:1]))
    teller.rest(fits)
    assert counts(seen[-1]) == (0, 0, 0), "all of them wait, also that which had ended"
    directory.fail(fits[0], "no luck", 2)
    teller.rest(fits[:1])
    for number in (1, 2):
        teller.step(fits[1:], step(fits[1:], number))
        assert counts(seen[-1]) == (1, 1, 3)
    assert seen[-1].left.about > 0


def test_groups_tell_in_turn(made):
    teller, seen, _ = made
    first, second = teller.fits[:2], teller.fits[2:]
    teller.step(first, step(first, 1))
    teller.step(second, step(second, 4))
    teller.rest(second)
    teller.step(first, step(first, 2))
    assert [counts(now)[2] for now in seen] == [2, 4, 2, 2]
    assert all(now.left is None or now.left.about > 0 for now in seen), "also when less is made than before"


def test_what_is_not_in_the_grid_is_not_told(made):
    teller, seen, _ = made
    other = Fit("other", {}, teller.fits[0].spec)
    fits = [*teller.fits[:1], other]
    teller.step(fits, step(fits, 1))
    teller.step(fits, step(fits, 2, fits))
    teller.rest(fits)
    assert [counts(now) for now in seen] == [(0, 0, 1), (1, 0, 0), (0, 0, 0)]
    assert [one.name for one in seen[0].running] == ["lg-vi-infinite, K = 3, restart 0"]


def test_nobody_is_told_when_nobody_asks(made):
    teller, seen, _ = made
    teller.progress = None
    teller.step(teller.fits, step(teller.fits, 1))
    teller.scoring(1, 2)
    assert seen == []
