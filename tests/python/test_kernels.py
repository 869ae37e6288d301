"""Runs of kernels, images and what a text declares."""
import contextlib
import enum
import gc
import io
import os
import subprocess
import sys
import threading
import tracemalloc
import unittest
from pathlib import Path

import kiln
import numpy as np
from scene import LONG, SAXPY, arrays, needs_opengl, root, rt, run_python, saxpy


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
