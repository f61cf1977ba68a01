"""Webhooks: make, list, test and remove them, and see what was delivered."""

import time
from secrets import token_hex
from typing import Annotated

from fastapi import Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from orthobandit.service.api.operations import Resource
from orthobandit.service.api.shared import Body, EmptyBody, document_problems
from orthobandit.service.background.webhook_delivery import Outbox, send_signed
from orthobandit.service.background.webhook_events import KINDS, write_message
from orthobandit.service.http.problems import WEB_ADDRESS, Problem

webhooks = Resource(
    "/v1/webhooks",
    tag="webhooks",
    role="admin",
    for_all=True,
    responses=document_problems(400, 401, 403, 404, 413, 415, 422, 500, 503),
)
Name = Annotated[str, Path(max_length=200)]


class WebhookBody(Body):
    """A webhook to make: an address, and the events it wants."""

    url: Annotated[str, Field(max_length=2000, pattern=WEB_ADDRESS, examples=["https://example.org/hook"])]
    kinds: list[str] | None = Field(None, max_length=20, description=f"Of {', '.join(KINDS)}; null for all")


class WebhookAnswer(BaseModel):
    """A webhook without its secret."""

    id: str
    url: str
    kinds: list[str]
    at: float = Field(description="When it was made, in seconds since the epoch")
    is_off: bool = Field(description="Whether it was switched off by an answer 410")


class NewWebhookAnswer(WebhookAnswer):
    """A webhook that was just made; its secret is never shown again."""

    secret: str


class WebhooksAnswer(BaseModel):
    """All webhooks, the oldest first."""

    webhooks: list[WebhookAnswer]


class TestAnswer(BaseModel):
    """The receiver's answer to a test message."""

    status: int | None
    answer: str


class DeliveryAnswer(BaseModel):
    """One message and its result so far."""

    news: str = Field(description="The `webhook-id`")
    kind: str
    experiment: str
    state: str = Field(description="waiting, sent, or dead once it is given up")
    tries: int
    next: float
    answer: str


class DeliveriesAnswer(BaseModel):
    """The newest messages of a webhook."""

    deliveries: list[DeliveryAnswer]


def _outbox(request: Request) -> Outbox:
    found: Outbox = request.app.state.outbox
    return found


def _unknown(name: str) -> Problem:
    return Problem("not-found", f"there is no webhook {name!r}")


@webhooks.post("", status_code=201, summary="Make a webhook")
def make(body: WebhookBody, request: Request) -> NewWebhookAnswer:
    """Make a webhook for future events; its secret is in this answer only."""
    made, secret = _outbox(request).make(body.url, body.kinds or ())
    return NewWebhookAnswer(**made._asdict(), secret=secret)


@webhooks.get("", summary="List webhooks")
def listed(request: Request) -> WebhooksAnswer:
    """List all webhooks, without their secrets."""
    return WebhooksAnswer(webhooks=[WebhookAnswer(**one._asdict()) for one in _outbox(request).all()])


@webhooks.delete("/{id}", status_code=204, summary="Remove a webhook", response_class=Response)
def remove(id: Name, request: Request) -> None:  # noqa: A002
    """Remove a webhook and its waiting messages."""
    if not _outbox(request).remove(id):
        raise _unknown(id)


@webhooks.post("/{id}/test", summary="Send a message for a test")
def tried(id: Name, request: Request, _: EmptyBody | None = None) -> TestAnswer:  # noqa: A002
    """Send a message of the type `webhook.test` now, and give the receiver's answer."""
    outbox = _outbox(request)
    found = outbox.address_and_secret(id)
    if found is None:
        raise _unknown(id)
    url, secret = found
    body = write_message("webhook.test", time.time(), {"webhook": id})
    status, answer = send_signed(url, secret, f"msg_test_{token_hex(8)}", body, anywhere=outbox.anywhere)
    return TestAnswer(status=status, answer=answer)


@webhooks.get("/{id}/deliveries", summary="What was delivered")
def deliveries(
    id: Name,  # noqa: A002
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> DeliveriesAnswer:
    """List the newest messages of a webhook and their results."""
    outbox = _outbox(request)
    if outbox.address_and_secret(id) is None:
        raise _unknown(id)
    found = outbox.deliveries(id, limit)
    return DeliveriesAnswer(deliveries=[DeliveryAnswer(**one._asdict()) for one in found])
