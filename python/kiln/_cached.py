"""Program caches for other compilers: kiln.Cache, kiln.open_cache() and kiln.cached(). docs/python.md describes them."""
from __future__ import annotations

import os
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

from . import _kiln

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, ParamSpec, Protocol, overload

    _P = ParamSpec("_P")

    class CachedFunction(Protocol[_P]):
        tier: str  # where the bytes of the last call came from: "memory", "disk" or "built"

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> bytes: ...

TIERS = ("", "memory", "disk", "built", "library")
_LEVELS = {"default": 0, "debug": 1, "info": 2, "warning": 3, "error": 4, "off": 5}


def options(config: str | os.PathLike[str] | None, directory: str | os.PathLike[str] | None,
            key_file: str | os.PathLike[str] | None, read_only: bool, log: Callable[[int, str, str], None] | None, log_level: str,
            trace: bool = False) -> tuple[Any, ...]:
    """The arguments of _kiln.open() and _kiln.open_cache()."""
    if log_level not in _LEVELS:
        raise ValueError(f"log_level {log_level!r}: expected one of {', '.join(_LEVELS)}")
    if log is not None and not callable(log):
        raise TypeError(f"log: found {log!r}, expected a function of (level, component, message)")
    paths = [None if path is None else os.fsencode(path) for path in (config, directory, key_file)]
    return (*paths, read_only, log, _LEVELS[log_level], trace)


def open_cache(config: str | os.PathLike[str] | None = None, *, directory: str | os.PathLike[str] | None = None,
               key_file: str | os.PathLike[str] | None = None, read_only: bool = False,
               log: Callable[[int, str, str], None] | None = None, log_level: str = "default") -> Cache:
    """Opens a program cache for your own compiler."""
    return Cache(_kiln.open_cache(*options(config, directory, key_file, read_only, log, log_level)))


