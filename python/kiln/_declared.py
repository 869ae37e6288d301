"""The access that the text of a kernel declares: readonly and writeonly of GLSL, const of OpenCL C."""
from __future__ import annotations

import os
import re

from ._description import READ, READ_WRITE, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COMMENT = re.compile(r"//(?:\\\r?\n|[^\n])*|/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">\n]+)[\">]", re.MULTILINE)
_KERNEL = re.compile(r"\b(?:__)?kernel\b[^;{}]*?\bvoid\s+(\w+)\s*\(([^)]*)\)")


def read_text(path: str, include: Sequence[str], seen: set[str] | None = None) -> str:
    """The text of a file without comments, with the files that it includes. A missing file is left to the compiler."""
    known = set() if seen is None else seen
    known.add(os.path.realpath(path))
    with open(path, encoding="utf-8", errors="replace") as file:
        text = _COMMENT.sub(" ", file.read())

    def included(found: re.Match[str]) -> str:
        for folder in (os.path.dirname(path), *include):
            name = os.path.join(folder, found[1])
            if os.path.isfile(name):
                return "" if os.path.realpath(name) in known else read_text(name, include, known)
        return ""

    return _INCLUDE.sub(included, text)


class Declared:
    """What a text declares, by name and by place: the binding of a GLSL block, or the number of an OpenCL C argument."""

    def __init__(self, text: str, is_opencl: bool, entry: str | None) -> None:
        plain = _DIRECTIVE.sub(" ", _COMMENT.sub(" ", text))
        self._accesses: dict[str | int, str] = {}
        for key, access in _arguments(plain, entry) if is_opencl else _blocks_and_images(plain):
            # Declarations that differ are those of different branches of #if: the kernel may do either.
            known = self._accesses.setdefault(key, access)
            self._accesses[key] = access if known == access else READ_WRITE

    def access(self, key: str | int) -> str:
        """key: the name, which may have an index as in "Blocks[2]", or the place."""
        return self._accesses.get(key.partition("[")[0] if isinstance(key, str) else key, READ_WRITE)


def _blocks_and_images(text: str) -> Iterator[tuple[str | int, str]]:
    for head, end in re.findall(r"([^;{}]*)([;{])", text):
        words = re.findall(r"\w+", head)
        access = READ if "readonly" in words else WRITE if "writeonly" in words else READ_WRITE
        if end == "{" and (block := re.search(r"\bbuffer\s+(\w+)\s*$", head)):
            yield block[1], access
            if binding := re.search(r"\bbinding\s*=\s*(\d+)", head):
                yield int(binding[1]), access
        elif end == ";" and (images := re.search(r"\b[iu]?image\w+\s+([\w\s,\[\]]+)$", head)) and "uniform" in words:
            for name in re.findall(r"(\w+)\s*(?:\[[^\]]*\])*\s*(?:,|$)", images[1]):
                yield name, access


def _arguments(text: str, entry: str | None) -> Iterator[tuple[str | int, str]]:
    for name, arguments in _KERNEL.findall(text):
        if entry is None or name == entry:
            for place, argument in enumerate(arguments.split(",")):
                pointed, pointer, _ = argument.rpartition("*")
                is_read = not pointer or re.search(r"\b(?:const|(?:__)?constant)\b", pointed)
                access = READ if is_read else READ_WRITE
                yield place, access
                if words := re.findall(r"\w+", argument):
                    yield words[-1], access
