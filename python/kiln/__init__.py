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

from . import _kiln
from ._cached import TIERS as _TIERS
from ._cached import Cache, cached, open_cache
from ._cached import options as _options
from ._kiln import Memory

TYPE_CHECKING = False  # type checkers take it for True; importing `typing` would take longer than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike
    from typing import Any

    from ._declared import Declared

__all__ = ["Cache", "Device", "Error", "Future", "Job", "Memory", "Pipeline", "Report", "Runtime", "cached", "empty", "open",
           "open_cache", "read", "read_write", "write"]
__version__: str = _kiln.version

_READ, _WRITE, _READ_WRITE = "input", "output", "inout"  # as TOML names them
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


def _integer(what: str, value: Any) -> int:
    """An int for an integer of any library."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"{what}: found {value!r}, expected an integer") from None


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what}: found {value!r:.60}, expected a text")
    return value


def _sequence(what: str, value: Any, of: str) -> list[Any]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError(f"{what}: found {value!r}, expected a sequence of {of}")
    return list(value)


def _callable(what: str, value: Any) -> Any:
    if not callable(value):
        raise TypeError(f"{what}: found {value!r}, expected a function, True or None")
    return value


def _has_index(value: Any) -> bool:
    try:
        value.__index__()
        return True
    except (AttributeError, TypeError):
        return False


def _integers(what: str, value: Any) -> tuple[int, ...]:
    """The integers of a sequence, or of one integer."""
    if _has_index(value):
        return (_integer(what, value),)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError(f"{what}: found {value!r}, expected integers")
    return tuple(_integer(what, item) for item in value)


def _pair(what: str, value: Any) -> tuple[int, int]:
    numbers = _integers(what, value)
    if len(numbers) == 1 and _has_index(value):
        numbers *= 2
    if len(numbers) != 2:
        raise ValueError(f"{what}: found {value!r}, expected an integer, or two for height and width")
    return numbers[0], numbers[1]


def _grid(value: Any) -> list[int | str]:
    """The counts of workgroups, or expressions for them."""
    if isinstance(value, str) or _has_index(value):
        value = (value,)
    if isinstance(value, bytes) or hasattr(value, "items") or not hasattr(value, "__iter__"):
        raise TypeError(f"grid: found {value!r}, expected an integer, a text, or up to three of them")
    return [item if isinstance(item, str) else _integer("grid", item) for item in value]


def _milliseconds(what: str, seconds: float) -> int:
    if isinstance(seconds, (str, bytes)) or not hasattr(seconds, "__float__"):
        raise TypeError(f"{what}: found {seconds!r}, expected a number of seconds")
    if not seconds >= 0 or seconds == float("inf"):
        raise ValueError(f"{what}: found {seconds!r}, expected a number of seconds")
    return max(1, round(seconds * 1000))


def empty(shape: Sequence[int] | int, dtype: str = "float32") -> Any:
    """Returns a numpy array of zeros in memory that jobs use without a copy."""
    import numpy
    kind = numpy.dtype(dtype)
    if not kind.isnative:
        raise TypeError(f"dtype {kind.str!r}: expected the byte order of this machine")
    return numpy.asarray(Memory.empty(_integers("shape", shape), kind.name))


class _Bound:
    """An array with the access that a kernel has to it."""
    __slots__ = ("array", "access")

    def __init__(self, array: Any, access: str) -> None:
        self.array, self.access = array, access


def read(array: Any) -> Any:
    """The kernel only reads the array."""
    return _Bound(array, _READ)


def write(array: Any) -> Any:
    """The kernel overwrites the array; its contents are not sent to the device."""
    return _Bound(array, _WRITE)


def read_write(array: Any) -> Any:
    """The kernel reads and writes the array."""
    return _Bound(array, _READ_WRITE)


def _buffer(what: str, array: Any) -> Any:
    """Something with the buffer protocol for an array, without a copy."""
    if _has_buffer(array):
        return array
    if not hasattr(array, "__dlpack__"):
        raise TypeError(f"{what}: {type(array).__name__}, expected an array with the buffer protocol or DLPack")
    try:
        try:
            capsule = array.__dlpack__(max_version=(1, 0))
        except TypeError:  # a producer of DLPack 0
            capsule = array.__dlpack__()
        return Memory.from_dlpack(capsule)
    except (BufferError, TypeError, ValueError) as error:
        raise _about(what, error) from error


def _about(what: str, error: Exception) -> Exception:
    return (TypeError if isinstance(error, TypeError) else ValueError)(f"{what}: {error}")


def _is_array(value: object) -> bool:
    return not isinstance(value, (str, bytes)) and (hasattr(value, "__dlpack__") or _has_buffer(value))


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
        return True
    except (TypeError, BufferError, ValueError):  # numpy has the last one for types that no buffer has
        return False


def _plain(value: Any) -> Any:
    """Numbers and lists for those of numpy."""
    return value.tolist() if hasattr(value, "tolist") else value


def _toml(value: Any) -> str:
    """A value in TOML. Tables are written inline."""
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if _has_index(value):
        return str(int(value.__index__()))
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        import json
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if hasattr(value, "items"):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"a value of type {type(value).__name__}: expected a number, text, list or dict")


class _Description:
    """A job or pipeline as its TOML has it, and its arrays by the names in "memory:NAME"."""

    def __init__(self, kind: str, **values: Any) -> None:
        self.kind = kind
        self.values: dict[str, Any] = values
        self.arrays: dict[str, Any] = {}

    def source(self, name: str, value: Any) -> Any:
        """What stands in the TOML for an array; any other value stands for itself."""
        if not _is_array(value):
            return value
        self.arrays[name] = value
        return "memory:" + name

    def entry(self, name: str, given: Any, access: str) -> dict[str, Any]:
        """An element of `bindings` and its like, from an array or from a dict as in TOML."""
        if isinstance(given, _Bound):
            given, access = given.array, given.access
        if hasattr(given, "items"):
            return {key: self.source(name if key in (_READ, _WRITE, _READ_WRITE) else f"{name}.{key}", value)
                    for key, value in given.items()}
        if not _is_array(given):
            raise TypeError(f"{name}: {type(given).__name__}, expected an array with the buffer protocol or DLPack, or a dict")
        return {access: self.source(name, given)}

    def text(self) -> str:
        return f"[[{self.kind}]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in self.values.items())

    def give(self, handle: Any) -> list[tuple[str, Any]]:
        """Gives the arrays to the job, and returns those that it writes."""
        import json
        what = f"{self.kind} {self.values['name']!r}"
        given = {tensor["name"]: (_buffer(f"{what}: {tensor['name']!r}", self.arrays[tensor["name"]]), tensor["access"] != "read")
                 for tensor in json.loads(_kiln.tensors(handle))["tensors"] if tensor["name"] in self.arrays}
        _check_memory(what, given)
        for name, (buffer, writes) in given.items():
            _kiln.tensor(handle, name, writes, buffer)
        return [(name, self.arrays[name]) for name, (_, writes) in given.items() if writes]


def _check_memory(what: str, tensors: Mapping[str, tuple[Any, bool]]) -> None:
    """Checks, by name, buffers and whether they are written: all have an order and type of Kiln's; those that are written are
    writable, and share no memory with another one."""
    spans = []
    for name, (buffer, writes) in tensors.items():
        try:
            address, size, read_only = _kiln.span(buffer)
        except (BufferError, TypeError, ValueError) as error:
            raise _about(f"{what}: {name!r}", error) from None
        if writes and read_only:
            raise ValueError(f"{what}: {name!r} is a read-only array, but the job writes it. Give a writable array, or "
                             "kiln.read(array) where a kernel only reads it")
        if size:
            spans.append((address, address + size, name, writes))
    spans.sort()
    last: dict[bool, tuple[int, str]] = {True: (0, ""), False: (0, "")}  # by whether it is written: the highest end, and whose
    for begin, end, name, writes in spans:
        for other_writes, (other_end, other) in last.items():
            if begin < other_end and (writes or other_writes):
                raise ValueError(f"{what}: {name!r} shares memory with {other!r}, and the job writes "
                                 f"{name if writes else other!r}. Use separate arrays")
        if end > last[writes][0]:
            last[writes] = end, name


def open(config: str | PathLike[str] | None = None, *, directory: str | PathLike[str] | None = None,
         key_file: str | PathLike[str] | None = None, read_only: bool = False, log: Callable[[int, str, str], None] | None = None, log_level: str = "default", trace: bool = False) -> Runtime:
    """Opens a runtime: finds plugins, and caches programs in the user's cache folder, or in `directory`.

    config: a TOML file. log: called with (level, component, message), on any thread. trace: record for Runtime.trace().
    """
    return Runtime(_kiln.open(*_options(config, directory, key_file, read_only, log, log_level, trace)))


class Device:
    """A device that a driver lists."""
    __slots__ = ("id", "kind", "name", "driver", "usable", "why_not")

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.id: str = facts["id"]
        self.kind: str = facts["kind"]
        self.name: str = facts["name"]
        self.driver: str = facts["driver"]
        self.usable: bool = facts["usable"]
        self.why_not: str | None = facts["why_not"]

    def __repr__(self) -> str:
        return f"<kiln.Device {self.id}: {self.name}, {self.driver}{'' if self.usable else ', not usable: ' + str(self.why_not)}>"


class Report:
    """What a run took, and where. Times are in milliseconds, medians of the runs."""
    __slots__ = ("name", "device", "variant", "tier", "runs", "verified", "wall_ms", "queue_ms", "build_ms", "upload_ms",
                 "device_ms", "readback_ms", "gflops", "max_rel_error", "error_bound", "copied_bytes", "steps")

    def __init__(self, name: str, facts: tuple[Any, ...], steps: Sequence[dict[str, Any]] = ()) -> None:
        self.name = name
        self.steps = steps  # of a pipeline, as in `kiln run --json`
        self.device: str = facts[0]
        self.variant: str = facts[1]
        self.tier: str = _TIERS[facts[2]]
        self.runs: int = facts[3]
        self.verified: bool | None = None if facts[4] == 0 else facts[4] == 1
        (self.wall_ms, self.queue_ms, self.build_ms, self.upload_ms, self.device_ms,
         self.readback_ms) = (value / 1e6 for value in facts[5:11])
        self.gflops: float | None = facts[11] / facts[5] if facts[5] and facts[11] else None
        self.max_rel_error: float = facts[12]
        self.error_bound: float = facts[13]
        self.copied_bytes: int = facts[14]  # of arrays whose address is not a multiple of 64

    def __repr__(self) -> str:
        rate = f", {self.gflops:.1f} GFLOP/s" if self.gflops else ""
        check = {None: "", True: ", verified", False: ", WRONG"}[self.verified]
        program = "built" if self.tier == "built" else f"from {self.tier or 'nowhere'}"
        return f"<kiln.Report {self.name} on {self.device}: {self.wall_ms:.3f} ms{rate}, program {program}{check}>"

    def _repr_html_(self) -> str:
        import html
        rows = [("device", self.device), ("variant", self.variant), ("program from", self.tier), ("runs", self.runs),
                ("wall", f"{self.wall_ms:.3f} ms"), ("build", f"{self.build_ms:.3f} ms"),
                ("upload", f"{self.upload_ms:.3f} ms"), ("device time", f"{self.device_ms:.3f} ms"),
                ("readback", f"{self.readback_ms:.3f} ms")]
        if self.gflops:
            rows.append(("rate", f"{self.gflops:.1f} GFLOP/s"))
        if self.verified is not None:
            rows.append(("verified", f"{self.verified}, error {self.max_rel_error:.2g} of at most {self.error_bound:.2g}"))
        cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
        for step in self.steps:
            said = f"{step['op']}, {step['variant']}, program from {step['tier']}, {step['rounds']} rounds"
            cells += f"<tr><th>step {html.escape(step['name'])}</th><td>{html.escape(said)}</td></tr>"
        return f"<table><caption>{html.escape(self.name)}</caption>{cells}</table>"


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
        self._constant = {key: (_buffer(f"pipeline {name!r}: {key!r}", array), False) for key, array in constant.items()}
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
        buffers = {name: _buffer(f"pipeline {self.name!r}: {name!r}", array) for name, array in given.items()
                   if name not in self._given or self._given[name][0] is not array}
        if buffers:
            kept = {name: buffer for name, (_, buffer) in self._given.items() if name not in wanted}
            _check_memory(f"pipeline {self.name!r}",
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


def _steps(steps: Sequence[Any], description: _Description) -> list[dict[str, Any]]:
    """The steps as TOML has them. Their arrays are weights and tables that only one step reads."""
    made = []
    for at, given in enumerate(steps):
        step = dict(given)
        name = str(step.setdefault("name", f"step{len(description.values.get('step', ())) + at + 1}"))
        if "step" in step:
            step["step"] = _steps(step["step"], description)
        for key in ("weights", "bias"):
            if key in step:
                step[key] = description.source(f"{name}.{key}", step[key])
        if "bindings" in step:
            step["bindings"] = [description.entry(f"{name}.{place}", binding, _READ)
                                for place, binding in enumerate(step["bindings"])]
        for key in ("images", "samplers"):
            if key in step:
                step[key] = {image: description.entry(f"{name}.{image}", entry, _READ) for image, entry in step[key].items()}
        made.append(step)
    return made


def _is_tensor_name(name: str) -> bool:
    """Whether it is no source: a file, or "random:SEED" and its like."""
    return ":" not in name and "/" not in name and not name.lower().endswith((".npy", ".png", ".bin", ".raw"))


def _flow(steps: Sequence[dict[str, Any]], declared: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """The tensors that are read before a step writes them, those that no later step reads, and whether names are swapped."""
    first_reads: list[str] = []
    written: dict[str, bool] = {}  # with whether it was read since
    swaps = False

    def read(name: Any) -> None:
        if not isinstance(name, str):
            return
        if name in written:
            written[name] = True
        elif _is_tensor_name(name) and name not in first_reads and name not in declared:
            first_reads.append(name)

    def walk(inner: Sequence[dict[str, Any]]) -> None:
        nonlocal swaps
        for step in inner:
            swaps = swaps or "swap" in step
            walk(step.get("step", ()))
            entries = [*step.get("bindings", ()), *step.get("images", {}).values(), *step.get("samplers", {}).values()]
            if "input" in step or "output" in step:
                entries.append({key: step[key] for key in (_READ, _WRITE) if key in step})
            if "addend" in step:
                entries.append({_READ: step["addend"]})
            for entry in entries:
                read(entry.get(_READ, entry.get(_READ_WRITE)))
            for entry in entries:
                name = entry.get(_WRITE, entry.get(_READ_WRITE))
                if isinstance(name, str):
                    written[name] = False

    walk(steps)
    return first_reads, [name for name, was_read in written.items() if not was_read], swaps


def _texts(value: Any) -> Iterator[str]:
    """All texts in dicts and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _text_of(what: str, value: object) -> str:
    """What a #define says."""
    value = _plain(value)
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, str):
        return value
    if _has_index(value):
        return str(_integer(what, value))
    if isinstance(value, float) and value - value == 0:
        return float.__repr__(value)
    raise (ValueError if isinstance(value, float) else TypeError)(
        f"{what}: found {value!r}, expected a finite number, a boolean or a text of one line without backslashes")


