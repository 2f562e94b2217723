"""The spectral start for unit weights: how many features, and which rows have them (starts-and-moves.md 2).

    rank         how many dimensions stand out of the noise
    contrast     what makes a projection look two-valued
    symmetric    all components at once: needs many rows
    certificate  whether a binary column lies in the signal space, up to the known noise
    pool         one component at a time from many starts, certified: works with few rows
    orient       which components are the complements of features
    sources      all of it: soft columns to start from

Arrays in, arrays and small records out; no data access, no model, no state.
"""
