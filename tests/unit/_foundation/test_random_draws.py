import numpy as np
import pytest

from inside._foundation import DrawTable, compiled_stream, next_bits, next_position, table_arm, tally_draws
from orthobandit.errors import ParameterError


def _xoshiro(state):
    """Return what the published algorithm does on Python integers."""
    mask = 2**64 - 1

    def turned(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    a, b, c, d = state
    bits = (turned((a + d) & mask, 23) + a) & mask
    shifted = (b << 17) & mask
    c, d = c ^ a, d ^ b
    b, a = b ^ c, a ^ d
    return bits, (a, b, c ^ shifted, turned(d, 45))


def test_bits_match_the_published_vector():
    state = np.array([0, 0, 0, 1], dtype=np.uint64)
    found = [int(next_bits(state)) for _ in range(10)]
    assert found[:4] == [0x800000, 0x800011, 0x2200000800011, 0x2200044000020]
    assert found[8:] == [0x8A14A0A244ACC891, 0x8C88BA4680B20495]


def test_bits_match_the_algorithm_on_integers():
    state = compiled_stream(3, "arms", 5)
    expected = tuple(int(word) for word in state)
    for _ in range(1000):
        bits, expected = _xoshiro(expected)
        assert int(next_bits(state)) == bits


def test_streams_depend_on_their_name_only():
    assert np.array_equal(compiled_stream(1, "arms", 2), compiled_stream(1, "arms", 2))
    names = [(1, "arms", 2), (1, "arms", 3), (1, "noise", 2), (2, "arms", 2)]
    assert len({tuple(compiled_stream(*name)) for name in names}) == len(names)
    with pytest.raises(ParameterError, match="seed=-1"):
        compiled_stream(-1, "arms")


def test_positions_lie_in_the_unit_interval():
    state = compiled_stream(0, "arms")
    positions = np.array([next_position(state) for _ in range(1000)])
    assert np.all((positions >= 0) & (positions < 1))
    assert np.all(positions * 2**53 % 1 == 0)


def _implied(table, row, count):
    """Probabilities that a row of the table really gives."""
    columns = int(table.columns[row])
    out = np.zeros(count)
    for c in range(columns):
        kept = min(float(table.threshold[row, c]), 1.0)
        out[table.arms[row, 2 * c]] += kept / columns
        out[table.arms[row, 2 * c + 1]] += (1 - kept) / columns
    return out


@pytest.mark.parametrize("count", [1, 2, 3, 11, 200])
def test_table_gives_the_probabilities(count):
    generator = np.random.default_rng(count)
    probabilities = generator.dirichlet(np.full(count, 0.3), size=20)
    probabilities[1] = np.eye(count)[count // 2]
    table = DrawTable.of(probabilities)
    for row in range(20):
        np.testing.assert_allclose(_implied(table, row, count), probabilities[row], atol=1e-14)


def test_table_never_draws_an_arm_of_probability_zero():
    # The sum is off by as much as a plan allows; the difference may not go to an empty arm.
    for total in (1 - 9e-10, 1 + 9e-10):
        probabilities = np.array([[0.0, 0.25 * total, 0.0, 0.75 * total, 0.0]])
        table = DrawTable.of(probabilities)
        assert table.columns[0] == 2
        assert set(table.arms[0, :4]) == {1, 3}


def test_last_position_is_inside_the_table():
    for count in range(1, 100):
        table = DrawTable.of(np.full((1, count), 1 / count))
        assert table_arm(table, 0, 1 - 2.0**-53) == count - 1
        assert table_arm(table, 0, 0.0) == 0


def test_tally_adds_count_value_and_square_of_the_drawn_arm():
    table = DrawTable.of(np.array([[0.2, 0.0, 0.5, 0.3]]))
    values = np.linspace(-1, 2, 50)
    state, same = compiled_stream(4, "arms"), compiled_stream(4, "arms")
    sums, expected = np.zeros((4, 3)), np.zeros((4, 3))
    tally_draws(table, 0, state, values, sums)
    for value in values:
        expected[table_arm(table, 0, next_position(same))] += [1, value, value**2]
    assert np.array_equal(sums, expected)
    assert np.array_equal(state, same)
