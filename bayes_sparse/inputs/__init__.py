"""What people hand in, frames, arrays, a basis, a likelihood or a pm.Model, becomes a problem."""
