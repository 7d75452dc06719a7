"""Fits of data in chunks on workers of dask.distributed, some of which die."""

import os
import signal

import numpy as np
import pytest

import bayes_sparse as bs
from bayes_sparse.inputs.chunks import DaskChunks

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def _fit(data):
    return bs.fit("ard_gaussian", data, likelihood="poisson", method="mackay", draws=0, progressbar=False)


def test_a_worker_killed_in_mid_fit_changes_no_digit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 8))
    y = rng.poisson(np.exp(0.3 * X[:, 0]))
    data = da.from_array(X, chunks=(2_500, 8)), da.from_array(y, chunks=2_500)
    threads = _fit(data)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        whole = _fit(data)
        victim = next(iter(client.run(os.getpid).values()))
        passes, fold = [], DaskChunks.fold

        def deadly(self, work, merge):
            passes.append(work)
            if len(passes) == 10:
                os.kill(victim, signal.SIGKILL)
            return fold(self, work, merge)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DaskChunks, "fold", deadly)
            broken = _fit(data)
        assert len(passes) > 10
        assert victim not in client.run(os.getpid).values()
    for other in (whole, broken):
        for name in ("mean", "sd", "alpha", "log_evidence"):
            np.testing.assert_array_equal(other["evidence"][name], threads["evidence"][name])
