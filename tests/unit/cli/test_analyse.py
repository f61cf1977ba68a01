"""`orthobandit analyse`: what is given reaches the library, and what comes back reaches the reader."""

import json
from dataclasses import replace

import pytest
from tests.unit.logs.made_up_analyses import everything, found

import orthobandit.logs
from orthobandit import Guardrail
from orthobandit.cli import main
from orthobandit.cli.analyse import (
    cap,
    duration,
    guardrail,
    probabilities,
    ratio,
    rule,
    rules_of,
    split,
)
from orthobandit.errors import Argument, OutputError, ParameterError
from orthobandit.logs import Analysis, Quantile, Question, Ratio, Summary

LOG = ["analyse", "log.csv", "--arm", "variant", "--reward", "clicked"]
EVERY = """--time at --time-unit ms --arms arms.csv --plan plan --plans plans.csv --unit user --window 7d
--missing zero --covariate x --covariate y --segment country --metric revenue --metric visits
--guardrail visits:0.1 --ratio revenue/visits --cap revenue=500 --cap visits=9 --bucket 15m
--reference old --delta .1 --bounds -1 2.5 --asymptotic --baseline seasonal --fixed --compare
--table t --format export
--probabilities p_a p_b --noninferiority a:b:-0.01 --noninferiority crashed:.002
--quantile a:b:.95 --quantile latency:0.5:100,200 --context age hour"""

RULE = ["--rule", "old=b if age >= 60 else a"]


@pytest.fixture
def called(monkeypatch):
    """Return the list of calls of the library, which finds what `called.answer` says."""

    class Calls(list):
        answer = found()

    calls = Calls()

    def analyse(source, *, progress, **asked):
        calls.append((source, asked))
        progress(1, 2)
        if isinstance(calls.answer, Exception):
            raise calls.answer
        return calls.answer

    monkeypatch.setattr(orthobandit.logs, "analyse", analyse, raising=False)
    return calls


def test_only_what_is_given_reaches_the_library(called, capsys):
    assert main(LOG) == 0
    assert called == [("log.csv", {"arm": "variant", "reward": "clicked"})]
    assert capsys.readouterr().out == f"{found()}\n"


def test_every_flag_reaches_the_library(called):
    assert main([*LOG, *EVERY.split(), "--split", "old=.8 new=1/5", "--value", "equal=.2, b=.8", *RULE]) == 0
    ((_, asked),) = called
    assert asked == {
        "arm": "variant",
        "reward": "clicked",
        "time": "at",
        "time_unit": "ms",
        "arms": "arms.csv",
        "plan": "plan",
        "plans": "plans.csv",
        "probabilities": ("p_a", "p_b"),
        "split": {"old": 0.8, "new": 0.2},
        "unit": "user",
        "window": 604800.0,
        "missing": "zero",
        "covariates": ("x", "y"),
        "segment": "country",
        "context": ("age", "hour"),
        "rules": {"old": "b if age >= 60 else a"},
        "metrics": ("revenue", "visits"),
        "quantiles": (Quantile(0.95, (), "a:b"), Quantile(0.5, (100.0, 200.0), "latency")),
        "guardrails": (Guardrail("visits", 0.1),),
        "noninferiority": {"a:b": -0.01, "crashed": 0.002},
        "ratios": (Ratio("revenue", "visits"),),
        "caps": {"revenue": 500.0, "visits": 9.0},
        "bucket": 900.0,
        "reference": "old",
        "delta": 0.1,
        "bounds": (-1.0, 2.5),
        "asymptotic": True,
        "baseline": "seasonal",
        "fixed": True,
        "compare": True,
        "table": "t",
        "format": "export",
        "value": {"equal": 0.2, "b": 0.8},
    }
    own = {
        name: value for name, value in asked.items() if name not in ("table", "format", "compare", "value")
    }
    assert Question(**own).covariates == ("x", "y")
    # No field without a flag; those of a summary have their own test.
    assert set(own) == set(Question.__dataclass_fields__) - {"summary"}


