"""From a form to an experiment: what is pasted or uploaded, previewed and begun."""

import pytest

from dashboard_samples import in_words, visiting
from inside.service import (
    BLANK,
    MAX_METRIC_ROWS,
    DraftError,
    arms_in,
    body_of,
    count_of,
    fields_of,
    preview,
    rows_of,
)
from orthobandit import ArmSet
from orthobandit.service import Client
from orthobandit.simulation import rounds_to_plan
from service_samples import token_of

PRICES = "label,price\nlow,9\nmiddle,9.5\nhigh,10\n"


SECONDS = {"name": "seconds", "low": "0", "high": "4", "values": "first", "worse": "higher", "margin": "0.5"}
RETURNS = {"name": "returns", "low": "", "high": "", "values": "sum", "worse": "", "margin": ""}


def filled_in(**fields):
    return BLANK | {"key": "page", "arms": "old\nnew"} | fields


def row(number, fields, **more):
    """Return the fields of a further metric as a browser sends them."""
    return {f"metric-{number}-{part}": text for part, text in (fields | more).items()}


@pytest.mark.parametrize(
    ("text", "arms"),
    [
        ("old\nnew", ["old", "new"]),
        (" old \n\n new\n", ["old", "new"]),
        ("label\nold\nnew", ["old", "new"]),
        ("name\tsize\na\t1\nb\t2", [{"label": "a", "features": [1.0]}, {"label": "b", "features": [2.0]}]),
        ('label,x\n"a, b",1\nc,2', [{"label": "a, b", "features": [1.0]}, {"label": "c", "features": [2.0]}]),
        ("", []),
    ],
)
def test_arms_are_labels_or_a_table(text, arms):
    assert arms_in(text) == (arms, [])


