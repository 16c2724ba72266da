"""Parses a user's question into terms: those for the full-text search, and the weight of each.

Nothing of what a user types is syntax. Terms consist of letters, digits and `_ . - + #` only, each
is quoted all the same, and their number is bounded.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.retrieval.stop_words import stop_words, without_particles, without_stop_words
from penstock.retrieval.terms import index_terms, normal, script

LONGEST_TEXT = 4000
MAX_TERMS = 96
"""Terms a question may have; what a longer text has beyond is not looked for by words."""
POSTINGS = 100_000
"""How many entries of the index one search may read, at about 0.7 us each in FTS5."""
SMALL_CORPUS = 100
"""How rare a term is cannot be told from fewer chunks: of two, what one holds is in half."""
NO_WEIGHT = 1e-6
"""What FTS5 gives terms that more than half of all chunks hold."""


_JAPANESE = (
    r"(?:とは|のは|って)?(?:何故|なぜ|どうして|どのように|どのような|どのくらい|どれくらい|どのぐらい|"
    r"どれぐらい|どうすれば|どうやって|どんな|どちら|どの|どれ|どこ|どう|いつ|誰|だれ|何|なに|なん)|"
    r"について(?:は|の)?|とは|理由|(?:を)?教えて(?:ください|下さい)?|(?:よ|良)?いですか|"
    r"(?:なの|の)?(?:です|ます|ません|でした|ました|でしょう)か|か(?=[。?]|\s|$)"
)
_KOREAN = (
    r"무엇(?:인가요|인지|입니까|일까요|이며|을|이)?|뭔가요|뭐예요|뭐가|뭐|왜|어떻게|어떤|무슨|"
    r"어디(?:에서|에|서)?|언제(?:까지|부터)?|얼마나|얼마|몇|누가|이유(?:는|가|를)?|까닭(?:은|이|을)?|"
    r"에 대해|알려 ?주세요|설명해 ?주세요|(?:인가요|은가요|는가요|나요|까요|습니까|니까)(?=\W|$)"
)
_ASKING = re.compile(f"{_JAPANESE}|{_KOREAN}")
"""Words that only ask, in Japanese and Korean."""


class Role(StrEnum):
    """The role of a term in a query."""

    ASKED = "asked"
    FREQUENT = "frequent"
    """Left out: so many chunks hold it that reading them would cost more than it tells."""
    UNKNOWN = "unknown"
    """No chunk holds it. Not asked for, but it counts as missing in every hit."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question: its terms, each once and in its order, and the script it is written in."""

    text: str
    terms: tuple[str, ...]
    script: str


@dataclass(frozen=True, slots=True)
class Term:
    text: str
    weight: float
    """Inverse document frequency: what it tells that a chunk holds it."""
    role: Role
    rarity: float
    """The same for a part of the question: over zero for every term, also in a small corpus."""


@dataclass(frozen=True, slots=True)
class WeighedQuery:
    """A question as one corpus sees it."""

    query: Query
    terms: tuple[Term, ...]

    @property
    def asked(self) -> tuple[str, ...]:
        return tuple(term.text for term in self.terms if term.role is Role.ASKED)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each term that is asked for."""
        return {term.text: term.weight for term in self.terms if term.role is Role.ASKED}

    @property
    def ideal(self) -> float:
        """About the BM25 score of a chunk of usual length that holds every term once."""
        return sum(term.weight for term in self.terms if term.role is not Role.FREQUENT)

    @property
    def unknown(self) -> float:
        """How much of the question no chunk at all holds, from 0 to 1."""
        whole = sum(term.rarity for term in self.terms)
        none = sum(term.rarity for term in self.terms if term.role is Role.UNKNOWN)
        return none / (whole or 1.0)

    def coverage(self, held: Collection[str]) -> float:
        """How much of the question a chunk with these terms holds, from 0 to 1; rare terms count
        more, and most of all those that no chunk holds."""
        whole = sum(term.rarity for term in self.terms)
        return sum(term.rarity for term in self.terms if term.text in held) / (whole or 1.0)


def query_terms(text: str) -> Query:
    """The question in `text`, whatever it holds; of endless ones the beginning.

    Stop words are left out. What asks, or ties words together, in Japanese and Korean is, too,
    unless there is nothing else: it is told by how it is written, which may be wrong.
    """
    text = text[:LONGEST_TEXT]
    small = stop_words(text)
    spoken = without_stop_words(normal(text), small)
    terms = index_terms(without_particles(without_asking(spoken))) or index_terms(spoken)
    unique = dict.fromkeys(term for term in terms if term not in small)
    return Query(text, tuple(unique)[:MAX_TERMS], script(text))


def weigh(
    query: Query, frequencies: Mapping[str, int], total: int, postings: int = POSTINGS
) -> WeighedQuery:
    """`query` for a corpus of `total` chunks, of which `frequencies[term]` hold a term.

    Terms are asked for from the rarest on, until `postings` entries of the index would be read; one
    is always asked for if any is known. Both numbers are those of the index as a whole, not of what
    a filter leaves of it, because the index reads and weighs by them too.
    """
    known = sorted(
        (term for term in query.terms if frequencies.get(term, 0) > 0),
        key=lambda term: frequencies[term],
    )
    asked: set[str] = set()
    left = postings
    for term in known:
        left -= frequencies[term]
        if left < 0 and asked:
            break
        asked.add(term)
    return WeighedQuery(
        query,
        tuple(
            Term(
                term,
                weight(frequencies.get(term, 0), total),
                Role.ASKED
                if term in asked
                else Role.FREQUENT
                if frequencies.get(term, 0) > 0
                else Role.UNKNOWN,
                _rarity(frequencies.get(term, 0), total),
            )
            for term in query.terms
        ),
    )


def weight(holding: int, total: int) -> float:
    """What it tells that a chunk holds a term which `holding` of `total` chunks hold. The formula
    of FTS5, so that scores can be compared with what they are made of."""
    total = max(total, holding)
    return max(NO_WEIGHT, math.log((total - holding + 0.5) / (holding + 0.5)))


def _rarity(holding: int, total: int) -> float:
    total = max(total, holding, SMALL_CORPUS)
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def scope_term(name: str, value: str) -> str:
    """The token that stands for `name` = `value` (tenant, collection, metadata) in the index.

    Hashed, because values hold anything. It narrows a search; it is the store's `where` that keeps
    tenants apart.
    """
    digest = hashlib.blake2b(f"{name}\0{value}".encode(), digest_size=12)
    return f"s{digest.hexdigest()}"


def match_expression(query: WeighedQuery, scope: Sequence[str] = ()) -> str | None:
    """For `match` on an FTS5 table with the columns `scope` and `terms`: chunks in every `scope`
    that hold any of the terms. None if there is nothing to ask for."""
    if not query.asked:
        return None
    words = " OR ".join(_quoted(term) for term in query.asked)
    narrowed = [f"scope : {_quoted(term)}" for term in scope]
    return " AND ".join([*narrowed, f"terms : ({words})"])


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def without_asking(text: str) -> str:
    """`text`, in lower case and NFKC, with a space for each word that only asks."""
    return _ASKING.sub(" ", text)
