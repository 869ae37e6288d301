"""What the tests of the Python module share: a runtime with a cache of its own, a kernel, and other interpreters."""
import atexit
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import kiln
import numpy as np

SAXPY = """#version 430 core
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; y[i] = A * x[i] + y[i]; }
"""
LONG = os.environ.get("KILN_TEST_LONG") == "1"

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background lets it be ignored
folder = tempfile.TemporaryDirectory()
atexit.register(folder.cleanup)
root = Path(folder.name)
(root / "saxpy.comp").write_text(SAXPY)
rt = kiln.open(directory=root / "cache", key_file=root / "key")
has_opengl = any(device.id == "opengl:0" and device.usable for device in rt.devices())
needs_opengl = unittest.skipUnless(has_opengl, "no usable device opengl:0")


def run_python(program, timeout=120):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def arrays(count=1024):
    return np.arange(count, dtype="float32"), np.ones(count, "float32")


def saxpy(**more):
    x, y = arrays()
    wanted = {"grid": (16,), "buffers": {"X": x, "Y": y}, "constants": {"A": 2.5}, "device": "opengl:0"} | more
    return rt.kernel(str(root / "saxpy.comp"), **wanted), x, y


def matrix(*values):
    return np.array(values, "float32").reshape(2, 2)
