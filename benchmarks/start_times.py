#!/usr/bin/env python3
"""How long whole processes of `kiln` take to start, nothing else running.

usage: start_times.py KILN [ROUNDS]      KILN: the command of a build that has the simulated AMD card; 40 rounds

`kiln --help`, `config check` and `plugins` as whole processes, alternating with /bin/true; then the first result of the
row `tiny` on OpenGL and of a saxpy of 4,096 on the simulated gfx1100, both from a warm cache, as the command reports it;
then the first result of a 3x3 layer of 64 channels at 28x28 that was tuned, less the layer's own time in the same process:
a process that builds or measures anything fails. Cache, key and inputs are in a temporary folder.
"""
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

COUNT = 4096
TINY = """[[job]]
name = "tiny"
op = "conv2d"
n = 1
c = 3
h = 32
w = 32
k = 16
r = 3
s = 3
pad = 1
input = "random:1"
weights = "random:2"
"""
LAYER = TINY.replace('"tiny"', '"layer"')
for key, value in (("c", 64), ("h", 28), ("w", 28), ("k", 64)):
    LAYER = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", LAYER)
SAXPY = f"""[[job]]
name = "saxpy"
op = "kernel"
source = "saxpy.cl"
constants = {{ A = "2.5f", COUNT = {COUNT} }}
bindings = [ {{ input = "x.npy" }}, {{ inout = "y.npy" }} ]
grid = [64, 1, 1]
expect = "expected.npy"
verify = true
device = "amdgpu:0"
"""
KERNEL = """__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void kiln_kernel(global const float* x, global float* y) {
  if (get_global_id(0) < COUNT) y[get_global_id(0)] += A * x[get_global_id(0)];
}
"""


def write_npy(path, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"<{len(values)}f", *values))


def told(values):
    first, median, third = statistics.quantiles(values, n=4, method="inclusive")
    return f"least {min(values):5.1f}  quartiles {first:5.1f} to {third:5.1f}  median {median:5.1f} ms"


def main(kiln, rounds):
    kiln = str(pathlib.Path(kiln).resolve())
    with tempfile.TemporaryDirectory(prefix="kiln-start-") as name:
        folder = pathlib.Path(name)
        environment = dict(os.environ, KILN_CACHE_DIR=str(folder / "cache"), KILN_KEY_FILE=str(folder / "key"))

        def run(*command):
            begin = time.perf_counter()
            done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
            return (time.perf_counter() - begin) * 1e3, done.stdout

        (folder / "tiny.toml").write_text(TINY)
        for words in (["--help"], ["config", "check", "tiny.toml"], ["plugins"]):
            run(kiln, *words)
            pairs = [(run(kiln, *words)[0], run("/bin/true")[0]) for _ in range(rounds)]
            print(f"kiln {' '.join(words):24}{told([ours for ours, _ in pairs])}   /bin/true {told([true for _, true in pairs])}")

        x, y = [i % 17 for i in range(COUNT)], [i % 5 for i in range(COUNT)]
        (folder / "saxpy.cl").write_text(KERNEL)
        (folder / "saxpy.toml").write_text(SAXPY)
        write_npy(folder / "x.npy", x)
        write_npy(folder / "expected.npy", [b + 2.5 * a for a, b in zip(x, y)])
        for what, command in (
                ("tiny, opengl:0", [kiln, "run", "tiny.toml", "--device", "opengl:0", "--verify", "--json"]),
                ("saxpy, simulated gfx1100",
                 [kiln, "simulate", "--target", "gfx1100", "--", kiln, "run", "saxpy.toml", "--json"])):
            times = []
            for round_ in range(rounds + 2):  # the first two build and settle
                write_npy(folder / "y.npy", y)  # the job has changed it
                report = json.loads(run(*command)[1])
                job = report["jobs"][0]
                if job["verified"] is not True:
                    sys.exit(f"{what}: verified is {job['verified']}, expected true")
                if round_ < 2:
                    continue
                if report["cache"]["builds"] != 0:
                    sys.exit(f"{what}: {report['cache']['builds']} builds in a warm process, expected 0")
                times.append(job["ms"]["first_result"])
            print(f"{what:29}{told(times)} to the first result")

        (folder / "layer.toml").write_text(LAYER)
        on_opengl = ["layer.toml", "--device", "opengl:0", "--json"]
        tuned = json.loads(run(kiln, "tune", "--budget", "20 s", *on_opengl)[1])["jobs"][0]
        measured = (folder / "cache" / "tuning.tsv").read_bytes()
        times = []
        for round_ in range(rounds + 2):  # the first two settle
            report = json.loads(run(kiln, "run", "--verify", "--repeat", "9", *on_opengl)[1])
            job = report["jobs"][0]
            if job["variant"] != tuned["variant"] or job["verified"] is not True or report["cache"]["builds"] != 0:
                sys.exit(f"tuned layer: {job['variant']}, verified {job['verified']}, {report['cache']['builds']} builds; "
                         f"expected {tuned['variant']}, verified, 0")
            if (folder / "cache" / "tuning.tsv").read_bytes() != measured:
                sys.exit("tuned layer: a process that only runs it has changed what was measured")
            if round_ >= 2:
                times.append(job["ms"]["first_result"] - job["ms"]["wall_median"])
        print(f"{'tuned layer, opengl:0':29}{told(times)} to the first result, less the layer's own "
              f"{job['ms']['wall_median']:.2f}; {tuned['candidates']} variants were measured")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if len(sys.argv) == 3 else 40
    if rounds < 2:
        sys.exit(f"{rounds} rounds: quartiles want 2 at least")
    main(sys.argv[1], rounds)
