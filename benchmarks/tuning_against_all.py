#!/usr/bin/env python3
"""`kiln tune` against a search of the whole space, on OpenGL, one layer of a table.

usage: tuning_against_all.py KILN GL_CONV TABLE.csv LAYER [REPEATS]      5 repeats

First `kiln tune` on an empty cache, driver's included: how long it takes and how many variants it meets. Then
`kiln tune --exhaustive` on another empty cache, which measures every variant. A machine's moods change within such a
search by more than the variants differ, so its samples only say which may be the best: the first search's winner, the
second's, and those that have the shortest run or the least median there meet in GL_CONV, in interleaved rounds. Then
`kiln tune --again` REPEATS times on the first cache: how often the winner is the same, or in those rounds no slower than
the first by more than a tenth.
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


def meet(command, table, layer, variants, directory):
    """{variant: (median, shortest) wall ms}, in interleaved rounds of one process."""
    path = directory / "figures"
    subprocess.run([command, "--figures", str(path), "--cache-dir", str(directory), table, "15", layer, *variants],
                   check=True, stdout=subprocess.DEVNULL)
    found = {}
    for line in path.read_text().splitlines():
        _, contender, variant, _, _, median, shortest = line.split("\t")
        if contender == "variant":
            found[variant] = (float(median), float(shortest))
    path.unlink()
    return found


def job_of(table, layer, folder):
    """A configuration of one job: the layer."""
    lines = [line for line in pathlib.Path(table).read_text().splitlines() if line and not line.startswith("#")]
    (folder / "layer.csv").write_text("\n".join([lines[0], *(line for line in lines if line.startswith(layer + ","))]) + "\n")
    config = folder / "layer.toml"
    config.write_text('[[job]]\nname = "one"\ntable = "layer.csv"\ninput = "random:1"\nweights = "random:2"\n')
    return config


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    command, peer, table, layer = sys.argv[1:5]
    repeats = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        some, every = folder / "some", folder / "every"
        some.mkdir(), every.mkdir()
        config = job_of(table, layer, folder)
        first, seconds = tune(command, config, some)
        winner = first["variant"]
        print(f"tune: {seconds:.1f} s, {first['candidates']} of {first['space']} variants, "
              f"{len(first['rejected'])} rejected, winner {winner}", flush=True)
        whole, seconds = tune(command, config, every, "--exhaustive")
        known = {variant: samples for variant, (verdict, samples) in records(every).items() if verdict != "rejected"}
        print(f"exhaustive: {seconds:.1f} s, {whole['candidates']} variants, winner {whole['variant']}", flush=True)
        likely = [winner, whole["variant"]]
        for of in (min, statistics.median):
            likely += sorted(known, key=lambda variant: of(known[variant]))[:5]
        again = [tune(command, config, some, "--again") for _ in range(repeats)]
        likely += [found["variant"] for found, _ in again]
        met = meet(peer, table, layer, list(dict.fromkeys(likely)), every)
        for name, which in (("median", 0), ("shortest", 1)):
            best = min(met, key=lambda variant: met[variant][which])
            print(f"  met in 15 rounds, by the {name}: {met[winner][which] / met[best][which]:.3f} times the best of "
                  f"{len(met)}, {best}", flush=True)
        alike = 0
        for found, seconds in again:
            ratio = met[found["variant"]][0] / met[winner][0]
            same = found["variant"] == winner
            alike += same or ratio <= 1.1
            print(f"  again: {seconds:.1f} s, {'the same' if same else found['variant']}, {ratio:.3f} times the first's",
                  flush=True)
        print(f"the same, or as fast within a tenth: {alike} of {repeats}")


main()
