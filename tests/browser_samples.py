"""Pages in a browser that notes what it should not have seen, and visitors who see a clear difference."""

import random
from contextlib import contextmanager

RATES = {"as it is": 0.2, "short form": 0.8, "with video": 0.3}


@contextmanager
def watched(browser, address, **options):
    """Yield a page of its own; afterwards, no request has left the host and nothing was blocked or broken."""
    context = browser.new_context(**options)
    page, strays, complaints = context.new_page(), [], []

    def follow(request):
        if not request.url.startswith((address, "data:")):
            strays.append(request.url)

    def complain(one):
        # That a page is not there is no fault of it.
        if one.type in ("error", "warning") and not one.location["url"].endswith("/nosuch"):
            complaints.append(one.text)

    context.on("request", follow)
    page.on("console", complain)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # Pages of the application tell on what their policy has blocked.
    page.add_init_script(
        "document.addEventListener('securitypolicyviolation', e => console.error('blocked', e.blockedURI))"
    )
    try:
        yield page
        assert not strays
        assert not complaints
    finally:
        context.close()


def enter(page, address, token):
    """Log in by the link that the server prints."""
    page.goto(f"{address}/dashboard/login#{token}")
    page.wait_for_url(f"{address}/dashboard")


def play(client, key, batches, seed=0):
    """Show arms to visitors of a lively page, and tell what came of it."""
    rng = random.Random(seed)  # noqa: S311
    for _ in range(batches):
        proposals = client.ask_many(key, 100)
        rewards = [float(rng.random() < RATES[one.label]) for one in proposals]
        client.tell_many(key, [one.id for one in proposals], rewards)


def serious(results):
    """Return the findings of an axe scan that are serious or critical, in words."""
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in results.response["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
