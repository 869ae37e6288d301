#!/usr/bin/env python3
"""Compiles the kernels of this folder with clang-19 and writes goldens.inc: their words, as the tests run them where no
compiler is. Run in this folder, after a kernel has changed:  python3 keep.py > goldens.inc"""
import os
import struct
import subprocess
import sys
import tempfile

KERNELS = {
    "basic": ["saxpy", "reduce", "histogram", "collatz", "spill", "ids", "integers"],
    "numbers": ["conv3x3", "gemm", "sgemm", "halves", "doubles", "singles"],
}
COMMAND = "clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu={} -nogpulib -O3 -o {} {}.cl"


def sections(data):
    table, = struct.unpack_from("<Q", data, 0x28)
    count, names = struct.unpack_from("<HH", data, 0x3C)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    base = rows[names][4]
    return [(data[base + r[0]:data.index(b"\0", base + r[0])].decode(), *r) for r in rows]


def kernels(path, wanted):
    data = open(path, "rb").read()
    rows = sections(data)
    text = next(r for r in rows if r[0] == ".text")
    rodata = next(r for r in rows if r[0] == ".rodata")
    symbols = next(r for r in rows if r[0] == ".symtab")
    strings = rows[symbols[7]]
    for at in range(symbols[5], symbols[5] + symbols[6], 24):
        name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        start = strings[5] + name
        name = data[start:data.index(b"\0", start)].decode()
        if not name.endswith(".kd") or name[:-3] not in wanted:
            continue
        kd = rodata[5] + value - rodata[4]
        lds, private = struct.unpack_from("<II", data, kd)
        entry, = struct.unpack_from("<q", data, kd + 16)
        rsrc3, rsrc1, rsrc2, properties = struct.unpack_from("<IIIH", data, kd + 44)
        offset = value + entry - text[4]
        yield name[:-3], offset, rsrc1, rsrc2, rsrc3, properties, lds, private, data[text[5]:text[5] + text[6]]


def main():
    entries = []
    print("// Written by keep.py; the command:\n// " + COMMAND.format("TARGET", "OUT", "FILE"))
    for target in ("gfx1100", "gfx1030"):
        for file, wanted in KERNELS.items():
            with tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "k.co")
                subprocess.run(COMMAND.format(target, out, file).split(), check=True)
                found = list(kernels(out, wanted))
            missing = set(wanted) - {k[0] for k in found}
            if missing:
                sys.exit(f"{file} for {target} lacks {missing}")
            array = f"{target}_{file}"
            words = struct.unpack(f"<{len(found[0][8]) // 4}I", found[0][8])
            while words[-1] == words[-2] == 0xBF9F0000:  # s_code_end: one is enough
                words = words[:-1]
            print(f"constexpr std::uint32_t {array}[] = {{")
            for i in range(0, len(words), 10):
                print("    " + ", ".join(f"0x{w:08X}" for w in words[i:i + 10]) + ",")
            print("};")
            for name, offset, r1, r2, r3, props, lds, private, _ in found:
                entries.append(f'    {{"{target}", "{name}", {offset}, 0x{r1:08X}, 0x{r2:08X}, {r3}, 0x{props:X}, {lds}, '
                               f"{private}, {array}, std::size({array})}},")
    print("constexpr Kept kept_kernels[] = {\n" + "\n".join(entries) + "\n};")


main()
