"""Sphinx settings. The pages load nothing from elsewhere: formulae are text, fonts and scripts are local."""

from importlib.metadata import version as installed_version

project = "orthobandit"
release = version = installed_version("orthobandit")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "orthobandit"
html_show_copyright = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
