"""How well do features of counts predict the other half of new documents?

    python -m tests.benchmarks.perplexity [--data FOLDER] [--sizes 60 100 200] [--restarts 5] [--inner]
    python -m tests.benchmarks.perplexity --methods counts-finite "tomotopy LDA" --sizes 100 200 400
    python -m tests.benchmarks.perplexity --data FOLDER --splits 1 --train 5000 --set hidden=0.01

FOLDER has reuters395_lda.npz, or docword.txt as tests.benchmarks.docstrings makes it. Documents are split
three times, 295 of 395 for training unless --train says how many. Half of the tokens of each new document are
seen, drawn by a hypergeometric law keyed by row, and the other half is scored over all words:

    one          perplexity of one fit, mean over splits and restarts
    five         of the mean of the predictions of all restarts
    dispersed    of these two with x ~ Poisson(g rate), g ~ Gamma(a, a), a learned on the seen half
    features     sum_k f_nk of a training document; the features with more than half a document in all

--inner splits the training documents once more, 220 and 75: what is chosen is chosen there. Anchors are run
where they are installed: tomotopy's LDA (learned alpha, eta .03, the mean of 15 samples), scikit-learn's LDA,
and its NMF with .1 token more for every word of a topic. Without a folder, documents are made with a seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import ibpdist as ibp
from ibpdist.base.threads import one_thread
from ibpdist.catalog.spec import scalar
from ibpdist.catalog.systems import SYSTEMS
from ibpdist.data._base import Chunk
from ibpdist.data.count_sources.docword import Docword
from ibpdist.data.entries import Entries
from ibpdist.evaluate.counts import token_predictors
from ibpdist.predict.dispersion import count_rates
from ibpdist.predict.dispersion import dispersed as bursts
from ibpdist.predict.tokens import TokenPredictor, predicted_laws
from ibpdist.predict.tokens import unigram as same_for_all
from tests.support.fit_variants import table

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]
HEADER = ("method", "K", "one", "five", "one dispersed", "five dispersed", "a document", "in all", "seconds")
FLOOR = 0.1


@dataclass(frozen=True)
class Problem:
    """Training documents, and the seen and hidden halves of new ones; all (row, column) counts."""

    train: Counts
    seen: Counts
    hidden: Counts

    def perplexity(self, law: Matrix) -> float:
        """law (row, column): the probability of every word of each new document."""
        return float(np.exp(-np.sum(self.hidden * np.log(law)) / self.hidden.sum()))


def problem(x: Counts, split: int, inner: bool = False, size: int | None = None) -> Problem:
    """A split of documents, `size` for training or 295 of 395, or the training part of it 220 / 75."""
    order = np.random.default_rng([split, 1]).permutation(len(x))
    size = round(len(x) * 295 / 395) if size is None else size
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
    """A bag of words, Reuters, or documents made with a seed."""
    if folder is None:
        return planted()[1]
    if (folder / "docword.txt").exists():
        bags = Docword(folder / "docword.txt")
        whole = np.dtype(np.int64)
        return np.concatenate([part.entries.dense(bags.columns, whole) for part in bags.count_blocks()])
    return np.asarray(np.load(folder / "reuters395_lda.npz")["counts"], dtype=np.int64)


def planted(features: int = 8, columns: int = 300, rows: int = 200) -> tuple[Matrix, Counts]:
    """The laws of features (feature, column) and documents of 60 tokens made of a few of them."""
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(columns, 0.05), features)
    laws = rng.dirichlet(np.full(features, 0.2), rows) @ words
    return words, np.array([rng.multinomial(60, law) for law in laws])


def normal(law: Matrix) -> Matrix:
    return np.asarray(law / law.sum(axis=1, keepdims=True))


def tokens_of(x: Counts) -> Entries:
    """Counts as the package keeps them."""
    return Chunk(0, 0, x).entries


def dispersed(law: Matrix, seen: Counts) -> Matrix:
    """The law with a rate of its own for each word of a document, a learned on the seen half."""
    entries = tokens_of(seen)
    return bursts(law, entries, count_rates(law, entries).dispersion())


Predictor = Callable[[Problem, int, int], tuple[Matrix, float, float]]
"""(problem, features, seed) -> law of new documents, features a document and in all."""


def ours(
    system: str, settings: Mapping[str, Any], of: Problem, features: int, seed: int
) -> tuple[Matrix, float, float]:
    """A fit as users make it."""
    found = ibp.fit(of.train.astype(np.float32), system=system, K=features, seed=seed, **settings)
    on = found["params"]["prevalence"].values
    law = predicted_laws(token_predictors(found), tokens_of(of.seen))
    return law, float(on.sum()), float((on * len(of.train) > 0.5).sum())


def tomotopy_lda(of: Problem, features: int, seed: int, burn: int = 1000) -> tuple[Matrix, float, float]:
    """The mean over 15 samples of a chain, 20 sweeps apart; new documents as for our own fits."""
    model = import_module("tomotopy").LDAModel(k=features, alpha=0.1, eta=0.03, seed=seed + 1)
    for row in of.train:
        model.add_doc([str(word) for word in np.repeat(np.arange(row.size), row)])
    model.burn_in, model.optim_interval = 100, 10
    model.train(burn, workers=1)
    law = np.zeros(of.seen.shape)
    for _ in range(15):
        model.train(20, workers=1)
        law += predicted_laws([tomotopy_sample(model, of.train.shape[1])], tokens_of(of.seen))
    return law / 15, np.nan, np.nan


def tomotopy_sample(model: Any, columns: int) -> TokenPredictor:
    """Tokens of every word and feature, and alpha as shapes of features that every row has."""
    used, total = [int(word) for word in model.used_vocabs], np.asarray(model.get_count_by_topics())
    y, alpha = np.zeros((columns, model.k)), np.asarray(model.alpha)
    laws = np.array([model.get_topic_word_dist(k) for k in range(model.k)])
    y[used] = np.rint((total + model.eta * len(used))[:, None] * laws - model.eta).T
    return TokenPredictor(y, alpha, np.full(model.k, np.inf), float(model.eta), float(alpha.sum()))


def sklearn_lda(of: Problem, features: int, seed: int) -> tuple[Matrix, float, float]:
    from sklearn.decomposition import LatentDirichletAllocation

    made = LatentDirichletAllocation(features, topic_word_prior=0.03, max_iter=100, random_state=seed)
    made.fit(csr_array(of.train))
    return normal(made.transform(csr_array(of.seen))) @ normal(made.components_), np.nan, np.nan


def sklearn_nmf(of: Problem, features: int, seed: int) -> tuple[Matrix, float, float]:
    from sklearn.decomposition import NMF

    made = NMF(features, beta_loss="kullback-leibler", solver="mu", init="random", random_state=seed)
    tokens = made.fit_transform(csr_array(of.train)).sum(axis=0)[:, None] * made.components_
    words = normal(tokens + FLOOR)
    weights = made.transform(csr_array(of.seen)) * made.components_.sum(axis=1)
    return normal(weights + 1e-12) @ words, np.nan, np.nan


def unigram(of: Problem, features: int, seed: int) -> tuple[Matrix, float, float]:
    return np.tile(same_for_all(of.train.sum(axis=0)), (len(of.seen), 1)), np.nan, np.nan


def methods(settings: Mapping[str, Any]) -> dict[str, Predictor]:
    """Every system of counts, and the anchors that are installed."""
    fits = [name for name, row in SYSTEMS.items() if row.counts]
    found: dict[str, Predictor] = {name: partial(ours, name, settings) for name in fits}
    if find_spec("tomotopy"):
        found["tomotopy LDA"] = tomotopy_lda
    if find_spec("sklearn"):
        found |= {"scikit-learn LDA": sklearn_lda, "scikit-learn NMF": sklearn_nmf}
    return found | {"unigram": unigram}


def without_samplers(names: Iterable[str]) -> list[str]:
    """What runs unless methods are named: chains of our own want a length (--set steps=500)."""
    return [name for name in names if name not in SYSTEMS or not SYSTEMS[name].sampler]


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
    problems = [problem(x, split, options.inner, options.train) for split in range(options.splits)]
    settings = {name: scalar(value) for name, value in (part.split("=", 1) for part in options.set)}
    every = methods(settings)
    for name, method in every.items():
        if name not in (options.methods or without_samplers(every)):
            continue
        for features in options.sizes if name != "unigram" else [0]:
            yield line(name, method, problems, features, options.restarts if features else 1)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the corpus")
    parser.add_argument("--splits", type=int, default=3, help="how often documents are split")
    parser.add_argument("--train", type=int, help="training documents of a split")
    parser.add_argument("--sizes", type=int, nargs="*", default=[60, 100, 200], help="numbers of features")
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--inner", action="store_true", help="split the training documents once more")
    parser.add_argument("--methods", nargs="*", help="all but our own samplers by default")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="of our own fits")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    print_lines(HEADER, lines(parse(arguments)))
    return 0


def print_lines(header: Sequence[str], made: Iterator[list[str]]) -> None:
    """The lines of a table as they come, and then the table."""
    rows = []
    with one_thread():
        for cells in made:
            print("  ".join(cells), flush=True)
            rows.append(cells)
    print(table(header, rows))


if __name__ == "__main__":
    sys.exit(main())
