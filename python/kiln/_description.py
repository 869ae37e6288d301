"""Values, arrays and TOML of jobs and pipelines. Public: read(), write() and read_write()."""
from __future__ import annotations

from . import _kiln
from ._kiln import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ._declared import Declared

READ, WRITE, READ_WRITE = "input", "output", "inout"  # as TOML names them


def as_integer(what: str, value: Any) -> int:
    """An int for an integer of any library."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(f"{what}: found {value!r}, expected an integer") from None


def as_text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what}: found {value!r:.60}, expected a text")
    return value


def as_sequence(what: str, value: Any, of: str) -> list[Any]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError(f"{what}: found {value!r}, expected a sequence of {of}")
    return list(value)


def as_callable(what: str, value: Any) -> Any:
    if not callable(value):
        raise TypeError(f"{what}: found {value!r}, expected a function, True or None")
    return value


def has_index(value: Any) -> bool:
    try:
        value.__index__()
        return True
    except (AttributeError, TypeError):
        return False


def as_integers(what: str, value: Any) -> tuple[int, ...]:
    """The integers of a sequence, or of one integer."""
    if has_index(value):
        return (as_integer(what, value),)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError(f"{what}: found {value!r}, expected integers")
    return tuple(as_integer(what, item) for item in value)


def as_pair(what: str, value: Any) -> tuple[int, int]:
    numbers = as_integers(what, value)
    if len(numbers) == 1 and has_index(value):
        numbers *= 2
    if len(numbers) != 2:
        raise ValueError(f"{what}: found {value!r}, expected an integer, or two for height and width")
    return numbers[0], numbers[1]


def as_grid(value: Any) -> list[int | str]:
    """The counts of workgroups, or expressions for them."""
    if isinstance(value, str) or has_index(value):
        value = (value,)
    if isinstance(value, bytes) or hasattr(value, "items") or not hasattr(value, "__iter__"):
        raise TypeError(f"grid: found {value!r}, expected an integer, a text, or up to three of them")
    return [item if isinstance(item, str) else as_integer("grid", item) for item in value]


def as_milliseconds(what: str, seconds: float) -> int:
    if isinstance(seconds, (str, bytes)) or not hasattr(seconds, "__float__"):
        raise TypeError(f"{what}: found {seconds!r}, expected a number of seconds")
    if not seconds >= 0 or seconds == float("inf"):
        raise ValueError(f"{what}: found {seconds!r}, expected a number of seconds")
    return max(1, round(seconds * 1000))


def define_text(what: str, value: object) -> str:
    """What a #define says."""
    value = plain(value)
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, str):
        return value
    if has_index(value):
        return str(as_integer(what, value))
    if isinstance(value, float) and value - value == 0:
        return float.__repr__(value)
    raise (ValueError if isinstance(value, float) else TypeError)(
        f"{what}: found {value!r}, expected a finite number, a boolean or a text of one line without backslashes")


def plain(value: Any) -> Any:
    """Numbers and lists for those of numpy."""
    return value.tolist() if hasattr(value, "tolist") else value


def toml(value: Any) -> str:
    """A value in TOML. Tables are written inline."""
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if has_index(value):
        return str(int(value.__index__()))
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        import json
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    if hasattr(value, "items"):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"a value of type {type(value).__name__}: expected a number, text, list or dict")


class Bound:
    """An array with the access that a kernel has to it."""
    __slots__ = ("array", "access")

    def __init__(self, array: Any, access: str) -> None:
        self.array, self.access = array, access


def read(array: Any) -> Any:
    """The kernel only reads the array."""
    return Bound(array, READ)


def write(array: Any) -> Any:
    """The kernel overwrites the array; its contents are not sent to the device."""
    return Bound(array, WRITE)


def read_write(array: Any) -> Any:
    """The kernel reads and writes the array."""
    return Bound(array, READ_WRITE)


def about(what: str, error: Exception) -> Exception:
    return (TypeError if isinstance(error, TypeError) else ValueError)(f"{what}: {error}")


def is_array(value: object) -> bool:
    return not isinstance(value, (str, bytes)) and (hasattr(value, "__dlpack__") or has_buffer(value))


def has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
        return True
    except (TypeError, BufferError, ValueError):  # numpy has the last one for types that no buffer has
        return False


def buffer_of(what: str, array: Any) -> Any:
    """Something with the buffer protocol for an array, without a copy."""
    if has_buffer(array):
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
        raise about(what, error) from error


def check_memory(what: str, tensors: Mapping[str, tuple[Any, bool]]) -> None:
    """Checks, by name, buffers and whether they are written: all have an order and type of Kiln's; those that are written are
    writable, and share no memory with another one."""
    spans = []
    for name, (buffer, writes) in tensors.items():
        try:
            address, size, read_only = _kiln.span(buffer)
        except (BufferError, TypeError, ValueError) as error:
            raise about(f"{what}: {name!r}", error) from None
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


