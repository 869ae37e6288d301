"""Threads, signals and the end of the interpreter."""
import json
import os
import unittest

import kiln
import numpy as np
from scene import SAXPY, root, rt, run_python


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
