"""The command that times steps of counts runs."""

from tests.benchmarks.token_passes import main, zipf


def test_rows_have_about_so_many_different_words():
    x = zipf(20, 2000)
    assert 100 < (x > 0).sum(axis=1).mean() < 220


def test_the_command_runs(capsys):
    assert main(["--shape", "60x50x3", "--workers", "0", "--steps", "12"]) == 0
    told = capsys.readouterr().out
    assert "counts-finite" in told
    assert "counts-gibbs-finite" in told
