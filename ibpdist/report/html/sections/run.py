"""Settings and versions: the system, the data, the settings, and the hashes that stand for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from ibpdist.predict import units
from ibpdist.report.html.facts import Facts
from ibpdist.report.html.markup import Child, Html, join, tag
from ibpdist.report.html.numbers import COUNT, VALUE
from ibpdist.report.html.sections._base import Section
from ibpdist.report.summary import CENTRED


def body(facts: Facts) -> Html:
    entries = [join(tag("dt", words), tag("dd", value)) for words, value in _lines(facts)]
    text = str(facts.attrs.get("spec", ""))
    spec = tag("pre", text, data_variable="attrs/spec", tabindex="0")
    full = tag("details", tag("summary", "The specification of the fit in full"), spec)
    return join(tag("dl", entries), _campaign(facts), full)


def _campaign(facts: Facts) -> Html | None:
    if facts.campaign is None or facts.campaign.spec is None:
        return None
    held = facts.campaign.spec
    text = held if isinstance(held, str) else held.dump()
    element = tag("pre", text, data_variable="campaign/spec", tabindex="0")
    return tag("details", tag("summary", "The specification of the campaign in full"), element)


def _lines(facts: Facts) -> Iterator[tuple[str, Child]]:
    yield "system", [_said(facts, "system"), _summary(facts)]
    yield "data", _data(facts)
    if units.centred_by_fit(facts.result):
        yield "centred", CENTRED
    yield "fingerprint of the data", _said(facts, "fingerprint")
    yield "seed", _said(facts, "seed")
    spec = hashlib.sha256(str(facts.attrs.get("spec", "")).encode()).hexdigest()
    yield (
        "hash of the specification",
        tag("span", spec, class_="hash", data_variable="attrs/spec", data_of="sha256"),
    )
    learned = list(_learned(facts))
    if learned and not facts.sampled:
        yield "learned", learned
    yield "versions", _versions(facts)
    yield "machine", _machine(facts)


def _said(facts: Facts, name: str) -> Html:
    kind = "hash" if name == "fingerprint" else None
    return tag("span", str(facts.attrs.get(name, "not known")), class_=kind, data_variable=f"attrs/{name}")


def _summary(facts: Facts) -> Child:
    from ibpdist.catalog.systems import SYSTEMS

    system = SYSTEMS.get(str(facts.attrs["system"]))
    return f", {system.summary}" if system else None


def _data(facts: Facts) -> Child:
    rows, columns = (facts.attribute(name).html(COUNT) for name in ("rows", "columns"))
    words: list[Child] = [rows, " rows × ", columns, " columns"]
    if "chunk_rows" in facts.attrs:
        chunks, each = (facts.attribute(name).html(COUNT) for name in ("chunks", "chunk_rows"))
        words += [" of ", _said(facts, "dtype"), ", chunks of at most ", each, " rows: ", chunks]
    return words


def _learned(facts: Facts) -> Iterator[Child]:
    """Noise, scale and mass; the median when there is one for each column or feature."""
    words = {
        "noise": "noise variance",
        "scale": "variance of the dictionary",
        "mass": "mass of the prior",
        "concentration": "concentration",
    }
    for name, label in words.items():
        variable = f"params/{name}"
        if not facts.has(variable):
            continue
        number = facts.reduced(variable, "median") if facts.values(variable).ndim else facts.entry(variable)
        yield tag("span", label, " ", number.html(VALUE), " (median)" if number.of else None, class_="part")


def _versions(facts: Facts) -> list[Html]:
    return [
        tag(
            "span",
            name,
            " ",
            tag("span", str(version), data_variable="attrs/versions", data_index=name),
            class_="part",
        )
        for name, version in facts.record("versions").items()
    ]


def _machine(facts: Facts) -> Child:
    """The processor, and the libraries for matrix products with the kernels that they chose."""
    raw = str(facts.attrs.get("blas", ""))
    kinds = dict.fromkeys(_library(one) for one in facts.records("blas"))
    words = ", ".join(kinds) or "not known"
    libraries = tag("span", words, data_label="blas", title=raw or None)
    return [_said(facts, "machine"), "; matrix products by ", libraries]


def _library(record: Mapping[str, str]) -> str:
    """OpenBLAS 0.3.30 for Haswell."""
    known = {"openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS"}
    kind = str(record.get("internal_api", "BLAS"))
    return (
        f"{known.get(kind, kind)} {record.get('version', '')} for {record.get('architecture', 'any machine')}"
    )


SECTION = Section("run", "Settings and versions", body)
