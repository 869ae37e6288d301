"""Figures of docs/measurements/c-interface.md: measure.py, with PYTHONPATH set to the module."""
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc


def processes(program: str, rounds: int = 21) -> float:
    """The median time of a process, in ms."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def main() -> None:
    plain, with_kiln = processes("pass"), processes("import kiln")
    print(f"import kiln: {with_kiln - plain:.1f} ms over the interpreter's {plain:.1f} ms")

    import kiln
    import numpy as np
    from kiln import _kiln
    with tempfile.TemporaryDirectory() as folder:
        rt = kiln.open(directory=folder + "/cache", key_file=folder + "/key")
        a, b, out = kiln.empty((4, 4)), np.ones((4, 4), "float32"), kiln.empty((4, 4))
        handle = _kiln.job(rt._handle, "small")
        _kiln.layer(handle, (0,), a, b, None, out)
        _kiln.set(handle, "device", "cpu")
        job = kiln.Job(handle, "small", [("output", out)])
        job.run()
        inner, outer = [], []
        for _ in range(3000):
            begun = time.perf_counter_ns()
            _kiln.run(handle)
            between = time.perf_counter_ns()
            job.run()
            outer.append(time.perf_counter_ns() - between)
            inner.append(between - begun)
        print(f"a run of a small gemm on the CPU: _kiln.run {statistics.median(inner) / 1e3:.2f} us, job.run "
              f"{statistics.median(outer) / 1e3:.2f} us")

        tracemalloc.start()
        before, resident = tracemalloc.get_traced_memory()[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(10_000):
            job.run()
        print(f"10,000 runs: {tracemalloc.get_traced_memory()[0] - before} bytes of Python's memory, "
              f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident} KiB of resident memory more")
        tracemalloc.stop()

        def counted(seconds: float) -> float:
            end, count = time.perf_counter() + seconds, 0
            while time.perf_counter() < end:
                count += 1
            return count / seconds

        shares = []
        _kiln.set(handle, "repeat", 4_000_000_000)
        for _ in range(5):
            alone = counted(0.3)
            future = job.start()  # waits without the GIL, on this machine's other processor
            waiting = threading.Thread(target=lambda: future.exception())
            waiting.start()
            shares.append(counted(0.3) / alone)
            future.cancel()
            waiting.join()
        print(f"another Python thread keeps {statistics.median(shares) * 100:.0f} % of its speed during a run")


if __name__ == "__main__":
    main()
