#!/usr/bin/env python3
"""Writes the man pages of `kiln` from its own help: kiln.1.gz and a page a verb, as kiln-cache-stats.1.gz.

usage: man_pages.py KILN FOLDER VERSION

The help is the only source: what it says, the pages say. Nothing of the day is in them, so that two builds agree.
"""
import gzip
import pathlib
import re
import subprocess
import sys


def help_of(kiln, *verb):
    return subprocess.run([kiln, *verb, "--help"], check=True, capture_output=True, encoding="utf-8").stdout


def roff(text):
    """A line as roff: nothing in it is a request, and a hyphen is one that can be searched for."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def entries(lines):
    """The two columns of an indented list: (term, explanation), with what a following line goes on with."""
    found = []
    for line in lines:
        match = re.match(r"  (\S.*?)  +(\S.*)$", line)
        if match:
            found.append([match[1], match[2]])
        elif line.strip() and found:
            found[-1][1] += " " + line.strip()
    return found


def sections(text):
    """The help by its headings (`Options:` alone on a line), in order; what stands before is under ''."""
    parts, name = [("", [])], ""
    for line in text.splitlines():
        heading = re.match(r"([A-Z][A-Za-z ]*):$", line)
        if heading:
            parts.append((heading[1], []))
        else:
            parts[-1][1].append(line)
    return parts


def paragraphs(lines):
    """Text that is filled, and examples (lines that are indented by four) as they stand."""
    out, fresh, example = [], True, False
    for line in lines:
        if example and not line.startswith("    "):
            out += [".fi", ".RE"]
            example = False
        if not line.strip():
            fresh = True
            continue
        if fresh and out:
            out.append(".PP")
        fresh = False
        if line.startswith("    ") and not example:
            out += [".RS 4", ".nf"]
            example = True
        out.append(roff(line.strip()))
    return out + [".fi", ".RE"] if example else out


def page(title, version, summary, usage, body, lists):
    out = [f'.TH "{title.upper()}" 1 "" "kiln {version}" "Kiln"', ".SH NAME", f"{roff(title)} \\- {roff(summary)}", ".SH SYNOPSIS",
           f".B {roff(usage)}", *body]
    for heading, found in lists:
        out.append(f'.SH "{heading.upper()}"')
        for term, explanation in found:
            out += [".TP", f".B {roff(term)}", roff(explanation)]
    return "\n".join(out) + "\n"


def taken_apart(text):
    """Usage line, description, exit status, environment, and the lists of a help text."""
    usage, description, status, environment, lists = "", [], [], [], []
    for heading, lines in sections(text):
        rest = []
        for line in lines:
            if line.startswith("Usage: "):
                usage = line[len("Usage: "):]
            elif line.startswith("Exit status: "):
                status.append(line[len("Exit status: "):])
            elif line.startswith(("Environment: ", "Order: ")):
                environment.append(line)
            elif heading and line.startswith("  "):
                rest.append(line)
            elif not heading:
                description.append(line)
        if heading:
            lists.append((heading, entries(rest)))
    return usage, description, status, environment, lists


def write_page(folder, title, version, text, see_also):
    usage, description, status, environment, lists = taken_apart(text)
    first = next(line for line in description if line.strip())
    summary = re.split(r" — |: ", first, maxsplit=1)[1]
    body = [".SH DESCRIPTION", *paragraphs(description[description.index(first) + 1:])] if any(
        line.strip() for line in description[description.index(first) + 1:]) else []
    out = page(title, version, summary, usage, body, lists)
    if status:
        out += ".SH EXIT STATUS\n" + "\n.br\n".join(roff(part) for line in status for part in line.split(" · ")) + "\n"
    if environment:
        out += ".SH ENVIRONMENT\n" + "\n.PP\n".join(roff(re.sub("^Environment: ", "", line)) for line in environment) + "\n"
    out += ".SH SEE ALSO\n" + ",\n".join(f".BR {roff(name)} (1)" for name in see_also).replace(",\n", " ,\n") + "\n"
    (folder / f"{title}.1.gz").write_bytes(gzip.compress(out.encode("utf-8"), 9, mtime=0))


def main(kiln, folder, version):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.1*"):  # of a verb that there is no more
        old.unlink()
    whole = help_of(kiln)
    verbs = []
    for term, _ in next(entries(lines) for heading, lines in sections(whole) if heading == "Verbs"):
        verbs.append(re.sub(r" [^a-z].*", "", term))
    pages = {verb: "kiln-" + verb.replace(" ", "-") for verb in verbs}
    write_page(folder, "kiln", version, whole, list(pages.values()))
    for verb, title in pages.items():
        siblings = [pages[other] for other in verbs if other != verb and other.split()[0] == verb.split()[0]]
        write_page(folder, title, version, help_of(kiln, *verb.split()), ["kiln", *siblings])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
