"""The Python module: runs, layers, the cache, arrays, errors, threads and Ctrl-C."""
import collections
import contextlib
import ctypes
import enum
import functools
import gc
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import unittest
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kiln
import numpy as np
from kiln import _kiln

SAXPY = """#version 430 core
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; y[i] = A * x[i] + y[i]; }
"""
LONG = os.environ.get("KILN_TEST_LONG") == "1"

folder = tempfile.TemporaryDirectory()
root = Path(folder.name)
rt = kiln.open(directory=root / "cache", key_file=root / "key")
has_opengl = any(device.id == "opengl:0" and device.usable for device in rt.devices())
needs_opengl = unittest.skipUnless(has_opengl, "no usable device opengl:0")


def setUpModule():
    (root / "saxpy.comp").write_text(SAXPY)


def run_python(program, timeout=120):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def tearDownModule():
    folder.cleanup()


def arrays(count=1024):
    return np.arange(count, dtype="float32"), np.ones(count, "float32")


def saxpy(**more):
    x, y = arrays()
    wanted = {"grid": (16,), "buffers": {"X": x, "Y": y}, "constants": {"A": 2.5}, "device": "opengl:0"} | more
    return rt.kernel(str(root / "saxpy.comp"), **wanted), x, y


class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


class DlVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("flags", ctypes.c_uint64), ("tensor", DlTensor)]


dlpack_parts = []  # what capsules refer to


def dlpack_capsule(data, count, deleted=lambda: None, read_only=False):
    """A capsule of DLPack 1 with float32 elements."""
    shape = (ctypes.c_int64 * 1)(count)
    tensor = DlTensor(data, (1, 0), 1, 2, 32, 1, ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), None, 0)
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: deleted())
    whole = DlVersioned(1, 0, None, deleter, 1 if read_only else 0, tensor)
    dlpack_parts.append((whole, shape, deleter))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(whole), b"dltensor_versioned", None)


@needs_opengl
class Kernels(unittest.TestCase):
    def test_the_written_array_is_returned_itself(self):
        x, y = arrays()
        result = rt.run(str(root / "saxpy.comp"), grid=(16,), buffers={"X": x, "Y": y}, constants={"A": 2.5},
                        device="opengl:0")
        self.assertIs(result, y)
        np.testing.assert_array_equal(y, 2.5 * x + 1)
        np.testing.assert_array_equal(x, arrays()[0])
        self.assertEqual(rt.report.device, "opengl:0")
        self.assertIn("saxpy", repr(rt.report))
        self.assertIn("<table>", rt.report._repr_html_())

    def test_several_outputs_are_a_dict(self):
        x, y = arrays()
        text = SAXPY.replace("readonly ", "").replace("y[i] = ", "x[i] = 7; y[i] = ")
        result = rt.run("two.comp", text=text, grid=(16,), buffers={"X": x, "Y": y}, constants={"A": 1})
        self.assertEqual(set(result), {"X", "Y"})
        self.assertTrue((result["X"] == 7).all())

    def test_a_job_runs_again_on_changed_contents(self):
        job, x, y = saxpy()
        job()
        y[:] = 0
        x[:] = 2
        self.assertIs(job(), y)
        self.assertTrue((y == 5).all())
        self.assertEqual(job.report.tier, "memory")

    def test_comments_and_directives_declare_no_access(self):
        for note in ("// X is readonly, this is not\n", "/* readonly */ ", "#define NOTE readonly\n", "// X is \\\nreadonly\n"):
            x, y = arrays()
            text = SAXPY.replace("layout(std430, binding = 1)", note + "layout(std430, binding = 1)")
            result = rt.run("notes.comp", text=text, grid=16, buffers={"X": x, "Y": y}, constants={"A": 2}, device="opengl:0")
            self.assertIs(result, y, note)
            np.testing.assert_array_equal(y, 2 * x + 1)

    def test_blocks_of_included_files(self):
        (root / "lib").mkdir(exist_ok=True)
        (root / "lib/blocks.glsl").write_text("".join(line + "\n" for line in SAXPY.splitlines() if "buffer" in line))
        lines = ["#include <blocks.glsl>" if "buffer X" in line else line for line in SAXPY.splitlines() if "buffer Y" not in line]
        (root / "included.comp").write_text("\n".join(lines) + "\n")
        for writeable in (True, False):
            x, y = arrays()
            x.flags.writeable = writeable
            result = rt.run(root / "included.comp", include=[str(root / "lib")], grid=16, buffers={"X": x, "Y": y},
                            constants={"A": 2}, device="opengl:0")
            self.assertIs(result, y)
            np.testing.assert_array_equal(y, 2 * x + 1)

    def test_buffers_in_order(self):
        x, y = arrays()
        result = rt.run(str(root / "saxpy.comp"), grid=16, buffers=[x, y], constants={"A": 2}, device="opengl:0")
        self.assertIs(result, y)
        np.testing.assert_array_equal(y, 2 * x + 1)

    def test_a_read_only_array_for_a_written_block_is_refused(self):
        x, y = arrays()
        y.flags.writeable = False
        for buffers in ({"X": x, "Y": y}, {"X": x, "Y": kiln.write(y)}, {"X": x, "Y": {"inout": y}}):
            with self.assertRaisesRegex(ValueError, r"'Y' is a read-only array.*kiln\.read"):
                rt.run(str(root / "saxpy.comp"), grid=16, buffers=buffers, constants={"A": 2}, device="opengl:0")
        with self.assertRaisesRegex(ValueError, "'1' is a read-only array"):
            rt.run(str(root / "saxpy.comp"), grid=16, buffers=[x, y], constants={"A": 2}, device="opengl:0")

    def test_an_output_that_shares_memory_with_an_input_is_refused(self):
        pages = np.ones(2048, "float32")
        for x, y in ((pages[:1024], pages[:1024]), (pages[:1024], pages[8:1032]), (pages[1020:], pages[:1024])):
            with self.assertRaisesRegex(ValueError, "'[XY]' shares memory with '[XY]', and the job writes 'Y'"):
                rt.run(str(root / "saxpy.comp"), grid=16, buffers={"X": x, "Y": y}, constants={"A": 2}, device="opengl:0")
        rt.run(str(root / "saxpy.comp"), grid=16, buffers={"X": pages[:1024], "Y": pages[1024:]}, constants={"A": 2})
        self.assertTrue((pages[1024:] == 3).all())

    def test_integers_of_numpy(self):
        for grid in (np.int64(16), (np.uint8(16),), np.array([16, 1]), np.array(16)):
            job, x, y = saxpy(grid=grid, repeat=np.int32(1))
            job()
            np.testing.assert_array_equal(y, 2.5 * x + 1)
        for grid in (16.0, (16.5,), None, b"16", {"x": 16}):
            with self.assertRaisesRegex(TypeError, "grid: found"):
                saxpy(grid=grid)
        for repeat, error in ((0, ValueError), (2**32, ValueError), ("2", TypeError), (1.5, TypeError)):
            with self.assertRaisesRegex(error, "repeat: found"):
                saxpy(repeat=repeat)
        for timeout in (float("nan"), -1):
            with self.assertRaisesRegex(ValueError, "timeout: found"):
                saxpy(timeout=timeout)

    def test_uniforms_scalars_vectors_and_matrices(self):
        _, y = arrays()
        text = """#version 430 core
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Y { float y[]; };
uniform float gain; uniform int first; uniform vec3 v; uniform mat2 m;
void main() { y[gl_GlobalInvocationID.x] = gain + float(first) + v.y + m[1][0]; }
"""
        rt.run("uniforms.comp", text=text, grid=16, buffers={"Y": y}, device="opengl:0",
               uniforms={"gain": 0.5, "first": 2, "v": np.array([1.0, 10.0, 100.0]), "m": [[0.0, 1000.0], [3.0, 4.0]]})
        self.assertTrue((y == 0.5 + 2 + 10 + 1000).all(), y[0])

    def test_wrong_arguments_are_named_at_once(self):
        x, y = arrays()
        nan, infinity = float("nan"), float("inf")
        for error, message, more in (
                (TypeError, "device: found 5, expected a text", {"device": 5}),
                (TypeError, "text: found b'', expected a text", {"text": b""}),
                (TypeError, "name: found 5, expected a text", {"name": 5}),
                (TypeError, "progress: found 5, expected a function", {"progress": 5}),
                (TypeError, "include: found 5, expected a sequence", {"include": 5}),
                (TypeError, "timeout: found '1', expected a number of seconds", {"timeout": "1"}),
                (TypeError, "buffers: found ndarray, expected a dict", {"buffers": x}),
                (TypeError, "buffers: found NoneType, expected a dict", {"buffers": None}),
                (TypeError, "constants.A: found None, expected a finite number", {"constants": {"A": None}}),
                (TypeError, r"constants.A: found \[1, 2\], expected a finite number", {"constants": {"A": [1, 2]}}),
                (ValueError, "constants.A: found nan, expected a finite number", {"constants": {"A": nan}}),
                (ValueError, "constants.A: found -inf, expected a finite number", {"constants": {"A": np.float32(-infinity)}}),
                (TypeError, "tune.A: found '12', expected a sequence", {"tune": {"A": "12"}}),
                (TypeError, "tune.A: found None, expected a finite number", {"tune": {"A": [1, None]}})):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                saxpy(**more)
        for more in ({"progress": 5}, {"budget": "1"}, {"budget": nan}):
            with self.assertRaisesRegex((TypeError, ValueError), f"{next(iter(more))}: found"):
                rt.tune(str(root / "saxpy.comp"), grid=16, buffers={"X": x, "Y": y}, tune={"A": [1, 2]}, **more)

    def test_numbers_of_other_types(self):
        class Scale(enum.IntEnum):
            TWICE = 2

        job, x, y = saxpy(constants={"A": Scale.TWICE}, grid=(Scale.TWICE,))
        job()
        np.testing.assert_array_equal(y[:128], 2 * x[:128] + 1)

    def test_a_device_that_cannot_serve(self):
        job, x, y = saxpy(device="cpu")  # which runs no GLSL
        job()
        self.assertNotEqual(job.report.device, "cpu")
        self.assertTrue(job.details()["notes"])
        (root / "strict.toml").write_text('[device]\nfallback = "never"\n')
        strict = kiln.open(root / "strict.toml", directory="")
        with self.assertRaises(kiln.Error):
            strict.run(root / "saxpy.comp", grid=16, buffers={"X": x, "Y": y}, constants={"A": 1}, device="cpu")

    def test_progress_lines(self):
        x, y = arrays()

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        lines = {Terminal(): "\r1 of 2 runs\x1b[K\r2 of 2 runs\x1b[K\n", io.StringIO(): "2 of 2 runs\n"}
        for stream, expected in lines.items():
            with contextlib.redirect_stderr(stream) as said:
                rt.run(str(root / "saxpy.comp"), grid=16, buffers={"X": x, "Y": y}, constants={"A": 1}, repeat=2,
                       progress=True)
            self.assertEqual(said.getvalue(), expected)

    def test_ctrl_c_ends_tuning(self):
        program = f"""
import kiln, numpy as np, os, signal, threading, time
rt = kiln.open(directory={str(root / 'cache')!r}, key_file={str(root / 'key')!r})
text = ""\"#version 430 core
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Y {{ float y[]; }};
void main() {{ float s = y[gl_GlobalInvocationID.x]; for (int k = 0; k < 20000; ++k) s = sin(s + float(k)); y[gl_GlobalInvocationID.x] = s; }}
""\"
at = []
def interrupt():
    at.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.7, interrupt).start()
try:
    rt.tune("slow.comp", text=text, grid=256, buffers={{"Y": np.ones(16384, "float32")}}, tune={{"Q": range(20)}}, budget=60,
            device="opengl:0")
except KeyboardInterrupt:
    print(time.perf_counter() - at[0] < 2)
"""
        self.assertEqual(run_python(program), "True\n")

    def test_errors_have_code_and_message(self):
        x, y = arrays()
        with self.assertRaises(kiln.Error) as caught:
            rt.run(str(root / "saxpy.comp"), grid=(16,), buffers={"X": x, "Y": y}, constants={"A": "oops"}, device="opengl:0")
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertIn("saxpy.comp:5", caught.exception.message)
        self.assertEqual(str(caught.exception), "invalid_argument: " + caught.exception.message)

    def test_a_future(self):
        job, x, y = saxpy()
        future = job.start()
        self.assertIs(future.result(60), y)
        self.assertTrue(future.done())
        self.assertIsNone(future.exception())
        np.testing.assert_array_equal(y, 2.5 * x + 1)

    def test_a_cancelled_future(self):
        job, _, _ = saxpy(repeat=100_000_000)
        future = job.start()
        with self.assertRaises(TimeoutError):
            future.result(0.02)
        self.assertFalse(future.done())
        future.cancel()
        self.assertEqual(future.exception(60).code, "cancelled")

    def test_ctrl_c_stops_a_run(self):
        program = f"""
import kiln, numpy as np, os, signal, threading, time
rt = kiln.open(directory={str(root / 'cache')!r}, key_file={str(root / 'key')!r})
x, y = np.ones(1024, "float32"), np.ones(1024, "float32")
job = rt.kernel({str(root / 'saxpy.comp')!r}, grid=16, buffers={{"X": x, "Y": y}}, constants={{"A": 0}},
                device="opengl:0", repeat=100_000_000)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    job.run()
except KeyboardInterrupt:
    print("interrupted")
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.stdout, "interrupted\n", done.stderr)

    def test_tuning(self):
        y = np.full(1024, 3, "float32")
        seen = []
        text = ("#version 430 core\nlayout(local_size_x = LANES) in;\nlayout(std430, binding = 0) buffer V { float v[]; };\n"
                "void main() { v[gl_GlobalInvocationID.x] *= 2.0; }\n")
        wanted = {"text": text, "grid": ("1024 / LANES",), "buffers": {"V": y}, "tune": {"LANES": [32, 64]}, "device": "opengl:0"}
        best = rt.tune("doubled.comp", budget=3, progress=lambda *at: seen.append(at), **wanted)
        self.assertIn("LANES=", best["variant"])
        self.assertTrue(seen)
        self.assertTrue((y == 3).all())
        rt.run("doubled.comp", **wanted)
        self.assertTrue((y == 6).all())
        self.assertEqual(rt.report.variant, best["variant"])
        with self.assertRaises(ZeroDivisionError):
            rt.tune("doubled.comp", budget=3, progress=lambda *_: 1 // 0, **wanted | {"tune": {"LANES": [16, 8]}})

    def test_other_threads_run_meanwhile(self):
        counted, end = [0], threading.Event()

        def count():
            while not end.is_set():
                counted[0] += 1

        job, _, _ = saxpy(repeat=3000)
        thread = threading.Thread(target=count)
        thread.start()
        try:
            job.run()
        finally:
            end.set()
            thread.join()
        self.assertGreater(counted[0], 1000)

    def test_many_runs_do_not_grow(self):
        runs = 10_000 if LONG else 500
        job, x, y = saxpy()
        x[:] = 0

        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        for _ in range(100):
            job.run()
            saxpy()
        gc.collect()
        tracemalloc.start()
        before, memory = tracemalloc.get_traced_memory()[0], resident()
        for at in range(runs):
            job.run()
            if at % 10 == 0:
                saxpy()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        self.assertLess(grown, 20_000)
        self.assertLess(resident() - memory, 16 << 20)


class Declarations(unittest.TestCase):
    def test_glsl(self):
        from kiln._declared import Declared
        declared = Declared("""layout(std430, binding = 3) restrict readonly buffer A { float a[]; } of_a;
