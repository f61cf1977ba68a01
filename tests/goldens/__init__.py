"""What the package says at its public edges, stored as text: a change of any of it shows as a diff.

Each golden is one file under ``stored/``, made by public names alone, so that it outlives every move of
private modules. Numbers may differ by 1e-9 (relatively above 1); all else is compared exactly.

A golden says what the package did, not what is right. References (slow, plain numpy) and statistical tests
outrank it: a golden taken before a fault is found protects the fault. Where one of them and a golden
disagree, the golden is wrong. A golden that changes is changed in a commit of its own, which says why.

    python -m tests.goldens                               # compare all
    python -m tests.goldens --compare 'experiments/*'     # or some
    python -m tests.goldens --renew                       # store all again; then read the diff
    python -m tests.goldens --renew 'logs/a ratio*' -n 2  # further arguments go to pytest
"""
