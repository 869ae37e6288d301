"""A PyOpenCL program that is compiled once, whatever the driver caches itself."""
import sys

import kiln
import numpy as np

try:
    import pyopencl as cl
    context = cl.Context(cl.get_platforms()[0].get_devices()[:1])
except (ImportError, IndexError, RuntimeError) as error:
    print(f"no PyOpenCL (python3-pyopencl) or no OpenCL device (pocl-opencl-icd): {error}", file=sys.stderr)
    sys.exit(77)
except cl.Error as error:
    print(f"no OpenCL device (pocl-opencl-icd): {error}", file=sys.stderr)
    sys.exit(77)

device = context.devices[0]
SOURCE = """
kernel void saxpy(float a, global const float* x, global float* y) {
  size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}
"""


# `version` and `device` say what the context is for.
@kiln.cached(version=f"{device.platform.version} {device.driver_version}", device=f"{device.vendor} {device.name}",
             ignore=["context"])
def binary(source: str, options: str = "") -> bytes:
    program = cl.Program(context, source).build(options.split())
    return bytes(program.get_info(cl.program_info.BINARIES)[0])


def main() -> None:
    program = cl.Program(context, [device], [binary(SOURCE)]).build()
    x, y = np.arange(1024, dtype="float32"), np.ones(1024, "float32")
    queue = cl.CommandQueue(context)
    copy = cl.mem_flags.COPY_HOST_PTR
    on_x, on_y = cl.Buffer(context, copy, hostbuf=x), cl.Buffer(context, copy, hostbuf=y)
    program.saxpy(queue, x.shape, None, np.float32(2.5), on_x, on_y)
    cl.enqueue_copy(queue, y, on_y)
    assert np.array_equal(y, 2.5 * x + 1)
    print(f"program from {binary.tier}, all results right")


if __name__ == "__main__":
    main()