def test_columns_of_a_summary_reach_the_library(called):
    command = ["analyse", "daily.csv", "--arm", "variant", "--time", "day"]
    assert main([*command, "--summary"]) == 0
    assert main([*command, "--n", "visitors", "--std", "sd", "--cumulative", "--largest", "top"]) == 0
    assert main([*command, "--summary", "--variance", "v", "--smallest", "low", "--per-period"]) == 0
    usual = {"arm": "variant", "time": "day", "n": "n", "mean": "mean"}
    assert [asked for _, asked in called] == [
        usual | {"variance": "variance"},
        usual | {"n": "visitors", "std": "sd", "largest": "top", "cumulative": True},
        usual | {"variance": "v", "smallest": "low", "cumulative": False},
    ]
    fields = {"n", "mean", "variance", "std", "smallest", "largest", "cumulative"}
    assert fields == set(Summary.__dataclass_fields__)
    assert fields <= {name for _, asked in called for name in asked}


def test_ranges_of_further_metrics_stand_beside_that_of_the_reward(called):
    main([*LOG, "--bounds", "0", "1", "--range", "revenue=-5:500"])
    main([*LOG, "--range", "clicked=0:1"])
    assert called[0][1]["bounds"] == {"revenue": (-5.0, 500.0), "clicked": (0.0, 1.0)}
    assert called[1][1]["bounds"] == {"clicked": (0.0, 1.0)}


def test_buckets_may_be_named(called):
    main([*LOG, "--bucket", "day"])
    main([*LOG, "--bucket", "2.5"])
    assert [asked["bucket"] for _, asked in called] == ["day", 2.5]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--split", "a=.5 b"], ["--split", "'a=.5 b'", "'b'", "arm=probability", "'a=1/3 b=2/3'"]),
        (["--split", "a=1.5"], ["--split", "'a=1.5'", "from 0 to 1"]),
        (["--split", "a=50% b=50%"], ["--split", "'a=50%'", "from 0 to 1"]),
        (["--split", "a=.5 a=.5"], ["--split", "'a' twice"]),
        (["--split", ""], ["--split", "names no arm"]),
        (["--split", '"a=.5'], ["--split", "quotation mark"]),
        (["--split", "=1"], ["--split", "'=1'"]),
        (["--value", "a=1/0"], ["--value", "'a=1/0'"]),
        (["--value", "a=nan"], ["--value", "'a=nan'"]),
        (["--window", "7x"], ["--window", "'7x'", "7d"]),
        (["--window", "-1"], ["--window"]),
        (["--window", "inf"], ["--window", "'inf'"]),
        (["--bucket", "fortnight"], ["--bucket", "'fortnight'", "minute, hour, day, week"]),
        (["--guardrail", "visits"], ["--guardrail", "'visits'", "METRIC:MARGIN"]),
        (["--guardrail", "visits:-1"], ["--guardrail", "0 or more"]),
        (["--guardrail", "visits:nan"], ["--guardrail", "'visits:nan'"]),
        (["--ratio", "revenue"], ["--ratio", "'revenue'", "revenue/clicks"]),
        (["--ratio", "a/b/c"], ["--ratio", "'a/b/c'"]),
        (["--cap", "revenue"], ["--cap", "METRIC=VALUE"]),
        (["--cap", "revenue=inf"], ["--cap", "'revenue=inf'"]),
        (["--range", "clicked=1:0"], ["--range", "METRIC=LOW:HIGH", "'clicked=1:0'"]),
        (["--range", "clicked"], ["--range", "METRIC=LOW:HIGH"]),
        (["--bounds", "0"], ["--bounds"]),
        (["--missing", "maybe"], ["--missing", "'maybe'", "zero"]),
        (["--format", "xls"], ["--format", "growthbook"]),
        (["--delta", "small"], ["--delta", "'small'"]),
    ],
)
def test_malformed_values_are_refused_by_flag_value_and_remedy(called, capsys, flags, words):
    with pytest.raises(SystemExit) as stopped:
        main([*LOG, *flags])
    assert stopped.value.code == 2
    complaint = " ".join(capsys.readouterr().err.split())
    assert all(word in complaint for word in words)
    assert called == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--cap", "x=1", "--cap", "x=2"], "--cap is given twice for 'x'"),
        (["--range", "x=0:1", "--range", "x=0:2"], "two ranges are given for 'x'"),
        (["--html", "", "--json"], "--html '' is not a file"),
        (["--html", "/"], "--html '/' is not a file"),
        (["--html", "a", "--save", "a"], "--html and --save are both 'a'"),
    ],
)
def test_flags_that_do_not_fit_are_refused_before_the_log_is_read(called, capsys, flags, words):
    assert main([*LOG, *flags]) == 2
    assert words in capsys.readouterr().err
    assert called == []


