"""When the interpreter looks for garbage, in a process that does nothing but serve."""

import gc

FIRST = 10_000  # objects that may be made, beyond those let go of, before the youngest are looked at


def spare_collector() -> None:
    """Leave all that is there by now out of every later search for garbage.

    Packages and routes are half a million objects that stay until the process ends. To walk through them all
    takes a tenth of a second, in which nobody is answered, and came about once a second under load.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(FIRST, *gc.get_threshold()[1:])
