"""Sphinx settings. The pages load nothing from elsewhere: fonts, scripts and MathJax are local."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "orthobandit"
release = version = installed_version("orthobandit")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "public_names",
    "operations",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_static"]
html_theme = "furo"
html_title = "orthobandit"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]
mathjax_path = "vendor/mathjax/tex-svg.js"
# Speech and its menus would be fetched from elsewhere.
mathjax3_config = {"options": {"enableMenu": False}}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# With -n a link into the package must lead somewhere; the types in docstrings are words for people.
nitpick_ignore_regex = [("py:class", r"(?!orthobandit\.).*")]
