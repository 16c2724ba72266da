"""A handler's parameters, and payloads checked against them."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable
from typing import Any

from penstock.engine.annotations import is_data, never_json, resolve
from penstock.errors import ConfigError, DamagedRow, ValidationError
from penstock.text.normalize import is_storable

log = logging.getLogger("penstock")


class Arguments:
    """A handler's parameters besides its context. Annotated types are checked and converted."""

    def __init__(self, kind: str, function: Callable[..., Any]) -> None:
        self._kind = kind
        self._function = function
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        if not parameters or parameters[0].kind not in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            raise ConfigError(f"the handler of {kind!r} must take the job's context first")
        self._context = parameters[0].name
        self._check(parameters[0].annotation, signature.return_annotation)
        self._open = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        self._parameters = []
        for parameter in parameters[1:]:
            if parameter.kind in (
                inspect.Parameter.POSITIONAL_ONLY,
                inspect.Parameter.VAR_POSITIONAL,
            ):
                raise ConfigError(
                    f"the handler of {kind!r} is called with named arguments; "
                    f"it cannot take {parameter}"
                )
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                self._parameters.append(parameter)
        self.required = {p.name for p in self._parameters if p.default is inspect.Parameter.empty}
        """Names of what a payload must have."""
        self.names = {p.name for p in self._parameters}
        self._by_place = [
            p.name for p in self._parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        ]
        self._typed = any(p.annotation is not inspect.Parameter.empty for p in self._parameters)
        self._validate: Callable[[str], dict[str, Any]] | None = None

    def _check(self, context: Any, returns: Any) -> None:
        """Refuse what the annotations alone show to be a mistake. Those that cannot be resolved
        show nothing."""
        empty = inspect.Parameter.empty
        if context is not empty and is_data(self._resolved(context)):
            raise ConfigError(
                f"the handler of {self._kind!r} must take the job's context first: write "
                f"(ctx: JobContext, {self._context}: ...)"
            )
        if returns is not empty and (wrong := never_json(self._resolved(returns))) is not None:
            raise ConfigError(
                f"the handler of {self._kind!r} returns {getattr(wrong, '__name__', wrong)}, which "
                "cannot be stored as JSON; return plain values, a dataclass or a pydantic model"
            )

    def _resolved(self, annotation: Any) -> Any:
        try:
            return resolve(annotation, self._function)
        except (NameError, AttributeError):
            return Any

    def named(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """The payload of a call without the context: what is given by place gets its name."""
        if len(given) > len(self._by_place):
            most = len(self._by_place)
            self._refuse([f"{len(given)} arguments were given by place, and it has {most}"])
        payload = dict(zip(self._by_place, given, strict=False))
        if twice := sorted(payload.keys() & named.keys()):
            self._refuse([f"{name} was given twice" for name in twice])
        return payload | named

    def prepare(self) -> None:
        """Build what checking needs now, and not with the first job."""
        if self._typed and self._validate is None:
            self._validate = self._build()

    def parse(self, payload: str) -> dict[str, Any]:
        """The keyword arguments in a payload's JSON text, or ValidationError; DamagedRow where it
        is no text."""
        if not is_storable(payload):
            raise DamagedRow
        if self._open and f'"{self._context}"' in payload and self._context in json.loads(payload):
            self._refuse([self._not_an_argument(self._context)])
        if not self._typed:
            arguments: dict[str, Any] = {} if payload == "{}" else json.loads(payload)
            if not self.required <= arguments.keys() or not (
                self._open or arguments.keys() <= self.names
            ):
                self._refuse_names(arguments)
            return arguments
        if self._validate is None:
            self._validate = self._build()
        return self._validate(payload)

    def _refuse_names(self, arguments: dict[str, Any]) -> None:
        missing = sorted(self.required - arguments.keys())
        unknown = sorted(arguments.keys() - self.names)
        problems = [f"{name} is missing" for name in missing]
        problems += [self._not_an_argument(name) for name in unknown]
        self._refuse(problems)

    def _not_an_argument(self, name: str) -> str:
        if name == self._context:
            return f"{name}, the first parameter, is the job's context, not an argument"
        return f"{name} is not an argument"

    def _refuse(self, problems: list[str]) -> None:
        signature = f"{self._kind}({', '.join(map(str, self._parameters))})"
        raise ValidationError(f"payload does not fit {signature}: {'; '.join(problems)}")

    def schema(self) -> dict[str, Any]:
        """The JSON schema of a payload, with the defaults of the signature."""
        from penstock.engine.tools import argument_schema

        return argument_schema(self._adapter(), self._parameters)

    def _adapter(self) -> Any:
        """What pydantic checks a payload with."""
        # Imported here: pydantic takes 0.2 s to load, and `penstock --help` needs none of it.
        from typing import NotRequired

        import pydantic
        from typing_extensions import TypedDict

        fields: dict[str, Any] = {}
        for parameter in self._parameters:
            annotation = self._resolve(parameter)
            optional = parameter.default is not inspect.Parameter.empty
            fields[parameter.name] = NotRequired[annotation] if optional else annotation
        # A TypedDict and not a model: a parameter may be called `json` or `copy`.
        make: Any = TypedDict
        payload_type = make("Payload", fields)
        payload_type.__pydantic_config__ = pydantic.ConfigDict(
            extra="allow" if self._open else "forbid", arbitrary_types_allowed=True
        )
        return pydantic.TypeAdapter(payload_type)

    def _build(self) -> Callable[[str], dict[str, Any]]:
        import pydantic

        adapter: pydantic.TypeAdapter[dict[str, Any]] = self._adapter()

        def validate(payload: str) -> dict[str, Any]:
            try:
                return adapter.validate_json(payload)
            except pydantic.ValidationError as error:
                self._refuse(
                    [
                        self._words(problem)
                        for problem in error.errors(include_url=False, include_input=False)
                    ]
                )
                raise

        return validate

    def _resolve(self, parameter: inspect.Parameter) -> Any:
        if parameter.annotation is inspect.Parameter.empty:
            return Any
        try:
            return resolve(parameter.annotation, self._function)
        except (NameError, AttributeError) as error:
            log.warning(
                "%s: the type of %s (%s) cannot be resolved (%s), so it is not checked",
                self._kind,
                parameter.name,
                parameter.annotation,
                error,
            )
            return Any

    def _words(self, problem: Any) -> str:
        where = ".".join(map(str, problem["loc"])) or "payload"
        match problem["type"]:
            case "missing":
                return f"{where} is missing"
            case "extra_forbidden":
                return self._not_an_argument(where)
            case _:
                return f"{where}: {problem['msg']}"
