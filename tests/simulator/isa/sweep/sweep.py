#!/usr/bin/env python3
"""Asks LLVM's disassembler for every opcode number of every encoding of a processor.

usage: sweep.py gfx1030|gfx1100 [wave32|wave64]

Prints one line a number that decodes: encoding, number, dwords, text, separated by tabs. The words are made so that the
width of every operand shows: destinations from register 16 on, sources from 32, 48 and 64. Numbers that decode only with
another kind of operand (a scalar where a vector register was offered) are tried again with that.
"""
import os
import re
import subprocess
import sys

LLVM_MC = os.environ.get("LLVM_MC", "llvm-mc-19")
MARKER = 0xB9


def vector(number):
    return 256 + number


def sop(encoding, op):
    if encoding == "SOP2":
        return [[0b10 << 30 | op << 23 | 16 << 16 | 48 << 8 | 32, 0x12345678]]
    if encoding == "SOPK":
        return [[0b1011 << 28 | op << 23 | 16 << 16 | 0x1234, 0x12345678]]
    if encoding == "SOP1":
        return [[0b101111101 << 23 | 16 << 16 | op << 8 | 32], [0b101111101 << 23 | 16 << 16 | op << 8 | 0x80]]
    if encoding == "SOPC":
        return [[0b101111110 << 23 | op << 16 | 48 << 8 | 32]]
    return [[0b101111111 << 23 | op << 16 | 0]]


def vop(encoding, op):
    literal = 0x12345678
    if encoding == "VOP2":
        return [[op << 25 | 16 << 17 | 48 << 9 | vector(32), literal]]
    if encoding == "VOP1":
        return [[0b0111111 << 25 | vdst << 17 | op << 9 | source] for vdst, source in ((16, vector(32)), (16, 32), (0, 0))]
    if encoding == "VOPC":
        return [[0b0111110 << 25 | op << 17 | 48 << 9 | vector(32)]]
    head = (0xCC << 24 if encoding == "VOP3P" else 0b110101 << 26) | op << 16 | 16
    if encoding == "VOP3P":
        head |= 1 << 14  # op_sel_hi of the third source, as compilers write it
    words = []
    for sources in ((vector(32), vector(48), vector(64)), (vector(32), vector(48), 64), (vector(32), 48, 64),
                    (32, vector(48), vector(64)), (32, 48, 64), (vector(32), vector(48), 0), (vector(32), 48, 0),
                    (vector(32), 0, 0), (32, 0, 0), (0, 0, 0)):
        tail = sources[0] | sources[1] << 9 | sources[2] << 18
        if encoding == "VOP3P":
            tail |= 3 << 27
        words.append([head, tail])
        if encoding == "VOP3":
            words.append([head | 64 << 8, tail])  # VOP3SD: a scalar destination in place of abs
            words.append([head & ~0xFF, tail])    # no destination
    return words


def lanes(processor, encoding, op):
    """The same instructions with their first source taken across lanes, or from a part of a register."""
    base, control = encoding.split("-")
    words = []
    for head in vop(base, op):
        if base in ("VOP3", "VOP3P"):
            if head[1] & 511 != vector(32):
                continue
            head[1] &= ~511
        elif head[0] & 511 != vector(32):
            continue
        else:
            head = [head[0] & ~511]
        code, extra = {"DPP16": (250, 0xFF << 24 | 0x1B << 8 | 32), "DPP8": (233, 0xFAC688 << 8 | 32),
                       "SDWA": (249, 0x06060600 | 32)}[control]
        if control == "SDWA" and base == "VOPC":
            extra = 0x06060000 | 32
        if control == "SDWA" and base == "VOP1":
            extra = 0x00060600 | 32
        head[-1] |= code
        words.append(head + [extra])
    return words


