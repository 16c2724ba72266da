"""Tools: functions that agents and programs call by name, each call a job.

A tool is a kind of job whose handler is described: its arguments and its result have JSON schemas,
made of the function's signature, and its docstring says what it is for.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, get_origin

from penstock.engine.annotations import resolve
from penstock.engine.context import JobContext
from penstock.engine.handlers import Handler, HandlerOptions, Handlers
from penstock.errors import ConfigError, ValidationError
from penstock.model.job import TOOL_NAME
from penstock.model.payload import encode_payload, plain_payload
from penstock.text.docstrings import read_docstring

if TYPE_CHECKING:
    pass

KEY_LIMIT = 200
RESULT = "result"
"""What holds a result that is no object, such as a number or a list."""

ToolKey = bool | str | Callable[[dict[str, Any]], str | None]


class ToolOptions(HandlerOptions, total=False):
    """Options of `app.tool`, besides those that `app.job` has as well."""

    title: str | None
    """For people; made of the name unless given."""
    description: str | None
    """For models, instead of the docstring."""
    key: ToolKey
    """Makes the same call twice one job: True is all arguments, a text names the argument that
    tells calls apart, a function makes the key of them. A call that failed or was cancelled can be
    made again."""
    read_only: bool
    """A call changes nothing: agents are told, and a key needs only the scope `read`."""
    destructive: bool
    """A call may overwrite or delete something: agents are told."""


@dataclass(frozen=True)
class AppTool:
    """A function that agents and programs call by name. Each call is a job of the kind `name`."""

    name: str
    title: str
    description: str
    handler: Handler
    function: Callable[..., Any]
    """As it was written."""
    key: ToolKey
    read_only: bool
    """A call changes nothing that anybody would mind."""
    destructive: bool
    """A call may overwrite or delete something."""

    @property
    def repeatable(self) -> bool:
        """Whether the same call, made again, changes nothing more."""
        return self.read_only or self.key is not False

    @cached_property
    def returns(self) -> Any:
        """The type of the result; Any if it is not said or cannot be found."""
        annotation = inspect.signature(self.function).return_annotation
        if annotation is inspect.Signature.empty:
            return Any
        try:
            return resolve(annotation, self.function)
        except (NameError, AttributeError):
            return Any

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The schema of the arguments."""
        schema = self.handler.arguments.schema()
        for name, text in read_docstring(self.function.__doc__)[1].items():
            if name in schema["properties"]:
                schema["properties"][name].setdefault("description", text)
        return schema

    @property
    def result(self) -> dict[str, Any]:
        """The schema of the result, an object: what is none is its `result`."""
        return self._result[0]

    @cached_property
    def _result(self) -> tuple[dict[str, Any], bool]:
        """The schema of the result, and whether the result is held by an object in it."""
        import pydantic

        if self.returns is Any:
            return {"type": "object"}, False
        try:
            adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(self.returns)
            inner = without_titles(adapter.json_schema(mode="serialization"))
        except pydantic.errors.PydanticUserError:  # its values may be JSON all the same
            return {"type": "object"}, False
        definitions = inner.pop("$defs", {})
        root = definitions[inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
        wrapped = root.get("type") != "object"
        schema = root | {name: one for name, one in inner.items() if name != "$ref"}
        if wrapped:
            schema = {"type": "object", "properties": {RESULT: inner}, "required": [RESULT]}
        return schema | ({"$defs": definitions} if definitions else {}), wrapped

    def structured(self, result: Any) -> dict[str, Any]:
        """A result as `result` describes it."""
        return result if isinstance(result, dict) and not self._result[1] else {RESULT: result}

    def key_of(self, arguments: dict[str, Any]) -> str | None:
        """The idempotency key of a call; None: every call is a new job."""
        match self.key:
            case False:
                return None
            case True:
                found: Any = arguments
            case str():
                found = arguments.get(self.key)
            case _:
                try:
                    found = self.key(arguments)
                except Exception as error:
                    raise ValidationError(
                        f"the key of a call of {self.name!r} cannot be computed: {error!r}"
                    ) from error
        if found is None:
            return None
        text = found if isinstance(found, str) else encode_payload({"": found})
        if 0 < len(text) <= KEY_LIMIT and text.isprintable():
            return text
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def register_tool(
    tools: dict[str, AppTool],
    job: Callable[..., Callable[[Any], Any]],
    handlers: Handlers,
    name: str | None,
    options: dict[str, Any],
    function: Any,
) -> Any:
    """Register a function as a tool and as the handler of its jobs; returns it."""
    own = {one: given for one, given in options.items() if one in _OWN}
    rest = {one: given for one, given in options.items() if one not in _OWN}
    kind = getattr(function, "__name__", "") if name is None else name
    job(kind, **rest)(handler_of(function))
    tools[kind] = make_tool(function, handlers[kind], **own)
    return function


_OWN = ("title", "description", "key", "read_only", "destructive")


def make_tool(
    function: Callable[..., Any],
    handler: Handler,
    *,
    title: str | None = None,
    description: str | None = None,
    key: ToolKey = False,
    read_only: bool = False,
    destructive: bool = False,
) -> AppTool:
    """A tool of a function and the handler that runs it; ConfigError says what it lacks."""
    name = handler.kind
    if not TOOL_NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a valid name of a tool: use up to 128 letters, digits, '_', '.' and "
            "'-', starting with a letter"
        )
    about = description or read_docstring(function.__doc__)[0]
    if not about:
        raise ConfigError(
            f"the tool {name!r} needs a docstring: it is what a model knows it by; or give "
            "description=..."
        )
    if isinstance(key, str) and key not in handler.arguments.names:
        raise ConfigError(f"key={key!r} is not an argument of the tool {name!r}")
    if read_only and destructive:
        raise ConfigError(f"the tool {name!r} cannot be read_only and destructive")
    for parameter in inspect.signature(function).parameters.values():
        if type(parameter.default).__name__ == "FieldInfo":
            raise ConfigError(
                f"{parameter.name} of the tool {name!r}: write Annotated[..., Field(...)] = default"
            )
    shown = title or name.replace("_", " ").replace(".", ": ").capitalize()
    return AppTool(name, shown, about, handler, function, key, read_only, destructive)


