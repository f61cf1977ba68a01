"""Reports of live experiments as JSON, text and a page, with the head and the certificate behind them."""

import pytest

from goldens.experiments import CASES
from goldens.harness import check, golden_cases, page_text, plain_json, styles_of
from orthobandit.errors import OrthobanditError
from orthobandit.verify import verify

FOLDER = "experiments"
# Plans of two arms are exact on every processor.
WITH_HASHES = {"two arms, small gap", "two arms, a winner", "two equal arms", "silence is 0", "stopped"}
SHOWN_ENTRIES = 2  # of a certificate, at its beginning and at its end; its head is a hash of all


@pytest.mark.parametrize("name", golden_cases(FOLDER, CASES))
def test_report(name):
    experiment = CASES[name]()
    report = experiment.report()
    check(
        {
            f"{FOLDER}/{name}.json": plain_json(
                {"report": report.to_json(), "certificate": certificate_of(experiment)}
            ),
            f"{FOLDER}/{name}.txt": f"{report}\n\n{report!r}",
            f"{FOLDER}/{name}.html": page_text(report.to_html()),
        },
        with_hashes=name in WITH_HASHES,
    )


def certificate_of(experiment):
    """Return the parts of a certificate that a person reads, and its first and last entries."""
    try:
        document = experiment.certificate().to_json()
    except OrthobanditError as error:
        return f"{type(error).__name__}: {error}"
    entries = document["entries"]
    verdict = verify(document)
    return {
        **{name: value for name, value in document.items() if name not in ("entries", "digest")},
        "entries": {
            "count": len(entries),
            "first": entries[:SHOWN_ENTRIES],
            "last": entries[-SHOWN_ENTRIES:],
        },
        "verified": {"claim": verdict.claim, "problems": list(verdict.problems)},
        "head is that of the experiment": document["head"] == experiment.head(),
    }


@pytest.mark.parametrize("name", golden_cases(FOLDER, ["style"]))
def test_style_sheet(name):
    check({f"{FOLDER}/{name}.css": styles_of(CASES["few visitors"]().report().to_html())})
