"""Speed and accuracy beside other packages and beside the hardware's floor, as ratios in one run.

``python -m benchmarks`` runs everything, ``python -m benchmarks sinc wide`` a selection, ``--list`` says what there is.
"""
