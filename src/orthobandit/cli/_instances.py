"""Options that say what is simulated: arms and θ, the shift of the baseline, the noise."""

import argparse
import math
from typing import Any

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.registry import maker_of, parse_named, settings_of
from orthobandit.arms import ArmSet
from orthobandit.cli._words import offer, whole
from orthobandit.errors import ParameterError
from orthobandit.simulation import (
    INSTANCES,
    NOISES,
    SHIFTS,
    Environment,
    named_instance,
    named_noise,
    named_shift,
    within,
)

# option: the setting of an instance that it stands for
OPTIONS = {"dimension": "dimension", "arms": "count", "gap": "gap", "angle": "angle", "means": "means"}


def add_instance_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`chosen_environment` reads."""
    group = parser.add_argument_group("instance")
    instance = group.add_argument(
        "--instance", help=f"arms and θ: {', '.join(INSTANCES)} (default exact-gap)"
    )
    group.add_argument("--dimension", type=whole, metavar="D", help="features of an arm")
    group.add_argument("--arms", type=whole, metavar="K", help="number of arms")
    group.add_argument("--gap", type=float, help="lead of the best arm (exact-gap, one-hot)")
    group.add_argument("--angle", type=float, help="angle to the second-best arm (near-degenerate)")
    group.add_argument("--means", type=float, nargs="+", metavar="MEAN", help="one per arm (one-hot)")
    group.add_argument("--instance-seed", type=whole, metavar="SEED", help="names the arms (default: --seed)")
    group.add_argument("--arms-file", metavar="FILE", help="table of arms (.csv, .tsv, .parquet) instead")
    group.add_argument("--theta", type=float, nargs="+", metavar="NUMBER", help="θ for --arms-file")
    shift = group.add_argument(
        "--shift", default="none", help=f"baseline: {', '.join(SHIFTS)} (default none)"
    )
    group.add_argument(
        "--bound",
        type=float,
        nargs="?",
        const=1.0,
        metavar="LIMIT",
        help="bring the shift to |ν| ≤ LIMIT (1 if not given), as the guarantees ask",
    )
    noise = group.add_argument("--noise", default="gaussian", help=f"{', '.join(NOISES)} (default gaussian)")
    for action, names in ((instance, INSTANCES), (shift, SHIFTS), (noise, NOISES)):
        offer(action, names)


def chosen_environment(options: argparse.Namespace) -> Environment:
    """Return the environment that the options describe."""
    shift_name, shift_settings = parse_named(options.shift)
    shift = named_shift(shift_name, **shift_settings)
    if options.bound is not None:
        shift = within(shift, options.bound)
    noise_name, noise_settings = parse_named(options.noise)
    noise = named_noise(noise_name, **noise_settings)
    return _arms_and_theta(options).moved(shift, noise)


def _arms_and_theta(options: argparse.Namespace) -> Environment:
    given = {option: value for option in OPTIONS if (value := getattr(options, option)) is not None}
    if options.arms_file is not None:
        for option in ("instance", *given):
            if getattr(options, option) is not None:
                raise ParameterError(f"--{option} has no meaning beside --arms-file; leave it out")
        if options.theta is None:
            raise ParameterError("--arms-file says nothing about rewards; give --theta, a number a feature")
        arms = ArmSet.read(options.arms_file)
        if len(options.theta) != arms.features.shape[1]:
            raise ParameterError(
                f"--theta has {len(options.theta)} numbers for {arms.features.shape[1]} features of"
                f" {options.arms_file}; give a number a feature, in the order of the columns"
            )
        return Environment(arms, options.theta)
    if options.theta is not None:
        raise ParameterError("--theta is for --arms-file; the made instances have their own θ")
    name, own = parse_named(options.instance or "exact-gap")
    valid = settings_of(maker_of("instance", INSTANCES, name))
    if name == "one-hot":
        return named_instance(name, **({"means": _means(given)} | own))
    settings: dict[str, Any] = {}
    for option, value in given.items():
        if OPTIONS[option] not in valid:
            raise ParameterError(f"--{option} has no meaning for --instance {name}; leave it out")
        settings[OPTIONS[option]] = value
    if "seed" in valid:
        settings["seed"] = options.seed if options.instance_seed is None else options.instance_seed
    return named_instance(name, **(settings | own))


def _means(given: dict[str, Any]) -> list[float]:
    """Return the means of one-hot arms: as listed, or `gap` for the first arm and 0 for the others."""
    listed = "means" in given
    for option in given:
        if option in {"dimension", "angle"} or (listed and option != "means"):
            beside = " beside --means" if listed else ""
            raise ParameterError(f"--{option} has no meaning for --instance one-hot{beside}; leave it out")
    if listed:
        return list(given["means"])
    count = given.get("arms", 10)
    gap = given.get("gap", 0.5)
    if not math.isfinite(gap):
        raise ParameterError(f"gap={gap!r} must be finite")
    check_whole("count", count)
    return [gap] + [0.0] * (count - 1)