writeonly buffer B { float b[]; };
buffer C { float c[]; } several[2];
uniform layout(rgba8) readonly image2D one, two;
layout(r32f) uniform image2D both[3]; uniform sampler2D readonly_name;
#if FAST
readonly buffer D { float d[]; };
#else
buffer D { float d[]; };
#endif
""", False, None)
        found = {name: declared.access(name) for name in ("A", 3, "B", "C[1]", "D", "one", "two", "both", "none", 4)}
        self.assertEqual(found, {"A": "input", 3: "input", "B": "output", "C[1]": "inout", "D": "inout", "one": "input",
                                 "two": "input", "both": "inout", "none": "inout", 4: "inout"})

    def test_opencl(self):
        from kiln._declared import Declared
        text = """// kernel void old(global float* a)
kernel void first(global const float *a, __constant float* b, global float* restrict c, struct s by_value) {}
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void second(global float* a) {}
"""
        first, second, any_of_them = (Declared(text, True, entry) for entry in ("first", "second", None))
        self.assertEqual([first.access(place) for place in range(5)], ["input", "input", "inout", "input", "inout"])
        self.assertEqual((first.access("a"), second.access("a"), any_of_them.access("a")), ("input", "inout", "inout"))


class Layers(unittest.TestCase):
    def test_conv2d(self):
        image = np.random.default_rng(1).random((2, 3, 9, 8), "float32")
        weights = np.random.default_rng(2).random((4, 3, 3, 3), "float32") - 0.5
        bias = np.array([0.5, -1, 0, 2], "float32")
        out = rt.conv2d(image, weights, bias, pad=1, stride=(2, 1), activation="relu", verify=True)
        self.assertEqual(out.shape, (2, 4, 5, 8))
        padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
        wanted = (padded[1, :, 4:7, 3:6] * weights[2]).sum() + bias[2]
        self.assertAlmostEqual(out[1, 2, 2, 3], max(0, wanted), places=4)
        self.assertIs(rt.report.verified, True)

    def test_gemm(self):
        a, b = np.arange(6, dtype="float32").reshape(2, 3), np.arange(12, dtype="float32").reshape(3, 4)
        np.testing.assert_allclose(rt.gemm(a, b, verify=True), a @ b)
        out = kiln.empty((2, 4))
        self.assertIs(rt.gemm(a, b, out=out), out)

    def test_wrong_shapes_are_named(self):
        with self.assertRaisesRegex(kiln.Error, "expected 4 dimensions"):
            rt.conv2d(np.ones((3, 3), "float32"), np.ones((1, 1, 1, 1), "float32"))
        with self.assertRaisesRegex(kiln.Error, "activation 'gelu'"):
            rt.gemm(np.ones((1, 1), "float32"), np.ones((1, 1), "float32"), activation="gelu")
        with self.assertRaisesRegex(kiln.Error, "float32"):
            rt.gemm(np.ones((1, 1), "float64"), np.ones((1, 1), "float64"))

    def test_an_output_that_shares_memory_with_an_input_is_refused(self):
        z, w = np.ones((4, 4), "float32"), np.ones((4, 4), "float32")
        with self.assertRaisesRegex(ValueError, "gemm: 'out' shares memory with 'a'"):
            rt.gemm(z, w, out=z)
        with self.assertRaisesRegex(ValueError, "gemm: 'out' shares memory with 'b'"):
            rt.gemm(w, z, out=z)
        image, kernel = np.ones((1, 1, 4, 4), "float32"), np.ones((1, 1, 1, 1), "float32")
        with self.assertRaisesRegex(ValueError, "conv2d: 'out' shares memory with 'image'"):
            rt.conv2d(image, kernel, out=image)
        z.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "gemm: 'out' is a read-only array"):
            rt.gemm(w, w, out=z)
        np.testing.assert_array_equal(rt.gemm(w, w), w @ w)  # inputs may share memory

    def test_integers_of_numpy(self):
        image, kernel = np.ones((1, 1, 5, 5), "float32"), np.ones((1, 1, 3, 3), "float32")
        out = rt.conv2d(image, kernel, pad=np.int64(1), stride=np.array([2, 1]), dilation=(np.uint8(1), 1), groups=np.int8(1))
        self.assertEqual(out.shape, (1, 1, 3, 5))
        self.assertEqual(kiln.empty(np.int64(3)).shape, (3,))
        self.assertEqual(kiln.empty((np.int32(3), np.uint8(2))).shape, (3, 2))
        for wrong in ({"pad": "1"}, {"pad": 1.5}, {"stride": None}, {"groups": 1.0}):
            with self.assertRaisesRegex(TypeError, f"{next(iter(wrong))}: found"):
                rt.conv2d(image, kernel, **wrong)
        for wrong in ({"pad": (1,)}, {"dilation": (1, 2, 3)}):
            with self.assertRaisesRegex(ValueError, f"{next(iter(wrong))}: found"):
                rt.conv2d(image, kernel, **wrong)
        with self.assertRaisesRegex(TypeError, "shape: found 4.5"):
            kiln.empty(4.5)

    def test_progress_of_runs(self):
        seen = []
        a = np.ones((2, 2), "float32")
        rt.gemm(a, a, repeat=2, progress=lambda *at: seen.append(at), device="cpu")
        rt.conv2d(np.ones((1, 1, 3, 3), "float32"), np.ones((1, 1, 1, 1), "float32"), repeat=2, device="cpu",
                  progress=lambda *at: seen.append(at))
        self.assertEqual(seen, [(1, 2), (2, 2)] * 2)
        with self.assertRaisesRegex(TypeError, "progress: found 5"):
            rt.gemm(a, a, progress=5)
        seen.clear()
        net = rt.pipeline([{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}], repeat=4,
                          device="cpu", progress=lambda *at: seen.append(at))
        net(a)
        self.assertEqual(seen, [(1, 4), (2, 4), (3, 4), (4, 4)])
        with self.assertRaises(ZeroDivisionError):
            rt.pipeline([{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}], repeat=4,
                        progress=lambda *_: 1 // 0)(a)


def matrix(*values):
    return np.array(values, "float32").reshape(2, 2)


class Pipelines(unittest.TestCase):
    def gemm(self, name, source, weights, to, **more):
        return {"name": name, "op": "gemm", "m": 2, "n": 2, "k": 2, "input": source, "weights": weights, "output": to} | more

    def test_steps_with_arrays(self):
        net = rt.pipeline([self.gemm("one", "x", matrix(1, 0, 0, -1), "t", bias=np.array([0, 3], "float32"), activation="relu"),
                           self.gemm("two", "t", matrix(1, 1, 1, 0), "y")], device="cpu", verify=True)
        self.assertEqual((net.inputs, net.results), (("x",), ("y",)))
        first = net(matrix(1, 2, 3, 4))
        np.testing.assert_array_equal(first, matrix(2, 1, 3, 3))
        self.assertIs(net.report.verified, True)
        self.assertEqual([step["name"] for step in net.report.steps], ["one", "two"])
        self.assertIn("step two", net.report._repr_html_())
        second = net(matrix(0, 0, 1, 1))
        np.testing.assert_array_equal(second, matrix(3, 0, 3, 1))
        np.testing.assert_array_equal(first, matrix(2, 1, 3, 3))
        self.assertIn("x -> y", repr(net))
        self.assertEqual(net.details()["op"], "pipeline")

    def test_layers_without_weights(self):
        net = rt.pipeline([{"op": "pool2d", "c": 1, "h": 2, "w": 4, "r": 2, "s": 2, "stride": 2, "pool": "max",
                            "input": "image", "output": "pooled"},
                           {"op": "add", "shape": [1, 1, 1, 2], "activation": "relu6", "input": "pooled", "addend": "more",
                            "output": "sum"},
                           {"op": "activation", "shape": [1, 1, 1, 2], "activation": "relu", "input": "sum", "output": "same"},
                           {"op": "softmax", "shape": [1, 1, 1, 2], "input": "same", "output": "y"}], device="cpu", verify=True)
        self.assertEqual((net.inputs, net.results), (("image", "more"), ("y",)))
        image = np.array([[[[1, 2, 0, -1], [0, -3, 4, 9]]]], "float32")
        found = net(image, np.full((1, 1, 1, 2), 1, "float32"))  # 2 + 1, and 9 + 1 cut to 6
        np.testing.assert_allclose(found.ravel(), np.array([1 / (1 + np.exp(3)), 1 / (1 + np.exp(-3))]), rtol=1e-5)
        self.assertIs(net.report.verified, True)

    def test_results_of_the_caller_and_futures(self):
        net = rt.pipeline([self.gemm("one", "x", matrix(1, 0, 0, 2), "y")], device="cpu")
        x, out = kiln.empty((2, 2)), kiln.empty((2, 2))
        x[:] = 1
        address = out.ctypes.data
        self.assertIs(net(x, y=out), out)
        self.assertEqual(out.ctypes.data, address)
        np.testing.assert_array_equal(out, matrix(1, 2, 1, 2))
        self.assertEqual(net.report.copied_bytes, 0)
        x[:] = 3
        self.assertIs(net.bind(x, y=out).start().result(60), out)
        np.testing.assert_array_equal(out, matrix(3, 6, 3, 6))

    def test_an_earlier_array_is_the_callers_again(self):
        net = rt.pipeline([self.gemm("one", "x", matrix(1, 0, 0, 1), "y")], device="cpu")
        memory = bytearray(16)
        net(np.frombuffer(memory, "float32").reshape(2, 2))
        with self.assertRaises(BufferError):
            memory.append(0)  # exported still
        net(matrix(1, 2, 3, 4))
        gc.collect()
        memory.append(0)

    def test_loops_with_swapped_tensors(self):
        steps = [self.gemm("twice", "now", matrix(2, 0, 0, 3), "next", repeat=3, swap=["now", "next"])]
        with self.assertRaisesRegex(ValueError, "outputs="):
            rt.pipeline(steps)
        net = rt.pipeline(steps, inputs=["now"], outputs=["now"], tensors={"next": {"shape": [2, 2]}}, device="cpu")
        x = matrix(1, 1, 1, 1)
        self.assertIs(net(x), x)
        np.testing.assert_array_equal(x, matrix(8, 27, 8, 27))

    def test_expected_results(self):
        steps = [self.gemm("one", "x", matrix(1, 0, 0, 1), "y")]
        right, wrong = matrix(1, 2, 3, 4), matrix(1, 2, 3, 5)
        rt.pipeline(steps, tensors={"y": {"expect": right}}, verify=True)(right)
        with self.assertRaisesRegex(kiln.Error, "expected"):
            rt.pipeline(steps, tensors={"y": {"expect": wrong}}, verify=True)(right)

    def test_what_is_wrong_is_named(self):
        net = rt.pipeline([self.gemm("one", "x", matrix(1, 0, 0, 1), "y")], device="cpu")
        with self.assertRaisesRegex(TypeError, "missing input x"):
            net()
        with self.assertRaisesRegex(TypeError, "2 inputs, expected x"):
            net(matrix(0, 0, 0, 0), matrix(0, 0, 0, 0))
        with self.assertRaisesRegex(kiln.Error, 'no "memory:z"'):
            net(matrix(0, 0, 0, 0), z=matrix(0, 0, 0, 0))
        with self.assertRaisesRegex(kiln.Error, r"float32 \[3\]"):
            net(np.ones(3, "float32"))
        with self.assertRaisesRegex(kiln.Error, "unknown key"):
            rt.pipeline([self.gemm("one", "x", matrix(1, 0, 0, 1), "y", pda=1)])

    def test_inputs_and_outputs_that_no_step_has_are_refused(self):
        steps = [self.gemm("one", "x", matrix(1, 0, 0, 1), "y")]
        for more, error, message in (({"inputs": ["z"]}, ValueError, "inputs: found 'z', expected tensors of its steps: x, y"),
                                     ({"outputs": ["y", "z"]}, ValueError, "outputs: found 'z'"),
                                     ({"inputs": "x"}, TypeError, "inputs: found 'x', expected a sequence of names"),
                                     ({"outputs": "y"}, TypeError, "outputs: found 'y', expected a sequence of names")):
            with self.assertRaisesRegex(error, message):
                rt.pipeline(steps, **more)

    def test_names_that_are_no_identifiers(self):
        for name in ("x-1", "x.1"):
            net = rt.pipeline([self.gemm("one", name, matrix(1, 0, 0, 2), "y")], device="cpu")
            self.assertEqual(net.inputs, (name,))
            np.testing.assert_array_equal(net(matrix(1, 1, 1, 1)), matrix(1, 2, 1, 2))
            np.testing.assert_array_equal(net(**{name: matrix(2, 2, 2, 2)}), matrix(2, 4, 2, 4))

    def test_threads_that_call_one_pipeline_get_their_own_results(self):
        net = rt.pipeline([self.gemm("one", "x", matrix(2, 0, 0, 2), "y")], device="cpu")

        def call(value):
            result = net(np.full((2, 2), value, "float32"))
            return bool((result == 2 * value).all())

        with ThreadPoolExecutor(8) as threads:
            self.assertEqual(set(threads.map(call, range(500))), {True})

    def test_an_output_that_shares_memory_with_an_input_is_refused(self):
        net = rt.pipeline([self.gemm("one", "x", matrix(2, 0, 0, 2), "y")], device="cpu")
        x = matrix(1, 1, 1, 1)
        with self.assertRaisesRegex(ValueError, "'y' shares memory with 'x'|'x' shares memory with 'y'"):
            net(x, y=x)
        first = net(x)
        second = net(first)  # the result of a call may be the input of the next one
        np.testing.assert_array_equal(second, matrix(4, 4, 4, 4))
        np.testing.assert_array_equal(net(second, y=first), matrix(8, 8, 8, 8))
        first.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "'y' is a read-only array"):
            net(x, y=first)

    def progressing(self, progress, **more):
        net = rt.pipeline([self.gemm("one", "x", matrix(1, 0, 0, 1), "y")], device="cpu", progress=progress, **more)
        return net.bind(matrix(1, 2, 3, 4))

    def finished(self, future):
        while not future.done():
            time.sleep(0.001)
        return future

    def test_what_progress_raises_is_the_outcome_of_its_run(self):
        failing = [True]

        def progress(*_):
            if failing[0]:
                raise ZeroDivisionError("boom")

        net = self.progressing(progress, repeat=3)
        failed = self.finished(net.start())
        self.assertEqual(repr(failed), "<kiln.Future pipeline: done>")
        failing[0] = False
        np.testing.assert_array_equal(net.run(), matrix(1, 2, 3, 4))  # the exception is that of the earlier run
        self.assertIsInstance(failed.exception(), ZeroDivisionError)
        for _ in range(2):
            with self.assertRaisesRegex(ZeroDivisionError, "boom"):
                failed.result()
        failing[0] = True
        with self.assertRaisesRegex(ZeroDivisionError, "boom"):
            net.run()
        failing[0] = False
        self.finished(net.start())  # a future that nobody keeps
        self.assertIsNone(net.start().exception(60))

    def test_a_job_that_waits_for_itself_is_refused(self):
        head = """
