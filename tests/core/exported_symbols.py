"""Checks that a library exports the declarations of its public headers and nothing else, and prints their number.

python3 exported_symbols.py LIBRARY HEADER_FOLDER...: the class or function of each symbol must be a word of a header.
"""
import pathlib
import re
import subprocess
import sys


def is_declared(symbol: str, words: set[str]) -> bool:
    path = symbol.replace("[abi:cxx11]", "").split("(")[0].split("<")[0]  # without parameters
    names = path.split("::")
    return len(names) > 1 and names[0].split(" ")[-1] == "kiln" and names[1] in words


def main(library: str, folders: list[str]) -> int:
    headers = [header for folder in folders for header in pathlib.Path(folder).rglob("*.hpp")]
    words = set(re.findall(r"\w+", "\n".join(header.read_text() for header in headers)))
    listing = subprocess.run(["nm", "-DC", "--defined-only", "--format=posix", library], check=True, capture_output=True,
                             text=True).stdout.splitlines()
    symbols = [re.sub(r" [A-Za-z] [0-9a-f]+( [0-9a-f]+)?$", "", line) for line in listing]
    strange = [symbol for symbol in symbols if not is_declared(symbol, words)]
    print(f"{pathlib.Path(library).name}: {len(symbols)} exported symbols, {len(strange)} of no public header")
    for symbol in strange:
        print(f"  {symbol}")
    return 1 if strange or not symbols else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
