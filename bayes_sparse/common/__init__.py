"""What every room may use: array types, warnings, checks of settings, the registry of options, progress."""
