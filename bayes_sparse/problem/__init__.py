"""What a method sees: columns, a likelihood along the predictor, names for the weights; arrays and functions only."""
