"""Kiln from Python: run GPU kernels and layers, and cache what any compiler makes.

    import kiln, numpy as np
    rt = kiln.open()
    x, y = np.ones(1024, "float32"), np.zeros(1024, "float32")
    rt.run("saxpy.comp", grid=(16,), buffers={"X": x, "Y": y}, constants={"A": 2.5})
    print(y, rt.report)

Opening a runtime opens no device and changes no environment variable. Every wait releases the GIL. docs/python.md describes all.
"""
from __future__ import annotations

import _thread
import atexit
from _weakref import ref
from time import monotonic

from . import _description, _kiln
from ._cached import Cache, cached, open_cache
from ._cached import options as _options
from ._description import read, read_write, write
from ._kiln import Memory
from ._report import Device, Report

TYPE_CHECKING = False  # type checkers take it for True; importing `typing` would take longer than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from typing import Any

__all__ = ["Cache", "Device", "Error", "Future", "Job", "Memory", "Pipeline", "Report", "Runtime", "cached", "empty", "open",
           "open_cache", "read", "read_write", "write"]
__version__: str = _kiln.version

_STEP = 0.05  # seconds: how late a future that waits sees that its job runs again
_ReentrantLock: Any = vars(_thread)["RLock"]  # as `threading` takes it; not all type checkers know it


class Error(Exception):
    """A failure of Kiln: `code`, such as "invalid_argument", and `message`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


_kiln.set_error(Error)
atexit.register(_kiln.stop)  # jobs that run would call into an interpreter that has ended


def empty(shape: Sequence[int] | int, dtype: str = "float32") -> Any:
    """Returns a numpy array of zeros in memory that jobs use without a copy."""
    import numpy
    kind = numpy.dtype(dtype)
    if not kind.isnative:
        raise TypeError(f"dtype {kind.str!r}: expected the byte order of this machine")
    return numpy.asarray(Memory.empty(_description.as_integers("shape", shape), kind.name))


def open(config: str | PathLike[str] | None = None, *, directory: str | PathLike[str] | None = None,
         key_file: str | PathLike[str] | None = None, read_only: bool = False, log: Callable[[int, str, str], None] | None = None,
         log_level: str = "default", trace: bool = False) -> Runtime:
    """Opens a runtime: finds plugins, and caches programs in the user's cache folder, or in `directory`.

    config: a TOML file. log: called with (level, component, message), on any thread. trace: record for Runtime.trace().
    """
    return Runtime(_kiln.open(*_options(config, directory, key_file, read_only, log, log_level, trace)))


def _no_future() -> None:
    return None


class Job:
    """A kernel or layer with its arrays, which runs any number of times. `outputs` are the arrays that it writes."""

    def __init__(self, handle: Any, name: str, outputs: list[tuple[str, Any]]) -> None:
        self._handle = handle
        self._lock = _ReentrantLock()
        self._started: Callable[[], Future | None] = _no_future  # the last one, if it lives
        self.name = name
        self.outputs = dict(outputs)

    def __call__(self) -> Any:
        return self.run()

    def run(self) -> Any:
        """Runs the job, and returns its output: the array, or a dict of them if there are several."""
        with self._free():
            return self._run()

    def _free(self) -> Any:
        """The lock. Raises where it would never be free: a signal handler on the thread that has it, and `progress` and `log`, for
        whose end the thread that has it waits."""
        lock = self._lock
        taken = lock._is_owned()
        if not taken and _kiln.in_callback():
            taken = not lock.acquire(False)
            if not taken:
                lock.release()
        if taken:
            raise Error("unavailable", f"job {self.name!r} is already running. A `progress` or `log` function or a signal "
                                       "handler cannot wait for the job")
        return lock

    def _run(self) -> Any:
        if self._started is not _no_future:
            self._end_started()
        _kiln.run(self._handle)
        return self.result()

    def result(self) -> Any:
        outputs = self.outputs
        if len(outputs) == 1:
            for array in outputs.values():
                return array
        return outputs

    def start(self) -> Future:
        """Runs the job on another thread."""
        with self._free():
            self._end_started()
            future = Future(self)
            self._started = ref(future)
            return future

    def _end_started(self) -> None:
        """Lets the last future take its outcome, which the next run replaces. REQUIRES: the lock."""
        started = self._started()
        if started is not None and not started.done():
            raise Error("unavailable", f"job {self.name!r} is already running. Wait for the job first")
        self._started = _no_future

    @property
    def report(self) -> Report:
        return Report(self.name, _kiln.report(self._handle))

    def details(self) -> dict[str, Any]:
        """All facts of the last run, as an element of `jobs` of `kiln run --json`."""
        import json
        facts: dict[str, Any] = json.loads(_kiln.report_json(self._handle))
        return facts

    def __repr__(self) -> str:
        return f"<kiln.Job {self.name}: writes {', '.join(self.outputs) or 'nothing'}>"


class Future:
    """A run that was started. It has the outcome of this run, also after the job has run again."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._done = False
        self._error: BaseException | None = None
        self._result = job.result()
        _kiln.start(job._handle)

    def done(self) -> bool:
        """Whether the run has ended, also by an error."""
        if not self._done and _kiln.wait(self.job._handle, 0.0):
            error = _kiln.outcome(self.job._handle)
            if not self._done:  # else another thread has asked, and the outcome may be that of a run it began since
                self._error, self._done = error, True
        return self._done

    def cancel(self) -> None:
        """Stops waiting for the device. result() then raises Error with the code "cancelled"."""
        if not self.done():
            _kiln.cancel(self.job._handle)

    def result(self, timeout: float | None = None) -> Any:
        """Waits. TimeoutError: the job runs still. Raises what the run failed with, or what `progress` raised. Ctrl-C cancels."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits as result(), and returns what that raises, or None."""
        end = None if timeout is None else monotonic() + timeout
        waits_for_itself = _kiln.waits_for_itself(self.job._handle)
        try:
            while not self.done():
                left = _STEP if end is None else end - monotonic()
                if left <= 0 or waits_for_itself:
                    break
                _kiln.wait(self.job._handle, min(left, _STEP))
        except BaseException:  # of a signal handler, also one that ran between two waits
            self.cancel()
            _kiln.wait(self.job._handle, -1.0)
            raise
        if self._done:
            return self._error
        if waits_for_itself:
            raise Error("unavailable", f"job {self.job.name!r}: its `progress` function and the `log` of its runtime cannot wait for "
                                       "its own run")
        raise TimeoutError(f"job {self.job.name!r} is still running after {timeout} s")

    def __repr__(self) -> str:
        return f"<kiln.Future {self.job.name}: {'done' if self.done() else 'runs'}>"


