"""Sharpens a photograph: photo_filter.py [INPUT.png OUTPUT.png]. Without files: a test picture. Files need python3-pil."""
import sys

import kiln
import numpy as np

SHARPEN = """#version 430 core
layout(local_size_x = 16, local_size_y = 16) in;
layout(std430, binding = 0) readonly buffer Photo { float photo[]; };
layout(std430, binding = 1) writeonly buffer Sharp { float sharp[]; };
uniform float amount;
float at(ivec2 p, int channel) {
  ivec2 q = clamp(p, ivec2(0), ivec2(WIDTH - 1, HEIGHT - 1));
  return photo[(q.y * WIDTH + q.x) * 3 + channel];
}
void main() {
  ivec2 p = ivec2(gl_GlobalInvocationID.xy);
  if (p.x >= WIDTH || p.y >= HEIGHT) return;
  for (int c = 0; c < 3; ++c) {
    float around = (at(p - ivec2(1, 0), c) + at(p + ivec2(1, 0), c) + at(p - ivec2(0, 1), c) + at(p + ivec2(0, 1), c)) / 4.0;
    float here = at(p, c);
    sharp[(p.y * WIDTH + p.x) * 3 + c] = clamp(here + amount * (here - around), 0.0, 1.0);
  }
}
"""


def main() -> None:
    if len(sys.argv) == 3:
        from PIL import Image
        photo = np.asarray(Image.open(sys.argv[1]).convert("RGB"), "float32") / 255
    else:
        y, x = np.mgrid[0:240, 0:320]
        photo = np.stack([(x // 16 + y // 16) % 2, x / 320, y / 240], axis=-1).astype("float32")
    height, width, _ = photo.shape
    rt = kiln.open()
    sharp = rt.run("sharpen.comp", text=SHARPEN, grid=(-(-width // 16), -(-height // 16)),
                   buffers={"Photo": np.ascontiguousarray(photo), "Sharp": kiln.empty(photo.shape)},
                   constants={"WIDTH": width, "HEIGHT": height}, uniforms={"amount": 1.0})
    around = np.pad(photo, ((1, 1), (1, 1), (0, 0)), "edge")
    around = (around[1:-1, :-2] + around[1:-1, 2:] + around[:-2, 1:-1] + around[2:, 1:-1]) / 4
    assert np.allclose(sharp, np.clip(photo + (photo - around), 0, 1), atol=1e-5)
    if len(sys.argv) == 3:
        from PIL import Image
        Image.fromarray((sharp * 255 + 0.5).astype("uint8")).save(sys.argv[2])
    print(f"{width} x {height} pixels sharpened: {rt.report}")


if __name__ == "__main__":
    main()
