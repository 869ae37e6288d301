// Kernels from OpenCL C on both generations and both wave sizes, against plain C++. Each runs from its kept words, and
// again as clang-19 compiles it now, where that is installed.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>

#include "tests/simulator/compute/launcher.hpp"

namespace kiln::simulator::test {
namespace {

// Runs `body` with every build of a kernel.
void for_each_build(const std::string& file, const std::string& name,
                    const std::function<void(const KernelCode&)>& body) {
  for (const std::string target : {"gfx1100", "gfx1030"}) {
    INFO(name << " for " << target);
    const std::optional<KernelCode> kept = kept_kernel(target, name);
    REQUIRE(kept);
    body(*kept);
    if (!compiler_present()) {
      WARN("skipped: no clang-19: " << name << " for " << target << " runs from its kept words alone");
      continue;
    }
    for (const std::string options : {"", "-O0", "-mwavefrontsize64", "-mcumode -O1"}) {
      INFO("options " << options);
      body(compiled_kernel(target, file, name, options));
    }
  }
}

std::optional<Fault> run(Launcher& launcher, const KernelCode& code, const Arguments& arguments, const Grid& grid) {
  std::optional<Fault> fault = launcher.run(code, arguments, grid);
  if (fault) UNSCOPED_INFO(describe(*fault));
  return fault;
}

template <class T>
std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = std::uniform_real_distribution<T>(-4, 4)(generator);
    } else {
      value = static_cast<T>(generator());
    }
  }
  return values;
}

}  // namespace

TEST_CASE("simulator kernels: saxpy with a partly filled last wave", "[simulator][kernel]") {
  for_each_build("basic", "saxpy", [](const KernelCode& code) {
    Launcher launcher;
    constexpr std::uint32_t n = 1000;
    const std::vector<float> x = random_values<float>(n, 1), y = random_values<float>(n, 2);
    const std::uint64_t out = launcher.memory.allocate(y);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(x)).add(out).add(1.5F).add(n);
    REQUIRE_FALSE(run(launcher, code, arguments, {{16, 1, 1}, {64, 1, 1}}));
    const std::vector<float> got = launcher.memory.values<float>(out, n);
    unsigned wrong = 0;
    for (unsigned i = 0; i < n; ++i) {
      // OpenCL leaves it to the compiler whether this is one rounding or two.
      wrong += got[i] != std::fma(1.5F, x[i], y[i]) && got[i] != 1.5F * x[i] + y[i] ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(launcher.engine.counters().groups == 16);
    CHECK(launcher.engine.counters().waves == (code.wave32() ? 32 : 16));
  });
}

TEST_CASE("simulator kernels: reduction through LDS and barriers", "[simulator][kernel]") {
  for_each_build("basic", "reduce", [](const KernelCode& code) {
    Launcher launcher;
    const std::vector<std::int32_t> in = random_values<std::int32_t>(256 * 12, 3);
    const std::uint64_t out = launcher.memory.allocate(12 * 4);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(in)).add(out);
    REQUIRE_FALSE(run(launcher, code, arguments, {{12, 1, 1}, {256, 1, 1}}));
    const std::vector<std::uint32_t> got = launcher.memory.values<std::uint32_t>(out, 12);
    for (unsigned g = 0; g < 12; ++g) {
      std::uint32_t sum = 0;
      for (unsigned i = 0; i < 256; ++i) sum += static_cast<std::uint32_t>(in[g * 256 + i]);
      CHECK(got[g] == sum);
    }
  });
}

TEST_CASE("simulator kernels: atomics from all threads", "[simulator][kernel]") {
  for_each_build("basic", "histogram", [](const KernelCode& code) {
    const std::vector<std::uint32_t> in = random_values<std::uint32_t>(128 * 80, 4);
    std::vector<std::uint32_t> expected(33);
    std::uint64_t total = 0;
    for (const std::uint32_t value : in) {
      ++expected[value & 31U];
      expected[32] = std::max(expected[32], value);
      total += static_cast<std::uint64_t>(value) << 20U;
    }
    for (const bool check_hazards : {true, false}) {  // true: on one thread
      INFO(check_hazards);
      Launcher launcher({.threads = 3, .check_hazards = check_hazards});
      const std::uint64_t bins = launcher.memory.allocate(33 * 4), wide = launcher.memory.allocate(8);
      Arguments arguments;
      arguments.add(launcher.memory.allocate(in)).add(bins).add(wide);
      REQUIRE_FALSE(run(launcher, code, arguments, {{80, 1, 1}, {128, 1, 1}}));
      CHECK(launcher.memory.values<std::uint32_t>(bins, 33) == expected);
      CHECK(launcher.memory.values<std::uint64_t>(wide, 1)[0] == total);
    }
  });
}

