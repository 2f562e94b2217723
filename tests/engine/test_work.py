"""Row state is a function of (run, chunk, step), however it comes about."""

from functools import partial
from itertools import islice

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from ibpdist.engine import work
from ibpdist.engine._base import SAVE
from ibpdist.engine.history import RunHistory
from ibpdist.engine.memo import InFiles
from ibpdist.engine.serial import MemoryHistory, Serial
from ibpdist.engine.sweeps import sweeps
from ibpdist.engine.work import Workbench, advance, save, survey
from ibpdist.runs.bench import bench_of
from ibpdist.runs.loop import Saver
from ibpdist.runs.rows import describe
from tests.support.toy import Toy, blobs, save_blobs, serial_engine, toy_run, toy_spec

STEPS = 7


@pytest.fixture(params=[False, True], ids=["mean", "draw"])
def run(request, tmp_path):
    """A run of seven steps, committed after three, with its true row state after each step."""
    data = save_blobs(tmp_path / "x.npy", blobs())
    directory, job = toy_run(tmp_path / "run", toy_spec(data, set={"draw": request.param}))
    engine = serial_engine(directory.path, job)
    truth, sums = {}, {}
    for now in islice(sweeps(job.algorithm, engine, job.spec.seed), STEPS):
        truth[now.step] = [engine.bench._memo.get(c)[1].share for c in range(engine.chunks)]
        sums[now.step] = now.trace["objective"]
        if now.step == 3:
            Saver(directory, engine, 3).save(now)
    yield directory, job, truth, sums
    directory.close()


def fresh(run, **options):
    directory, job, *_ = run
    return bench_of(job, str(directory.path), **options)


