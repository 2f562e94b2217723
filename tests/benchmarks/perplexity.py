"""How well do features of counts predict the other half of new documents?

    python -m tests.benchmarks.perplexity [--data FOLDER] [--sizes 60 100 200] [--restarts 5] [--inner]
    python -m tests.benchmarks.perplexity --methods "tomotopy LDA" "scikit-learn LDA" --sizes 100 200 400

Three splits into 295 and 100 documents. Half of the tokens of each new document are seen, drawn by a
hypergeometric law keyed by row, and the other half is scored over all words:

    one          perplexity of one fit, mean over splits and restarts
    five         of the mean of the predictions of all restarts
    dispersed    of these two with x ~ Poisson(g rate), g ~ Gamma(a, a), a learned on the seen half
    features     sum_k f_nk of a training document; the features with more than half a document in all

--inner splits the training documents once more, 220 and 75: what is chosen is chosen there. Anchors are run
where they are installed: tomotopy's LDA (learned alpha, eta .03, the mean of 15 samples), scikit-learn's LDA,
and its NMF with .1 token more for every word of a topic. Without a file, documents are made with a seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import digamma, expit, gammaln

from ibpdist.base.rules import Rule
from ibpdist.base.threads import one_thread
from ibpdist.kernels.tokens import Entries, Known, RowTokens, TokenSums, empty_sums, find_rho, keep_rho
from ibpdist.model.priors import BetaBernoulli, StickBreaking
from ibpdist.model.priors._base import PriorSums
from tests.support.fit_variants import table

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]
HEADER = ("method", "K", "one", "five", "one dispersed", "five dispersed", "a document", "in all", "seconds")
FLOOR, LEAST_SHAPE, MOST_SHAPE = 0.1, 1e-6, 100.0


@dataclass(frozen=True)
class Problem:
    """Training documents, and the seen and hidden halves of new ones; all (row, column) counts."""

    train: Counts
    seen: Counts
    hidden: Counts

    def perplexity(self, law: Matrix) -> float:
        """law (row, column): the probability of every word of each new document."""
        return float(np.exp(-np.sum(self.hidden * np.log(law)) / self.hidden.sum()))


def problem(x: Counts, split: int, inner: bool = False) -> Problem:
    """A split of documents 295 / 100 in proportion, or the training part of it 220 / 75."""
    order = np.random.default_rng([split, 1]).permutation(len(x))
    size = round(len(x) * 295 / 395)
    train, new = x[order[:size]], x[order[size:]]
    if inner:
        size = round(size * 220 / 295)
        train, new = train[:size], train[size:]
    seen = np.array([half(row, np.random.default_rng([split, n, 7])) for n, row in enumerate(new)])
    return Problem(train, seen, new - seen)


def half(row: Counts, rng: np.random.Generator) -> Counts:
    """Half of the tokens of a document, one more where they are odd."""
    return rng.multivariate_hypergeometric(row, int(row.sum() + 1) // 2)


def corpus(folder: Path | None) -> Counts:
    """Reuters, or documents made with a seed."""
    if folder is not None:
        return np.asarray(np.load(folder / "reuters395_lda.npz")["counts"], dtype=np.int64)
    return planted()[1]


def planted(features: int = 8, columns: int = 300, rows: int = 200) -> tuple[Matrix, Counts]:
    """The laws of features (feature, column) and documents of 60 tokens made of a few of them."""
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(columns, 0.05), features)
    laws = rng.dirichlet(np.full(features, 0.2), rows) @ words
    return words, np.array([rng.multinomial(60, law) for law in laws])


def entries_of(x: Counts) -> Entries:
    """Words are columns."""
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(x, axis=1))])
    return Entries(starts, np.nonzero(x)[1], x[x > 0].astype(np.float32))


@dataclass(frozen=True)
class Settings:
    """`eta` belongs to the fit, `smoothing` takes its place in the prediction; `keep`: rho is kept for each
    entry, otherwise it is found by so many `evaluations`; shapes and prior wait for `wait` steps."""

    prior: str = "finite"
    eta: float = 0.05
    smoothing: float = 0.02
    keep: bool = False
    evaluations: int = 4
    steps: int = 150
    wait: int = 10
    shape: float = 0.1
    begin: float = 0.3
    folds: int = 50


@dataclass(frozen=True)
class Fitted:
    """y (column, feature) tokens, shape and odds (feature), f (row, feature)."""

    y: Matrix
    shape: Matrix
    odds: Matrix
    f: Matrix
    change: float


PRIORS: dict[str, Any] = {"always": None, "finite": BetaBernoulli(), "sticks": StickBreaking()}


class Prior:
    """Log odds of the features, infinite where every row has every feature."""

    def __init__(self, name: str, features: int, rows: int) -> None:
        self.law = PRIORS[name]
        self.params = self.law.init(features, rows) if self.law else None
        self.features, self.rows = features, rows

    def odds(self) -> Matrix:
        if self.law is None:
            return np.full(self.features, np.inf)
        return np.asarray(self.law.log_odds(self.params))

    def update(self, on: Matrix) -> None:
        if self.law is not None:
            sums = PriorSums(on=np.minimum(on, self.rows), rows=np.asarray(float(self.rows)))
            self.params = self.law.update(self.params, sums, Rule.MEAN, np.random.default_rng(0))


def known_of(y: Matrix, shape: Matrix, odds: Matrix, eta: float, own: bool = True) -> Known:
    """What a step reads, in single precision."""
    F = np.float32
    return Known(y.astype(F), y.sum(axis=0).astype(F), shape, odds, F(eta), F(eta * len(y)), F(own))


def step(entries: Entries, known: Known, rows: RowTokens, rho: Any, settings: Settings) -> TokenSums:
    """One step of all rows at once; rows and rho are changed."""
    sums, low = empty_sums(*known.y.shape), digamma(known.shape)
    if settings.keep:
        keep_rho(entries, known, rows, rho, low, sums)
    else:
        find_rho(entries, known, rows, settings.evaluations, low, sums)
    return sums


def begin_words(x: Counts, features: int, seed: int) -> Matrix:
    """(column, feature) half of the tokens of random documents: a fifth of all is used, or one for each
    feature, none twice before all have been used."""
    rng = np.random.default_rng(seed)
    each = max(1, len(x) // (5 * features))
    rounds = range(-(-features * each // len(x)))
    rows = np.concatenate([rng.permutation(len(x)) for _ in rounds])[: features * each]
    halves = np.array([half(x[row], rng) for row in rows], dtype=float)
    return np.asarray(halves.reshape(features, each, -1).sum(axis=1).T)


def begin(
    x: Counts, features: int, seed: int, settings: Settings
) -> tuple[Entries, RowTokens, Any, TokenSums]:
    """Entries, rows, rho and sums of a first step that only knows the words of random documents."""
    entries, shape = entries_of(x), np.full(features, settings.shape)
    rate = shape.sum() / np.maximum(x.sum(axis=1), 1.0)
    rows = RowTokens(np.zeros((len(x), features), np.float32), rate)
    rho = np.zeros((len(entries.counts) if settings.keep else 0, features), np.float32)
    words, sure = begin_words(x, features, seed), np.full(features, np.inf)
    known = known_of(words, shape, sure, settings.begin, own=False)
    return entries, rows, rho, step(entries, known, rows, rho, replace(settings, evaluations=0))


def fit(x: Counts, features: int, seed: int = 0, settings: Settings | None = None) -> Fitted:
    """Rows at once: y and rho of the step before are on the right of the update."""
    settings = settings or Settings()
    shape, prior = np.full(features, settings.shape), Prior(settings.prior, features, len(x))
    entries, rows, rho, sums = begin(x, features, seed, settings)
    for number in range(settings.steps):
        known = known_of(sums.y, shape, prior.odds(), settings.eta)
        sums = step(entries, known, rows, rho, settings)
        if number >= settings.wait:
            shape = next_shape(shape, sums)
            prior.update(sums.on)
    f = gates(rows, shape, prior.odds())
    return Fitted(sums.y, shape, prior.odds(), f, sums.change / sums.tokens)


def next_shape(shape: Matrix, sums: TokenSums) -> Matrix:
    """A step of the fixed point of the shapes."""
    exposed = np.maximum(sums.exposed, 1e-300)
    return np.asarray(np.clip(shape * sums.seen / exposed, LEAST_SHAPE, MOST_SHAPE))


def gates(rows: RowTokens, shape: Matrix, odds: Matrix) -> Matrix:
    """f (row, feature)."""
    level = np.log(rows.rate / (1 + rows.rate))
    return np.asarray(1 - np.exp(-rows.y.astype(float)) * (1 - expit(odds + level[:, None] * shape)))


def fit_in_turn(x: Counts, features: int, seed: int = 0, settings: Settings | None = None) -> Fitted:
    """The same with each row met after those before it have been summed."""
    settings = replace(settings or Settings(), keep=True)
    shape, prior = np.full(features, settings.shape), Prior(settings.prior, features, len(x))
    entries, rows, rho, sums = begin(x, features, seed, settings)
    y, total, spread = sums.y, sums.y.sum(axis=0), np.float32(settings.eta * x.shape[1])
    parts = [entries_of(row[None]) for row in x]
    for number in range(settings.steps):
        every, odds = empty_sums(1, features), prior.odds()
        for n, part in enumerate(parts):
            at, own = part.words, slice(entries.starts[n], entries.starts[n + 1])
            known = known_of(y[at], shape, odds, settings.eta)
            known = known._replace(total=total.astype(np.float32), spread=spread)
            before, row = part.counts[:, None] * rho[own], RowTokens(rows.y[n : n + 1], rows.rate[n : n + 1])
            sums = step(part._replace(words=np.arange(at.size)), known, row, rho[own], settings)
            y[at] += sums.y - before
            total += (sums.y - before).sum(axis=0)
            for name in ("on", "seen", "exposed"):
                getattr(every, name)[:] += getattr(sums, name)
        if number >= settings.wait:
            shape = next_shape(shape, every)
            prior.update(every.on)
    return Fitted(y, shape, prior.odds(), gates(rows, shape, prior.odds()), 0.0)


def normal(law: Matrix) -> Matrix:
    return np.asarray(law / law.sum(axis=1, keepdims=True))


def predict(fitted: Fitted, seen: Counts, settings: Settings | None = None) -> Matrix:
    """law (row, column) of new documents given their seen half."""
    settings = settings or Settings()
    entries, features = entries_of(seen), len(fitted.shape)
    known = known_of(fitted.y, fitted.shape, fitted.odds, settings.smoothing, own=False)
    rate = float((fitted.f @ fitted.shape).mean()) / np.maximum(seen.sum(axis=1), 1.0)
    rows = RowTokens(np.zeros((len(seen), features), np.float32), rate)
    rho = np.zeros((len(entries.counts), features), np.float32)
    for _ in range(settings.folds):
        step(entries, known, rows, rho, replace(settings, keep=True))
    weights = rows.y + gates(rows, fitted.shape, fitted.odds) * fitted.shape
    words = fitted.y + settings.smoothing
    return normal(weights) @ (words / words.sum(axis=0)).T


def dispersed(law: Matrix, seen: Counts) -> Matrix:
    """The law with a rate of its own for each word of a document, a learned on the seen half."""
    rate = law * seen.sum(axis=1, keepdims=True)

    def surprise(log_a: float) -> float:
        a = np.exp(log_a)
        nats = gammaln(a + seen) - gammaln(a) + a * np.log(a / (a + rate))
        return -float(np.sum(nats + seen * np.log(rate / (a + rate))))

    a = np.exp(minimize_scalar(surprise, bounds=(-8, 6), method="bounded").x)
    return normal(law * (a + seen) / (a + rate))


Predictor = Callable[[Problem, int, int], tuple[Matrix, float, float]]
"""(problem, features, seed) -> law of new documents, features a document and in all."""


def ours(settings: Settings, of: Problem, features: int, seed: int) -> tuple[Matrix, float, float]:
    fitted = fit(of.train, features, seed, settings)
    in_all = float((fitted.f.sum(axis=0) > 0.5).sum())
    return predict(fitted, of.seen, settings), float(fitted.f.sum(axis=1).mean()), in_all


def tomotopy_lda(of: Problem, features: int, seed: int, burn: int = 1000) -> tuple[Matrix, float, float]:
    """The mean over 15 samples of a chain, 20 sweeps apart; new documents as for our own fits."""
    model = import_module("tomotopy").LDAModel(k=features, alpha=0.1, eta=0.03, seed=seed + 1)
    for row in of.train:
        model.add_doc([str(word) for word in np.repeat(np.arange(row.size), row)])
    model.burn_in, model.optim_interval = 100, 10
    model.train(burn, workers=1)
    law, settings = np.zeros(of.seen.shape), Settings(smoothing=float(model.eta))
    for _ in range(15):
        model.train(20, workers=1)
        law += predict(tomotopy_sample(model, *of.train.shape), of.seen, settings)
    return law / 15, np.nan, np.nan


def tomotopy_sample(model: Any, rows: int, columns: int) -> Fitted:
    """Tokens of every word and feature, and alpha as shapes of features that every row has."""
    used, total = [int(word) for word in model.used_vocabs], np.asarray(model.get_count_by_topics())
    y = np.zeros((columns, model.k))
    laws = np.array([model.get_topic_word_dist(k) for k in range(model.k)])
    y[used] = np.rint((total + model.eta * len(used))[:, None] * laws - model.eta).T
    return Fitted(y, np.asarray(model.alpha), np.full(model.k, np.inf), np.ones((rows, model.k)), 0.0)


def sklearn_lda(of: Problem, features: int, seed: int) -> tuple[Matrix, float, float]:
    from sklearn.decomposition import LatentDirichletAllocation

    made = LatentDirichletAllocation(features, topic_word_prior=0.03, max_iter=100, random_state=seed)
    made.fit(of.train)
    return normal(made.transform(of.seen)) @ normal(made.components_), np.nan, np.nan


def sklearn_nmf(of: Problem, features: int, seed: int) -> tuple[Matrix, float, float]:
    from sklearn.decomposition import NMF

    made = NMF(features, beta_loss="kullback-leibler", solver="mu", init="random", random_state=seed)
    tokens = made.fit_transform(of.train).sum(axis=0)[:, None] * made.components_
    words = normal(tokens + FLOOR)
    weights = made.transform(of.seen) * made.components_.sum(axis=1)
    return normal(weights + 1e-12) @ words, np.nan, np.nan


def unigram(of: Problem, features: int, seed: int) -> tuple[Matrix, float, float]:
    words = of.train.sum(axis=0) + 1.0
    return np.tile(words / words.sum(), (len(of.seen), 1)), np.nan, np.nan


def methods(settings: Settings) -> dict[str, Predictor]:
    """Every prior, and the anchors that are installed."""
    found: dict[str, Predictor] = {
        name: partial(ours, replace(settings, prior=name)) for name in ("finite", "sticks", "always")
    }
    if find_spec("tomotopy"):
        found["tomotopy LDA"] = tomotopy_lda
    if find_spec("sklearn"):
        found |= {"scikit-learn LDA": sklearn_lda, "scikit-learn NMF": sklearn_nmf}
    return found | {"unigram": unigram}


def line(
    name: str, method: Predictor, problems: Sequence[Problem], features: int, restarts: int
) -> list[str]:
    """The line of the table of one method and number of features."""
    begun, marks, sizes = time.perf_counter(), [], []
    for split, of in enumerate(problems):
        made = [method(of, features, split + 100 * restart) for restart in range(restarts)]
        laws, mean = [law for law, _, _ in made], np.mean([law for law, _, _ in made], axis=0)
        sizes += [size for _, *size in made]
        single = [[of.perplexity(law), of.perplexity(dispersed(law, of.seen))] for law in laws]
        marks.append([*np.mean(single, axis=0), of.perplexity(mean), of.perplexity(dispersed(mean, of.seen))])
    one, one_dispersed, several, several_dispersed = np.mean(marks, axis=0)
    numbers = (one, several, one_dispersed, several_dispersed, *np.mean(sizes, axis=0))
    told = [format(value, ".1f") if np.isfinite(value) else "-" for value in numbers]
    each = (time.perf_counter() - begun) / len(problems) / restarts
    return [name, str(features), *told, f"{each:.1f}"]


def lines(options: argparse.Namespace) -> Iterator[list[str]]:
    x = corpus(options.data)
    problems = [problem(x, split, options.inner) for split in range(3)]
    overrides = {"eta": options.eta, "smoothing": options.smoothing, "keep": options.keep}
    settings = replace(Settings(), **{name: value for name, value in overrides.items() if value is not None})
    for name, method in methods(settings).items():
        if options.methods and name not in options.methods:
            continue
        for features in options.sizes if name != "unigram" else [0]:
            yield line(name, method, problems, features, options.restarts if features else 1)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of reuters395_lda.npz")
    parser.add_argument("--sizes", type=int, nargs="*", default=[60, 100, 200], help="numbers of features")
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--inner", action="store_true", help="split the training documents once more")
    parser.add_argument("--methods", nargs="*", help="all that there are by default")
    parser.add_argument("--eta", type=float)
    parser.add_argument("--smoothing", type=float)
    parser.add_argument("--keep", action=argparse.BooleanOptionalAction, help="rho for each entry")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    rows = []
    with one_thread():
        for cells in lines(parse(arguments)):
            print("  ".join(cells), flush=True)
            rows.append(cells)
    print(table(HEADER, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
