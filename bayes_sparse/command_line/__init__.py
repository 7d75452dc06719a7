"""``bayes-sparse`` at a prompt: files in, the public functions of the package, files and tables out.

Nothing here imports PyMC before a command runs, so that help is there at once.
"""