def memory(processor, encoding, op):
    eleven = processor == "gfx1100"
    if encoding == "SMEM":
        return [[0b111101 << 26 | op << 18 | 16 << 6 | 16, 0x10 | 124 + (not eleven) << 25],
                [0b111101 << 26 | op << 18, 0x10 | 124 + (not eleven) << 25]]
    if encoding == "DS":
        return [[0b110110 << 26 | op << 18 | gds << 17, vdst << 24 | data1 << 16 | data0 << 8 | addr]
                for gds in (0, 1) for vdst in (16, 0) for data1 in (64, 0) for data0 in (48, 0) for addr in (32, 0)]
    if encoding in ("FLAT", "SCRATCH", "GLOBAL"):
        segment = {"FLAT": 0, "SCRATCH": 1, "GLOBAL": 2}[encoding]
        words = []
        for glc in (0, 1):
            head = 0b110111 << 26 | op << 18 | (segment << 16 | glc << 14 if eleven else glc << 16 | segment << 14)
            for saddr in (124, 125, 127):
                for sve in (1, 0):
                    for vdst, data in ((16, 48), (16, 0), (0, 48), (0, 0)):
                        words.append([head, vdst << 24 | (sve << 23 if eleven else 0) | saddr << 16 | data << 8 | 32])
        return words
    if encoding == "MUBUF":
        tail = 80 << 24 | 8 << 16 | 16 << 8 | 32
        if eleven:
            words = [[0b111000 << 26 | op << 18 | glc << 14, tail | 1 << 23] for glc in (0, 1)]
        else:
            words = [[0b111000 << 26 | (op & 127) << 18 | (op >> 7) << 25 | 1 << 13 | glc << 14, tail] for glc in (0, 1)]
            words += [[words[0][0] | 1 << 16, tail]]  # to LDS
        return words + [[words[0][0] & ~(1 << 13), 0]]
    if encoding == "MTBUF":
        tail = 80 << 24 | 8 << 16 | 16 << 8 | 32
        if eleven:
            return [[0b111010 << 26 | 22 << 19 | op << 15, tail | 1 << 23]]
        return [[0b111010 << 26 | 22 << 19 | (op & 7) << 16 | 1 << 13, tail | (op >> 3) << 21]]
    if encoding == "MIMG":
        forms = [[0b111100 << 26 | (op & 127) << 18 | (op >> 7) | dim << 3 | mask << 8, 12 << 21 | 8 << 16 | 16 << 8 | 32]
                 for dim in (1, 2, 7, 0) for mask in (1, 15)]
        if eleven:
            forms = [[0b111100 << 26 | op << 18 | dim << 2 | mask << 8, 12 << 26 | 8 << 16 | 16 << 8 | 32]
                     for dim in (1, 2, 7, 0) for mask in (1, 15)]
        forms += [[head, tail & 0xFFFF | 8 << 16] for head, tail in forms]  # no sampler
        return forms + [[head | 1 << (7 if eleven else 15), tail] for head, tail in forms]  # R128 or A16
    if encoding == "VINTERP":
        if eleven:
            return [[0b11001101 << 24 | op << 16 | 16, vector(32) | vector(48) << 9 | vector(64) << 18]]
        return [[0b110010 << 26 | 16 << 18 | op << 16 | 32], [0b110010 << 26 | 16 << 18 | op << 16]]
    if encoding == "LDSDIR":
        return [[0b11001110 << 24 | op << 20 | 16]] if eleven else []
    raise ValueError(encoding)


def vopd(slot, op):
    # The other half is a move. The literal serves fmaak and fmamk.
    x, y = (op, 8) if slot == "VOPDX" else (8, op)
    return [[0b110010 << 26 | x << 22 | y << 17 | x1 << 9 | vector(32),
             16 << 24 | (19 >> 1) << 17 | y1 << 9 | vector(33), 0x12345678] for x1 in (48, 0) for y1 in (49, 0)]


SPACES = {"SOP2": 96, "SOPK": 29, "SOP1": 256, "SOPC": 128, "SOPP": 128, "SMEM": 256, "VOP2": 62, "VOP1": 256,
          "VOPC": 256, "VOP3": 1024, "VOP3P": 128, "DS": 256, "FLAT": 128, "GLOBAL": 128, "SCRATCH": 128,
          "MUBUF": 256, "MTBUF": 16, "VOPDX": 16, "VOPDY": 32, "MIMG": 256, "VINTERP": 128, "LDSDIR": 4,
          **{"%s-%s" % (base, control): size for base, size in (("VOP1", 256), ("VOP2", 62), ("VOPC", 256), ("VOP3", 1024),
                                                                ("VOP3P", 128))
             for control in ("DPP16", "DPP8", "SDWA") if control != "SDWA" or base in ("VOP1", "VOP2", "VOPC")}}


def candidates(processor, encoding, op):
    if encoding.startswith("SOP"):
        return sop(encoding, op)
    if encoding.startswith("VOPD"):
        return vopd(encoding, op) if processor == "gfx1100" else []
    if "-" in encoding:
        return lanes(processor, encoding, op)
    if encoding == "VINTERP" and processor == "gfx1030" and op > 3:
        return []
    if encoding.startswith("VOP"):
        return vop(encoding, op)
    return memory(processor, encoding, op)


def main():
    processor = sys.argv[1]
    wave = sys.argv[2] if len(sys.argv) > 2 else "wave32"
    cases, lines = [], []
    for encoding, space in SPACES.items():
        for op in range(space):
            for words in candidates(processor, encoding, op):
                number = len(cases)
                cases.append((encoding, op))
                # Before each case two s_movk_i32 whose constants are the case's number.
                for part in (number >> 12, number & 0xFFF):
                    lines.append("[0x%02x,0x%02x,0x2a,0xb0]" % (part & 255, part >> 8))
                raw = b"".join(word.to_bytes(4, "little") for word in words)
                lines.append("[" + ",".join("0x%02x" % byte for byte in raw) + "]")
    command = [LLVM_MC, "--disassemble", "--triple=amdgcn", "-mcpu=" + processor, "--show-encoding",
               "-mattr=+wavefrontsize32,-wavefrontsize64" if wave == "wave32" else
               "-mattr=-wavefrontsize32,+wavefrontsize64"]
    output = subprocess.run(command, input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=False).stdout
    marker, current, seen = [], None, set()
    for line in output.splitlines():
        found = re.match(r"\s*(.*?)\s*(?:;|//) encoding: \[(.*)\]", line)
        if not found:
            continue
        text, length = found.group(1), (found.group(2).count(",") + 1) // 4
        number = re.match(r"s_movk_i32 s42, (0x[0-9a-f]+|\d+)$", text)
        if number:
            marker.append(int(number.group(1), 0))
            if len(marker) == 2:
                current, marker = marker[0] << 12 | marker[1], []
            continue
        if current is None or cases[current] in seen:
            continue
        key, current = cases[current], None
        if "illegal" in text or "/*" in text:
            continue
        seen.add(key)
        print("%s\t%d\t%d\t%s" % (key[0], key[1], length, " ".join(text.split())))


if __name__ == "__main__":
    main()
