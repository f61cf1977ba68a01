"""Two servers share one PostgreSQL: sessions, actions and history are those of both."""

import re
import time

import httpx

from dashboard_samples import Visitor, in_words
from orthobandit.service import Client, create_app
from service_samples import TWO, running, token_of


def test_what_one_server_is_asked_another_knows_and_it_is_done_once(postgres, monkeypatch):
    monkeypatch.setattr("inside.service.UNDO_SECONDS", 2.0)
    token = token_of(postgres)
    with running(create_app(postgres)) as one, running(create_app(postgres)) as two:
        visitor = Visitor(one)
        visitor.log_in(token)
        with Client(two, token) as client:
            client.create(**TWO | {"key": "shared"})
            ids = [proposal.id for proposal in client.ask_many("shared", 40)]
            client.tell_many("shared", ids, [1.0] * 40)
        visitor.get("/experiments/shared/stop")
        assert "about to be stopped" in in_words(visitor.post("/experiments/shared/stop", reason="enough"))
        cookies = dict(visitor.http.cookies)
        with httpx.Client(base_url=two, cookies=cookies, timeout=60) as other:
            page = other.get("/dashboard/experiments/shared")
            assert "about to be stopped" in in_words(page)
            while "was stopped by hand" not in in_words(page):
                time.sleep(0.2)
                page = other.get("/dashboard/experiments/shared")
            charts = other.get("/dashboard/experiments/shared/charts").json()
            assert charts["intervals"]["settled"] == [40]
            trail = in_words(other.get("/dashboard/experiments/shared/trail"))
            assert len(re.findall("stopped: enough", trail)) == 1
        visitor.http.close()