class Cache:
    """A program cache: what it holds, why programs were missed, and programs of your own compiler."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def stats(self) -> dict[str, int | float]:
        """Counters of this process, and the sizes in memory and on disk."""
        return _kiln.stats(self._handle)

    def explain(self, which: str) -> list[dict[str, Any]]:
        """Says why programs with this label or key were missed, newest first. Misses are recorded when a cache is closed."""
        import json
        misses: list[dict[str, Any]] = json.loads(_kiln.explain(self._handle, which))["misses"]
        return misses

    def get(self, fields: Mapping[str, object], build: Callable[[], Any], *, driver: str, device: str | None = None,
            api: str = "python", label: str = "program") -> tuple[bytes, str]:
        """Returns the bytes for the fields, and their tier: "memory", "disk" or "built".

        `build` returns the bytes, at least one. Threads and processes that share the folder call it once, on the thread that
        called get(). driver: the version of what compiles; device: what the bytes run on, by default this machine's processor.
        Both are part of the key. Only the cache of open_cache() has programs of your own, that of a runtime has none.
        """
        encoded = [(name, _argument(f"field {name!r}", value)) for name, value in fields.items()]
        return self._get(encoded, build, driver, device, api, label)

    def _get(self, fields: list[tuple[str, bytes]], build: Callable[[], Any], driver: str, device: str | None, api: str,
             label: str) -> tuple[bytes, str]:
        identity = (api, device if device is not None else _processor(), driver)
        data, tier = _kiln.get(self._handle, identity, label, fields, build)
        return data, TIERS[tier]

    def __repr__(self) -> str:
        if self._handle is None:
            return "<kiln.Cache, closed>"
        stats = self.stats()
        return (f"<kiln.Cache: {stats['programs_in_memory']} programs in memory, {stats['bytes_on_disk']} bytes on disk, "
                f"{stats['memory_hits']} + {stats['disk_hits']} hits, {stats['builds']} builds>")


def _processor() -> str:
    global _processor_text
    if not _processor_text:
        import platform
        features = ""
        try:
            with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
                features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
        except OSError:
            pass
        _processor_text = f"{platform.machine()} {features.partition(':')[2].strip()}".strip()
    return _processor_text


_processor_text = ""
_shared_caches: dict[str, Cache] = {}  # the one of the process, once it is open


def _default_cache() -> Cache:
    # Without a lock: a signal handler or __del__ may call this while its thread is in here. The first cache stays.
    cache = _shared_caches.get("default")
    return cache if cache is not None else _shared_caches.setdefault("default", open_cache())


# In a forked child the cache of the parent has no threads.
os.register_at_fork(after_in_child=_shared_caches.clear)


# --- keys


def _framed(kind: str, data: bytes) -> bytes:
    return b"%s %d " % (kind.encode(), len(data)) + data


def _encoded(value: object, other: Callable[[Any], bytes]) -> bytes:
    """The bytes of a value, with its exact type and its length, so that different values have different bytes.

    other: encodes what is not a plain value, or raises.
    """
    kind = type(value)
    if isinstance(value, (bytes, bytearray)) and kind in (bytes, bytearray):
        return _framed(kind.__name__, value)
    if isinstance(value, str) and kind is str:
        return _framed("str", value.encode("utf-8", "surrogatepass"))
    if value is None or isinstance(value, bool):
        return _framed(kind.__name__, repr(value).encode())
    if isinstance(value, int) and kind is int:
        return _framed("int", b"%x" % value)  # decimal digits are limited
    if isinstance(value, float) and kind is float:
        return _framed("float", value.hex().encode())
    if isinstance(value, (tuple, list)) and kind in (tuple, list):
        return _framed(kind.__name__, b"".join(_encoded(item, other) for item in value))
    if isinstance(value, (set, frozenset)) and kind in (set, frozenset):  # in an order that does not depend on hashes
        return _framed(kind.__name__, b"".join(sorted(_encoded(item, other) for item in value)))
    if isinstance(value, dict) and kind is dict:  # in its order, which a function can see
        return _framed("dict", b"".join(_encoded(key, other) + _encoded(item, other) for key, item in value.items()))
    if isinstance(value, memoryview) and "O" not in value.format:  # "O": addresses of objects
        return _framed("view", _encoded((value.format, value.shape, value.strides, value.readonly, value.tobytes()), other))
    parts = _parts(value)
    if parts is None:
        return other(value)
    return _framed("instance", _encoded((kind.__module__, kind.__qualname__, parts), other))


def _parts(value: Any) -> tuple[Any, ...] | None:
    """Plain values that say all of a number, a text, bytes or a named tuple of another type, but for its methods. None: of other
    values, and of those with attributes of their own."""
    import enum
    import numbers
    if isinstance(value, enum.Enum) and isinstance(value, int):
        return value.name, int(value)
    if hasattr(value, "__dict__") or any(getattr(base, "__slots__", ()) for base in type(value).__mro__):
        return None
    if isinstance(value, numbers.Integral):
        return (int(value.__index__()),)
    if isinstance(value, float):
        return (float.__float__(value),)
    if isinstance(value, str):
        return (str.__str__(value),)
    if isinstance(value, bytes):
        return (memoryview(value).tobytes(),)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value._fields, tuple(value)
    return None


def _argument(where: str, value: object) -> bytes:
    def refuse(found: object) -> bytes:
        raise TypeError(f"{where}: a value of type {type(found).__name__} cannot be part of a key: expected bytes, str, int, "
                        "float, bool, None, or a tuple, list, set or dict of these")
    try:
        return _encoded(value, refuse)
    except RecursionError:
        raise TypeError(f"{where}: a value that is nested too deep cannot be part of a key") from None


def _constant(value: Any) -> bytes:
    """A constant of a code object, or anything else whose repr() says all."""
    return _code(value)[0] if isinstance(value, CodeType) else _framed(type(value).__name__, repr(value).encode())


_codes: dict[int, tuple[CodeType, bytes, tuple[str, ...]]] = {}  # by id; they hold the code object, so that no other one has its id


def _code(code: CodeType) -> tuple[bytes, tuple[str, ...]]:
    """A digest of a code object with those inside it, and the names of the globals that they read."""
    if known := _codes.get(id(code)):
        return known[1:]
    import dis
    import hashlib
    inner = [_code(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    loads = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    names = {step.argval for step in dis.get_instructions(code) if step.opname in loads}
    parts = (code.co_code, getattr(code, "co_exceptiontable", b""), code.co_consts, code.co_names, code.co_varnames,
             code.co_freevars, code.co_cellvars, code.co_flags, code.co_argcount, code.co_posonlyargcount,
             code.co_kwonlyargcount)
    digest = _framed("code", hashlib.sha256(_encoded(parts, _constant)).digest())
    if len(_codes) >= 1000:
        _codes.clear()
    _codes[id(code)] = code, digest, tuple(sorted(names.union(*(of for _, of in inner))))
    return _codes[id(code)][1:]


class _Walk:
    """Encodes a function with all that it refers to: code, captured variables, globals, defaults, and functions among them."""

    def __init__(self, ignored: frozenset[str]) -> None:
        self._ignored = ignored
        self._met: dict[int, int] = {}  # functions by id, with their place in the walk

    def function(self, function: FunctionType, with_defaults: bool = True) -> bytes:
        if id(function) in self._met:
            return _framed("again", b"%d" % self._met[id(function)])
        self._met[id(function)] = len(self._met)
        digest, names = _code(function.__code__)
        parts = [digest]
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            parts.append(self._named(function, "captured variable", name, _cell(cell)))
        for name in names:
            value = function.__globals__.get(name, function.__builtins__.get(name, _undefined))
            parts.append(self._named(function, "global", name, value))
        if with_defaults:
            for name, value in _defaults(function):
                parts.append(self._named(function, "default of", name, value))
        return _framed("function", b"".join(parts))

    def _named(self, function: FunctionType, kind: str, name: str, value: Any) -> bytes:
        if name in self._ignored:
            return b""
        try:
            return _framed(kind + " " + name, _encoded(value, self._other))
        except _NotPlain as error:
            raise TypeError(
                f"{kind} {name!r} of {function.__qualname__}(): a value of type {error.args[0]} cannot be part of a key. Pass "
                "it as an argument, or put what changes the bytes in version= and the name in ignore=") from None

    def _other(self, value: Any) -> bytes:
        if isinstance(value, FunctionType):
            cached_one = getattr(value, "__kiln_cached__", None)
            if cached_one is not None:
                function, version, device = cached_one
                return _framed("cached", self.function(function) + _encoded((version, device), _constant))
            if not _is_standard(value.__globals__.get("__name__")):
                return self.function(value)
        elif isinstance(value, ModuleType):
            return _framed("module", f"{value.__name__} {getattr(value, '__version__', '')}".encode())
        elif isinstance(value, BuiltinFunctionType):
            if value.__self__ is not None and not isinstance(value.__self__, ModuleType):
                raise _NotPlain(type(value).__name__)
        elif value is _undefined or value is Ellipsis or isinstance(value, complex):
            return _constant(value)
        elif not isinstance(value, type) or not _is_standard(value.__module__):
            raise _NotPlain(type(value).__name__ if not isinstance(value, type) else f"class {value.__qualname__}")
        return _framed("named", f"{value.__module__}.{value.__qualname__}".encode())


_SUSPENDS = 0x20 | 0x80 | 0x100 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR


class _NotPlain(Exception):
    pass


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


_undefined = _Undefined()


def _is_standard(module: Any) -> bool:
    """Whether the module is of the Python installation, whose version is part of the key."""
    return str(module).partition(".")[0] in sys.stdlib_module_names


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _undefined


def _defaults(function: FunctionType) -> Iterable[tuple[str, Any]]:
    code, values = function.__code__, function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(values):code.co_argcount], values)
    yield from (function.__kwdefaults__ or {}).items()


if TYPE_CHECKING:
    @overload
    def cached(function: Callable[_P, Any], *, version: str, device: str | None = None, cache: Cache | None = None,
               label: str | None = None, ignore: Sequence[str] = ()) -> CachedFunction[_P]: ...

    @overload
    def cached(function: None = None, *, version: str, device: str | None = None, cache: Cache | None = None,
               label: str | None = None, ignore: Sequence[str] = ()) -> Callable[[Callable[_P, Any]], CachedFunction[_P]]: ...


def cached(function: Callable[..., Any] | None = None, *, version: str, device: str | None = None, cache: Cache | None = None,
           label: str | None = None, ignore: Sequence[str] = ()) -> Any:
    """Decorates a function that compiles: its bytes are stored, and found again by any process.

    The key holds the arguments, the code of the function and of the functions that it calls, the captured variables and globals
    that they read, `version` and the device. Modules and the standard library are in it by name. version: of the compiler or
    driver; it is required, since what another version compiled may not load. ignore: names of arguments, captured variables and
    globals that do not change the bytes, or whose effect `version` names.

        @kiln.cached(version=driver.version)
        def build(source):
            return prg.binary
    """
    if not isinstance(version, str) or not version:
        raise ValueError("version: expected the version of the compiler or driver, a text that is not empty")
    if cache is not None and not isinstance(cache, Cache):
        raise TypeError(f"cache: found {cache!r}, expected a cache of kiln.open_cache()")
    ignored = frozenset((ignore,) if isinstance(ignore, str) else ignore)

    def decorate(compiles: Callable[..., Any]) -> Callable[..., bytes]:
        import functools
        import inspect
        if not isinstance(compiles, FunctionType):
            raise TypeError(f"cached: found {compiles!r}, expected a function. Write one that calls it")
        if compiles.__code__.co_flags & _SUSPENDS:
            raise TypeError(f"cached: found {compiles!r}, a coroutine or generator, expected a function that returns bytes")
        inner: FunctionType = compiles
        signature = inspect.signature(compiles)
        text = f"{compiles.__module__}.{compiles.__qualname__}"
        places = {name: place for place, name in enumerate(signature.parameters)}

        def fields_of(given: Mapping[str, Any]) -> Iterable[tuple[str, bytes]]:
            yield "function", _argument("function", text)
            yield "python", _argument("python", sys.implementation.cache_tag)
            yield "code", _Walk(ignored).function(inner, with_defaults=False)
            for name, value in given.items():
                if name not in ignored:  # a field's name has ASCII letters, at most 128
                    shown = name if name.isascii() and len(name) < 100 else places[name]
                    yield f"argument.{shown}", _argument(f"argument {name!r}", value)

        @functools.wraps(compiles)
        def call(*arguments: Any, **named: Any) -> bytes:
            bound = signature.bind(*arguments, **named)
            bound.apply_defaults()
            used = cache if cache is not None else _default_cache()
            data, tier = used._get(list(fields_of(bound.arguments)), lambda: compiles(*arguments, **named), version, device,
                                   "python", label if label is not None else text)
            call.tier = tier  # type: ignore[attr-defined]
            return data

        call.tier = ""  # type: ignore[attr-defined]
        call.__kiln_cached__ = compiles, version, device  # type: ignore[attr-defined]
        return call

    return decorate if function is None else decorate(function)
