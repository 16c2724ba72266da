"""Merges the findings of all providers: each work once, best first.

Findings are of the same work if they share

1. a DOI or an arXiv id: what providers say of these is believed;
2. else an address, spelt in one way;
3. else a title, letters and digits only, and the year, where both have one.

An address or a title joins no works that contradict each other, having different DOIs of publishers
or different arXiv ids: every journal has an "Editorial". What is joined depends only on what was
found, never on who answered first. So when more has been found, merge all of it as it came: a
`Merged.finding` leaves out names that the others of its work had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from itertools import chain
from typing import Any

from penstock.model.finding import Finding
from penstock.research.identity import (
    arxiv_id_of,
    canonical_url,
    doi_of,
    folded_title,
    is_preprint_doi,
)

SMOOTHING = 60
"""Constant of rank fusion: larger values reduce the advantage of the first ranks."""

OPTIONAL = [
    field.name
    for field in fields(Finding)
    if field.default is not MISSING or field.default_factory is not MISSING
]
"""Fields that a finding may lack and another finding of the same work may have."""

Group = list[int]
"""Findings by number."""
Keys = Iterable[Hashable]
"""Keys that a finding may share with others."""


@dataclass(slots=True, frozen=True)
class Merged:
    """One work, and all its findings."""

    finding: Finding
    """The most complete one, with missing fields filled from the others."""
    findings: tuple[Finding, ...]
    """Unchanged, the most complete first."""

    @property
    def providers(self) -> tuple[str, ...]:
        """Providers that found it."""
        return tuple(sorted({finding.provider for finding in self.findings}))


def merge(lists: Iterable[Sequence[Finding]]) -> list[Merged]:
    """Merge findings into works. Each list is that of one provider, best first. Works are ordered
    by rank fusion: those that several providers rank high come first. Every finding is in exactly
    one work."""
    ranked = [(finding, rank) for one in lists for rank, finding in enumerate(one, 1)]
    findings = [finding for finding, _ in ranked]
    places: list[tuple[Any, ...]] = []
    works: list[Merged] = []
    for group in _groups(findings):
        best: dict[str, int] = {}
        for finding, rank in (ranked[number] for number in group):
            best[finding.provider] = min(rank, best.get(finding.provider, rank))
        works.append(_merged([findings[number] for number in group]))
        score = sum(1 / (SMOOTHING + rank) for rank in sorted(best.values()))
        places.append((-score, min(best.values()), _spelling(works[-1].finding)))
    return [works[at] for at in sorted(range(len(works)), key=places.__getitem__)]


def _groups(findings: Sequence[Finding]) -> list[Group]:
    ids = [_ids(finding) for finding in findings]
    groups = _connected([[number] for number in range(len(findings))], ids)
    groups = _joined(groups, ids, [_addresses(finding) for finding in findings])
    return _joined(groups, ids, _titles(findings))


def _joined(groups: list[Group], ids: Sequence[set[str]], keys: Sequence[Keys]) -> list[Group]:
    """Join groups that share a key, unless some of them contradict each other: then only those
    without an id are joined."""
    joined: list[Group] = []
    shared = [set(chain(*(keys[number] for number in group))) for group in groups]
    for part in _connected([[at] for at in range(len(groups))], shared):
        together = [groups[at] for at in part]
        kinds = [{id_.partition(":")[0] for n in group for id_ in ids[n]} for group in together]
        if all(sum(kind in one for one in kinds) <= 1 for kind in ("doi", "arxiv")):
            joined.append(sorted(chain(*together)))
        else:
            pairs = list(zip(together, kinds, strict=True))
            joined += [group for group, named in pairs if named]
            joined += _connected([group for group, named in pairs if not named], keys)
    return joined


def _connected(groups: list[Group], keys: Sequence[Keys]) -> list[Group]:
    """Join groups that have a key in common, transitively."""
    roots = list(range(len(groups)))

    def root(at: int) -> int:
        while roots[at] != at:
            roots[at] = at = roots[roots[at]]
        return at

    first: dict[Hashable, int] = {}
    for at, group in enumerate(groups):
        for key in chain(*(keys[number] for number in group)):
            roots[root(at)] = root(first.setdefault(key, at))
    whole: defaultdict[int, Group] = defaultdict(list)
    for at, group in enumerate(groups):
        whole[root(at)] += group
    return [sorted(group) for group in whole.values()]


def _ids(finding: Finding) -> set[str]:
    dois = {doi_of(finding.doi), doi_of(finding.url)} - {None}
    texts = (finding.arxiv_id, finding.url, finding.open_access_url, finding.doi)
    papers = {arxiv_id_of(text) for text in texts} - {None}
    published = {f"doi:{doi}" for doi in dois if doi and not is_preprint_doi(doi)}
    return published | {f"arxiv:{paper}" for paper in papers}


def _addresses(finding: Finding) -> set[str]:
    given = (finding.url, finding.open_access_url)
    return {one for url in given if url and (one := canonical_url(url))}


def _titles(findings: Sequence[Finding]) -> list[list[tuple[str, int | None]]]:
    """Key by title and year. If a title has findings of at most one year, those without a year
    belong to it; if there are several, they stay apart."""
    folded = [folded_title(finding.title) for finding in findings]
    years: defaultdict[str, set[int]] = defaultdict(set)
    for title, finding in zip(folded, findings, strict=True):
        if finding.year is not None:
            years[title].add(finding.year)
    return [
        [(title, finding.year if len(years[title]) > 1 else None)] if title else []
        for title, finding in zip(folded, findings, strict=True)
    ]


def _merged(findings: list[Finding]) -> Merged:
    ordered = sorted(findings, key=lambda one: (-_fullness(one), _spelling(one)))
    first = ordered[0]

    def known(name: str) -> Any:
        values = [getattr(one, name) for one in ordered]
        return next(filter(None, values), values[0])

    dois = [one.doi for one in ordered if one.doi]
    extra: dict[str, Any] = {}
    for one in reversed(ordered):
        extra |= one.extra
    found: dict[str, Any] = {name: known(name) for name in OPTIONAL} | {"extra": extra}
    # That of the publisher rather than that of the preprint.
    found["doi"] = next((doi for doi in dois if not is_preprint_doi(doi)), next(iter(dois), None))
    finding = replace(first, **found)
    return Merged(finding, tuple(ordered))


def _fullness(finding: Finding) -> int:
    """Number of fields with a value."""
    return sum(bool(getattr(finding, name)) for name in OPTIONAL)


def _spelling(finding: Finding) -> tuple[str, ...]:
    """Tie-breaker for the order of two findings."""
    return (finding.provider, finding.provider_id, finding.title, finding.url, repr(finding))
