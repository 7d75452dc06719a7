"""One file a section of the page."""
