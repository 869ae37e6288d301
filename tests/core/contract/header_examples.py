"""Writes a source in which the usage example of each public header is the body of a function, so that it is compiled.

python3 header_examples.py OUTPUT HEADER...: an example is the lines of the header's first comment that begin with three
spaces. header_examples.hpp declares what the examples use. A header without an example is an error.
"""
import pathlib
import sys

# The result of an example's function; None: the example stands at namespace scope.
RESULTS = {
    "adopted_gl": "bool",
    "driver_notes": "std::vector<std::byte>",
    "measurement": "void",
    "plugin": None,
    "probe": None,
    "trace": None,
}


def example(header: pathlib.Path) -> list[str]:
    comment = header.read_text().split("#pragma once")[0]
    return [line[3:] for line in comment.splitlines() if line.startswith("//   ")]


def main(output: str, headers: list[str]) -> None:
    text = ""
    for path in map(pathlib.Path, sorted(headers)):
        lines = example(path)
        if not lines:
            sys.exit(f"{path}: expected a usage example in the first comment, indented by three spaces, found none")
        text += f"#include <kiln/{path.name}>\n"
    text += '\n#include "core/contract/header_examples.hpp"\n'
    for path in map(pathlib.Path, sorted(headers)):
        name = path.stem
        result = RESULTS.get(name, "kiln::Status")
        body = "\n".join(f'#line {i} "example of kiln/{path.name}"\n{line}' if i == 1 else line
                         for i, line in enumerate(example(path), 1))
        text += f"\nnamespace example_of_{name} {{\n"
        if result is None:
            text += body + "\n"
        else:
            end = "" if result == "void" else "return {};\n"
            text += f"{result} example() {{\n{body}\n{end}}}\n"
        text += "}\n"
    pathlib.Path(output).write_text(text)


main(sys.argv[1], sys.argv[2:])