import kiln, numpy as np, os, signal, threading, time
rt, a, said = kiln.open(directory=""), np.ones((2, 2), "float32"), []
steps = [{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}]
def attempt(call):
    try:
        call()
        said.append("done")
    except kiln.Error as error:
        said.append(error.code)
"""
        first = "if done == 1: attempt(lambda: {})"
        bodies = {
            "run": first.format("net.run()"), "call": first.format("net(a)"), "bind": first.format("net.bind(a)"),
            "start": first.format("net.start()"), "result": first.format("future[0].result()"),
            "result with a timeout": first.format("future[0].result(60)"),
            "another job": first.format("other(a)"),
        }
        for what, body in bodies.items():
            with self.subTest(what):
                said = run_python(f"""{head}
future = []
def other_progress(done, of): attempt(net.run)
def progress(done, of):
    while {what.startswith("result")} and not future: time.sleep(0.01)
    {body}
other = rt.pipeline(steps, device="cpu", progress=other_progress)
net = rt.pipeline(steps, device="cpu", repeat=3, progress=progress)
for _ in range(2):  # the second one runs on this thread
    future.clear()
    if {what.startswith("result")}:
        future.append(net.bind(a).start())
        future[0].result(60)
    else:
        net(a)
print(said)
""", timeout=60)
                wanted = ["unavailable", "done"] if what == "another job" else ["unavailable"]
                self.assertEqual(said, f"{wanted * 2}\n")
        with self.subTest("signal handler"):
            self.assertEqual(run_python(f"""{head}
