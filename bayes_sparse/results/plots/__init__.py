"""Pictures of a tree."""
