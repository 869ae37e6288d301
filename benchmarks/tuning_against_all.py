#!/usr/bin/env python3
"""`kiln tune` against a search of the whole space, on OpenGL, one job.

usage: tuning_against_all.py KILN CONFIG [REPEATS]      CONFIG: one conv2d or gemm job; 5 repeats

First `kiln tune` on an empty cache, driver's included: how long it takes and how many variants it meets. Then
`kiln tune --exhaustive` on another empty cache, which keeps the samples of every variant: how far the first one's winner
is from the best there, by the shortest and by the median of each variant's samples. Then `kiln tune --again` REPEATS
times on the first cache: how often the winner is the same, or its interval overlaps.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def tune(command, config, directory, *options):
    begun = time.monotonic()
    done = subprocess.run([command, "tune", config, "--device", "opengl:0", "--cache-dir", str(directory), "--json",
                           "--progress", "none", *options], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["jobs"][0], time.monotonic() - begun


def records(directory):
    """{variant: (verdict, wall samples)} of the database, whose lines docs/tuning.md describes."""
    found = {}
    for line in (directory / "tuning.tsv").read_text().splitlines():
        fields = line.split("\t")
        if len(fields) == 12 and fields[8]:
            found[fields[2]] = (fields[3], [int(sample) for sample in fields[8].split(",")])
    return found


def interval(samples):
    """The median's, by the sign test, 95 %."""
    samples, below = sorted(samples), 0
    total, share, way = 0.0, 0.5 ** len(samples), 1
    for rank in range(len(samples) // 2):
        total += way * share
        if total > 0.025:
            break
        below, way = rank, way * (len(samples) - rank) // (rank + 1)
    return samples[below], samples[-1 - below]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    command, config = sys.argv[1], sys.argv[2]
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    with tempfile.TemporaryDirectory() as some, tempfile.TemporaryDirectory() as every:
        some, every = pathlib.Path(some), pathlib.Path(every)
        first, seconds = tune(command, config, some)
        first_samples = records(some)[first["variant"]][1]
        print(f"tune: {seconds:.1f} s, {first['candidates']} of {first['space']} variants, "
              f"{len(first['rejected'])} rejected, winner {first['variant']}", flush=True)
        whole, seconds = tune(command, config, every, "--exhaustive")
        known = {variant: samples for variant, (verdict, samples) in records(every).items() if verdict != "rejected"}
        print(f"exhaustive: {seconds:.1f} s, {whole['candidates']} variants, winner {whole['variant']}")
        for name, of in (("shortest", min), ("median", statistics.median)):
            best = min(known, key=lambda variant: of(known[variant]))
            print(f"  by the {name}: {of(known[first['variant']]) / of(known[best]):.3f} times the best, {best}", flush=True)
        alike = 0
        low, high = interval(first_samples)
        for _ in range(repeats):
            again, seconds = tune(command, config, some, "--again")
            samples = records(some)[again["variant"]][1]
            below, above = interval(samples)
            same = again["variant"] == first["variant"]
            alike += same or (below <= high and low <= above)
            print(f"  again: {seconds:.1f} s, {'the same' if same else again['variant']}, "
                  f"{below / 1e6:.3f} to {above / 1e6:.3f} ms beside {low / 1e6:.3f} to {high / 1e6:.3f}", flush=True)
        print(f"the same or within its interval: {alike} of {repeats}")


main()
