"""Records of jobs, apart from the writes that each adapter has its own way for."""

from __future__ import annotations

from penstock.adapters.sql.dialect import Sql
from penstock.errors import JobNotFound
from penstock.ports.queue import TakenOver


async def lock_source(tx: Sql, records: TakenOver) -> int:
    """The job that has the records, by its seq, before anything is written; JobNotFound if it is
    gone."""
    source = await tx.one("lock_job", id=records.job_id)
    if source is None:
        raise JobNotFound(records.job_id)
    return int(source["seq"])


async def take_over(tx: Sql, source: int, records: TakenOver, new_id: str) -> None:
    """Give a job that was just stored these records."""
    values = {"source": source, "before": records.before}
    if await tx.execute("take_over_records", id=new_id, **values):
        await tx.execute("has_records", id=new_id)