def handler_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """What runs a tool as a job: the function itself, or one that takes the job's context for it
    and leaves it out."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and _takes_context(parameters[0], function):
        return function
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def handle(ctx: JobContext, /, **arguments: Any) -> Any:
            return await function(**arguments)
    else:

        @wraps(function)
        def handle(ctx: JobContext, /, **arguments: Any) -> Any:
            return function(**arguments)

    context = inspect.Parameter("job_context", inspect.Parameter.POSITIONAL_ONLY)
    if any(one.kind is inspect.Parameter.POSITIONAL_ONLY for one in parameters):
        raise ConfigError(f"the tool {function.__name__!r} is called with named arguments")
    handle.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[context, *parameters]
    )
    return handle


def _takes_context(first: inspect.Parameter, function: Callable[..., Any]) -> bool:
    if first.annotation is inspect.Parameter.empty:
        return first.name in ("ctx", "context")
    try:
        annotation = resolve(first.annotation, function)
    except (NameError, AttributeError):  # known to type checkers alone
        return "JobContext" in str(first.annotation)
    return annotation is JobContext or get_origin(annotation) is JobContext


def argument_schema(adapter: Any, parameters: list[inspect.Parameter]) -> dict[str, Any]:
    """The JSON schema of a handler's arguments: what pydantic makes of their types, and the
    defaults of the signature."""
    schema: dict[str, Any] = without_titles(adapter.json_schema())
    schema.setdefault("properties", {})
    for parameter in parameters:
        if parameter.default is not inspect.Parameter.empty:
            try:
                plain = plain_payload({"": parameter.default})[0][""]
            except ValidationError:  # nothing that a schema can tell
                continue
            schema["properties"][parameter.name]["default"] = plain
    return schema


def without_titles(schema: Any) -> Any:
    """A schema without titles that repeat names: every conversation pays for what is listed."""
    match schema:
        case dict():
            return {
                name: _named(one) if name in ("properties", "$defs") else without_titles(one)
                for name, one in schema.items()
                if not (name == "title" and isinstance(one, str))
            }
        case list():
            return [without_titles(one) for one in schema]
        case _:
            return schema


def _named(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas of properties, of which one may be called `title`."""
    return {name: without_titles(one) for name, one in schemas.items()}
