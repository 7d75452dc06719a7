"""Rows beyond memory: python -m benchmarks.scale FOLDER [MILLIONS ...]

Poisson counts of 50 columns in Parquet files of 100,000 rows, fitted on two workers of dask.distributed: passes,
processor seconds of the workers, and the most memory that one of them held. A million rows also in memory.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster

import bayes_sparse as bs

ROWS, COLUMNS = 100_000, 50
HOW = {"likelihood": "poisson", "draws": 0, "progressbar": False}


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        if not (folder / f"{i:03d}.parquet").exists():
            rng = np.random.default_rng(i)
            X = rng.normal(size=(ROWS, COLUMNS))
            y = rng.poisson(np.exp(0.5 + X[:, :5] @ np.array([0.4, -0.3, 0.2, -0.1, 0.05])))
            table = pa.table({f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y})
            pq.write_table(table, folder / f"{i:03d}.parquet", compression="none", use_dictionary=False)


def peak():
    """Most memory of this process so far, and its processor seconds."""
    status = Path("/proc/self/status").read_text()
    times = psutil.Process().cpu_times()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6, times.user + times.system


def main(folder, millions):
    for million in millions:
        write(Path(folder), 10 * million)
        files = [str(Path(folder) / f"{i:03d}.parquet") for i in range(10 * million)]
        own = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
        with LocalCluster(**own) as cluster, Client(cluster) as client:
            bs.fit("ard_gaussian", bs.data.parquet(files[0], target="y"), **HOW)  # compiles on the workers
            before, start = client.run(peak), time.perf_counter()
            tree = bs.fit("ard_gaussian", bs.data.parquet(files, target="y"), **HOW)
            seconds, after = time.perf_counter() - start, client.run(peak)
        used = sum(after[worker][1] - before[worker][1] for worker in after)
        memory = max(held for held, _ in after.values())
        evidence = tree["evidence"]
        print(
            f"{million}e6 rows: {evidence.attrs['passes']} passes, {used:.1f} s of workers' processors, "
            f"{seconds:.0f} s by the clock, at most {memory:.2f} GB per worker, {int(evidence['kept'].sum())} kept"
        )
    if 1 in millions:
        frame = pd.concat([pd.read_parquet(Path(folder) / f"{i:03d}.parquet") for i in range(10)])
        data = frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()
        start = time.process_time()
        bs.fit("ard_gaussian", data, **HOW)
        print(f"1e6 rows in memory: {time.process_time() - start:.1f} s of the processor")


if __name__ == "__main__":
    main(sys.argv[1], [int(m) for m in sys.argv[2:]] or [1, 10])
