"""Arrays, DLPack and memory."""
import ctypes
import gc
import unittest

import kiln
import numpy as np
from kiln import _kiln
from scene import SAXPY, arrays, matrix, needs_opengl, root, rt


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
