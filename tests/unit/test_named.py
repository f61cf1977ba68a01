"""Names with settings: read, checked against the maker, refused with the nearest valid word."""

from functools import partial

import pytest

from orthobandit._named import make_named, parse_named, settings_of
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


@pytest.mark.parametrize("text", ["cake:layers", "cake:=3", "cake:layers=", "cake:layers=1,layers=2"])
def test_text_that_is_no_setting_is_refused(text):
    with pytest.raises(ParameterError, match=r"layers|=3"):
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
