from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Errand(_message.Message):
    __slots__ = ("tenant", "question", "plan", "collections", "found", "rounds_done", "asked")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    COLLECTIONS_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_DONE_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    question: str
    plan: Plan
    collections: Collections
    found: _containers.RepeatedCompositeFieldContainer[Evidence]
    rounds_done: int
    asked: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., question: _Optional[str] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ..., collections: _Optional[_Union[Collections, _Mapping]] = ..., found: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ..., rounds_done: _Optional[int] = ..., asked: _Optional[_Iterable[str]] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("queries", "enough")
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    ENOUGH_FIELD_NUMBER: _ClassVar[int]
    queries: _containers.RepeatedScalarFieldContainer[str]
    enough: str
    def __init__(self, queries: _Optional[_Iterable[str]] = ..., enough: _Optional[str] = ...) -> None: ...

class Collections(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("number", "collection", "document", "title", "source", "chunk", "start", "end", "pages", "text", "score", "query", "round")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    number: int
    collection: str
    document: str
    title: str
    source: str
    chunk: int
    start: int
    end: int
    pages: Pages
    text: str
    score: float
    query: str
    round: int
    def __init__(self, number: _Optional[int] = ..., collection: _Optional[str] = ..., document: _Optional[str] = ..., title: _Optional[str] = ..., source: _Optional[str] = ..., chunk: _Optional[int] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., pages: _Optional[_Union[Pages, _Mapping]] = ..., text: _Optional[str] = ..., score: _Optional[float] = ..., query: _Optional[str] = ..., round: _Optional[int] = ...) -> None: ...

class Pages(_message.Message):
    __slots__ = ("first", "last", "starts")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    starts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ..., starts: _Optional[_Iterable[int]] = ...) -> None: ...

class Round(_message.Message):
    __slots__ = ("number", "queries", "evidence", "missing", "enough", "note", "next")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    ENOUGH_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    number: int
    queries: _containers.RepeatedScalarFieldContainer[str]
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    missing: _containers.RepeatedScalarFieldContainer[str]
    enough: bool
    note: str
    next: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., queries: _Optional[_Iterable[str]] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ..., enough: _Optional[bool] = ..., note: _Optional[str] = ..., next: _Optional[_Iterable[str]] = ...) -> None: ...

class Trouble(_message.Message):
    __slots__ = ("kind", "lane", "seconds", "why")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Trouble.Kind]
        LANE_BUSY: _ClassVar[Trouble.Kind]
        UNAVAILABLE: _ClassVar[Trouble.Kind]
        RATE_LIMITED: _ClassVar[Trouble.Kind]
        REFUSED: _ClassVar[Trouble.Kind]
        FULL: _ClassVar[Trouble.Kind]
    KIND_UNSPECIFIED: Trouble.Kind
    LANE_BUSY: Trouble.Kind
    UNAVAILABLE: Trouble.Kind
    RATE_LIMITED: Trouble.Kind
    REFUSED: Trouble.Kind
    FULL: Trouble.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    kind: Trouble.Kind
    lane: str
    seconds: float
    why: str
    def __init__(self, kind: _Optional[_Union[Trouble.Kind, str]] = ..., lane: _Optional[str] = ..., seconds: _Optional[float] = ..., why: _Optional[str] = ...) -> None: ...