class Pipeline(Job):
    """Several steps that run as one. Calling it with its inputs returns its results."""

    def __init__(self, handle: Any, name: str, inputs: Sequence[str], results: Sequence[str],
                 constant: Mapping[str, Any]) -> None:
        super().__init__(handle, name, [])
        self.inputs, self.results = tuple(inputs), tuple(results)
        self._constant = {key: (_description.buffer_of(f"pipeline {name!r}: {key!r}", array), False) for key, array in constant.items()}
        self._given: dict[str, tuple[Any, Any]] = {}  # array and buffer
        self._forms: dict[Any, dict[str, Any]] = {}

    def bind(self, *inputs: Any, **arrays: Any) -> Pipeline:
        """Gives the inputs in order, and other tensors by name. A result that is not given gets a new array."""
        with self._free():
            self._bind(inputs, arrays)
        return self

    def _bind(self, inputs: Sequence[Any], arrays: Mapping[str, Any]) -> None:
        import json
        if len(inputs) > len(self.inputs):
            raise TypeError(f"pipeline {self.name!r}: {len(inputs)} inputs, expected {', '.join(self.inputs) or 'none'}")
        given = dict(zip(self.inputs, inputs)) | arrays
        missing = [name for name in self.inputs if name not in given and name not in self._given]
        if missing:
            raise TypeError(f"pipeline {self.name!r}: missing input {', '.join(missing)}")
        wanted = [name for name in self.results if name not in given and name not in self.inputs]
        buffers = {name: _description.buffer_of(f"pipeline {self.name!r}: {name!r}", array) for name, array in given.items()
                   if name not in self._given or self._given[name][0] is not array}
        if buffers:
            kept = {name: buffer for name, (_, buffer) in self._given.items() if name not in wanted}
            _description.check_memory(f"pipeline {self.name!r}",
                          self._constant | {name: (buffer, name in self.results) for name, buffer in (kept | buffers).items()})
        for name, buffer in buffers.items():
            self._give(name, given[name], buffer)
        form = tuple((view.shape, view.format) for view in (memoryview(self._given[name][1]) for name in self.inputs))
        if wanted and form not in self._forms:
            tensors = json.loads(_kiln.tensors(self._handle))["tensors"]
            self._forms[form] = {tensor["name"]: (tensor["shape"], tensor["dtype"]) for tensor in tensors}
        for name in wanted:
            array = empty(*self._forms[form][name])
            self._give(name, array, array)
        self.outputs = {name: self._given[name][0] for name in self.results}

    def _give(self, name: str, array: Any, buffer: Any) -> None:
        _kiln.tensor(self._handle, name, name in self.results, buffer)
        self._given[name] = array, buffer

    def __call__(self, *inputs: Any, **arrays: Any) -> Any:
        with self._free():
            self._bind(inputs, arrays)
            return self._run()

    @property
    def report(self) -> Report:
        return Report(self.name, _kiln.report(self._handle), self.details()["steps"])

    def __repr__(self) -> str:
        return f"<kiln.Pipeline {self.name}: {', '.join(self.inputs)} -> {', '.join(self.results)}>"