net = rt.pipeline(steps, device="cpu", repeat=1_000_000_000).bind(a)
signal.signal(signal.SIGUSR1, lambda *_: attempt(net.run))
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT)).start()
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    net.run()
except KeyboardInterrupt:
    print(said)
""", timeout=60), "['unavailable']\n")

    def test_jobs_on_all_threads_run_other_jobs_in_their_progress(self):
        self.assertEqual(run_python("""
import kiln, numpy as np, os, threading
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # a runtime runs two jobs at once
rt, a, both, said = kiln.open(directory=""), np.ones((2, 2), "float32"), threading.Barrier(2), []
steps = [{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}]
def work():
    other = rt.pipeline(steps, device="cpu")
    def progress(*_):
        both.wait(60)
        said.append(other(a)[0, 0])
    rt.pipeline(steps, device="cpu", progress=progress)(a)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*said)
""", timeout=60), "2.0 2.0\n")

    def test_ctrl_c_while_a_future_is_awaited_cancels_its_run(self):
        self.assertEqual(run_python("""
import kiln, numpy as np, os, random, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
rt, a = kiln.open(directory=""), np.ones((2, 2), "float32")
net = rt.pipeline([{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}], device="cpu",
                  repeat=1_000_000_000).bind(a)
ended = 0
for _ in range(40):
    future = net.start()
    threading.Timer(0.1 + 0.05 * random.random(), os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        future.result()
    except KeyboardInterrupt:
        ended += future.done()
    future.cancel()
    assert future.exception().code == "cancelled"
print(ended)
"""), "40\n")

    def test_a_future_keeps_the_outcome_of_its_run(self):
        net = self.progressing(lambda *_: time.sleep(0.001), repeat=100_000)
        first = net.start()
        with self.assertRaisesRegex(kiln.Error, "is already running"):
            net.start()
        with self.assertRaisesRegex(kiln.Error, "is already running"):
            net.run()
        first.cancel()
        self.finished(first)
        second = net.start()
        self.assertTrue(first.done())
        self.assertEqual(first.exception().code, "cancelled")
        first.cancel()  # of a run that has ended
        self.assertFalse(second.done())
        with self.assertRaises(TimeoutError):
            second.exception(0.02)
        second.cancel()
        self.assertEqual(second.exception(60).code, "cancelled")

    def test_a_callable_that_refers_back_is_freed(self):
        class Owner:
            pass

        def with_job():
            owner = Owner()
            owner.net = self.progressing(lambda *_: owner)
            return weakref.ref(owner)

        def with_runtime():
            owner = Owner()
            owner.runtime = kiln.open(directory="", log=lambda *_: owner)
            owner.cache = kiln.open_cache(directory="", log=lambda *_: owner)
            return weakref.ref(owner)

        def that_runs():
            owner = Owner()
            owner.net = self.progressing(lambda *_: owner, repeat=1_000_000_000)
            owner.future = owner.net.start()
            return weakref.ref(owner)

        owners = [make() for make in (with_job, with_runtime, that_runs)]
        gc.collect()
        self.assertEqual([owner() for owner in owners], [None] * 3)

    def test_a_job_whose_last_reference_ends_in_its_progress(self):
        ended, jobs = threading.Event(), []

        def progress(*_):
            jobs.clear()
            gc.collect()
            ended.set()

        jobs.append(self.progressing(progress, repeat=1_000_000_000))
        progress = weakref.ref(progress)
        jobs[0].start()
        self.assertTrue(ended.wait(60))
        deadline = time.monotonic() + 60
        while progress() is not None:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_starting_releases_the_gil(self):
        # Reading the weights takes long.
        net = rt.pipeline([{"op": "conv2d", "c": 512, "h": 4, "w": 4, "k": 4096, "r": 3, "s": 3, "pad": 1, "input": "x",
                            "weights": "random:1", "output": "y"}], device="cpu")
        net.bind(np.ones((1, 512, 4, 4), "float32"))
        counted, end = [0], threading.Event()

        def count():
            while not end.is_set():
                counted[0] += 1

        def counted_during(call):
            begun, before = time.perf_counter(), counted[0]
            result = call()
            return (counted[0] - before) / (time.perf_counter() - begun), result

        thread = threading.Thread(target=count)
        thread.start()
        try:
            alone, _ = counted_during(lambda: time.sleep(0.1))
            during, future = counted_during(net.start)
        finally:
            end.set()
            thread.join()
        future.result(120)
        self.assertGreater(during, 0.1 * alone)

    @needs_opengl
    def test_kernels_in_a_pipeline(self):
        double = ("#version 430 core\nlayout(local_size_x = 4) in;\nlayout(std430, binding = 0) readonly buffer A { float a[]; };\n"
                  "layout(std430, binding = 1) writeonly buffer B { float b[]; };\n"
                  "void main() { b[gl_GlobalInvocationID.x] = FACTOR * a[gl_GlobalInvocationID.x]; }\n")
        kernel = lambda name, source, to, factor: {
            "name": name, "op": "kernel", "source": name + ".comp", "text": double, "grid": [1], "constants": {"FACTOR": factor},
            "bindings": [{"input": source}, {"output": to, "shape": [4]}]}
        net = rt.pipeline([kernel("two", "x", "t", 2.0), kernel("five", "t", "y", 5.0)], device="opengl:0")
        np.testing.assert_array_equal(net(np.arange(4, dtype="float32")), [0, 10, 20, 30])


@needs_opengl
class Images(unittest.TestCase):
    TEXT = """#version 430 core
layout(local_size_x = 4, local_size_y = 2) in;
layout(rgba8) writeonly uniform image2D result;
layout(rgba8) uniform readonly image2D photo;
uniform sampler2D offsets;
uniform Params { float gain; };
void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy);
  imageStore(result, at, gain * imageLoad(photo, at) + texelFetch(offsets, at, 0));
}
"""

    def test_images_samplers_and_blocks(self):
        photo = (np.arange(32, dtype="uint8") * 3).reshape(2, 4, 4)
        offsets, result = np.full((2, 4, 4), 1, "uint8"), np.zeros((2, 4, 4), "uint8")
        out = rt.run("texels.comp", text=self.TEXT, grid=1, images={"photo": photo, "result": result},
                     samplers={"offsets": {"input": offsets, "filter": "nearest"}}, blocks={"Params": {"gain": 2.0}},
                     device="opengl:0")
        self.assertIs(out, result)
        np.testing.assert_array_equal(result, 2 * photo + 1)

    def test_a_wrong_name_is_named(self):
        photo, result = np.zeros((2, 4, 4), "uint8"), np.zeros((2, 4, 4), "uint8")
        with self.assertRaisesRegex(kiln.Error, "images.foto"):
            rt.run("texels.comp", text=self.TEXT, grid=1, images={"foto": photo, "result": result}, device="opengl:0")


class Arrays(unittest.TestCase):
    def test_empty_is_aligned_zeros(self):
        for shape in ((), (0,), (3,), (2, 3, 4)):
            array = kiln.empty(shape, "int32")
            self.assertEqual((array.shape, array.dtype), (shape, np.dtype("int32")))
            self.assertEqual(array.ctypes.data % 64, 0)
            self.assertTrue((array == 0).all())
        self.assertTrue(kiln.empty(4).flags.writeable)
        with self.assertRaisesRegex(TypeError, "dtype '>f4': expected the byte order of this machine"):
            kiln.empty(3, ">f4")

    def test_arrays_that_do_not_fit_are_named(self):
        a, strided = matrix(1, 2, 3, 4), np.ones((2, 4), "float32")[:, ::2]
        net = rt.pipeline([{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}], device="cpu")
        order = r"an array of shape \(2, 2\) with strides of \(16, 8\) bytes, expected one in C order"
        cases = [(ValueError, order, strided), (TypeError, "elements of format '>f', expected .* byte order", a.astype(">f4")),
                 (TypeError, "elements of format 'Zf', expected float16", a.astype("complex64")),
                 (ValueError, "", np.zeros((2, 2), "M8[s]")), (TypeError, "list, expected an array", [[1.0]])]
        for error, message, wrong in cases:
            with self.assertRaisesRegex(error, "gemm: 'b': " + message):
                rt.gemm(a, wrong)
            with self.assertRaisesRegex(error, "conv2d: 'bias': " + message):
                rt.conv2d(np.ones((1, 1, 3, 3), "float32"), np.ones((1, 1, 1, 1), "float32"), wrong)
            with self.assertRaisesRegex(error, "pipeline 'pipeline': 'x': " + message):
                net(wrong)
            if not isinstance(wrong, list):
                with self.assertRaisesRegex(error, "job 'saxpy': 'X': " + message):
                    rt.kernel("saxpy.comp", text=SAXPY, grid=1, buffers={"X": wrong, "Y": arrays()[1]})
        np.testing.assert_array_equal(net(a), a @ a)

    def test_arrays_of_a_type_that_a_kernel_refuses(self):
        x, y = arrays()
        with self.assertRaisesRegex(kiln.Error, r"provides float16, expected float32, or uint8 \(its bytes\)\. Convert an array in "
                                                "memory to float32 before the call"):
            rt.run("saxpy.comp", text=SAXPY, grid=16, buffers={"X": x.astype("float16"), "Y": y}, constants={"A": 1})
        sampled = SAXPY.replace("void main", "uniform sampler2D photo;\nvoid main").replace("A * ", "texture(photo, vec2(0)).x * ")
        with self.assertRaisesRegex(kiln.Error, "float64 .* convert an array in memory to float32 before the call"):
            rt.run("saxpy.comp", text=sampled, grid=16, buffers={"X": x, "Y": y}, samplers={"photo": np.zeros((4, 4, 4))})
        with self.assertRaisesRegex(kiln.Error, r"a: float16 \[2, 2\], expected float32 \[2, 2\]\. Convert the elements before"):
            rt.gemm(np.ones((2, 2), "float16"), matrix(1, 0, 0, 1))

    def test_dlpack_out(self):
        memory = kiln.Memory.empty((2, 3), "float32")
        array = np.from_dlpack(memory)  # of DLPack 0
        self.assertEqual(array.ctypes.data, memory.address)
        self.assertEqual(memory.__dlpack_device__(), (1, 0))
        for version, name in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((1, 3), "dltensor_versioned")):
            self.assertIn(f'"{name}"', repr(memory.__dlpack__(max_version=version)))
        with self.assertRaises(BufferError):
            memory.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(BufferError):
            memory.__dlpack__(stream=1)

    def test_dlpack_in(self):
        source = np.arange(6, dtype="int32").reshape(2, 3)
        memory = kiln.Memory.from_dlpack(source.__dlpack__())
        self.assertEqual((memory.address, memory.shape, memory.dtype), (source.ctypes.data, (2, 3), "int32"))
        twice = kiln.Memory.from_dlpack(memory.__dlpack__(max_version=(1, 0)))
        self.assertEqual(twice.address, memory.address)
        del memory, source
        gc.collect()
        self.assertEqual(memoryview(twice).tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_every_element_type(self):
        for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"):
            memory = kiln.Memory.empty((3,), name)
            array = np.asarray(memory)
            self.assertEqual(array.dtype, np.dtype(name))
            array[:] = [0, 1, 1]
            self.assertEqual(memoryview(memory).tobytes(), np.array([0, 1, 1], name).tobytes())
            if name != "bool":  # numpy 1.24 has no DLPack of bool
                self.assertEqual(kiln.Memory.from_dlpack(np.ones(2, name).__dlpack__()).dtype, name)

    def test_dlpack_arguments(self):
        memory = kiln.Memory.empty((2,), "float32")
        for wrong in ({"max_version": 3}, {"max_version": (1,)}, {"dl_device": 1}, {"max_version": "10"}):
            with self.assertRaisesRegex(TypeError, f"{next(iter(wrong))}: found .*, expected two integers"):
                memory.__dlpack__(**wrong)

    def test_dlpack_without_data_is_refused(self):
        with self.assertRaisesRegex(BufferError, "no data, expected 16 bytes"):
            kiln.Memory.from_dlpack(dlpack_capsule(None, 4))
        self.assertEqual(memoryview(kiln.Memory.from_dlpack(dlpack_capsule(None, 0))).nbytes, 0)

    def test_a_deleter_that_runs_python_keeps_the_exception(self):
        base, freed = np.zeros(4, "float32"), []

        class Producer:
            def __dlpack__(self, **_):
                return dlpack_capsule(base.ctypes.data, 4, lambda: freed.append(1), read_only=True)

        with self.assertRaisesRegex(ValueError, "read-only"):
            rt.gemm(matrix(1, 2, 3, 4), matrix(1, 2, 3, 4), out=Producer())
        gc.collect()
        self.assertEqual(freed, [1])

        def take_and_fail():
            memory = kiln.Memory.from_dlpack(Producer().__dlpack__())
            return _kiln.layer(memory, (0,), memory, memory, None, memory)  # no job

        with self.assertRaisesRegex(TypeError, "expected a job"):
            take_and_fail()

    def test_dlpack_is_taken_once(self):
        capsule = np.ones(3, "float32").__dlpack__()
        kiln.Memory.from_dlpack(capsule)
        with self.assertRaises(ValueError):
            kiln.Memory.from_dlpack(capsule)

    def test_dlpack_that_does_not_fit(self):
        for wrong in (np.ones((3, 4), "float32").T, np.ones(3, "complex128"), np.ones(3, "complex64")):
            with self.assertRaises(BufferError):
                kiln.Memory.from_dlpack(wrong.__dlpack__())

    @needs_opengl
    def test_an_array_with_dlpack_only_runs_without_a_copy(self):
        class OnlyDlpack:
            def __init__(self, memory):
                self.memory = memory

            def __dlpack__(self, **named):
                return self.memory.__dlpack__(**named)

            def __dlpack_device__(self):
                return self.memory.__dlpack_device__()

        x, y = kiln.Memory.empty((1024,), "float32"), kiln.Memory.empty((1024,), "float32")
        np.asarray(x)[:] = 2
        given = OnlyDlpack(y)
        result = rt.run(str(root / "saxpy.comp"), grid=16, buffers={"X": OnlyDlpack(x), "Y": given}, constants={"A": 3})
        self.assertIs(result, given)
        self.assertTrue((np.asarray(y) == 6).all())

    @needs_opengl
    def test_arrays_that_do_not_fit_are_refused(self):
        x, y = arrays()
        run = lambda **buffers: rt.run(str(root / "saxpy.comp"), grid=16, buffers=buffers, constants={"A": 1})
        with self.assertRaises((BufferError, ValueError)):
            run(X=x, Y=np.ones((2048,), "float32")[::2])
        with self.assertRaises(TypeError):
            run(X=x, Y=[1.0, 2.0])
        with self.assertRaises((TypeError, ValueError)):
            run(X=x, Y=np.ones(1024, "complex64"))
        y.flags.writeable = False
        with self.assertRaises((BufferError, ValueError)):
            run(X=x, Y=kiln.write(y))


    def test_aligned_arrays_are_used_without_a_copy(self):
        a, b, out = kiln.empty((2, 3)), np.ones((3, 2), "float32"), kiln.empty((2, 2))
        a[:] = 2
        address = out.ctypes.data
        result = rt.gemm(a, b, out=out)
        self.assertIs(result, out)
        self.assertEqual(result.ctypes.data, address)
        self.assertTrue((out == 6).all())
        self.assertEqual(rt.report.copied_bytes, 0)
        pages = kiln.empty((65,))
        unaligned = pages[1:5].reshape(2, 2)
        self.assertIs(rt.gemm(a, b, out=unaligned), unaligned)
        self.assertTrue((unaligned == 6).all())
        self.assertEqual(rt.report.copied_bytes, 16)
        self.assertEqual(pages[0], 0)
        self.assertEqual(pages[5], 0)

    @needs_opengl
    def test_a_kernel_works_in_place_on_aligned_arrays(self):
        x, y = kiln.empty(1024), kiln.empty(1024)
        x[:] = 3
        job = rt.kernel(str(root / "saxpy.comp"), grid=16, buffers={"X": x, "Y": y}, constants={"A": 2}, device="opengl:0")
        for run in range(1, 4):
            job.run()
            self.assertTrue((y == 6 * run).all())
        self.assertEqual(job.report.copied_bytes, 0)


class OwnCompiler(unittest.TestCase):
    def test_cached(self):
        calls = []
        cache = kiln.open_cache(directory=root / "own", key_file=root / "key")

        def make(version):
            @kiln.cached(version=version, cache=cache, ignore=["calls"])
            def build(source, level=2):
                calls.append((source, level))
                return b"%d:" % level + source.encode()
            return build

        build = make("1.0")
        self.assertEqual((build("a"), build.tier), (b"2:a", "built"))
        self.assertEqual((build("a"), build.tier), (b"2:a", "memory"))
        self.assertEqual((build("a", level=2), build.tier), (b"2:a", "memory"))
        self.assertEqual(build("a", 3), b"3:a")
        self.assertEqual(make("1.1")("a"), b"2:a")
        self.assertEqual(calls, [("a", 2), ("a", 3), ("a", 2)])
        self.assertEqual(cache.stats()["builds"], 3)
        self.assertIn("kiln.Cache", repr(cache))
        again = kiln.open_cache(directory=root / "own", key_file=root / "key")
        data, tier = again.get({"source": "x"}, lambda: b"bytes", driver="1")
        self.assertEqual((data, tier), (b"bytes", "built"))

    def test_arguments_that_differ_have_keys_that_differ(self):
        build = kiln.cached(lambda value=None, **named: f"{describe(value)} {list(named)}".encode(), version="1", ignore="describe",
                            cache=self.nested_cache)

        def describe(value):
            if isinstance(value, memoryview):
                return value.format, value.shape, value.strides, value.tobytes(), value.readonly
            if isinstance(value, enum.Enum):
                return value.name
            return type(value), hex(value) if type(value) is int else value, getattr(value, "_asdict", list)()

        one, other = collections.namedtuple("Pair", "x y"), collections.namedtuple("Pair", "y x")
        codes = [enum.IntEnum("Code", {name: 1}) for name in ("A", "B")]
        memory, square = np.arange(4, dtype="float32"), np.arange(4, dtype="float32").reshape(2, 2)
        values = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, ({"a": 1, "b": 2},), [{"b": 2, "a": 1}],
                  memoryview(memory), memoryview(memory.view("int32")), memoryview(square), memoryview(square.view("int32")),
                  memoryview(np.asfortranarray(square.T).T), memoryview(square.T), memory.tobytes(), bytearray(memory.tobytes()),
                  memoryview(memory.tobytes()), (1, 2), one(1, 2), other(1, 2), one(2, 1), codes[0].A, codes[1].B,
                  1, np.int64(1), np.int32(1), np.uint8(1), True, 1.0, np.float64(1), "1", np.str_("1"), b"1", np.bytes_(b"1"),
                  {1}, frozenset({1}), 2**100_000, -1, {1: [np.int64(1)]}, {1: [1]}]
        tiers = []
        for value in values:
            self.assertEqual(build(value), f"{describe(value)} []".encode())
            tiers.append(build.tier)
        self.assertEqual(tiers.count("memory"), 1)  # the transposed view of a transposed array is as the first one
        self.assertEqual((build(a=1, b=2), build(b=2, a=1)), (b"(<class 'NoneType'>, None, []) ['a', 'b']",
                                                             b"(<class 'NoneType'>, None, []) ['b', 'a']"))
        for value in values:
            build(value)
            self.assertEqual(build.tier, "memory")

    def test_values_that_hide_something_cannot_be_part_of_a_key(self):
        build = kiln.cached(lambda value: b"x", version="1", cache=self.nested_cache)

        class Text(str):
            pass

        class Slotted(str):
            __slots__ = ("more",)

        for value in (Text("q"), Slotted("q"), collections.OrderedDict(), collections.defaultdict(list), np.float32(1), np.True_,
                      np.ones(2), os.stat("/"), memoryview(np.array([None])), Path("x"), 1j, range(3)):
            with self.assertRaisesRegex(TypeError, f"a value of type {type(value).__name__} cannot be part of a key"):
                build(value)

    def test_the_shared_cache_is_opened_again_in_a_forked_child(self):
        program = f"""
