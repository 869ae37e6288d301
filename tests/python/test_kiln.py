"""The Python module: runs, layers, the cache, arrays, errors, threads and Ctrl-C."""
import functools
import gc
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

folder = tempfile.TemporaryDirectory()
root = Path(folder.name)
rt = kiln.open(directory=root / "cache", key_file=root / "key")
has_opengl = any(device.id == "opengl:0" and device.usable for device in rt.devices())
needs_opengl = unittest.skipUnless(has_opengl, "no usable device opengl:0")


def setUpModule():
    (root / "saxpy.comp").write_text(SAXPY)


def tearDownModule():
    folder.cleanup()


def arrays(count=1024):
    return np.arange(count, dtype="float32"), np.ones(count, "float32")


def saxpy(**more):
    x, y = arrays()
    wanted = {"grid": (16,), "buffers": {"X": x, "Y": y}, "constants": {"A": 2.5}, "device": "opengl:0"} | more
    return rt.kernel(str(root / "saxpy.comp"), **wanted), x, y


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

    def test_progress_of_runs(self):
        seen = []
        a = np.ones((2, 2), "float32")
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
        array = np.zeros((2, 4, 4), "uint8")
        with self.assertRaisesRegex(kiln.Error, "images.foto"):
            rt.run("texels.comp", text=self.TEXT, grid=1, images={"foto": array, "result": array}, device="opengl:0")


class Arrays(unittest.TestCase):
    def test_empty_is_aligned_zeros(self):
        for shape in ((), (0,), (3,), (2, 3, 4)):
            array = kiln.empty(shape, "int32")
            self.assertEqual((array.shape, array.dtype), (shape, np.dtype("int32")))
            self.assertEqual(array.ctypes.data % 64, 0)
            self.assertTrue((array == 0).all())
        self.assertTrue(kiln.empty(4).flags.writeable)

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
        for wrong in (functools.partial(build, 1), self.setUp, Process, print):
            with self.assertRaisesRegex(TypeError, "cached: found .*, expected a function"):
                kiln.cached(wrong, version="1")

        class Compiler:
            @kiln.cached(version="1", cache=self.nested_cache)
            def build(self, source):
                return source.encode()

        with self.assertRaisesRegex(TypeError, "argument 'self': a value of type Compiler cannot be part of a key"):
            Compiler().build("x")

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
    def run_python(self, program):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_import_opens_no_driver_and_no_numpy(self):
        said = json.loads(self.run_python("import kiln, json, sys\nmaps = open('/proc/self/maps').read()\n"
                                          "print(json.dumps(['numpy' in sys.modules, 'typing' in sys.modules] + [name in maps for name in "
                                          "('libEGL', 'libdnnl', 'libvulkan', 'libLLVM')]))"))
        self.assertEqual(said, [False] * 6)

    def test_opening_changes_no_variable(self):
        where = f"directory={str(root / 'cache')!r}, key_file={str(root / 'key')!r}"
        said = self.run_python(f"import kiln, os\nread = lambda: open('/proc/self/environ').read(), dict(os.environ)\nbefore = read()\n"
                               f"rt = kiln.open({where})\nimport ctypes\nlibc = ctypes.CDLL(None)\n"
                               "libc.getenv.restype = ctypes.c_char_p\nprint(libc.getenv(b'MESA_SHADER_CACHE_DIR'))".replace(
                                   "lambda: open('/proc/self/environ').read(), dict(os.environ)", "lambda: dict(os.environ)"))
        self.assertEqual(said, f"{os.environb.get(b'MESA_SHADER_CACHE_DIR')}\n")

    def test_log_lines_reach_the_callable(self):
        lines = []
        cache = kiln.open_cache(directory="/proc/none", log=lambda *line: lines.append(line))
        cache.get({"source": "x"}, lambda: b"x", driver="1")
        self.assertEqual(len(lines), 1)
        self.assertEqual(lines[0][:2], (3, "cache"))

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
        with self.assertRaises((ValueError, TypeError)):
            runtime.devices()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main()
