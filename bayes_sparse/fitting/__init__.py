"""From what was asked to a tree: choices checked, the method run, its end judged."""