class Runtime:
    """Finds devices, and runs kernels and layers on them."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._report: Report | None = None
        self.cache = Cache(handle)

    @property
    def report(self) -> Report | None:
        """Of the last run() or layer of this runtime."""
        return self._report

    def devices(self) -> list[Device]:
        """Lists all devices, usable or not. Loads the drivers."""
        import json
        return [Device(facts) for facts in json.loads(_kiln.devices(self._handle))["devices"]]

    def metrics(self) -> str:
        """Metrics in Prometheus text format."""
        return _kiln.metrics(self._handle)

    def warm(self, device: str, most: int = 100) -> int:
        """Loads stored programs of a device before they are needed, and returns their number."""
        return _kiln.warm(self._handle, device, most)

    def trace(self) -> str:
        """What was recorded since the last call, as Chrome trace events in JSON. Only with open(trace=True)."""
        return _kiln.trace(self._handle)

    def kernel(self, source: str | PathLike[str], *, grid: Sequence[int | str] | int | str,
               buffers: Mapping[str, Any] | Sequence[Any] = (), images: Mapping[str, Any] | None = None,
               samplers: Mapping[str, Any] | None = None, constants: Mapping[str, object] | None = None,
               uniforms: Mapping[str, Any] | None = None, blocks: Mapping[str, Mapping[str, Any]] | None = None,
               device: str | None = None, repeat: int = 1, timeout: float | None = None, name: str | None = None,
               text: str | None = None, entry: str | None = None, include: Sequence[str | PathLike[str]] | str | None = None,
               workgroup: Sequence[int] | None = None, tune: Mapping[str, Sequence[object]] | None = None,
               progress: Callable[[int, int], object] | bool | None = None) -> Job:
        """A kernel of the file `source` (.comp, .glsl, .cl, .spv), or of `text`, which then has that name.

        buffers: by GLSL block name, or in order; images and samplers: by name. An array that the text declares `readonly` is
        read, `writeonly` written, any other both; say otherwise with kiln.read() and its like, or with a dict as in TOML:
        {"output": array, "format": "rgba8"}. In OpenCL C, an int or float is an argument by value.
        progress: as for pipeline().
        """
        import os
        file = _description.as_text("source", os.fspath(source))
        name = _description.as_text("name", name) if name is not None else os.path.splitext(os.path.basename(file))[0]
        job = _description.Description("job", name=name, op="kernel", source=file)
        if text is not None:
            job.values["text"] = _description.as_text("text", text)
        folders = [os.fspath(folder) for folder in
                   ((include,) if isinstance(include, str) else _description.as_sequence("include", include or (), "folders"))]
        if _description.is_array(buffers) or not hasattr(buffers, "__iter__"):
            raise TypeError(f"buffers: found {type(buffers).__name__}, expected a dict or a sequence of arrays")
        declared = _description.declarations_of(file, text, folders, entry) if buffers or images else None
        access = declared.access if declared is not None else lambda key: _description.READ_WRITE
        bindings: list[dict[str, Any]] = []
        pairs: list[tuple[Any, Any]] = list(buffers.items() if hasattr(buffers, "items") else enumerate(buffers))
        for at, given in pairs:
            if isinstance(given, (int, float)) and not isinstance(given, bool):
                bindings.append({"float" if isinstance(given, float) else "int": given})
                continue
            bindings.append(job.entry(str(at), given, access(at)))
            if isinstance(at, str):
                bindings[-1].setdefault("name", at)
        optional: list[tuple[str, Any]] = [
            ("bindings", bindings),
            ("images", {key: job.entry(key, value, access(key)) for key, value in (images or {}).items()}),
            ("samplers", {key: job.entry(key, value, _description.READ) for key, value in (samplers or {}).items()}),
            ("constants", {key: _description.define_text(f"constants.{key}", value) for key, value in (constants or {}).items()}),
            ("uniforms", uniforms), ("blocks", blocks), ("entry", entry), ("include", folders), ("workgroup", workgroup),
            ("tune", {key: [_description.define_text(f"tune.{key}", value)
                            for value in _description.as_sequence(f"tune.{key}", values, "numbers or texts")]
                      for key, values in (tune or {}).items()}),
            ("grid", _description.as_grid(grid))]
        job.values.update((key, value) for key, value in optional if value)
        handle = _kiln.job(self._handle, name)
        _kiln.toml(handle, job.text())
        outputs = job.give(handle)
        self._common(handle, device, repeat, timeout, progress)
        return Job(handle, name, outputs)

    def pipeline(self, steps: Sequence[Mapping[str, Any]], *, inputs: Sequence[str] | None = None,
                 outputs: Sequence[str] | None = None, tensors: Mapping[str, Any] | None = None, device: str | None = None,
                 repeat: int = 1, timeout: float | None = None, verify: bool = False, name: str = "pipeline",
                 progress: Callable[[int, int], object] | bool | None = None) -> Pipeline:
        """Steps as the pipelines of TOML have them, each a dict. Weights, bias and what only one step reads may be arrays.

        inputs, outputs: the tensors that a call takes and returns, by default those that a step reads before any writes them,
        and those that no later step reads. A name in both is changed in place. tensors: dicts as in TOML, or arrays that stay.
        progress: True for a line on standard error, or a function of (done, of), called after each of the `repeat` runs.
        """
        whole = _description.Description("pipeline", name=name)
        made = _description.steps_of(steps, whole)
        declared = dict(tensors or {})
        arrays = [key for key, value in declared.items() if _description.is_array(value)]
        first_reads, last_writes, swaps = _description.flow_of(made, arrays)
        if swaps and outputs is None:
            raise ValueError("a step swaps tensors: expected outputs=[...], the names of the results")
        inputs = first_reads if inputs is None else _description.as_sequence("inputs", inputs, "names")
        outputs = last_writes if outputs is None else _description.as_sequence("outputs", outputs, "names")
        there = {*_description.texts_in(made)}
        for what, names in (("inputs", inputs), ("outputs", outputs)):
            for missing in names:
                if missing not in there:
                    raise ValueError(f"pipeline {name!r}: {what}: found {missing!r}, expected tensors of its steps: "
                                     f"{', '.join(dict.fromkeys([*first_reads, *last_writes]))}")
        for key, value in declared.items():
            declared[key] = whole.entry(key, value, _description.READ)
        for key in dict.fromkeys([*inputs, *outputs]):
            access = _description.READ if key not in outputs else _description.READ_WRITE if key in inputs else _description.WRITE
            declared[key] = {access: "memory:" + key} | declared.get(key, {})
        whole.values.update(tensors=declared, step=made)
        handle = _kiln.job(self._handle, name)
        _kiln.toml(handle, whole.text())
        whole.give(handle)
        if verify:
            _kiln.set(handle, "verify", 1)
        self._common(handle, device, repeat, timeout, progress)
        return Pipeline(handle, name, inputs, outputs, whole.arrays)

    @staticmethod
    def _common(job: Any, device: str | None, repeat: int, timeout: float | None,
                progress: Callable[[int, int], object] | bool | None = None) -> None:
        if device is not None:
            _kiln.set(job, "device", _description.as_text("device", device))
        if repeat != 1:
            repeat = _description.as_integer("repeat", repeat)
            if not 0 < repeat < 1 << 32:
                raise ValueError(f"repeat: found {repeat}, expected 1 to 2**32 - 1")
            _kiln.set(job, "repeat", repeat)
        if timeout is not None:
            _kiln.set(job, "timeout", _description.as_milliseconds("timeout", timeout))
        if progress:
            _kiln.progress(job, _run_line if progress is True else _description.as_callable("progress", progress))

    def _ran(self, job: Job) -> Any:
        result = job.run()
        self._report = job.report
        return result

    def run(self, source: str | PathLike[str], *, grid: Sequence[int | str] | int | str,
            buffers: Mapping[str, Any] | Sequence[Any] = (), images: Mapping[str, Any] | None = None,
            samplers: Mapping[str, Any] | None = None, constants: Mapping[str, object] | None = None,
            uniforms: Mapping[str, Any] | None = None, blocks: Mapping[str, Mapping[str, Any]] | None = None,
            device: str | None = None, repeat: int = 1, timeout: float | None = None, name: str | None = None,
            text: str | None = None, entry: str | None = None, include: Sequence[str | PathLike[str]] | str | None = None,
            workgroup: Sequence[int] | None = None, tune: Mapping[str, Sequence[object]] | None = None,
            progress: Callable[[int, int], object] | bool | None = None) -> Any:
        """Runs a kernel once, and returns what it wrote: the array, or a dict of them. Arguments as for kernel()."""
        arguments = dict(locals())
        del arguments["self"]
        return self._ran(self.kernel(**arguments))

    def conv2d(self, image: Any, weights: Any, bias: Any = None, *, stride: Any = 1, pad: Any = 0, dilation: Any = 1,
               groups: int = 1, activation: str | None = None, verify: bool = False, out: Any = None,
               device: str | None = None, repeat: int = 1, timeout: float | None = None, name: str = "conv2d",
               progress: Callable[[int, int], object] | bool | None = None) -> Any:
        """float32: image [n, c, h, w], weights [k, c / groups, r, s]; returns [n, k, out_h, out_w]."""
        (stride_y, stride_x), (pad_y, pad_x), (dilation_y, dilation_x) = (
            _description.as_pair("stride", stride), _description.as_pair("pad", pad), _description.as_pair("dilation", dilation))
        image, weights = _description.buffer_of(f"{name}: 'image'", image), _description.buffer_of(f"{name}: 'weights'", weights)
        if out is None:
            at, by = memoryview(image).shape or (), memoryview(weights).shape or ()
            if len(at) != 4 or len(by) != 4:
                raise Error("invalid_argument", f"conv2d: image {at} and weights {by}, expected 4 dimensions each")
            if min(stride_y, stride_x, dilation_y, dilation_x) < 1:
                raise Error("invalid_argument", f"conv2d: stride {stride} and dilation {dilation}, expected at least 1 each")
            height = (at[2] + 2 * pad_y - dilation_y * (by[2] - 1) - 1) // stride_y + 1
            width = (at[3] + 2 * pad_x - dilation_x * (by[3] - 1) - 1) // stride_x + 1
            out = empty((at[0], by[0], max(height, 0), max(width, 0)))
        terms = (stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, _description.as_integer("groups", groups),
                 self._relu(activation))
        return self._layer(name, terms, {"image": image, "weights": weights}, bias, out, verify, device, repeat, timeout, progress)

    def gemm(self, a: Any, b: Any, bias: Any = None, *, activation: str | None = None, verify: bool = False, out: Any = None,
             device: str | None = None, repeat: int = 1, timeout: float | None = None, name: str = "gemm",
             progress: Callable[[int, int], object] | bool | None = None) -> Any:
        """float32: a [m, k], b [k, n]; returns [m, n]."""
        a, b = _description.buffer_of(f"{name}: 'a'", a), _description.buffer_of(f"{name}: 'b'", b)
        if out is None:
            at, by = memoryview(a).shape or (), memoryview(b).shape or ()
            if len(at) != 2 or len(by) != 2:
                raise Error("invalid_argument", f"gemm: a {at} and b {by}, expected 2 dimensions each")
            out = empty((at[0], by[1]))
        return self._layer(name, (self._relu(activation),), {"a": a, "b": b}, bias, out, verify, device, repeat, timeout, progress)

    @staticmethod
    def _relu(activation: str | None) -> int:
        if activation not in (None, "none", "relu"):
            raise Error("invalid_argument", f"activation {activation!r}: expected 'none' or 'relu'")
        return 1 if activation == "relu" else 0

    def _layer(self, name: str, terms: tuple[int, ...], inputs: dict[str, Any], bias: Any, out: Any, verify: bool,
               device: str | None, repeat: int, timeout: float | None,
               progress: Callable[[int, int], object] | bool | None) -> Any:
        job = _kiln.job(self._handle, _description.as_text("name", name))
        buffers = inputs | {"bias": None if bias is None else _description.buffer_of(f"{name}: 'bias'", bias),
                            "out": _description.buffer_of(f"{name}: 'out'", out)}
        _description.check_memory(name, {key: (buffer, key == "out") for key, buffer in buffers.items() if buffer is not None})
        _kiln.layer(job, terms, *buffers.values())
        if verify:
            _kiln.set(job, "verify", 1)
        self._common(job, device, repeat, timeout, progress)
        return self._ran(Job(job, name, [("output", out)]))

    def tune(self, source: str | PathLike[str], *, tune: Mapping[str, Sequence[object]], grid: Sequence[int | str] | int | str,
             budget: float = 30.0, buffers: Mapping[str, Any] | Sequence[Any] = (), images: Mapping[str, Any] | None = None,
             samplers: Mapping[str, Any] | None = None, constants: Mapping[str, object] | None = None,
             uniforms: Mapping[str, Any] | None = None, blocks: Mapping[str, Mapping[str, Any]] | None = None,
             device: str | None = None, repeat: int = 1, timeout: float | None = None, name: str | None = None,
             text: str | None = None, entry: str | None = None, include: Sequence[str | PathLike[str]] | str | None = None,
             workgroup: Sequence[int] | None = None,
             progress: Callable[[int, int, str], object] | bool | None = None) -> dict[str, Any]:
        """Measures a kernel with each combination of the texts in `tune`, and stores the fastest, which later runs with the
        same `tune` use. Returns what `kiln tune --json` has for a job. Arguments as for kernel(); the arrays stay as they are.

        progress: True for a line on standard error, or a function of (done, of, best), called on another thread.
        """
        arguments = dict(locals())
        import json
        shown = [""]

        def line(done: int, of: int, best: str) -> None:
            shown[0] = f"{done} of {of} measured, best {best}"
            _show(shown[0], last=False)

        show = line if progress is True else _description.as_callable("progress", progress) if progress else None
        budget_ms = _description.as_milliseconds("budget", budget)
        if device is None:
            usable = [one.id for one in self.devices() if one.usable and one.kind != "cpu"]
            if not usable:
                raise Error("unavailable", "tune: no usable device but the CPU, which runs no kernels")
            device = usable[0]
        for own in ("self", "budget", "progress"):
            del arguments[own]
        arguments["device"] = device
        job = self.kernel(**arguments)
        outcome: dict[str, Any] = json.loads(_kiln.tune(job._handle, device, budget_ms, show))
        if progress is True and shown[0]:
            _show(shown[0], last=True)
        return outcome

    def __enter__(self) -> Runtime:
        if self._handle is None:
            raise ValueError("the runtime is closed")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the runtime as soon as no job of it is left."""
        self._handle = None
        self.cache._handle = None

    def __repr__(self) -> str:
        return "<kiln.Runtime, closed>" if self._handle is None else f"<kiln.Runtime, last run: {self._report!r}>"


def _show(text: str, last: bool) -> None:
    """One line that replaces itself, on a terminal and in a notebook; a file gets the last one."""
    import sys
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        clear = "\x1b[K"  # to the end of the line
        print(f"\r{text}{clear}", end="\n" if last else "", file=sys.stderr, flush=True)
    elif last:
        print(text, file=sys.stderr, flush=True)


def _run_line(done: int, of: int) -> None:
    if done == of or done * 100 // of != (done - 1) * 100 // of:
        _show(f"{done} of {of} runs", last=done == of)
