#include "witnesses/expectations/expectation.hpp"

#include <algorithm>

namespace kiln::witness {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;

void collatz(const Given&, Expected& expected) {
  expected.add("r", rows<u32>(512, 2, [](std::size_t i, u32* r) {
                 r[1] = static_cast<u32>(i + 1);
                 for (std::size_t v = i + 1; v != 1; ++r[0]) {
                   v = v % 2 == 0 ? v / 2 : 3 * v + 1;
                   r[1] = std::max(r[1], static_cast<u32>(v));
                 }
               }));
}

u32 ackermann(u32 m, u32 n, u32& steps) {
  ++steps;
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1, steps);
  const u32 inner = ackermann(m, n - 1, steps);
  return ackermann(m - 1, inner, steps);
}

void stack_machine(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a"), b = given.read<u32>("b");
  expected.add("r", rows<u32>(a.size(), 1, [&](std::size_t i, u32* r) {
                 u32 steps = 0;
                 const u32 n = ackermann(std::min(a[i], 2u), b[i], steps);
                 r[0] = n * 10000 + steps;
               }));
}

void early_returns(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  auto r = given.read<u32>("r");
  const auto classify = [](u32 v) {
    if (v % 3 == 0) return 1u;
    for (u32 k = 0; k < 8; ++k) {
      if ((v >> k) % 5 == 2) return 10u + k;
    }
    return v > 0x80000000u ? 2u : 3u;
  };
  for (std::size_t i = 0; i < r.size(); ++i) {
    if (i % 7 == 3) continue;
    const u32 v = classify(a[i]);
    r[i] = v == 1 ? r[i] + 1000 : v * 65536 + classify(a[i] / 3);
  }
  expected.add("r", r);
}

void uniform_branches(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  const auto all = rows<u32>(a.size(), 1, [&](std::size_t i, u32* r) {
    const auto w = static_cast<u32>(i / 64);
    r[0] = a[i];
    for (u32 k = 0; k < 5; ++k) {
      if (w % 2 == 1) r[0] = r[0] * 5 + k;
      if (k == 1 || k == 3) r[0] ^= w << k;
    }
  });
  expected.add("r", all);
  constexpr float offsets[] = {1.5f, -2.0f, 0.25f, 8.0f};
  expected.add("f", rows<float>(a.size(), 1, [&](std::size_t i, float* f) {
                 f[0] = static_cast<float>(all[i] & 1023u) * 0.375f + offsets[i / 64 % 4];
               }));
}

void grid_numbers(const Given&, Expected& expected) {
  expected.add("r", rows<u32>(12 * 8 * 6, 4, [](std::size_t at, u32* r) {
                 const auto x = static_cast<u32>(at % 12), y = static_cast<u32>(at / 12 % 8),
                            z = static_cast<u32>(at / 96);
                 const u32 lx = x % 4, ly = y % 2, lz = z % 3;
                 r[0] = (lz * 2 + ly) * 4 + lx;
                 r[1] = x / 4 | (y / 2) << 8 | (z / 3) << 16;
                 r[2] = lx | ly << 8 | lz << 16;
                 r[3] = 3 | 4 << 8 | 2 << 16;
               }));
}

void indirect_dispatch(const Given&, Expected& expected) {
  expected.add("r", rows<u32>(960, 1, [](std::size_t at, u32* r) {
                 if (at < 80 * 6 * 2) r[0] = static_cast<u32>(at * 3 + 5 * 1000 + 3 * 10000 + 2 * 100000);
               }));
}

void indirect_from_device(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a");
  const auto threes = static_cast<u32>(std::count(a.begin(), a.end(), 3u));
  const u32 groups = std::min(threes + 2, 16u);
  expected.add("counts", std::vector<u32>{groups, 1, 1});
  expected.add("r", rows<u32>(1024, 1, [&](std::size_t i, u32* r) {
                 if (i < groups * 64) r[0] = static_cast<u32>(i) ^ groups * 65536;
               }));
}

void switches(const Given& given, Expected& expected) {
  const auto a = given.read<u32>("a"), b = given.read<u32>("b");
  expected.add("r", rows<u32>(a.size(), 1, [&](std::size_t i, u32* r) {
                 u32 v = b[i];
                 for (u32 k = 0; k < 3; ++k) {
                   const u32 which = a[(i + k * 37) % 512];
                   const bool negative = v >> 31 != 0;
                   if (which == 0) {
                     v += 5;
                   } else if (which == 1 || which == 2) {
                     v = (which == 1 ? v ^ 0x1234u : v) - 77;
                   } else if (which == 3) {
                     v = v << 3 | v >> 29;
                   } else if (which == 7) {
                     v = negative ? v : 0 - v;
                   } else if (which == 9) {
                     v *= 3;
                   } else {
                     u32 mirrored = 0;
                     for (int bit = 0; bit < 32; ++bit) mirrored |= (v >> bit & 1u) << (31 - bit);
                     v = (which == 10 ? mirrored : v) + k * 1001;
                   }
                 }
                 r[0] = v;
               }));
}

void passes_with_barriers(const Given& given, Expected& expected) {
  auto r = given.read<u32>("r");
  auto s = given.read<u32>("s");
  for (std::size_t pass = 0; pass < 6; ++pass) {
    const std::size_t step = std::size_t{1} << pass;
    for (std::size_t i = 0; i < 256; ++i) {
      if (pass % 2 == 0) s[i] = r[i] * 3 + r[(i + step) % 256];
      if (pass % 2 == 1) r[i] = s[i] ^ s[(i + 256 - step) % 256] >> 1;
    }
  }
  expected.add("r", r);
  expected.add("s", s);
}

}  // namespace

void add_control_rules(Rules& rules) {
  rules["collatz"] = collatz;
  rules["stack_machine"] = stack_machine;
  rules["early_returns"] = early_returns;
  rules["uniform_branches"] = uniform_branches;
  rules["grid_numbers"] = grid_numbers;
  rules["indirect_dispatch"] = indirect_dispatch;
  rules["indirect_from_device"] = indirect_from_device;
  rules["switches"] = switches;
  rules["passes_with_barriers"] = passes_with_barriers;
}

}  // namespace kiln::witness