def test_columns_must_be_named_unless_the_format_names_them(called, capsys):
    assert main(["analyse", "log.csv", "--reward", "r"]) == 2
    assert "--arm is missing; name the column" in capsys.readouterr().err
    assert main(["analyse", "log.csv", "--arm", "a"]) == 2
    assert "--reward is missing" in capsys.readouterr().err
    assert called == []
    assert main(["analyse", "log.json", "--format", "vw"]) == 0
    assert called == [("log.json", {"format": "vw"})]


def test_what_the_library_refuses_is_said_of_the_flag(called, capsys):
    called.answer = ParameterError(Argument("covariates", "agee"), " is not a column; did you mean 'age'?")
    assert main([*LOG, "--covariate", "x", "--covariate", "agee"]) == 2
    shown = capsys.readouterr()
    assert "--covariate agee is not a column; did you mean 'age'?" in " ".join(shown.err.split())
    assert shown.out == ""


def test_alarms_are_bad_news_but_are_shown(called, capsys):
    called.answer = everything()
    assert main(LOG) == 1
    shown = capsys.readouterr().out
    assert shown.index("ALARM") < shown.index("gaps to")
    assert main([*LOG, "--json"]) == 1


def test_json_is_the_whole_analysis(called, capsys):
    called.answer = replace(everything(), diagnostics=())
    assert main([*LOG, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    assert shown == called.answer.to_json() | {"files": []}
    assert shown["metrics"][0]["effects"][2]["more_rows"] == [41_000.0, 12_000.0, None]


def test_a_page_and_a_certificate_are_written_where_they_are_asked_for(called, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(Analysis, "save", lambda _, path: open(path, "w").close(), raising=False)  # noqa: PTH123
    page, saved = tmp_path / "new" / "report.html", tmp_path / "certificate.json"
    assert main([*LOG, "--html", str(page), "--save", str(saved)]) == 0
    assert page.read_text(encoding="utf-8") == found().html(title="log.csv")
    assert saved.exists()
    assert f"wrote {page}\n      {saved}\n" in capsys.readouterr().out
    assert main([*LOG, "--html", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(page)]


def test_what_was_found_is_shown_even_if_it_cannot_be_written(called, capsys, tmp_path, monkeypatch):
    def fail(_, path):
        raise OutputError(f"{path} cannot be written: No space left on device")

    monkeypatch.setattr(Analysis, "save", fail, raising=False)
    assert main([*LOG, "--save", str(tmp_path / "x.json")]) == 2
    shown = capsys.readouterr()
    assert found().sentence in shown.out
    assert "No space left" in shown.err
    (tmp_path / "file").write_text("")
    assert main([*LOG, "--html", str(tmp_path / "file" / "x.html")]) == 2
    assert "--html" in capsys.readouterr().err
    assert len(called) == 1


def test_values_that_are_well_written_are_read():
    assert probabilities("a=1/3, b=2/3") == {"a": 1 / 3, "b": 2 / 3}
    assert probabilities("""'it''s'=.5 "x, y"=.25 p=q=.25""") == {"its": 0.5, "x, y": 0.25, "p=q": 0.25}
    assert split("equal") == "equal"
    assert [duration(text) for text in ("30m", "30min", "12h", "2w", "90")] == [
        1800,
        1800,
        43200,
        1209600,
        90,
    ]
    assert guardrail("a:b:0") == Guardrail("a:b", 0.0)
    assert ratio("n/d").name == "n/d"
    assert cap("a=b=-2") == ("a=b", -2.0)


def test_help_is_grouped_and_says_something_of_every_option(capsys):
    with pytest.raises(SystemExit):
        main(["analyse", "--help"])
    shown = capsys.readouterr().out
    for part in ("the log:", "how arms were drawn", "metrics", "method:", "output:", "examples:"):
        assert part in shown
    assert shown.count("  orthobandit analyse ") == 7


def test_rules_have_a_name_or_are_their_own():
    assert rule("x = B if z == 1 else A") == ("x", "B if z == 1 else A")
    assert rule("B if z <= 1 else A") == ("B if z <= 1 else A", "B if z <= 1 else A")
    with pytest.raises(ParameterError, match="--rule is given twice for 'x'"):
        rules_of([("x", "A"), ("x", "B")])
