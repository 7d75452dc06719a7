"""Reading a user's own model."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.against_pymc")  # so that its failures show the values
