"""`ctx.ask`: a question to a person. It is recorded as a step, and its answer is a signal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from penstock.engine.tools import without_titles
from penstock.errors import ConfigError, ValidationError
from penstock.model.payload import encode_payload
from penstock.model.question import ACCEPT, check_schema, question_name

if TYPE_CHECKING:
    from penstock.engine.context import JobContext

MESSAGE_LIMIT = 4000


@dataclass(slots=True, frozen=True)
class Asking:
    """A question as a handler asks it."""

    name: str
    """That of its step, and of the signal that answers it."""
    message: str
    schema: dict[str, Any]
    adapter: Any
    """What pydantic makes the answer with."""

    def recorded(self) -> dict[str, Any]:
        """What others are shown of it: the result of its step."""
        return {"message": self.message, "schema": self.schema}

    async def ask(self, ctx: JobContext[Any], timeout: float | timedelta | None) -> Any:
        await ctx.step(self.name, self.recorded)
        return self._answer(await ctx.wait_for(self.name, timeout=timeout))

    def ask_in_thread(self, ctx: JobContext[Any], timeout: float | timedelta | None) -> Any:
        """The same for sync handlers."""
        ctx.step(self.name, self.recorded)
        return self._answer(ctx.wait_for(self.name, timeout=timeout))

    def _answer(self, signal: Any) -> Any:
        """The answer; None if there was none in time, or whoever was asked has declined."""
        if not isinstance(signal, dict) or signal.get("action") != ACCEPT:
            return None
        import pydantic

        try:
            return self.adapter.validate_python(signal.get("content"))
        except pydantic.ValidationError as error:
            said = "; ".join(
                f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
                for one in error.errors(include_url=False, include_input=False)
            )
            raise ValidationError(f"the answer to {self.message!r} does not fit: {said}") from None


def asking_of(message: str, schema: Any) -> Asking:
    """A question for this message, whose answer is a value of the type `schema`; ConfigError for a
    type that no form can have."""
    import pydantic

    if not 0 < len(message) <= MESSAGE_LIMIT:
        raise ValidationError(f"a question is a text of 1 to {MESSAGE_LIMIT:,} characters")
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(schema)
        form = _inlined(without_titles(adapter.json_schema()))
        check_schema(form)
    except (ValidationError, pydantic.errors.PydanticUserError) as error:
        raise ConfigError(f"ctx.ask: {error}") from None
    text = encode_payload({"message": message, "schema": form})
    return Asking(question_name(text), message, form, adapter)


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose fields, such as enums, stand where they are used, as forms need them."""
    definitions = schema.pop("$defs", {})
    for name, field in schema.get("properties", {}).items():
        match field:
            case {"anyOf": [dict(one), {"type": "null"}], **rest}:  # may be left out
                rest.pop("default", None)
                field = one | rest
        match field:
            case {"$ref": str(ref), **rest}:
                field = definitions[ref.rpartition("/")[2]] | rest
        schema["properties"][name] = field
    return schema
