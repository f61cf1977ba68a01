"""Somebody with a browser that knows cookies and forms, and nothing of scripts."""

import re
from contextlib import contextmanager

import httpx

from orthobandit.service import create_app
from service_samples import running, token_of

INLINE = re.compile(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)|javascript:", re.IGNORECASE)


class Visitor:
    """A browser without scripts at the dashboard of a server."""

    def __init__(self, address):
        self.http = httpx.Client(base_url=address, follow_redirects=True, timeout=60)
        self.page = None
        self.token = None

    def get(self, path, **more):
        """Go to a page of the dashboard."""
        self.page = self.http.get(f"/dashboard{path}", **more)
        return self.page

    def post(self, path, form_token=None, headers=None, files=None, **fields):
        """Send a form, with the token of the page that is open unless another is given."""
        found = re.search(r'name="form_token" value="(\w+)"', self.page.text) if self.page else None
        fields["form_token"] = (found[1] if found else "") if form_token is None else form_token
        return self.http.post(f"/dashboard{path}", data=fields, headers=headers, files=files)

    def log_in(self, token):
        """Log in as a person does."""
        self.token = token
        self.get("/login")
        self.page = self.post("/login", token=token, to="/dashboard")
        return self.page


@contextmanager
def visiting(where, role="admin", **options):
    """Serve a database; yields a visitor who is logged in with a token of this role, if there is one."""
    token = token_of(where, role) if role else None
    with running(create_app(where, **options)) as address:
        visitor = Visitor(address)
        try:
            if token is not None:
                visitor.log_in(token)
            yield visitor
        finally:
            visitor.http.close()


def in_words(response):
    """Return the words of a page."""
    text = re.sub(r"<(script|style|title)\b.*?</\1>", " ", response.text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())
