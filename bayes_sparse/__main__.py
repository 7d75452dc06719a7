"""``python -m bayes_sparse`` is the program ``bayes-sparse``."""

from bayes_sparse.command_line.app import main

main(prog_name="bayes-sparse")
