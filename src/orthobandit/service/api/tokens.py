"""Tokens: make, list and revoke them."""

from typing import Annotated, Literal

from fastapi import Path, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from orthobandit.service.api.operations import Resource
from orthobandit.service.api.shared import Body, Name, document_problems
from orthobandit.service.http.auth import Tokens
from orthobandit.service.http.problems import LINE_OR_NOTHING, Problem

tokens = Resource(
    "/v1/tokens",
    tag="tokens",
    role="admin",
    for_all=True,
    responses=document_problems(400, 401, 403, 404, 409, 413, 415, 422, 500, 503),
)


class TokenBody(Body):
    """A token to make."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"role": "ask-tell", "name": "web servers"},
                {"role": "read", "name": "shop", "experiments": ["shop-*"], "lasts": "90d"},
            ]
        }
    )

    role: Literal["admin", "ask-tell", "read", "edge"]
    name: Annotated[str, StringConstraints(max_length=200, pattern=LINE_OR_NOTHING)] = ""
    experiments: Annotated[
        list[Name] | None,
        Field(
            min_length=1,
            max_length=100,
            description="Keys of the experiments that it is for, `*` in them for anything; all by default",
        ),
    ] = None
    lasts: Annotated[
        Annotated[str, StringConstraints(max_length=40)] | float | None,
        Field(description="Seconds after which it expires, or text such as `90d`; never by default"),
    ] = None


class TokenAnswer(BaseModel):
    """A token without its secret."""

    id: str
    name: str
    role: str
    at: float = Field(description="When it was made, in seconds since the epoch")
    experiments: list[str] | None = Field(description="Keys of its experiments; null for all")
    until: float | None = Field(description="When it expires, in seconds since the epoch; null for never")


class NewTokenAnswer(TokenAnswer):
    """A token that was just made; its text is never shown again."""

    token: str


class TokensAnswer(BaseModel):
    """All tokens, the oldest first."""

    tokens: list[TokenAnswer]


def _tokens(request: Request) -> Tokens:
    found: Tokens | None = request.app.state.tokens
    if found is None:
        raise Problem("not-found", "this server was started without tokens (--no-auth)")
    return found


@tokens.post("", status_code=201, summary="Make a token")
def make(body: TokenBody, request: Request) -> NewTokenAnswer:
    """Make a token; its text is in this answer only."""
    token, text = _tokens(request).make(body.role, body.name, experiments=body.experiments, lasts=body.lasts)
    return NewTokenAnswer(**token._asdict(), token=text)


@tokens.get("", summary="List tokens")
def listed(request: Request) -> TokensAnswer:
    """List all tokens, without their secrets."""
    return TokensAnswer(tokens=[TokenAnswer(**one._asdict()) for one in _tokens(request).all()])


@tokens.delete("/{id}", status_code=204, summary="Revoke a token", response_class=Response)
def revoke(id: Annotated[str, Path(max_length=200)], request: Request) -> None:  # noqa: A002
    """Revoke a token; all servers refuse it within 5 seconds. The last admin's stays."""
    if not _tokens(request).revoke(id):
        raise Problem("not-found", f"there is no token {id!r}")
