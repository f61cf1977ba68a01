"""Names with settings: read, checked against the maker, refused with the nearest valid word."""

import re
from functools import partial
from importlib import metadata

import pytest

from orthobandit._foundation.registry import SettingError, WithOwn, make_named, parse_named, settings_of
from orthobandit.errors import ParameterError


def cake(layers=2, sugar=0.5, icing="lemon", *, candles=None):
    return layers, sugar, icing, candles


MAKERS = {"cake": cake, "bread": lambda: "bread", "tall": partial(cake, layers=9)}


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("cake", "cake", {}),
        ("cake:", "cake", {}),
        ("cake:layers=3", "cake", {"layers": 3}),
        ("cake:sugar=1e-3,icing=rum", "cake", {"sugar": 1e-3, "icing": "rum"}),
        ("cake:sugar=-2", "cake", {"sugar": -2}),
    ],
)
def test_text_is_read(text, name, settings):
    assert parse_named(text) == (name, settings)


@pytest.mark.parametrize("text", ["cake:lay ers", "cake:=3", "cake:layers=", "cake:layers=1,layers=2"])
def test_text_that_is_no_setting_is_refused(text):
    with pytest.raises(ParameterError, match=r"lay ?ers|=3"):
        parse_named(text)


def test_settings_reach_the_maker():
    assert make_named("food", MAKERS, "cake", {"layers": 3, "candles": 7}) == (3, 0.5, "lemon", 7)
    assert make_named("food", MAKERS, "tall", {}) == (9, 0.5, "lemon", None)
    assert make_named("food", MAKERS, "tall", {"layers": 4}) == (4, 0.5, "lemon", None)
    assert make_named("food", MAKERS, "bread", {}) == "bread"
    assert settings_of(cake) == ("layers", "sugar", "icing", "candles")


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("cakes", {}, "unknown food 'cakes'; did you mean 'cake'?"),
        ("water", {}, "unknown food 'water'; the names are bread, cake, tall"),
        ("cake", {"layer": 1}, "food 'cake' has no setting 'layer'; did you mean 'layers'?"),
        ("cake", {"zz": 1}, "food 'cake' has no setting 'zz'; the names are candles, icing, layers, sugar"),
        ("bread", {"layers": 1}, "food 'bread' takes no settings; leave out 'layers'"),
        ("cake", {"layers": "two"}, "food 'cake': layers='two' must be a number"),
        ("cake", {"layers": 2.5}, "food 'cake': layers=2.5 must be a whole number"),
    ],
)
def test_what_is_wrong_is_named(name, settings, said):
    with pytest.raises(ParameterError) as refusal:
        make_named("food", MAKERS, name, settings)
    assert said in str(refusal.value)


CAKES = WithOwn("cake", {"plain": dict}, "orthobandit.cakes")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "my_cakes.py").write_text(
        "class Layered:\n    def __init__(self, layers=3):\n        self.layers = layers\nweight = 5\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_class_of_the_users_own_is_made_by_module_and_name(mine):
    name, settings = parse_named("my_cakes:Layered:layers=4")
    made = make_named("cake", CAKES, name, settings)
    assert (type(made).__name__, made.layers) == ("Layered", 4)
    assert list(CAKES) == ["plain"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:Layered", "cake 'no_such_module:Layered': the module 'no_such_module' cannot be"),
        ("my_cakes:Layerd", "my_cakes has no 'Layerd'; did you mean 'Layered'?"),
        (
            "my_cakes:weight",
            "cake 'my_cakes:weight' is 5; a class, or a function that returns",
        ),
        ("plain:layers", "'plain:layers': 'layers' must be setting=value"),
        ("plan", "unknown cake 'plan'; did you mean 'plain'?"),
    ],
)
def test_what_is_wrong_with_an_own_name_is_said(mine, name, said):
    with pytest.raises(SettingError, match=re.escape(said)):
        make_named("cake", CAKES, name, {})


def test_an_own_class_refuses_settings_it_does_not_have(mine):
    with pytest.raises(SettingError, match="has no setting 'layer'; did you mean 'layers'"):
        make_named("cake", CAKES, "my_cakes:Layered", {"layer": 2})


def test_entry_points_are_names_too(mine, monkeypatch):
    point = metadata.EntryPoint("wedding", "my_cakes:Layered", "orthobandit.cakes")
    known = {"orthobandit.cakes": [point]}
    monkeypatch.setattr(metadata, "entry_points", lambda group: known.get(group, []))
    assert "wedding" in CAKES
    assert make_named("cake", CAKES, "wedding", {"layers": 7}).layers == 7
    assert "birthday" not in CAKES
