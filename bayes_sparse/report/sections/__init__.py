"""The sections of the report, one a file: what the first name of a file makes is put on the page, by its order."""