import os
os.environ |= {{"HOME": {str(root)!r}, "XDG_CACHE_HOME": {str(root / 'forks')!r}, "XDG_STATE_HOME": {str(root / 'state')!r}}}
import kiln, multiprocessing
@kiln.cached(version="1")
def build(source):
    return source.encode()
def work(source):
    return build(source), build.tier
build("0")
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, "0123"))
print(work("3"))
"""
        self.assertEqual(run_python(program), "[(b'0', 'disk'), (b'1', 'built'), (b'2', 'built'), (b'3', 'built')]\n(b'3', 'disk')\n")

    def test_a_signal_handler_calls_a_cached_function_while_the_shared_cache_is_opened(self):
        program = f"""
import os
os.environ |= {{"HOME": {str(root)!r}, "XDG_CACHE_HOME": {str(root / 'handlers')!r}, "XDG_STATE_HOME": {str(root / 'state')!r}}}
import kiln, kiln._cached, signal
@kiln.cached(version="1")
def build(source):
    return source.encode()
open_cache, said = kiln.open_cache, []
def interrupted():
    cache = open_cache()
    if not said:
        signal.raise_signal(signal.SIGUSR1)
    return cache
kiln._cached.open_cache = interrupted
signal.signal(signal.SIGUSR1, lambda *_: said.append(None) or said.append(build("handler")))
print(build("a"), said)
print(build("a"), build("handler"), build.tier)
"""
        self.assertEqual(run_python(program, timeout=60), "b'a' [None, b'handler']\nb'a' b'handler' memory\n")

    def test_the_exception_of_the_compiler_is_the_callers(self):
        cache = kiln.open_cache(directory="", key_file=root / "key")
        error = ValueError("line 3")

        @kiln.cached(version="1", cache=cache, ignore=["error"])
        def build():
            raise error

        with self.assertRaises(ValueError) as caught:
            build()
        self.assertIs(caught.exception, error)

        @kiln.cached(version="1", cache=cache)
        def wrong():
            return 3

        with self.assertRaises(TypeError):
            wrong()

    def test_one_build_for_many_threads(self):
        calls, cache = [], kiln.open_cache(directory=root / "own", key_file=root / "key")

        @kiln.cached(version="1", cache=cache, ignore=["calls"])
        def slow():
            calls.append(1)
            time.sleep(0.2)
            return b"slow"

        results = []
        threads = [threading.Thread(target=lambda: results.append(slow())) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((results, calls), ([b"slow"] * 16, [1]))

    def test_what_cannot_be_part_of_a_key(self):
        cache = kiln.open_cache(directory="")
        build = kiln.cached(lambda value: b"x", version="1", cache=cache)
        with self.assertRaisesRegex(TypeError, "type object cannot be part of a key"):
            build(object())
        for version in ("", None, 3):
            with self.assertRaises(ValueError):
                kiln.cached(lambda: b"x", version=version)
        values = [1, True, "1", b"1", 1.0, None, (1,), [1], {"1": 1}, (1, 1), ((1,), 1)]
        for value in values:
            build(value)
        self.assertEqual(cache.stats()["builds"], len(values))

    def made(self, source, **names):
        """The function `build` of a text, and its result for "ab"."""
        names |= {"kiln": kiln, "cache": self.nested_cache}
        exec(source, names)
        return names["build"], names["build"]("ab")

    def setUp(self):
        self.nested_cache = kiln.open_cache(directory="", key_file=root / "key")

    def test_nested_code_is_part_of_the_key(self):
        head = "@kiln.cached(version='1', cache=cache)\ndef build(source):\n"
        bodies = {
            "function": "    def emit(part):\n        return part.{}()\n    return ''.join(emit(part) for part in source).encode()\n",
            "lambda": "    return ''.join(map(lambda part: part.{}(), source)).encode()\n",
            "comprehension": "    return ''.join([part.{}() for part in source]).encode()\n",
            "generator": "    return ''.join(part.{}() for part in source).encode()\n",
            "two levels": "    return (lambda: (lambda: source.{}())())().encode()\n",
            "class": "    class Of:\n        def emit(self):\n            return source.{}().encode()\n    return Of().emit()\n",
        }
        for what, body in bodies.items():
            with self.subTest(what):
                upper, lower = self.made(head + body.format("upper"))[1], self.made(head + body.format("lower"))[1]
                self.assertEqual((upper, lower), (b"AB", b"ab"))
        with self.subTest("exception handlers"):
            body = "    try:\n        {}\n    except ZeroDivisionError:\n        return b'caught'\n"
            self.assertEqual(self.made(head + body.format("1 // 0"))[1], b"caught")

    def test_what_a_function_refers_to_is_part_of_the_key(self):
        head = "@kiln.cached(version='1', cache=cache)\ndef build(source):\n"
        by_global = head + "    return (source + str(FLAGS)).encode()\n"
        for flags in ("-O1", "-O2", 1, True, 1.0, None, (1, 2), [1, 2], {1, 2}, {"a": [1]}, b"x"):
            build, _ = self.made(by_global, FLAGS=flags)
            self.assertEqual(build.tier, "built", flags)
            build, data = self.made(by_global, FLAGS=flags)
            self.assertEqual((build.tier, data), ("memory", f"ab{flags}".encode()))

        def captured(flags):
            @kiln.cached(version="1", cache=self.nested_cache)
            def build(source):
                return (source + flags).encode()
            return build

        self.assertEqual([captured(flags)("x") for flags in ("1", "2", "1")], [b"x1", b"x2", b"x1"])
        by_default = ("def emit(source, suffix={}, *, end={}):\n    return (source + suffix + end).encode()\n" + head +
                      "    return emit(source)\n")
        self.assertEqual([self.made(by_default.format(*values))[1] for values in (("'1'", "'2'"), ("'3'", "'2'"), ("'3'", "'4'"))],
                         [b"ab12", b"ab32", b"ab34"])
        by_helper = ("def inner(part):\n    return part.{}()\ndef emit(source):\n    return ''.join(inner(part) for part in source)\n" +
                     head + "    return emit(source).encode()\n")
        self.assertEqual([self.made(by_helper.format(name))[1] for name in ("upper", "lower")], [b"AB", b"ab"])

    def test_references_to_each_other_and_cached_functions(self):
        text = """