def _declarations(source: str, text: str | None, include: Sequence[str], entry: str | None) -> Declared | None:
    """What the text of a kernel declares. None: it is SPIR-V."""
    if source.endswith(".spv"):
        return None
    from ._declared import Declared, read_text
    return Declared(read_text(source, include) if text is None else text, source.endswith(".cl"), entry)


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
        file = _text("source", os.fspath(source))
        name = _text("name", name) if name is not None else os.path.splitext(os.path.basename(file))[0]
        job = _Description("job", name=name, op="kernel", source=file)
        if text is not None:
            job.values["text"] = _text("text", text)
        folders = [os.fspath(folder) for folder in
                   ((include,) if isinstance(include, str) else _sequence("include", include or (), "folders"))]
        if _is_array(buffers) or not hasattr(buffers, "__iter__"):
            raise TypeError(f"buffers: found {type(buffers).__name__}, expected a dict or a sequence of arrays")
        declared = _declarations(file, text, folders, entry) if buffers or images else None
        access = declared.access if declared is not None else lambda key: _READ_WRITE
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
            ("samplers", {key: job.entry(key, value, _READ) for key, value in (samplers or {}).items()}),
            ("constants", {key: _text_of(f"constants.{key}", value) for key, value in (constants or {}).items()}),
            ("uniforms", uniforms), ("blocks", blocks), ("entry", entry), ("include", folders), ("workgroup", workgroup),
            ("tune", {key: [_text_of(f"tune.{key}", value) for value in _sequence(f"tune.{key}", values, "numbers or texts")]
                      for key, values in (tune or {}).items()}),
            ("grid", _grid(grid))]
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
        whole = _Description("pipeline", name=name)
        made = _steps(steps, whole)
        declared = dict(tensors or {})
        first_reads, last_writes, swaps = _flow(made, [key for key, value in declared.items() if _is_array(value)])
        if swaps and outputs is None:
            raise ValueError("a step swaps tensors: expected outputs=[...], the names of the results")
        inputs = first_reads if inputs is None else _sequence("inputs", inputs, "names")
        outputs = last_writes if outputs is None else _sequence("outputs", outputs, "names")
        there = {*_texts(made)}
        for what, names in (("inputs", inputs), ("outputs", outputs)):
            for missing in names:
                if missing not in there:
                    raise ValueError(f"pipeline {name!r}: {what}: found {missing!r}, expected tensors of its steps: "
                                     f"{', '.join(dict.fromkeys([*first_reads, *last_writes]))}")
        for key, value in declared.items():
            declared[key] = whole.entry(key, value, _READ)
        for key in dict.fromkeys([*inputs, *outputs]):
            access = _READ_WRITE if key in inputs and key in outputs else _READ if key in inputs else _WRITE
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
            _kiln.set(job, "device", _text("device", device))
        if repeat != 1:
            repeat = _integer("repeat", repeat)
            if not 0 < repeat < 1 << 32:
                raise ValueError(f"repeat: found {repeat}, expected 1 to 2**32 - 1")
            _kiln.set(job, "repeat", repeat)
        if timeout is not None:
            _kiln.set(job, "timeout", _milliseconds("timeout", timeout))
        if progress:
            _kiln.progress(job, _run_line if progress is True else _callable("progress", progress))

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
            _pair("stride", stride), _pair("pad", pad), _pair("dilation", dilation))
        image, weights = _buffer(f"{name}: 'image'", image), _buffer(f"{name}: 'weights'", weights)
        if out is None:
            at, by = memoryview(image).shape or (), memoryview(weights).shape or ()
            if len(at) != 4 or len(by) != 4:
                raise Error("invalid_argument", f"conv2d: image {at} and weights {by}, expected 4 dimensions each")
            if min(stride_y, stride_x, dilation_y, dilation_x) < 1:
                raise Error("invalid_argument", f"conv2d: stride {stride} and dilation {dilation}, expected at least 1 each")
            height = (at[2] + 2 * pad_y - dilation_y * (by[2] - 1) - 1) // stride_y + 1
            width = (at[3] + 2 * pad_x - dilation_x * (by[3] - 1) - 1) // stride_x + 1
            out = empty((at[0], by[0], max(height, 0), max(width, 0)))
        terms = (stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, _integer("groups", groups), self._relu(activation))
        return self._layer(name, terms, {"image": image, "weights": weights}, bias, out, verify, device, repeat, timeout, progress)

    def gemm(self, a: Any, b: Any, bias: Any = None, *, activation: str | None = None, verify: bool = False, out: Any = None,
             device: str | None = None, repeat: int = 1, timeout: float | None = None, name: str = "gemm",
             progress: Callable[[int, int], object] | bool | None = None) -> Any:
        """float32: a [m, k], b [k, n]; returns [m, n]."""
        a, b = _buffer(f"{name}: 'a'", a), _buffer(f"{name}: 'b'", b)
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
        job = _kiln.job(self._handle, _text("name", name))
        buffers = inputs | {"bias": None if bias is None else _buffer(f"{name}: 'bias'", bias), "out": _buffer(f"{name}: 'out'", out)}
        _check_memory(name, {key: (buffer, key == "out") for key, buffer in buffers.items() if buffer is not None})
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

        show = line if progress is True else _callable("progress", progress) if progress else None
        budget_ms = _milliseconds("budget", budget)
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
