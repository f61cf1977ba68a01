import pytest

from orthobandit.cli import main


def test_policies_that_need_the_horizon_get_it(capsys):
    arguments = ["--horizon", "300", "--replications", "2", "--dimension", "2", "--arms", "3"]
    assert main(["simulate", "--policy", "bose", "semiparametric-ts:draws=20", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "bose" in shown
    assert "semiparametric-ts:draws=20" in shown


@pytest.mark.parametrize("policy", ["stratified", "p1-rage"])
def test_another_setting_that_is_missing_is_named(policy, capsys):
    assert main(["simulate", "--policy", policy, "--horizon", "300", "--replications", "2"]) == 2
    assert f"policy '{policy}' needs the setting" in capsys.readouterr().err
