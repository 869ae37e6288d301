#!/usr/bin/env python3
"""Tunes jobs again and again while other processes keep the processors busy, and checks what was stored.

Tunes three jobs once (the incumbents), then with `kiln tune --again` under load. Each variant that a tuning stores in
place of the incumbent is compared with it afterwards: both run in turns, and the shortest run of each counts.
Exit status 1: a stored variant is more than 5 % slower than the incumbent that it replaced.

Usage: tuning_under_load.py KILN [--tunings 20] [--load 2] [--budget "2 s"] [--rounds 12] [--device opengl:0]
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

JOBS = {
    "product": 'op = "gemm"\nm = 192\nn = 192\nk = 192\ninput = "random:1"\nweights = "random:2"\n',
    "layer": 'op = "conv2d"\nc = 32\nh = 28\nw = 28\nk = 32\nr = 3\ns = 3\npad = 1\n'
             'input = "random:1"\nweights = "random:2"\n',
    "kernel": 'op = "kernel"\nsource = "kernel.comp"\ntune = { UNROLL = [1, 2, 4, 8, 16], WG = [16, 64, 256] }\n'
              'constants = { N = 65536 }\nbindings = [ { inout = "data.npy" } ]\n'
              'grid = ["(N + WG * UNROLL - 1) / (WG * UNROLL)"]\n',
}
KERNEL = """#version 430
layout(local_size_x = WG) in;
layout(std430, binding = 0) buffer Data { float data[]; };
void main() {
  for (uint part = 0u; part < uint(UNROLL); ++part) {
    uint i = gl_GlobalInvocationID.x * uint(UNROLL) + part;
    if (i >= uint(N)) return;
    float value = data[i];
    for (int step = 0; step < 64; ++step) value = value * 0.999 + 0.5;
    data[i] = value;
  }
}
"""


def write_array(path, count):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}"
    header = header.ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(4 * count))


def kiln(args, *words, check=True):
    done = subprocess.run([args.kiln, *words, "--json", "--device", args.device], capture_output=True, text=True)
    if check and done.returncode != 0:
        sys.exit(f"kiln {' '.join(map(str, words))}: status {done.returncode}\n{done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def tune(args, config, cache, *more):
    return kiln(args, "tune", config, "--cache-dir", cache, "--budget", args.budget, *more)["jobs"][0]


def shortest_ms(args, config, cache, variant):
    job = kiln(args, "run", config, "--cache-dir", cache, "--repeat", "15")["jobs"][0]
    if job["variant"] != variant:
        sys.exit(f"{config}: runs {job['variant']}, expected the stored {variant}")
    return job["ms"]["wall_min"]


def compare(args, config, incumbent, stored):
    """(cache, variant) of each: the shortest run of both, over rounds in which each runs once."""
    best = [float("inf")] * 2
    for _ in range(args.rounds):
        for place, (cache, variant) in enumerate((incumbent, stored)):
            best[place] = min(best[place], shortest_ms(args, config, cache, variant))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--tunings", type=int, default=20)
    parser.add_argument("--load", type=int, default=2)
    parser.add_argument("--budget", default="2 s")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--device", default="opengl:0")
    args = parser.parse_args()
    slower = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "kernel.comp").write_text(KERNEL)
        write_array(folder / "data.npy", 65536)
        for job, text in JOBS.items():
            config = folder / f"{job}.toml"
            config.write_text(f'[[job]]\nname = "{job}"\n{text}')
            cache = folder / f"{job}-cache"
            first = tune(args, config, cache)
            before = folder / f"{job}-before"
            shutil.copytree(cache, before)
            incumbent = (before, first["variant"])
            decisions = {}
            replaced = 0
            worst = 0.0
            load = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(args.load)]
            try:
                stored = []
                for tuning in range(args.tunings):
                    again = tune(args, config, cache, "--again")
                    decisions[again["decision"]] = decisions.get(again["decision"], 0) + 1
                    if again["variant"] != incumbent[1]:
                        kept = folder / f"{job}-{tuning}"
                        shutil.copytree(cache, kept)
                        stored.append((incumbent, (kept, again["variant"])))
                        incumbent = stored[-1][1]
                        replaced += 1
            finally:
                for process in load:
                    process.kill()
                    process.wait()
            for old, new in stored:
                old_ms, new_ms = compare(args, config, old, new)
                worst = max(worst, new_ms / old_ms)
                slower += new_ms > 1.05 * old_ms
                print(f"{job}: {old[1]} {old_ms:.3f} ms, replaced by {new[1]} {new_ms:.3f} ms")
            figures = f"worst stored / incumbent {worst:.3f}" if stored else "the incumbent stayed"
            print(f"{job}: {args.tunings} tunings under load, {replaced} replaced the incumbent, {figures}, "
                  f"decisions {decisions}", flush=True)
    print(f"stored variants more than 5 % slower than the incumbent: {slower}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