@pytest.mark.usefixtures("two_blas_threads")
def test_a_task_has_one_blas_thread(run, monkeypatch):
    bench, seen = fresh(run), []
    chunk = bench.chunk

    def noted(index):
        seen.append({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
        return chunk(index)

    monkeypatch.setattr(bench, "chunk", noted)
    for task in (survey, partial(advance, step=1)):
        noted(0)
        assert seen.pop() == {2}
        task(bench, 0, 2)
        assert seen
        assert all(threads == {1} for threads in seen)
        seen.clear()


@pytest.mark.parametrize("step", [1, 3, 4, 7])
def test_state_is_rebuilt_from_nothing(run, step):
    bench = fresh(run)
    for index in (0, 11, 22):
        state = bench.state(index, step)
        assert np.array_equal(state.share, run[2][step][index])


def test_rebuilding_begins_at_the_newest_commit(run):
    bench = fresh(run)
    bench.state(4, 7)
    assert bench.replayed == 4, "from the commit after step 3"
    bench.state(4, 7)
    assert bench.replayed == 4, "the second time it is remembered"


def test_rebuilding_before_the_first_commit_begins_at_the_start(run):
    bench = fresh(run)
    bench.state(4, 2)
    assert bench.replayed == 2


def test_state_kept_from_long_ago_is_brought_forward(run):
    bench = fresh(run)
    bench.state(4, 5)
    bench.replayed = 0
    assert np.array_equal(bench.state(4, 7).share, run[2][7][4])
    assert bench.replayed == 2


def test_state_of_a_later_step_is_not_used_for_an_earlier_one(run):
    bench = fresh(run)
    bench.state(4, 7)
    assert np.array_equal(bench.state(4, 5).share, run[2][5][4])


@pytest.mark.parametrize("step", [1, 4, 6])
def test_a_group_gives_the_same_sums_on_a_fresh_process(run, step):
    one, other = fresh(run), fresh(run)
    for s in range(1, step):
        advance(one, 0, 8, s)
    warm, cold = advance(one, 0, 8, step), advance(other, 0, 8, step)
    assert np.array_equal(warm.sums.total, cold.sums.total)
    assert np.array_equal(warm.sums.fit, cold.sums.fit)
    assert warm.replayed == 0
    assert cold.replayed == 8 * {1: 0, 4: 0, 6: 2}[step]


def test_doing_a_step_twice_changes_nothing(run):
    bench = fresh(run)
    first = advance(bench, 0, 4, 2)
    again = advance(bench, 0, 4, 2)
    assert np.array_equal(first.sums.total, again.sums.total)


def test_state_in_files_is_the_same(run, tmp_path):
    plain, spilled = fresh(run), fresh(run, spill=str(tmp_path / "spill"))
    assert isinstance(spilled._memo, InFiles)
    for step in (1, 2, 3, 4):
        assert np.array_equal(
            advance(plain, 0, 23, step).sums.total, advance(spilled, 0, 23, step).sums.total
        )
    assert spilled.replayed == 0


def test_state_files_that_vanish_are_made_again(run, tmp_path):
    bench = fresh(run, spill=str(tmp_path / "spill"))
    advance(bench, 0, 4, 1)
    for file in (tmp_path / "spill").iterdir():
        file.unlink()
    block = advance(bench, 0, 4, 2)
    assert block.replayed == 4
    assert np.array_equal(block.sums.total, advance(fresh(run), 0, 4, 2).sums.total)


def test_a_damaged_commit_is_passed_over(run):
    directory, _, truth, _ = run
    for file in directory.checkpoints.folder(3).glob("rows-*"):
        raw = bytearray(file.read_bytes())
        raw[-3] ^= 4
        file.write_bytes(raw)
    bench = fresh(run)
    assert np.array_equal(bench.state(22, 7).share, truth[7][22])
    assert bench.replayed == 7


def test_data_in_memory_changes_nothing(run):
    plain, cached = fresh(run), fresh(run, cache=1 << 20)
    for step in (1, 2):
        one, other = advance(plain, 0, 23, step), advance(cached, 0, 23, step)
        assert np.array_equal(one.sums.total, other.sums.total)


def test_save_names_and_hashes_its_file(run):
    directory = run[0]
    directory.checkpoints.begin(5)
    files = save(fresh(run), 8, 16, 5)
    assert list(files) == ["rows-000008-000015.rec"]
    assert len(files["rows-000008-000015.rec"]) == 64


class Counting:
    """A source that counts how often each chunk is read."""

    def __init__(self, source):
        self._source, self.reads = source, [0] * source.chunks

    def __getattr__(self, name):
        return getattr(self._source, name)

    def read(self, index):
        self.reads[index] += 1
        return self._source.read(index)


@pytest.fixture
def counted(run):
    directory, job, *_ = run
    return Workbench(job.algorithm, Counting(job.source), RunHistory(directory.path), job.spec.seed)


def test_state_that_is_remembered_is_saved_and_described_without_the_data(run, counted):
    advance(counted, 0, 8, 1)
    assert counted.source.reads[:8] == [1] * 8, "the start and the step need the data once"
    run[0].checkpoints.begin(1)
    save(counted, 0, 8, 1)
    (named, *_) = describe(counted, 0, 8, 1)
    assert named
    assert counted.source.reads[:8] == [1] * 8


def test_state_that_was_committed_needs_no_data(run, counted):
    assert np.array_equal(counted.state(4, 3).share, run[2][3][4])
    assert sum(counted.source.reads) == 0


def test_steps_that_are_made_again_need_the_data_once(run, counted):
    counted.state(4, 7)
    advance(counted, 11, 12, 6)
    assert counted.replayed == 4 + 2
    assert [index for index, reads in enumerate(counted.source.reads) if reads] == [4, 11]
    assert max(counted.source.reads) == 1


def test_survey_adds_up(run):
    facts = survey(fresh(run), 0, 23)
    assert facts.rows == 230
    assert np.allclose(facts.total, run[1].source.x.sum(0))


def test_memory_history_keeps_what_a_step_needs():
    source = blobs()
    bench = Workbench(Toy(), source, MemoryHistory(), 7)
    list(islice(sweeps(bench.algorithm, Serial(bench), 7), 5))
    assert sorted(bench.history._params) == [4, 5]
    assert bench.replayed == 0


def test_row_state_is_saved_in_batches(tmp_path, monkeypatch):
    """Files hold no more than BATCH and one state, cover every chunk once, and can be read."""
    spec = toy_spec(save_blobs(tmp_path / "x.npy", blobs(rows=230)))
    run, job = toy_run(tmp_path / "run", spec)
    engine = serial_engine(run.path, job)
    steps = sweeps(job.algorithm, engine, 7)
    for _ in range(3):
        now = next(steps)
    monkeypatch.setattr(work, "BATCH", 3 * 10 * 3 * 8)  # three chunks of ten rows
    run.checkpoints.begin(now.step)
    files = {name: digest for part in engine.each(SAVE, now.step) for name, digest in part.value.items()}
    run.checkpoints.commit(now.step, now.params, files, engine.chunks)
    assert len(files) == 9, "of 16 and of 7 chunks: 3 3 3 3 3 1, 3 3 1"
    shares = [share for part in engine.each("tests.support.toy:shares", now.step) for share in part.value]
    for chunk in range(engine.chunks):
        np.testing.assert_array_equal(run.checkpoints.state(now.step, chunk).share, shares[chunk])
    run.close()
