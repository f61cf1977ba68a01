"""Frames go in as arms and come out as results, of whichever library is wanted."""

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from inside.study import log_text
from orthobandit import SBE, ArmSet, Environment, analyse, centred_design, simulate
from orthobandit._foundation.frames import frame_of
from orthobandit.errors import FeatureError, FileFormatError, InputWarning, MissingExtraError, ParameterError
from orthobandit.experiment import Experiment

KINDS = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.Table}
PAGES = {"page": ["plain", "sale", "both"], "price": [1.0, 0.5, 0.5], "video": [0, 0, 1]}


@pytest.fixture(scope="module")
def run():
    two = Environment(ArmSet.one_hot(3), [0, 1, 0])
    return simulate(SBE(), two, horizon=300, replications=4, seed=1, checkpoints=[100, 300])


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_text(log_text())
    labels = ("plain", "video", "discount", "delivery", "both")
    names = [f"p:{label}" for label in labels]
    return analyse(str(path), arm="page", reward="ordered", time="at", probabilities=names, compare=True)


@pytest.fixture(scope="module")
def report():
    experiment = Experiment.memory(ArmSet.one_hot(2, ["old", "new"]), rewards="unknown", key="0" * 32)
    for _ in range(40):
        proposal = experiment.ask()
        experiment.tell(proposal.id, float(proposal.label == "new"))
    return experiment.report()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_column_of_words_names_the_arms(kind):
    frame = kind(PAGES) if kind is not pyarrow.Table else pyarrow.table(PAGES)
    for arms in (ArmSet(frame), ArmSet.from_frame(frame)):
        assert arms.labels == ("plain", "sale", "both")
        assert arms.features.tolist() == [[1.0, 0.0], [0.5, 0.0], [0.5, 1.0]]
    chosen = ArmSet.from_frame(frame, label="page", features=["video", "price"])
    assert chosen.features.tolist() == [[0.0, 1.0], [0.0, 0.5], [1.0, 0.5]]


def test_the_index_of_pandas_names_the_arms_unless_it_counts_rows():
    frame = pandas.DataFrame(PAGES).set_index("page")
    assert ArmSet(frame).labels == ("plain", "sale", "both")
    assert ArmSet(frame.reset_index(drop=True)).labels == ("0", "1", "2")
    assert ArmSet(frame.set_axis([7, 8, 9])).labels == ("7", "8", "9")
    assert ArmSet(frame, labels=["a", "b", "c"]).labels == ("a", "b", "c")


def test_what_is_wrong_with_a_frame_is_named():
    with pytest.raises(FileFormatError, match="the frame has no column 'prise'; its columns are page, price"):
        ArmSet.from_frame(polars.DataFrame(PAGES), features=["prise"])
    with pytest.raises(FeatureError, match=r"row 0 \(\"a\"\) has 'plain' in column 'page'"):
        ArmSet(pandas.DataFrame(PAGES, index=["a", "b", "c"]))
    with pytest.raises(ParameterError, match="frame is a list; give a DataFrame"):
        ArmSet.from_frame([[1.0]])


@pytest.mark.parametrize("column", ["id", "page_id", "SKU", "count"])
def test_numbers_of_arms_are_no_feature_without_a_warning(column):
    frame = polars.DataFrame({column: list(range(1, 11)), "price": [float(i % 3) for i in range(10)]})
    with pytest.warns(InputWarning, match=f"the column '{column}' is taken as a feature; if it only numbers"):
        ArmSet(frame)
    ArmSet.from_frame(frame.with_columns(price=polars.int_range(10) ** 2), label=column)


@pytest.mark.parametrize("library", KINDS)
def test_results_are_frames_of_the_library_that_is_asked_for(library, run, analysis, report):
    design = centred_design(ArmSet.one_hot(3, ["a", "b", "c"]))
    shapes = {
        "runs": (run.to_frame(library=library), (4, 6)),
        "curves": (run.to_frame("curves", library=library), (8, 3)),
        "design": (design.to_frame(library=library), (3, 2)),
        "effects": (analysis.to_frame(library=library), (5, 11)),
        "checks": (analysis.to_frame("checks", library=library), (len(analysis.diagnostics), 4)),
        "rivals": (analysis.to_frame("rivals", library=library), (len(analysis.rivals), 7)),
        "report": (report.to_frame(library=library), (2, 16)),
    }
    for name, (frame, shape) in shapes.items():
        assert isinstance(frame, KINDS[library]), name
        assert frame.shape == shape, name


def test_frames_hold_what_the_results_say(run, analysis, report):
    frame = run.to_frame("curves", library="pandas")
    wide = frame.pivot(index="replication", columns="round", values="regret")
    assert wide.to_numpy().tolist() == run.regret.tolist()
    effects = analysis.to_frame(library="pandas").set_index("arm")
    both = next(one for one in analysis.metrics[0].effects if one.arm == "both")
    assert (effects.loc["both", "low"], effects.loc["both", "high"]) == both.interval
    assert report.to_frame(library="polars")["settled"].to_list() == [arm.settled for arm in report.arms]
    history = analysis.to_frame("history", library="polars")
    assert history.height == 5 * len(analysis.metrics[0].history)


def test_an_unknown_table_or_library_is_refused(run):
    with pytest.raises(ParameterError, match="table='curve' is not one of 'curves', 'runs'; did you mean"):
        run.to_frame("curve")
    with pytest.raises(ParameterError, match="library='panda' is not one of"):
        run.to_frame(library="panda")


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"a frame of polars needs polars.*\.\[frames\]"):
        frame_of({"a": [1]}, "polars")


def test_tables_are_written_as_parquet(run, analysis, report, tmp_path):
    path = tmp_path / "x.parquet"
    for thing, columns in ((run, 6), (analysis, 11), (report, 16)):
        thing.to_parquet(path)
        assert pyarrow.parquet.read_table(path).num_columns == columns


def test_every_result_is_a_picture_and_says_what_is_drawn(run, analysis, report):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    design = centred_design(ArmSet.one_hot(3, ["a", "b", "$c$"]))
    axes = design.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "$c$"]
    assert axes.get_title("left") == "centred design: 3 of 3 arms are played"
    axes = run.plot(label="one")
    assert run.plot(axes, label="two") is axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    assert len({line.get_color() for line in axes.lines}) == 2
    labels = [text.get_text() for text in analysis.plot().get_yticklabels()]
    assert labels == ["both", "delivery", "discount", "video"]
    assert [text.get_text() for text in report.plot().get_yticklabels()] == ["new"]
    many = centred_design(ArmSet([[i, i**2, i**3] for i in range(60)]))
    assert many.plot().get_xlabel() == "probability"
    pyplot.close("all")


def test_notebooks_get_tables_in_which_labels_are_only_text(run, analysis, report):
    design = centred_design(ArmSet.one_hot(2, ["<b>", "plain"]))
    shown = design._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "0.5000" in shown
    assert report.advice.split(":")[0] in report._repr_html_()
    assert "ordered: gaps to" in analysis._repr_html_()
    assert "regret ± s.e." in run._repr_html_()


def test_reprs_are_one_short_line(run, analysis, report):
    from orthobandit import Plan, Tally

    many = ArmSet.one_hot(300)
    things = [
        run,
        run.summary(),
        run.decision,
        analysis,
        report,
        centred_design(many),
        Environment(many, [0.0] * 300),
        Plan([1 / 300] * 300, 10),
        Tally([1] * 300, [1.0] * 300, [1.0] * 300),
    ]
    for thing in things:
        assert len(repr(thing)) < 300, type(thing)
        assert "\n" not in repr(thing)