@kiln.cached(version={version!r}, cache=cache)
def inner(source):
    return outer_name(source).encode()
def outer_name(source):
    return source + str(inner is None) + {version!r}
@kiln.cached(version="1", cache=cache)
def build(source):
    return inner(source) if source else build(source)
"""
        for version in ("1", "2"):
            self.assertEqual(self.made(text.format(version=version))[1], b"abFalse" + version.encode())

    def test_modules_and_the_standard_library_are_known_by_name(self):
        text = ("import math, os.path, re, subprocess\nfrom os.path import join\nfrom pathlib import Path\nfrom math import sqrt\n"
                "@kiln.cached(version='1', cache=cache)\ndef build(source):\n    import json\n"
                "    return f'{join(source, str(Path(source)))}{sqrt(4)}{math.pi > 3}{len(source)}{re.I}'.encode()\n"
                "    return undefined_name\n")
        self.assertEqual(self.made(text)[0].tier, "built")
        self.assertEqual(self.made(text)[0].tier, "memory")

    def test_what_cannot_be_in_a_key_is_named(self):
        head = "@kiln.cached(version='1', cache=cache{})\ndef build(source):\n    return bytes([source and context is None])\n"
        for context, kind in ((object(), "object"), (threading.Lock(), "lock"), ({"a": [object()]}, "object"), (Process, "class Process"),
                              (self.setUp, "method"), ([].append, "builtin_function_or_method")):
            message = rf"global 'context' of build\(\): a value of type {kind} .*argument.*version=.*ignore="
            with self.assertRaisesRegex(TypeError, message):
                self.made(head.format(""), context=context)
            self.assertEqual(self.made(head.format(", ignore=['context']"), context=context)[1], b"\0")
        lock = threading.Lock()

        @kiln.cached(version="1", cache=self.nested_cache)
        def build(source):
            return helper()

        def helper():
            return bytes(lock.locked())

        with self.assertRaisesRegex(TypeError, r"captured variable 'lock' of .*helper\(\): a value of type lock"):
            build("x")

        @kiln.cached(version="1", cache=self.nested_cache, ignore="context")
        def with_argument(source, context):
            return source.encode()

        self.assertEqual([with_argument("x", object()), with_argument("x", object())], [b"x", b"x"])
        self.assertEqual(with_argument.tier, "memory")
        loop = []
        loop.append(loop)
        with self.assertRaisesRegex(TypeError, "argument 'source': a value that is nested too deep"):
            with_argument(loop, None)

    def test_keys_are_the_same_in_all_processes(self):
        program = f"""
