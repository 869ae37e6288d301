#!/usr/bin/env python3
"""Composes the traces of this folder: which programs a service asks for, in order. Run it without arguments.

What each program costs stands in costs.txt, which build/dev/bin/record_trace measured. The order of requests:

A pass is one inference, its convolutions in the network's own order; a block that a network repeats is repeated.
  resnet50      all 53 convolutions
  mobilenet_v2  the 40 of its 52 whose shape stands in the layer table
  vgg16         all 13
  prior_system  its four jobs, once each
Requests, each drawn independently with a fixed seed: resnet50 70 %, mobilenet_v2 20 %, vgg16 8 %, prior_system 2 %.
  service              one inference after another
  service_interleaved  three at any time; whose next layer runs is drawn with equal chances
  service_one_offs     as service; before every 25th inference twelve one-off shapes, none of which is seen twice
  service_sessions     one network is drawn, with equal chances, and serves 5 to 40 inferences; then the next
"""
import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARES = {"resnet50": 70, "mobilenet_v2": 20, "vgg16": 8, "prior_system": 2}


def resnet50():
    order = ["conv1"]
    for stage, blocks in ((2, 3), (3, 4), (4, 6), (5, 3)):
        res, strided = f"res{stage}_", "3x3" if stage == 2 else "3x3s2"
        # The first block's shortcut; in stage 2 its shape is that of the block's last layer.
        order += [res + "1x1a", res + strided, res + "1x1b", res + ("1x1b" if stage == 2 else "proj")]
        order += [res + "1x1c", res + "3x3", res + "1x1b"] * (blocks - 1)
    return order


def mobilenet_v2():
    order = ["stem", "dw1", "pw1"]
    order += ["pw2", "dw2s2", "pw3", "pw4", "dw3"]
    order += ["pw4", "dw3s2", "pw5"] + ["pw6", "dw4"] * 2
    order += ["pw6", "dw4s2", "pw7"] + ["pw8", "dw5"] * 3
    order += ["pw8", "dw5", "pw9"] + ["pw10"] * 2
    order += ["pw10", "dw6s2", "pw11"] + ["pw12", "dw7"] * 2
    return order + ["pw12", "dw7", "pw13", "pw14"]


def vgg16():
    return ["conv1_1", "conv1_2", "conv2_1", "conv2_2", "conv3_1", "conv3_2", "conv3_2", "conv4_1", "conv4_2",
            "conv4_2", "conv5", "conv5", "conv5"]


LAYERS = {"resnet50": resnet50(), "mobilenet_v2": mobilenet_v2(), "vgg16": vgg16(),
          "prior_system": ["headline", "async", "conv1", "tiny"]}


class Programs:
    """The programs of costs.txt; numbered in the order in which a trace first names them."""

    def __init__(self):
        self.costs = {}
        least = {}  # layers of one shape share a program: the least cost of all is the program's
        for line in (HERE / "costs.txt").read_text().splitlines():
            if not line.startswith("#"):
                layer, program, size, build_ns = line.split()
                least[program] = min(int(build_ns), least.get(program, int(build_ns)))
                self.costs[layer] = (program, size)
        self.costs = {layer: (program, size, least[program]) for layer, (program, size) in self.costs.items()}
        self.numbers, self.lines = {}, []

    def number(self, layer):
        program, size, build_ns = self.costs[layer]
        if program not in self.numbers:
            self.numbers[program] = len(self.numbers)
            self.lines.append(f"key {layer} {size} {build_ns}")
        return str(self.numbers[program])

    def passes(self, networks=LAYERS):
        return [f"pass {name} " + " ".join(self.number(f"{name}/{layer}") for layer in LAYERS[name])
                for name in networks]


def wrapped(word, items, width=110):
    line = word
    for item in items:
        if len(line) + 1 + len(item) > width:
            yield line
            line = word
        line += " " + item
    yield line


def write(name, programs, *parts):
    text = [f"# {name}: see compose.py, which made it from costs.txt"] + programs.lines
    (HERE / f"{name}.trace").write_text("\n".join(text + [line for part in parts for line in part]) + "\n")


def draws(dice, count):
    return dice.choices(list(SHARES), weights=SHARES.values(), k=count)


def service():
    programs = Programs()
    passes = programs.passes()
    write("service", programs, passes, wrapped("run", draws(random.Random(11), 500)))


def service_interleaved():
    programs, dice = Programs(), random.Random(12)
    programs.passes()
    waiting = [[programs.number(f"{name}/{layer}") for layer in LAYERS[name]] for name in draws(dice, 300)]
    running, asked = [], []
    while waiting or running:
        while waiting and len(running) < 3:
            running.append(waiting.pop(0))
        chosen = dice.choice(running)
        asked.append(chosen.pop(0))
        running = [inference for inference in running if inference]
    write("service_interleaved", programs, wrapped("ask", asked))


def service_one_offs():
    programs, dice = Programs(), random.Random(13)
    passes = programs.passes()
    order, one_offs = [], [layer for layer in programs.costs if layer.startswith("one_off/")]
    scans = [one_offs[i:i + 12] for i in range(0, len(one_offs), 12)]
    passes += [f"pass scan{i} " + " ".join(map(programs.number, scan)) for i, scan in enumerate(scans)]
    for number, name in enumerate(draws(dice, 25 * (len(scans) + 1))):
        if number and number % 25 == 0:
            order.append(f"scan{number // 25 - 1}")
        order.append(name)
    write("service_one_offs", programs, passes, wrapped("run", order))


def service_sessions():
    programs, dice = Programs(), random.Random(14)
    passes = programs.passes()
    order = []
    while len(order) < 500:
        order += [dice.choice(list(LAYERS))] * dice.randint(5, 40)
    write("service_sessions", programs, passes, wrapped("run", order))


if __name__ == "__main__":
    service()
    service_interleaved()
    service_one_offs()
    service_sessions()