TEST_CASE("simulator kernels: lanes that leave a loop at different times", "[simulator][kernel]") {
  for_each_build("basic", "collatz", [](const KernelCode& code) {
    Launcher launcher;
    std::vector<std::uint32_t> in(256), expected(256);
    for (unsigned i = 0; i < 256; ++i) {
      in[i] = 1 + i * 37;
      for (std::uint32_t value = in[i]; value != 1; ++expected[i])
        value = (value & 1U) != 0 ? 3 * value + 1 : value / 2;
    }
    const std::uint64_t out = launcher.memory.allocate(256 * 4);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(in)).add(out);
    REQUIRE_FALSE(run(launcher, code, arguments, {{4, 1, 1}, {64, 1, 1}}));
    CHECK(launcher.memory.values<std::uint32_t>(out, 256) == expected);
  });
}

TEST_CASE("simulator kernels: arrays in scratch", "[simulator][kernel]") {
  for_each_build("basic", "spill", [](const KernelCode& code) {
    Launcher launcher;
    std::vector<std::uint32_t> in = random_values<std::uint32_t>(512, 5), expected(512);
    constexpr std::uint32_t rounds = 9;
    for (unsigned i = 0; i < 512; ++i) {
      std::uint32_t table[40], at = in[i] % 40;
      for (unsigned k = 0; k < 40; ++k) table[k] = in[i] * (k + 1);
      for (unsigned r = 0; r < rounds; ++r) {
        table[(at + r) % 40] += table[at];
        at = table[at] % 40;
      }
      for (const std::uint32_t value : table) expected[i] = expected[i] * 31 + value;
    }
    const std::uint64_t out = launcher.memory.allocate(512 * 4);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(in)).add(out).add(rounds);
    REQUIRE_FALSE(run(launcher, code, arguments, {{8, 1, 1}, {64, 1, 1}}));
    CHECK(launcher.memory.values<std::uint32_t>(out, 512) == expected);
  });
}

