#!/usr/bin/env python3
"""Hits of a shared cache beside ccache and sccache: the same Redis, the same nginx, objects of about the same size.

usage: remote_peers.py KILN_TEST_REMOTE [OBJECTS]      KILN_TEST_REMOTE: the test binary; 60 objects

Needs redis-server, nginx and gcc; ccache and sccache are optional, and each that is missing is named. Every compiler cache
starts with an empty local cache and fetches each object once. Its time is that of the whole compiler command, and that
minus the time of a command that only starts (`--version`), which is its work for one hit. Kiln's time is that of
get_or_build() in a process: asked, verified, stored and loaded.
"""
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

OBJECT_BYTES = 14_000  # of random data; with its headers an object file has about 16 KiB


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"port {port}: no server within 10 s")


def start_redis(folder, port):
    return subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder,
                             "--logfile", f"{folder}/redis.log"], stdout=subprocess.DEVNULL)


def start_nginx(folder, port):
    (pathlib.Path(folder) / "root/cc").mkdir(parents=True)
    temp = "".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    pathlib.Path(f"{folder}/nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{ access_log off; {temp}\nserver {{ listen 127.0.0.1:{port}; root {folder}/root;\n"
        "location / { dav_methods PUT DELETE; create_full_put_path on; client_max_body_size 64m; } } }\n")
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    return subprocess.Popen([nginx, "-c", f"{folder}/nginx.conf", "-p", folder, "-e", f"{folder}/error.log"])


def write_sources(folder, count):
    numbers = random.Random(27)
    sources = []
    for i in range(count):
        data = ",".join(str(numbers.randrange(256)) for _ in range(OBJECT_BYTES))
        path = pathlib.Path(folder) / f"o{i}.c"
        path.write_text(f"const unsigned char data_{i}[] = {{{data}}};\n")
        sources.append(path)
    return sources


def ms_of(words, environment):
    start = time.monotonic_ns()
    done = subprocess.run(words, env=environment, capture_output=True)
    took = (time.monotonic_ns() - start) / 1e6
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.decode()}")
    return took


def report(who, ms, start_ms):
    ms = sorted(ms)
    p50, p99 = statistics.median(ms), ms[min(len(ms) - 1, len(ms) * 99 // 100)]
    print(f"{who:<34} command {p50:7.2f} / {p99:7.2f} ms   minus start {p50 - start_ms:7.2f} / {p99 - start_ms:7.2f} ms")


def measure(tool, name, environment, sources, folder, empty_local, counts):
    words = [[tool, "gcc", "-c", str(source), "-o", f"{folder}/out.o"] for source in sources]
    for each in words:
        ms_of(each, environment)
    empty_local()
    before = counts()
    hits = [ms_of(each, environment) for each in words]
    fetched = counts() - before
    if fetched < len(words):
        sys.exit(f"{name}: {fetched} of {len(words)} objects came from the server")
    report(name, hits, statistics.median(ms_of([tool, "--version"], environment) for _ in range(20)))


def ccache_hits(environment):
    text = subprocess.run(["ccache", "--print-stats"], env=environment, capture_output=True, text=True).stdout
    found = dict(line.split("\t")[:2] for line in text.splitlines() if "\t" in line)
    return int(found.get("remote_storage_hit", 0))


def sccache_hits(environment):
    text = subprocess.run(["sccache", "--show-stats"], env=environment, capture_output=True, text=True).stdout
    return sum(int(line.split()[-1]) for line in text.splitlines() if line.startswith("Cache hits  "))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) == 3 else 60
    servers = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            redis_port, nginx_port = free_port(), free_port()
            servers = [start_redis(folder, redis_port), start_nginx(folder, nginx_port)]
            for port in (redis_port, nginx_port):
                wait_for(port)
            sources = write_sources(folder, count)
            print("p50 / p99")
            base = {**os.environ, "HOME": folder}
            urls = {"Redis": f"redis://127.0.0.1:{redis_port}", "nginx": f"http://127.0.0.1:{nginx_port}/cc"}
            if shutil.which("ccache"):
                for server, url in urls.items():
                    local = f"{folder}/ccache-{server}"
                    # 4.7 of Debian says secondary storage; the newer name is accepted by later versions.
                    environment = {**base, "CCACHE_DIR": local, "CCACHE_SECONDARY_STORAGE": url,
                                   "CCACHE_REMOTE_STORAGE": url, "CCACHE_NOHASHDIR": "1"}
                    measure("ccache", f"ccache, {server}", environment, sources, folder,
                            lambda local=local: shutil.rmtree(local), lambda environment=environment: ccache_hits(environment))
            else:
                print("ccache is not installed")
            if shutil.which("sccache"):
                environment = {**base, "SCCACHE_REDIS": urls["Redis"], "SCCACHE_SERVER_PORT": str(free_port())}
                started = subprocess.run(["sccache", "--start-server"], env=environment, capture_output=True, text=True)
                if started.returncode == 0:
                    measure("sccache", "sccache, Redis", environment, sources, folder, lambda: None,
                            lambda: sccache_hits(environment))
                    subprocess.run(["sccache", "--stop-server"], env=environment, capture_output=True)
                else:  # Debian 12 builds it without any server
                    print(f"sccache, Redis: {started.stderr.strip().splitlines()[-1]}")
            else:
                print("sccache is not installed")
            done = subprocess.run([sys.argv[1], "remote figures: a hit*"], env={**base, "KILN_TEST_LONG": "1"},
                                  capture_output=True, text=True)
            print("Kiln, in a process:")
            print("\n".join(line for line in done.stdout.splitlines() if "hit of" in line))
        finally:
            for server in servers:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
