"""Tunes the tile of a matrix product, and compares the result with numpy's."""
from typing import Any

import kiln
import numpy as np

MATMUL = """#version 430 core
layout(local_size_x = TILE, local_size_y = TILE) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) readonly buffer B { float b[]; };
layout(std430, binding = 2) writeonly buffer C { float c[]; };
void main() {
  uint row = gl_GlobalInvocationID.y, column = gl_GlobalInvocationID.x;
  float sum = 0.0;
  for (uint k = 0u; k < N; ++k) sum += a[row * N + k] * b[k * N + column];
  c[row * N + column] = sum;
}
"""


def main() -> None:
    n = 128
    random = np.random.default_rng(1)
    a, b = random.random((n, n), "float32"), random.random((n, n), "float32")
    c = kiln.empty((n, n))
    rt = kiln.open()
    wanted: dict[str, Any] = {"text": MATMUL, "grid": (f"{n} / TILE", f"{n} / TILE"), "buffers": {"A": a, "B": b, "C": c},
                              "constants": {"N": f"{n}u"}, "tune": {"TILE": [8, 16, 32]}}
    best = rt.tune("matmul.comp", budget=5, progress=True, **wanted)
    rt.run("matmul.comp", device=best["device"], **wanted)
    assert np.allclose(c, a @ b, rtol=1e-4)
    print(f"best of {best['space']}: {best['variant']}, {best['ms']:.3f} ms; {rt.report}")


if __name__ == "__main__":
    main()