import kiln
@kiln.cached(version="1", cache=kiln.open_cache(directory={str(root / 'hashes')!r}, key_file={str(root / 'key')!r}))
def build(source):
    return b"special" if source in {{"alpha", "beta", "gamma", "delta"}} else b"plain"
build("alpha")
print(build.tier)
"""
        tiers = [subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": str(seed)}, timeout=120,
                                capture_output=True, text=True, check=True).stdout for seed in range(1, 5)]
        self.assertEqual(tiers, ["built\n"] + ["disk\n"] * 3)

    def test_what_can_be_decorated(self):
        @kiln.cached(version="1", cache=self.nested_cache)
        def build(größe, *rest, **more):
            return f"{größe}{rest}{more}".encode()

        self.assertEqual(build(1), b"1(){}")
        self.assertEqual(build(2, 3, ä=4), "2(3,){'ä': 4}".encode())
        long = "x" * 200
        self.assertEqual(self.made(f"@kiln.cached(version='1', cache=cache)\ndef build({long}):\n    return {long}.encode()\n")[1], b"ab")
        async def coroutine():
            return b"x"

        async def asynchronous():
            yield b"x"

        def generator():
            yield b"x"

        for wrong in (functools.partial(build, 1), self.setUp, Process, print, coroutine, asynchronous, generator):
            with self.assertRaisesRegex(TypeError, "cached: found .*, expected a function"):
                kiln.cached(wrong, version="1")

        class Compiler:
            @kiln.cached(version="1", cache=self.nested_cache)
            def build(self, source):
                return source.encode()

        with self.assertRaisesRegex(TypeError, "argument 'self': a value of type Compiler cannot be part of a key"):
            Compiler().build("x")

    def test_builds_without_bytes_and_with_too_many(self):
        for data, message in ((b"", "returned no bytes"),
                              (bytes((256 << 20) + 1), "returned 268435457 bytes, expected at most 268435456")):
            with self.assertRaisesRegex(ValueError, message):
                self.nested_cache.get({"source": len(data)}, lambda: data, driver="1")
        self.assertEqual(self.nested_cache.get({"source": 0}, lambda: b"now", driver="1"), (b"now", "built"))

    def test_a_build_that_asks_for_itself_is_refused(self):
        get = lambda: self.nested_cache.get({"source": "x"}, get, driver="1", label="loop")[0]
        for call in (get, lambda: ThreadPoolExecutor(1).submit(get).result(60)):
            with self.assertRaisesRegex(kiln.Error, "'loop' .*requested the same program"):
                call()
        nested = lambda depth: self.nested_cache.get({"depth": depth}, lambda: nested(depth - 1) if depth else b"end", driver="1")[0]
        self.assertEqual(nested(30), b"end")

    def test_the_build_runs_on_the_callers_thread(self):
        seen = []
        get = lambda source: self.nested_cache.get({"source": source}, lambda: seen.append(threading.get_ident()) or b"x", driver="1")
        get("main")
        thread = threading.Thread(target=get, args=("other",))
        thread.start()
        thread.join()
        self.assertEqual(seen, [threading.get_ident(), thread.ident])

    def test_the_cache_of_a_runtime_has_no_programs_of_others(self):
        with self.assertRaisesRegex(TypeError, r"kiln\.open_cache\(\)"):
            rt.cache.get({"source": "x"}, lambda: b"x", driver="1")
        with self.assertRaisesRegex(TypeError, r"kiln\.open_cache\(\)"):
            kiln.cached(lambda: b"x", version="1", cache=rt.cache)()
        with self.assertRaisesRegex(TypeError, "cache: found 3"):
            kiln.cached(lambda: b"x", version="1", cache=3)

    def test_explain(self):
        where = {"directory": root / "explained", "key_file": root / "key"}
        for source in ("one\ntwo", "one\n2"):
            cache = kiln.open_cache(**where)
            cache.get({"source": source}, lambda: b"x", driver="1", label="blur")
            del cache
        misses = kiln.open_cache(**where).explain("blur")
        self.assertEqual(misses[0]["differences"][0]["field"], "source")
        with self.assertRaises(kiln.Error) as caught:
            kiln.open_cache(**where).explain("nothing")
        self.assertEqual(caught.exception.code, "not_found")


class Process(unittest.TestCase):
    def test_daemon_threads_that_open_and_close_at_the_end(self):
        call = {
            "a cache": "kiln.open_cache(directory=where)", "a runtime": "kiln.open(directory=where).close()",
            "devices": "kiln.open(directory=where).devices()", "a failure": "attempt(lambda: kiln.open(config='/none'))",
        }
        for what, body in call.items():
            program = f"""
import kiln, threading
where, begun = {str(root / 'ends')!r}, threading.Event()
def attempt(call):
    try:
        call()
    except kiln.Error:
        pass
def work():
    while True:
        {body}
        begun.set()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
"""
            with self.subTest(what):
                for _ in range(6):
                    self.assertEqual(run_python(program), "")

    def test_the_end_of_the_interpreter_waits_for_calls_of_daemon_threads(self):
        where = {"directory": str(root / "awaited"), "key_file": str(root / "key")}
        self.assertEqual(run_python(f"""
import atexit, os, threading, time
atexit.register(lambda: print(time.monotonic() - ended > 0.5))  # called after that of kiln
import kiln
def build():
    time.sleep(2)
    return b"x"
os.fork() or (kiln.open_cache(**{where!r}).get({{"source": "x"}}, build, driver="1"), os._exit(0))
time.sleep(0.5)
cache, begun = kiln.open_cache(**{where!r}), threading.Event()
def work():
    begun.set()
    cache.get({{"source": "x"}}, build, driver="1")  # waits for the other process
threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.2)
ended = time.monotonic()
"""), "True\n")

    def test_a_daemon_thread_that_raises_at_the_end(self):
        self.assertEqual(run_python("""
import kiln, os, sys, threading, time
begun = threading.Event()
def slow(self, code, message, sleep=time.sleep):
    begun.set()
    sleep(0.3)  # the interpreter ends meanwhile
kiln.Error.__init__ = slow
class Late:
    def __del__(self, write=os.write, sleep=time.sleep):
        write(1, b"late")
        sleep(1)
sys.late = Late()  # which ends late
threading.Thread(target=lambda: kiln.open(config="/none"), daemon=True).start()
begun.wait()
"""), "late")

    def test_subinterpreters_are_refused(self):
        program = """
import _xxsubinterpreters as interpreters, kiln, numpy as np, sys, threading
cache, error = kiln.open_cache(directory=""), kiln.Error
other = interpreters.create()
interpreters.run_string(other, '''
try:
    import kiln
except ImportError as refused:
    print(refused, flush=True)
''')
interpreters.destroy(other)
thread = threading.Thread(target=lambda: print(cache.get({"a": 1}, lambda: b"x", driver="1")))
thread.start()
thread.join()
a = np.ones((2, 2), "float32")
kiln.open(directory="").gemm(a, a, device="cpu", repeat=2, progress=lambda *at: print(at))
try:
    kiln.open("/none")
except error as found:
    print(found.code)
