"""Analyses of logs as JSON, text and a page, and the certificates that they save."""

import json

import pytest

from goldens.harness import check, golden_cases, page_text, plain_json, shortened, styles_of
from goldens.logs import CASES, analysed
from orthobandit.errors import OrthobanditError
from orthobandit.verify import verify

FOLDER = "logs"
ARMS = "label,red,large\na,0,0\nb,1,0\nc,0,1\n"


@pytest.mark.parametrize("name", golden_cases(FOLDER, CASES))
def test_analysis(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the file of features is
    (tmp_path / "arms.csv").write_text(ARMS)
    analysis = analysed(name)
    data = {"analysis": analysis.to_json(), "certificate": certificate_of(analysis, tmp_path / "saved.json")}
    check(
        {
            f"{FOLDER}/{name}.json": plain_json(shortened(data)),
            f"{FOLDER}/{name}.txt": f"{analysis}\n\n{analysis!r}",
            f"{FOLDER}/{name}.html": page_text(analysis.html("the log")),
        }
    )


def certificate_of(analysis, path):
    """Return the parts of a certificate that a person reads, and its first and last entries."""
    try:
        analysis.save(path)
    except OrthobanditError as error:
        return f"{type(error).__name__}: {error}"
    document = json.loads(path.read_text(encoding="utf-8"))
    verdict = verify(document)
    shown = {name: shortened(value) for name, value in document.items() if name != "digest"}
    return {**shown, "verified": {"claim": verdict.claim, "problems": list(verdict.problems)}}


@pytest.mark.parametrize("name", golden_cases(FOLDER, ["style"]))
def test_style_sheet(name):
    check({f"{FOLDER}/{name}.css": styles_of(analysed("few rows").html())})
