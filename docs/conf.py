"""The documentation site: ``make docs`` builds it into build/site, with every warning as an error.

The source is the whole project, not this folder alone, so that a link from a page to a notebook or to CONTRIBUTING.md
is the same on the site as in a plain file browser.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import bayes_sparse

project = "bayes_sparse"
author = "The bayes_sparse developers"
release = version = bayes_sparse.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["docs/**", "notebooks/*.ipynb", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
exclude_patterns = [".*", "build", "docs/_static", "docs/_templates", "docs/pictures"]

# Notebooks are shown as they were stored: tests/project/test_notebooks.py runs them.
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # so that page.md#a-heading leads there, as it does in a file browser

autosummary_generate = True  # a page per name, in docs/api/, which git ignores
templates_path = [str(Path(__file__).parent / "_templates")]
autodoc_typehints = "none"  # the docstrings say what is taken, in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True  # or the attributes of a dataclass would be described twice
napoleon_use_rtype = False
default_role = "code"  # `name` in a docstring is a name

html_theme = "pydata_sphinx_theme"
html_title = "bayes_sparse"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_static/front"]  # index.html, which leads to docs/index.html
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "navigation_depth": 2,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# No page stands below these.
html_sidebars = {f"docs/{page}": [] for page in ("index", "start", "which_model", "how_to")}
copyright = "the bayes_sparse developers, Apache 2.0"


def setup(app: Any) -> None:
    """Formulas as MathML, which every browser draws: the site needs no network and runs nobody else's program."""

    def inline(self: Any, node: Any) -> None:
        self.body.append(tex2mathml(node.astext()))
        raise nodes.SkipNode

    def block(self: Any, node: Any) -> None:
        self.body.append(tex2mathml(node.astext(), as_block=True))
        raise nodes.SkipNode

    app.add_html_math_renderer("mathml", (inline, None), (block, None))
