"""Views: one form over HTTP, MCP and in --json, described by the docstrings of their fields."""

import json
import subprocess
import sys
from dataclasses import dataclass

import pytest
from pydantic import TypeAdapter

from penstock.model.job import Job, JobState
from penstock.wire.jobs import JobView
from penstock.wire.tasks import Budget, Resumed, TaskLine, TaskView
from penstock.wire.view import made, plain

NAMES = "answers", "documents", "jobs", "operators", "tasks", "view"


def test_schemas_have_the_docstrings_of_fields_also_of_inherited_ones() -> None:
    schema = TypeAdapter(TaskView).json_schema(mode="serialization")
    fields = schema["properties"]
    assert fields["progress"]["description"] == "Finished searches and their total: `2/3`."
    assert fields["next_poll"]["description"].endswith("null: finished."), "not None"
    assert schema["required"] == list(fields), "all are always there"


def test_a_job_is_written_as_it_is_described() -> None:
    described = TypeAdapter(JobView).json_schema(mode="serialization")["properties"]
    written = json.loads(json.dumps(Job("id", "kind", {}, JobState.QUEUED), default=plain))
    assert written.keys() == described.keys()
    assert (written["priority"], written["state"]) == ("medium", "queued")
    assert described["priority"]["enum"] == ["high", "medium", "low"]


def test_what_has_no_form_in_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="object has no form"):
        json.dumps(object(), default=plain)


@dataclass
class Source:
    task_id: str
    status: str
    other: int


def test_a_view_takes_what_is_called_the_same_and_what_is_given() -> None:
    view = made(Resumed, Source("t", "running", 1), queued=3)
    assert view.as_dict() == {"task_id": "t", "status": "running", "queued": 3}
    with pytest.raises(TypeError, match="question"):
        made(TaskLine, view)


def test_a_view_is_whole_as_a_dict() -> None:
    assert Budget(None, 1, 2.0, None).as_dict() == {
        "pages": None,
        "pages_used": 1,
        "seconds": 2.0,
        "seconds_left": None,
    }


def test_views_need_no_pydantic() -> None:
    """Workers and commands make them, too."""
    imports = ", ".join(f"penstock.wire.{name}" for name in NAMES)
    program = f"import sys, {imports}; assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
