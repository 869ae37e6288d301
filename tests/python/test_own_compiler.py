"""The cache for other compilers."""
import collections
import enum
import functools
import os
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kiln
import numpy as np
from scene import root, rt, run_python


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
        for context, kind in ((object(), "object"), (threading.Lock(), "lock"), ({"a": [object()]}, "object"),
                              (OwnCompiler, "class OwnCompiler"), (self.setUp, "method"),
                              ([].append, "builtin_function_or_method")):
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

        for wrong in (functools.partial(build, 1), self.setUp, OwnCompiler, print, coroutine, asynchronous, generator):
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
