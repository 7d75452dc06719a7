"""How hyper-parameters are found: one algorithm a file, the file name is the option."""