def test_a_form_becomes_the_request_that_the_api_takes():
    body, notes = body_of(filled_in(epsilon="0.02", window="7d", holdout="10", goal="earn", delta=" 0.1 "))
    assert not notes
    assert (body.key, body.arms, body.rewards) == ("page", ["old", "new"], [0.0, 1.0])
    assert (body.epsilon, body.delta, body.window, body.holdout, body.goal) == (0.02, 0.1, "7d", 0.1, "earn")
    assert body.expect is None
    assert body_of(filled_in(expect="0.01"))[0].expect == 0.01
    assert body_of(filled_in(rewards="unknown"))[0].rewards == "unknown"
    assert body_of(filled_in(rewards="unknown", low="", high=""))[0].rewards == "unknown"


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"key": "Not This"}, "key", "'Not This' has other characters, or too many: use small letters"),
        ({"key": " "}, "key", "a key is needed"),
        ({"arms": ""}, "arms", "at least 2"),
        ({"arms": "one"}, "arms", "at least 2"),
        ({"arms": "a\na"}, "arms", "labels"),
        ({"arms": "label,x\na,1\nb,?"}, "arms", 'row 1 ("b") has'),
        ({"delta": "many"}, "delta", "'many' is not a number"),
        ({"delta": "2"}, "delta", "delta=2"),
        ({"epsilon": "-1"}, "epsilon", "epsilon=-1"),
        ({"expect": "0"}, "expect", "expect=0"),
        ({"expect": "some"}, "expect", "'some' is not a number"),
        ({"high": ""}, "high", "a number is needed"),
        ({"low": "", "high": ""}, "rewards", "or choose that the range is unknown"),
        ({"rewards": "", "low": "", "high": ""}, "rewards", "give the lowest and the highest reward"),
        ({"low": "1", "high": "0"}, "low", "the lowest is 1 and the highest 0"),
        ({"window": "soon"}, "window", "window='soon'"),
        ({"holdout": "100"}, "holdout", "holdout=1.0"),
        ({"low": "1", "high": "2", "window": "7d"}, "silence", "silence='zero'"),
        (row(1, SECONDS, name=" "), "metric-1-name", "a name is needed"),
        (row(1, SECONDS, name="reward"), "metric-1-name", "'reward' is the name of another metric"),
        (row(1, SECONDS) | row(2, SECONDS), "metric-2-name", "'seconds' is the name of another metric"),
        (row(1, SECONDS, name="a\tb"), "metric-1-name", "use no tabs, line ends or"),
        (row(1, SECONDS, low="5"), "metric-1-low", "the lowest is 5 and the highest 4"),
        (row(1, SECONDS, high=""), "metric-1-high", "a number is needed"),
        (row(1, SECONDS, margin="-1"), "metric-1-margin", "margin=-1"),
        (row(1, SECONDS, margin="some"), "metric-1-margin", "'some' is not a number"),
        (row(1, SECONDS, worse=""), "metric-1-worse", "say which side is worse"),
        (row(1, SECONDS, worse="left"), "metric-1-worse", "worse='left'"),
        (row(1, RETURNS), "window", "values that add up are final at the end of the window"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(fields, field, words):
    with pytest.raises(DraftError) as caught:
        body_of(filled_in(**fields))
    assert list(caught.value.wrong) == [field]
    assert words in caught.value.wrong[field]


def test_several_wrong_fields_are_named_at_once():
    with pytest.raises(DraftError) as caught:
        body_of(filled_in(delta="x", epsilon="y", arms="label,x\na,?", key="?"))
    assert set(caught.value.wrong) == {"arms", "delta", "epsilon", "key"}


def test_further_metrics_and_guardrails_are_what_the_api_takes():
    body, _ = body_of(filled_in(window="7d", delta="0.1", **row(1, SECONDS), **row(2, RETURNS)))
    assert [one.model_dump() for one in body.metrics] == [
        {"name": "seconds", "rewards": [0.0, 4.0], "add": False, "delta": 0.1},
        {"name": "returns", "rewards": None, "add": True, "delta": 0.1},
    ]
    assert [one.model_dump() for one in body.guardrails] == [
        {"metric": "seconds", "margin": 0.5, "worse": "higher", "harm": None}
    ]


def test_rows_are_added_and_removed_and_blank_ones_are_left_out():
    given = row(1, RETURNS, name="") | row(3, SECONDS) | row(12, RETURNS) | {"key": "page"}
    assert rows_of(given) == row(1, SECONDS) | row(2, RETURNS)
    assert rows_of(given, "remove-3") == row(1, RETURNS)
    assert rows_of(given, "add")["metric-3-name"] == ""
    fields = fields_of(given)
    assert list(fields).index("metric-1-name") == list(fields).index("silence") + 1  # as on the form
    many = {name: text for number in range(20) for name, text in row(number, SECONDS).items()}
    assert count_of(rows_of(many, "add")) == MAX_METRIC_ROWS


def test_the_forecast_is_that_of_the_library():
    fields = filled_in(epsilon="0.2", daily="100", spread="0.4")
    shown = preview(body_of(fields)[0], fields)
    needed = sorted(rounds_to_plan(ArmSet.one_hot(2), epsilon=0.2, sigma=0.4, runs=10).tolist())
    rounds = shown["rounds"]
    assert (rounds.least, rounds.most) == (needed[0], needed[-1])
    assert rounds.median in (needed[4], needed[5])
    assert rounds.days == rounds.median / 100
    assert shown["arms"] == [("old", 0.5), ("new", 0.5)]
    assert preview(body_of(filled_in())[0], filled_in())["rounds"] is None
    for name, wrong in (("daily", "-1"), ("spread", "0"), ("spread", "wide")):
        with pytest.raises(DraftError, match=wrong):
            preview(body_of(filled_in())[0], filled_in(**{name: wrong}))


def test_a_table_is_previewed_and_begun(tmp_path):
    with visiting(tmp_path / "all.db") as visitor:
        visitor.get("/new")
        file = {"file": ("prices.csv", PRICES.encode("utf-8-sig"), "text/csv")}
        fields = filled_in(key="prices", arms="", epsilon="0.3", daily="50")
        shown = visitor.post("/new", files=file, do="preview", **fields)
        assert shown.status_code == 200
        words = in_words(shown)
        assert "Preview of prices" in words
        assert "low reference 50 %" in words
        assert "middle 0 %" in words
        assert "days at 50 a day" in words
        assert "A forecast: the median of 10 simulated runs" in words
        assert "middle,9.5" in shown.text  # what was uploaded is in the form, to be sent again
        assert "There is no such" not in words
        assert visitor.get("/experiments/prices").status_code == 404
        visitor.get("/new")
        begun = visitor.post("/new", do="begin", **filled_in(key="prices", arms=PRICES))
        assert begun.url.path == "/dashboard/experiments/prices"
        assert "nobody has asked yet" in in_words(begun)
        visitor.get("/new")
        again = visitor.post("/new", do="begin", **filled_in(key="prices", arms=PRICES))
        assert again.url.path == "/dashboard/experiments/prices"  # pressed twice
        visitor.get("/new")
        other = visitor.post("/new", do="begin", **filled_in(key="prices"))
        assert other.status_code == 422
        assert "there is already an experiment" in in_words(other)
        assert 'aria-invalid="true"' in other.text


def test_metrics_and_guardrails_are_previewed_and_begun(tmp_path):
    where = tmp_path / "all.db"
    with visiting(where) as visitor:
        visitor.get("/new")
        blank = visitor.post("/new", do="add", **filled_in())
        assert blank.status_code == 200
        assert 'name="metric-1-name"' in blank.text
        assert "Preview of" not in blank.text
        rows = row(1, SECONDS) | row(2, RETURNS, values="first")
        assert 'value="seconds"' in visitor.post("/new", do="add", **filled_in(**rows)).text
        assert 'value="seconds"' not in visitor.post("/new", do="remove-1", **filled_in(**rows)).text
        shown = in_words(visitor.post("/new", do="preview", **filled_in(**rows)))
        assert "seconds 0 to 4; the first value of a visitor counts; an arm is retired once" in shown
        wrong = visitor.post("/new", do="preview", **filled_in(**row(1, SECONDS, low="5", name="")))
        assert "Metric 1, name : a name is needed here" in in_words(wrong)
        assert 'id="metric-1-low-wrong"' in wrong.text
        begun = in_words(visitor.post("/new", do="begin", **filled_in(**rows)))
        assert "Also watched: seconds" in begun
        # Said once, with the arms that it has not cleared.
        rail = "Guardrail on &#39;seconds&#39;: an arm is retired once it is proven above the reference arm"
        assert begun.count(rail) == 1
        assert "Guardrail on seconds an arm is retired" not in begun
        assert '"reward": {&#34;reward&#34;: 1, &#34;seconds&#34;: 1, &#34;returns&#34;: 1}' in begun
        with Client(str(visitor.http.base_url), token_of(where)) as client:
            assert client.experiment("page")["metrics"] == ["reward", "seconds", "returns"]


def test_a_file_that_is_no_text_is_refused(tmp_path):
    with visiting(tmp_path / "all.db") as visitor:
        visitor.get("/new")
        file = {"file": ("arms.xlsx", b"PK\x03\x04\xff\xfe", "application/zip")}
        answer = visitor.post("/new", files=file, do="preview", **filled_in())
        assert answer.status_code == 422
        assert "is not text; save the table as CSV in UTF-8" in in_words(answer)
