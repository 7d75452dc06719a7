"""One task a file; the file's name is what the command line calls it."""