del sys.modules["kiln._kiln"]
import importlib
print(importlib.import_module("kiln._kiln").Memory is kiln.Memory)
"""
        wanted = ["kiln: imported in a subinterpreter, expected the main interpreter of the process", "(b'x', 'built')", "(1, 2)", "(2, 2)",
                  "invalid_argument", "True"]
        self.assertEqual(run_python(program).splitlines(), wanted)

    def test_paths_of_any_bytes(self):
        for path in (os.fsdecode(os.fsencode(root) + b"/\xff\xfe"), os.fsencode(root) + b"/\xfe\xff", root / "s p \u00fc"):
            cache = kiln.open_cache(directory=path)
            cache.get({"source": "x"}, lambda: b"x", driver="1")
            del cache
            self.assertTrue(os.path.isdir(path))
            self.assertEqual(kiln.open_cache(directory=path).get({"source": "x"}, lambda: b"y", driver="1"), (b"x", "disk"))
        with self.assertRaisesRegex(ValueError, "NUL"):
            kiln.open(directory="/tmp/a\0b")
        with self.assertRaises(TypeError):
            kiln.open(directory=5)

    def test_import_opens_no_driver_and_no_numpy(self):
        said = json.loads(run_python("import kiln, json, sys\nmaps = open('/proc/self/maps').read()\n"
                                          "print(json.dumps(['numpy' in sys.modules, 'typing' in sys.modules] + [name in maps for name in "
                                          "('libEGL', 'libdnnl', 'libvulkan', 'libLLVM')]))"))
        self.assertEqual(said, [False] * 6)

    def test_opening_changes_no_variable(self):
        where = f"directory={str(root / 'cache')!r}, key_file={str(root / 'key')!r}"
        said = run_python(f"import kiln, os\nread = lambda: open('/proc/self/environ').read(), dict(os.environ)\nbefore = read()\n"
                               f"rt = kiln.open({where})\nimport ctypes\nlibc = ctypes.CDLL(None)\n"
                               "libc.getenv.restype = ctypes.c_char_p\nprint(libc.getenv(b'MESA_SHADER_CACHE_DIR'))".replace(
                                   "lambda: open('/proc/self/environ').read(), dict(os.environ)", "lambda: dict(os.environ)"))
        self.assertEqual(said, f"{os.environb.get(b'MESA_SHADER_CACHE_DIR')}\n")

    def test_the_end_of_the_interpreter_stops_what_runs(self):
        program = """
import kiln, numpy as np, sys, threading, time
runtime, cache = kiln.open(directory="", log=print), kiln.open_cache(directory="")
a = np.ones((2, 2), "float32")
step = {"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}
net = runtime.pipeline([step], device="cpu", repeat=1_000_000_000, progress=lambda *_: None)
future = net.bind(a).start()
def build():
    time.sleep(0.3)
    return b"x"
threading.Thread(target=lambda: cache.get({"source": "x"}, build, driver="1"), daemon=True).start()
time.sleep(0.1)
print("end")
"""
        for _ in range(3):
            self.assertEqual(run_python(program), "end\n")

    def test_ctrl_c_ends_a_wait_for_another_build(self):
        thread = "threading.Thread(target=lambda: cache.get({'source': 'x'}, build, driver='1'), daemon=True).start()"
        process = "os.fork() or (kiln.open_cache(**where).get({'source': 'x'}, build, driver='1'), os._exit(0))"
        own = "None"
        for at, other in enumerate((thread, process, own)):
            where = {"directory": str(root / f"waits{at}"), "key_file": str(root / "key")}
            program = f"""
import kiln, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
where = {where!r}
def build():
    time.sleep(3)
    return b"x"
cache = kiln.open_cache(**where) if {at} != 1 else None
{other}
time.sleep(0.5)
cache = cache or kiln.open_cache(**where)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
begun = time.perf_counter()
try:
    cache.get({{"source": "x"}}, build, driver="1")
except KeyboardInterrupt:
    print(time.perf_counter() - begun < 1.5)
"""
            with self.subTest(other):
                self.assertEqual(run_python(program), "True\n")

    def test_log_lines_reach_the_callable(self):
        lines = []
        cache = kiln.open_cache(directory="/proc/none", log=lambda *line: lines.append(line))
        cache.get({"source": "x"}, lambda: b"x", driver="1")
        self.assertEqual(len(lines), 1)
        self.assertEqual(lines[0][:2], (3, "cache"))

    def test_a_log_function_that_uses_its_runtime_is_refused_at_once(self):
        said = run_python("""
import gc, kiln, numpy as np, tempfile, threading
a, said, inside, jobs, futures = np.ones((2, 2), "float32"), [], threading.local(), [], []
rt = None
def attempt(call):
    try:
        call()
        said.append("done")
    except kiln.Error as error:
        said.append(error.code)
def log(level, component, message):
    if rt is None or said:
        return
    said.append("begun")
    for call in (lambda: rt.gemm(a, a), lambda: rt.devices(), lambda: rt.warm("cpu"), lambda: jobs[0].run(), lambda: jobs[0].start(),
                 lambda: futures[0].result(), lambda: futures[0].exception(60), lambda: rt.cache.stats()):
        attempt(call)
    said.append(futures[0].done())
folder = tempfile.TemporaryDirectory()
runtime = kiln.open(directory=folder.name + "/cache", key_file=folder.name + "/key", log=log, log_level="debug")
net = runtime.pipeline([{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}], device="cpu")
jobs.append(net.bind(a))
lock = threading.Lock()
with lock:
    class Late:  # the log sees the future that is being made
        def __getitem__(self, at):
            with lock:
                return futures_made[at]
    futures, futures_made, rt = Late(), [], runtime
    futures_made.append(net.start())
print(futures_made[0].result(60)[0, 0], *said)
rt = None
print(runtime.gemm(a, a, device="cpu")[0, 0])
""", timeout=60)
        self.assertEqual(said, "2.0 begun" + 8 * " unavailable" + " False\n2.0\n")

    def test_a_job_that_runs_and_whose_last_reference_ends_in_the_log(self):
        said = run_python("""
import gc, kiln, numpy as np, tempfile, threading, weakref
a, jobs, ready, ended = np.ones((2, 2), "float32"), [], threading.Event(), threading.Event()
def log(level, component, message):
    if jobs and threading.current_thread() is not threading.main_thread() and not ended.is_set():
        ready.wait(60)
        jobs.clear()
        gc.collect()
        ended.set()
folder = tempfile.TemporaryDirectory()
runtime = kiln.open(directory=folder.name + "/cache", key_file=folder.name + "/key", log=log, log_level="debug")
x = kiln.empty((2, 2))
alive = weakref.ref(x)
net = runtime.pipeline([{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}], device="cpu",
                       repeat=1_000_000_000)
jobs.append(net)
net.bind(x).start()
del x, net
ready.set()
print(ended.wait(60), alive() is not None)  # the run may use it still
runtime.gemm(a, a, device="cpu")
print(alive() is None)
""", timeout=60)
        self.assertEqual(said, "True True\nTrue\n")

    def test_a_job_in_its_progress_whose_last_reference_ends_in_the_log(self):
        said = run_python("""
import kiln, numpy as np, sys, tempfile, threading, time, weakref
sys.setswitchinterval(60)  # a thread keeps the GIL until it waits
a, jobs, begun, asked, garbage = np.ones((2, 2), "float32"), [], threading.Event(), [], []
def log(level, component, message):
    if not asked:
        return
    asked.clear()
    end = time.monotonic() + 0.2
    while time.monotonic() < end:  # the thread of the job comes to `progress`, and waits for the GIL
        pass
    jobs.clear()
    garbage.extend(b"\\x11" * size for size in range(64, 512) for _ in range(200))  # where the job was
folder = tempfile.TemporaryDirectory()
runtime = kiln.open(directory=folder.name + "/cache", key_file=folder.name + "/key", log=log, log_level="debug")
x = kiln.empty((2, 2))
alive = weakref.ref(x)
jobs.append(runtime.pipeline([{"op": "gemm", "m": 2, "n": 2, "k": 2, "input": "x", "weights": a, "output": "y"}], device="cpu",
                             repeat=1_000_000_000, progress=lambda *_: begun.set()))
jobs[0].bind(x).start()
del x
begun.wait(60)
asked.append(True)
b = np.ones((3, 3), "float32")
print(runtime.gemm(b, b, device="cpu")[0, 0], asked, len(jobs))
runtime.gemm(b, b, device="cpu")
print(alive() is None)
""", timeout=60)
        self.assertEqual(said, "3.0 [] 0\nTrue\n")

    def test_traces(self):
        with kiln.open(directory="", trace=True) as runtime:
            a = np.ones((2, 2), "float32")
            runtime.gemm(a, a, device="cpu")
            events = json.loads(runtime.trace())["traceEvents"]
            self.assertEqual(sum(event["name"] == "gemm" for event in events), 1)
            self.assertFalse(any(event["name"] == "gemm" for event in json.loads(runtime.trace())["traceEvents"]))
        with self.assertRaises(kiln.Error) as caught:
            rt.trace()
        self.assertEqual(caught.exception.code, "unsupported")

    def test_a_closed_runtime_is_refused(self):
        with kiln.open(directory="") as runtime:
            pass
        self.assertEqual(repr(runtime), "<kiln.Runtime, closed>")
        self.assertEqual(repr(runtime.cache), "<kiln.Cache, closed>")
        a = np.ones((1, 1), "float32")
        for call in (runtime.devices, runtime.metrics, runtime.cache.stats, runtime.__enter__, lambda: runtime.gemm(a, a),
                     lambda: runtime.kernel("x.comp", text=SAXPY, grid=1), lambda: runtime.warm("cpu")):
            with self.assertRaisesRegex(ValueError, "the runtime is closed"):
                call()
        runtime.close()
        with self.assertRaisesRegex(ValueError, "most: -1"):
            rt.warm("cpu", -1)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main()
