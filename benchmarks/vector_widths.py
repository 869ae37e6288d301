#!/usr/bin/env python3
"""The generator's kernels at another vector width of llvmpipe, against the plain kernel at the driver's own width.

usage: vector_widths.py GL_CONV BITS ROUNDS DIRECTORY [ARGUMENT...]

GL_CONV: the benchmark of that name. DIRECTORY: a cache directory; what was tuned there serves. ARGUMENT: what GL_CONV is
told besides: options, table, rounds, layers.
A vector width is a matter of a whole process, and the driver keeps its code in a folder for each. So in each round a
process of the driver's own width and one of the other run one after the other; a ratio is the one's time divided by the
other's of the same round. Medians and quartiles over the rounds, and the ratio of the shortest times.
"""
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile


def figures(command, arguments, path):
    """{(layer, contender): (variant, least device ms, least wall ms)} of one process."""
    path.unlink(missing_ok=True)
    subprocess.run([command, "--figures", str(path), *arguments], check=True, stdout=subprocess.DEVNULL)
    read = {}
    for line in path.read_text().splitlines():
        layer, contender, variant, _, device, _, wall = line.split("\t")
        read[layer, contender] = (variant, float(device), float(wall))
    return read


def compare(name, others, ours):
    ratios = sorted(other / own for other, own in zip(others, ours))
    quartiles = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [ratios[0]] * 3
    least = min(others) / min(ours)
    print(f"    {name:<34} {statistics.median(ratios):8.2f} [{quartiles[0]:6.2f} {quartiles[2]:6.2f}] least {least:8.2f}")
    return math.log(statistics.median(ratios)), math.log(least)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    command, width, rounds, directory = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    common = ["--cache-dir", directory, *sys.argv[5:]]
    own, other = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "figures"
        for _ in range(rounds):
            own.append(figures(command, [*common[:2], "--only", "plain", *common[2:]], path))
            other.append(figures(command, ["--vector-width", width, *common[:2], "--only", "onednn", *common[2:]], path))
    layers = sorted({layer for layer, _ in own[0]})
    sums = {}
    for layer in layers:
        print(f"{layer}: at {width} bits {other[-1][layer, 'ours'][0]}")
        for measure, at in (("device", 1), ("wall", 2)):
            ours = [each[layer, "ours"][at] for each in other]
            peers = {
                f"{measure}: plain at the own width": [each[layer, "plain"][at] for each in own],
                f"{measure}: ours at the own width": [each[layer, "ours"][at] for each in own],
                f"{measure}: oneDNN direct": [each[layer, "onednn"][at] for each in other],
            }
            for name, times in peers.items():
                median, least = compare(name, times, ours)
                total = sums.setdefault(name, [0.0, 0.0])
                total[0] += median
                total[1] += least
    print(f"geometric means over {len(layers)} layers, other's time / ours at {width} bits:")
    for name, (median, least) in sums.items():
        print(f"    {name:<34} {math.exp(median / len(layers)):8.3f}, least {math.exp(least / len(layers)):8.3f}")


main()
