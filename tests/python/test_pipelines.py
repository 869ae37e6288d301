"""Layers and pipelines."""
import gc
import threading
import time
import unittest
import weakref
from concurrent.futures import ThreadPoolExecutor

import kiln
import numpy as np
from scene import matrix, needs_opengl, rt, run_python


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
