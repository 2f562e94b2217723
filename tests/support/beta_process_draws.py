"""Exact draws of everything that the prior of a beta process says of few atoms."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ibpdist.model.priors._atom_draws import BetaProcessDraw, levels_of


def weight_of(found, mass, round_prior, shape):
    """What the prior says of rounds, with a learned mass integrated out; its prior is Gamma(shape, shape)."""
    most, atoms = max(found), len(found)
    length = (shape + most) ** -(shape + atoms) if mass == "learn" else math.exp(-mass * most)
    if round_prior == "exchangeable":
        return length
    return length / math.prod(math.factorial(found.count(r)) for r in set(found))


def exact_draw(prior, atoms, shape, rng):
    """Rounds by enumeration, levels, decays and sticks; learned levels have the prior Gamma(shape, shape)."""
    every = list(itertools.product(range(1, prior.rounds + 1), repeat=atoms))
    weight = np.array([weight_of(found, prior.mass, prior.round_prior, shape) for found in every])
    rounds = np.array(every[rng.choice(len(weight), p=weight / weight.sum())])
    mass, level = prior.mass, prior.concentration
    if mass == "learn":
        mass = rng.gamma(shape + atoms) / (shape + rounds.max())
    if level == "learn":
        level = rng.gamma(shape) / shape
    off = -rng.exponential(size=atoms) / level
    decay = np.where(rounds > 1, rng.gamma(np.maximum(rounds - 1, 1)) / level, 0.0)
    stick = np.stack([np.log(-np.expm1(off)), off], axis=1)
    return BetaProcessDraw(
        atom=np.arange(atoms),
        chance=np.eye(prior.rounds)[rounds - 1],
        stick=stick,
        decay=decay,
        levels=levels_of(decay, stick),
        concentration=np.asarray(level),
        mass=np.asarray(mass),
    )