TEST_CASE("simulator kernels: ids of groups and threads in three dimensions", "[simulator][kernel]") {
  for_each_build("basic", "ids", [](const KernelCode& code) {
    Launcher launcher;
    const std::uint64_t out = launcher.memory.allocate(3 * 2 * 4 * 60 * 4);
    Arguments arguments;
    arguments.add(out).add(3U).add(2U);
    REQUIRE_FALSE(run(launcher, code, arguments, {{3, 2, 4}, {4, 3, 5}}));
    const std::vector<std::uint32_t> got = launcher.memory.values<std::uint32_t>(out, 24 * 60);
    unsigned wrong = 0, at = 0;
    for (unsigned gz = 0; gz < 4; ++gz) {
      for (unsigned gy = 0; gy < 2; ++gy) {
        for (unsigned gx = 0; gx < 3; ++gx) {
          for (unsigned t = 0; t < 60; ++t, ++at) {
            const std::uint32_t threads = (t % 4) << 16U | (t / 4 % 3) << 20U | (t / 12) << 24U;
            wrong += got[at] != (gx | gy << 4U | gz << 8U | threads) ? 1 : 0;
          }
        }
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("simulator kernels: integer division, wide products, lane exchange", "[simulator][kernel]") {
  for_each_build("basic", "integers", [](const KernelCode& code) {
    Launcher launcher;
    std::vector<std::int32_t> in = random_values<std::int32_t>(512, 6);
    for (unsigned i = 0; i < in.size(); i += 5) in[i] >>= 17;
    const std::uint64_t out = launcher.memory.allocate(256 * 8 * 4);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(in)).add(out);
    REQUIRE_FALSE(run(launcher, code, arguments, {{4, 1, 1}, {64, 1, 1}}));
    const std::vector<std::int32_t> got = launcher.memory.values<std::int32_t>(out, 256 * 8);
    for (unsigned i = 0; i < 256; ++i) {
      const std::int32_t a = in[2 * i], b = in[2 * i + 1] | 1;
      const auto u = [](std::int32_t v) { return static_cast<std::uint32_t>(v); };
      const std::int64_t wide = static_cast<std::int64_t>(a) * b;
      INFO("thread " << i << ": " << a << " and " << b);
      CHECK(got[8 * i] == a / b);
      CHECK(got[8 * i + 1] == a % b);
      CHECK(u(got[8 * i + 2]) == u(a) / u(b));
      CHECK(got[8 * i + 3] == static_cast<std::int32_t>(wide >> 32U));
      CHECK(got[8 * i + 4] == static_cast<std::int32_t>(wide / (b | 7)));
      CHECK(got[8 * i + 5] == in[2 * (i ^ 5U)]);
      CHECK(got[8 * i + 6] == __builtin_popcount(u(a)) + __builtin_clz(u(b)) + __builtin_ctz(u(a) | 0x10000U));
      CHECK(u(got[8 * i + 7]) == (u(a) << (b & 31) ^ u(a >> (b & 31))));
    }
  });
}

TEST_CASE("simulator kernels: 3x3 convolution with no error against ordered fma", "[simulator][kernel]") {
  for_each_build("numbers", "conv3x3", [](const KernelCode& code) {
    Launcher launcher;
    constexpr std::uint32_t channels = 5, height = 13, width = 19, filters = 8, size = height * width;
    const std::vector<float> in = random_values<float>(channels * size, 7);
    const std::vector<float> weights = random_values<float>(filters * channels * 9, 8);
    const std::uint64_t out = launcher.memory.allocate(filters * size * 4);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(in)).add(launcher.memory.allocate(weights)).add(out);
    arguments.add(channels).add(height).add(width);
    REQUIRE_FALSE(run(launcher, code, arguments, {{(size + 63) / 64, filters / 4, 1}, {64, 1, 1}}));
    const std::vector<float> got = launcher.memory.values<float>(out, filters * size);
    unsigned wrong = 0;
    for (unsigned k = 0; k < filters; ++k) {
      for (unsigned at = 0; at < size; ++at) {
        float sum = 0;
        for (unsigned c = 0; c < channels; ++c) {
          for (unsigned t = 0; t < 9; ++t) {
            const int y = static_cast<int>(at / width + t / 3) - 1, x = static_cast<int>(at % width + t % 3) - 1;
            const bool inside = y >= 0 && y < static_cast<int>(height) && x >= 0 && x < static_cast<int>(width);
            const float value =
                inside ? in[c * size + static_cast<unsigned>(y) * width + static_cast<unsigned>(x)] : 0.0F;
            sum = std::fma(value, weights[(k * channels + c) * 9 + t], sum);
          }
        }
        wrong += got[k * size + at] != sum ? 1 : 0;
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("simulator kernels: matrix products through LDS with no error", "[simulator][kernel]") {
  struct Form {
    const char* name;
    std::uint32_t n, tile, threads;
  };
  const auto form = GENERATE(Form{"gemm", 48, 16, 256}, Form{"sgemm", 128, 64, 64});
  INFO(form.name);
  for_each_build("numbers", form.name, [&](const KernelCode& code) {
    Launcher launcher;
    const std::uint32_t n = form.n;
    const std::vector<float> a = random_values<float>(n * n, 9), b = random_values<float>(n * n, 10);
    const std::uint64_t out = launcher.memory.allocate(n * n * 4);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(a)).add(launcher.memory.allocate(b)).add(out).add(n);
    REQUIRE_FALSE(run(launcher, code, arguments, {{n / form.tile, n / form.tile, 1}, {form.threads, 1, 1}}));
    const std::vector<float> got = launcher.memory.values<float>(out, n * n);
    unsigned wrong = 0;
    for (unsigned i = 0; i < n * n; ++i) {
      float sum = 0;
      for (unsigned k = 0; k < n; ++k) sum = std::fma(a[i / n * n + k], b[k * n + i % n], sum);
      wrong += got[i] != sum ? 1 : 0;
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("simulator kernels: f64 division, root and conversions", "[simulator][kernel]") {
  for_each_build("numbers", "doubles", [](const KernelCode& code) {
    Launcher launcher;
    std::vector<double> in = random_values<double>(256, 11);
    in[0] = 1e-310;
    in[2] = 3e305;
    in[3] = 2e-5;
    const std::uint64_t out = launcher.memory.allocate(128 * 4 * 8);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(in)).add(out);
    REQUIRE_FALSE(run(launcher, code, arguments, {{2, 1, 1}, {64, 1, 1}}));
    const std::vector<double> got = launcher.memory.values<double>(out, 128 * 4);
    for (unsigned i = 0; i < 128; ++i) {
      const double a = in[2 * i], b = in[2 * i + 1];
      INFO("thread " << i << ": " << a << " and " << b);
      CHECK(got[4 * i] == a / b);
      CHECK(got[4 * i + 1] == std::sqrt(std::fabs(a)));
      CHECK(got[4 * i + 2] == std::fma(a, b, -a));
      if (std::fabs(a) < 1e10) {
        CHECK(got[4 * i + 3] ==
              static_cast<double>(static_cast<std::int64_t>(a * 1024.0)) + static_cast<double>(static_cast<float>(b)));
      }
    }
  });
}

TEST_CASE("simulator kernels: f32 division, root, minimum and rounding", "[simulator][kernel]") {
  for_each_build("numbers", "singles", [](const KernelCode& code) {
    Launcher launcher;
    std::vector<float> in = random_values<float>(256, 12);
    in[0] = 1e-42F;
    in[2] = 3e38F;
    in[4] = 1.0F;
    in[5] = 3e38F;
    const std::uint64_t out = launcher.memory.allocate(128 * 4 * 4);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(in)).add(out);
    REQUIRE_FALSE(run(launcher, code, arguments, {{2, 1, 1}, {64, 1, 1}}));
    const std::vector<float> got = launcher.memory.values<float>(out, 128 * 4);
    for (unsigned i = 0; i < 128; ++i) {
      const float a = in[2 * i], b = in[2 * i + 1];
      INFO("thread " << i << ": " << a << " and " << b);
      // Without a library the compiler may take 2.5 units for a quotient and 3 for a root.
      CHECK(std::fabs(got[4 * i] - a / b) <= std::fabs(a / b) * 4e-7F + 1e-44F);
      CHECK(std::fabs(got[4 * i + 1] - std::sqrt(std::fabs(a))) <= std::sqrt(std::fabs(a)) * 4e-7F);
      CHECK(got[4 * i + 2] == Approx(std::fmin(a, b) * 3.0F - std::floor(b)).epsilon(1e-6).margin(1e-6));
      if (std::fabs(a) < 1e9F) CHECK(got[4 * i + 3] == std::trunc(a) + std::nearbyint(b) + a * 8.0F);
    }
  });
}

TEST_CASE("simulator kernels: f16, single and packed", "[simulator][kernel]") {
  for_each_build("numbers", "halves", [](const KernelCode& code) {
    Launcher launcher;
    std::vector<std::uint16_t> in(256);
    for (unsigned i = 0; i < 256; ++i) in[i] = static_cast<std::uint16_t>(0x3000 + 37 * i + (i % 3 == 0 ? 0x8000 : 0));
    const std::uint64_t out = launcher.memory.allocate(128 * 4 * 2);
    Arguments arguments;
    arguments.add(launcher.memory.allocate(in)).add(out);
    REQUIRE_FALSE(run(launcher, code, arguments, {{2, 1, 1}, {64, 1, 1}}));
    const std::vector<std::uint16_t> got = launcher.memory.values<std::uint16_t>(out, 128 * 4);
    const auto number = [](std::uint16_t bits) {
      return std::ldexp(((bits & 0x3FF) | 0x400) * ((bits & 0x8000) != 0 ? -1.0 : 1.0), ((bits >> 10) & 31) - 25);
    };
    // Steps of a half at the size of a value: results are within one rounding of the product and one of the sum.
    const auto near = [&](std::uint16_t bits, double exact, double scale) {
      return std::fabs(number(bits) - exact) <= scale * 0x1.0p-10;
    };
    for (unsigned i = 0; i < 128; ++i) {
      const double a = number(in[2 * i]), b = number(in[2 * i + 1]);
      const double scale = std::fabs(a * b) + std::fabs(a) + std::fabs(b) + 0x1.0p-13;
      INFO("thread " << i << ": " << a << " and " << b);
      CHECK(near(got[4 * i], a * b + a, scale));
      CHECK(near(got[4 * i + 1], a - b, scale));
      CHECK(near(got[4 * i + 2], a * b + a, scale));
      CHECK(near(got[4 * i + 3], b * 2 + b, 2 * scale));
    }
  });
}

}  // namespace kiln::simulator::test
