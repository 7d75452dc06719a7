"""What fits again: ladders, sensitivity to the hyper-prior, selection paths."""
