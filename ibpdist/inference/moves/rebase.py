"""Exclusive-or re-basis: other two-valued columns of the same span that say less (starts-and-moves.md 16).

If one combination of two features never occurs, their exclusive or is a linear function of them:
a sum of disjoint features, a difference of nested ones. Rows are explained as well by either, so
a fit may end in any such basis; the planted one has the least entropy. All exclusive ors of such
pairs are candidates beside the features themselves, and a basis is picked greedily.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.ascent.params import OFF
from ibpdist.inference.moves import reorient
from ibpdist.inference.moves._base import Proposal, Situation, pattern_cost
from ibpdist.inference.moves.relabel import Edit, combination, evaluate, rows_seen, table
from ibpdist.inference.moves.reorient import RARE, constant_at

Float = NDArray[np.float64]
Index = NDArray[np.intp]

PASSES = 60
NEW = 0.0025
"""Share of a column's variance that those before it must leave unexplained."""


@dataclass(frozen=True)
class Columns:
    """Candidate columns: `places` (parent, column) of their features, `entropy` in nats a row, and
    `covariance` (column, column)."""

    places: Index
    entropy: Float
    covariance: Float


def propose(situation: Situation, rng: np.random.Generator) -> Proposal | None:
    """The basis of least entropy, oriented anew, if it is not the present one."""
    if not situation.turnable or not rows_seen(situation.params, situation.sums).any():
        return None
    constant = constant_at(situation)
    kept = [] if constant == OFF else [constant]
    columns = candidates(situation, constant)
    basis = cheapest(columns)
    if (columns.places[1, basis] == OFF).all():
        return None
    places = np.concatenate([columns.places[:, basis], [kept, [OFF] * len(kept)]], axis=1).astype(np.intp)
    none = np.zeros(places.shape[1], np.bool_)
    edit = oriented(situation, Edit.of(situation.params.ids, places, none, situation.next_id), rng)
    found = evaluate(situation.model, edit, situation.params, situation.sums, situation.total)
    return Proposal("re-basis", found.params, passes=PASSES)


def candidates(situation: Situation, constant: int) -> Columns:
    """The features but for a constant one, and the exclusive ors that can be cheaper.

    An exclusive or that says no less than both of its parents comes after them, and then it is
    spanned: only the others are looked at.
    """
    seen, gram = rows_seen(situation.params, situation.sums), situation.sums.observation.gram
    most = int(np.argmax(seen))
    features = np.array([k for k in range(gram.shape[1]) if k != constant], np.intp)
    wanted = worthwhile(gram[most], float(seen[most]))
    pairs = [(k, j) for k in features for j in features if k < j and wanted[k, j]]
    places = np.array([[*features, *(k for k, _ in pairs)], [*[OFF] * len(features), *(j for _, j in pairs)]])
    linear = combination(places, np.zeros(places.shape[1], np.bool_), gram, seen)
    return described(linear, places, gram[most], float(seen[most]))


def worthwhile(gram: Float, rows: float) -> NDArray[np.bool_]:
    """(feature, feature) whether a combination never occurs, and the exclusive or says less than either."""
    cells = table(gram, rows)
    own = pattern_cost(np.diagonal(gram) / rows)
    cheaper = pattern_cost((cells[1] + cells[2]) / rows) < np.maximum(own[:, None], own)
    found: NDArray[np.bool_] = cheaper & (cells.min(axis=0) <= RARE * rows)
    return found


def described(linear: Float, places: Index, gram: Float, rows: float) -> Columns:
    """Entropies and covariances of columns that are linear in the features and 1.

    Columns are two-valued, so their variances follow from their means.
    """
    count = np.append(np.diagonal(gram), rows)
    wide = np.zeros((len(count), len(count)))
    wide[:-1, :-1], wide[-1], wide[:, -1] = gram, count, count
    share = np.clip(linear @ count / rows, 0.0, 1.0)
    covariance = linear @ (wide / rows) @ linear.T - np.outer(share, share)
    np.fill_diagonal(covariance, share * (1 - share))
    return Columns(places, pattern_cost(share), covariance)


def cheapest(columns: Columns) -> Index:
    """Columns by rising entropy, each only if those before it do not span it; features before pairs."""
    left = columns.covariance.copy()
    taken: list[int] = []
    own = columns.covariance.diagonal()
    for at in np.argsort(columns.entropy, kind="stable"):
        if len(taken) < int((columns.places[1] == OFF).sum()) and left[at, at] > NEW * own[at] > 0:
            taken.append(int(at))
            left -= np.outer(left[at], left[at]) / left[at, at]
    return np.sort(np.array(taken, np.intp))


def oriented(situation: Situation, edit: Edit, rng: np.random.Generator) -> Edit:
    """The edit with the features complemented, and the constant set, that suit its sums best."""
    found = situation.evaluate(edit)
    after = replace(
        situation,
        params=found.params,
        sums=found.sums,
        objective=found.objective,
        next_id=max(situation.next_id, int(edit.ids.max()) + 1),
    )
    turned = reorient.best(after, rng)
    return edit if turned is None else composed(situation, edit, turned.edit)


def composed(situation: Situation, first: Edit, turned: Edit) -> Edit:
    """Both edits in one; the second only complements, drops and adds a constant."""
    old = situation.params.ids
    places, at = first.places(old), turned.places(first.ids)[0]
    parents = np.where(at == OFF, OFF, places[:, at])
    return Edit.of(old, parents, np.where(at == OFF, False, first.flip[at]) ^ turned.flip, situation.next_id)