class Description:
    """A job or pipeline as its TOML has it, and its arrays by the names in "memory:NAME"."""

    def __init__(self, kind: str, **values: Any) -> None:
        self.kind = kind
        self.values: dict[str, Any] = values
        self.arrays: dict[str, Any] = {}

    def source(self, name: str, value: Any) -> Any:
        """What stands in the TOML for an array; any other value stands for itself."""
        if not is_array(value):
            return value
        self.arrays[name] = value
        return "memory:" + name

    def entry(self, name: str, given: Any, access: str) -> dict[str, Any]:
        """An element of `bindings` and its like, from an array or from a dict as in TOML."""
        if isinstance(given, Bound):
            given, access = given.array, given.access
        if hasattr(given, "items"):
            return {key: self.source(name if key in (READ, WRITE, READ_WRITE) else f"{name}.{key}", value)
                    for key, value in given.items()}
        if not is_array(given):
            raise TypeError(f"{name}: {type(given).__name__}, expected an array with the buffer protocol or DLPack, or a dict")
        return {access: self.source(name, given)}

    def text(self) -> str:
        return f"[[{self.kind}]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in self.values.items())

    def give(self, handle: Any) -> list[tuple[str, Any]]:
        """Gives the arrays to the job, and returns those that it writes."""
        import json
        what = f"{self.kind} {self.values['name']!r}"
        given = {tensor["name"]: (buffer_of(f"{what}: {tensor['name']!r}", self.arrays[tensor["name"]]), tensor["access"] != "read")
                 for tensor in json.loads(_kiln.tensors(handle))["tensors"] if tensor["name"] in self.arrays}
        check_memory(what, given)
        for name, (buffer, writes) in given.items():
            _kiln.tensor(handle, name, writes, buffer)
        return [(name, self.arrays[name]) for name, (_, writes) in given.items() if writes]


def steps_of(steps: Sequence[Any], description: Description) -> list[dict[str, Any]]:
    """The steps as TOML has them. Their arrays are weights and tables that only one step reads."""
    made = []
    for at, given in enumerate(steps):
        step = dict(given)
        name = str(step.setdefault("name", f"step{len(description.values.get('step', ())) + at + 1}"))
        if "step" in step:
            step["step"] = steps_of(step["step"], description)
        for key in ("weights", "bias"):
            if key in step:
                step[key] = description.source(f"{name}.{key}", step[key])
        if "bindings" in step:
            step["bindings"] = [description.entry(f"{name}.{place}", binding, READ)
                                for place, binding in enumerate(step["bindings"])]
        for key in ("images", "samplers"):
            if key in step:
                step[key] = {image: description.entry(f"{name}.{image}", entry, READ) for image, entry in step[key].items()}
        made.append(step)
    return made


def is_tensor_name(name: str) -> bool:
    """Whether it is no source: a file, or "random:SEED" and its like."""
    return ":" not in name and "/" not in name and not name.lower().endswith((".npy", ".png", ".bin", ".raw"))


def flow_of(steps: Sequence[dict[str, Any]], declared: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """The tensors that are read before a step writes them, those that no later step reads, and whether names are swapped."""
    first_reads: list[str] = []
    written: dict[str, bool] = {}  # with whether it was read since
    swaps = False

    def read(name: Any) -> None:
        if not isinstance(name, str):
            return
        if name in written:
            written[name] = True
        elif is_tensor_name(name) and name not in first_reads and name not in declared:
            first_reads.append(name)

    def walk(inner: Sequence[dict[str, Any]]) -> None:
        nonlocal swaps
        for step in inner:
            swaps = swaps or "swap" in step
            walk(step.get("step", ()))
            entries = [*step.get("bindings", ()), *step.get("images", {}).values(), *step.get("samplers", {}).values()]
            if "input" in step or "output" in step:
                entries.append({key: step[key] for key in (READ, WRITE) if key in step})
            if "addend" in step:
                entries.append({READ: step["addend"]})
            for entry in entries:
                read(entry.get(READ, entry.get(READ_WRITE)))
            for entry in entries:
                name = entry.get(WRITE, entry.get(READ_WRITE))
                if isinstance(name, str):
                    written[name] = False

    walk(steps)
    return first_reads, [name for name, was_read in written.items() if not was_read], swaps


def texts_in(value: Any) -> Iterator[str]:
    """All texts in dicts and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def declarations_of(source: str, text: str | None, include: Sequence[str], entry: str | None) -> Declared | None:
    """What the text of a kernel declares. None: it is SPIR-V."""
    if source.endswith(".spv"):
        return None
    from ._declared import Declared, read_text
    return Declared(read_text(source, include) if text is None else text, source.endswith(".cl"), entry)
