"""Two sweeps on one folder: one wins, the other is told so."""

import ibpdist as ibp
from tests.support.grids import small_store
from tests.support.races import race, racers


def test_one_of_two_wins(tmp_path):
    store = small_store(tmp_path)
    with racers(store) as (made, said):
        for number in range(5):
            run = tmp_path / f"run{number}"
            _, code, _ = race(made, said, run)
            assert code == 6
            assert (ibp.open_campaign(run).summary.status == "finished").all()
            assert not (run / "lock").exists()
