"""Figures of docs/measurements/c-interface.md: measure.py, with PYTHONPATH set to the module."""
import ctypes
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


class Tensor(ctypes.Structure):  # kiln_tensor
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("type", ctypes.c_int), ("rank", ctypes.c_uint32),
                ("shape", ctypes.POINTER(ctypes.c_int64))]

    def __init__(self, array):
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        super().__init__(ctypes.sizeof(Tensor), array.ctypes.data, 1, array.ndim, shape)


class CJob:
    """The gemm out = a * b on the CPU by the C interface. It lives as long as the process."""

    def __init__(self, folder, a, b, out):
        with open("/proc/self/maps") as maps:
            path = next(line.split()[-1] for line in maps if "/libkiln.so" in line)
        self.library = ctypes.CDLL(path)
        runtime, self.job = ctypes.c_void_p(), ctypes.c_void_p()
        call = lambda name, *arguments: self.check(getattr(self.library, name)(*arguments))
        call("kiln_open", None, ctypes.byref(runtime))
        call("kiln_job_create", runtime, b"small", ctypes.byref(self.job))
        tensors = [ctypes.byref(Tensor(array)) for array in (a, b, out)]
        call("kiln_job_gemm", self.job, tensors[0], tensors[1], None, 0, tensors[2])
        call("kiln_job_device", self.job, b"cpu")
        self.run, self.nothing = self.library.kiln_job_run, self.library.kiln_status_code
        self.check(self.run(self.job))

    @staticmethod
    def check(status):
        assert status == 0, "a function of the C interface failed"


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
        c_job = CJob(folder, a, b, kiln.empty((4, 4)))
        calls = {"C": lambda: c_job.run(c_job.job), "nothing": lambda: c_job.nothing(None), "_kiln.run": lambda: _kiln.run(handle),
                 "job.run": lambda: job.run(), "an empty lambda": lambda: None}
        times = {name: [] for name in calls}
        for _ in range(5000):
            for name, call in calls.items():
                begun = time.perf_counter_ns()
                call()
                times[name].append(time.perf_counter_ns() - begun)
        median = {name: statistics.median(values) / 1e3 for name, values in times.items()}
        in_c = median["C"] - median["nothing"]  # without what ctypes takes
        in_python = median["job.run"] - median["an empty lambda"]
        print(f"a run of a small gemm on the CPU: kiln_job_run {in_c:.2f} us, _kiln.run {median['_kiln.run']:.2f} us, job.run "
              f"{in_python:.2f} us: {in_python - in_c:.2f} us over C")

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
