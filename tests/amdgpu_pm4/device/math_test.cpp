// OpenCL C's functions on the simulated device: within the specification's error bounds over the whole range of their
// arguments. Short: 2^15 arguments a function; KILN_TEST_LONG=1: 2^20 a function.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "amdgpu_pm4/toolchain/toolchain.hpp"
#include "device/math_functions.hpp"
#include "device/opened_device.hpp"
#include "support/test_length.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

bool library_present() {
  const DeviceLibrary library = find_device_library("auto", nullptr);
  if (!library.present()) WARN("skipped: OpenCL C's function library is missing, " << library.why_not);
  return library.present();
}

// Runs a kernel of one value in and one out; 64 lanes.
std::vector<float> values_of(OpenedDevice& d, const std::string& declarations, const std::string& expression,
                             std::vector<float> x) {
  const std::string text = declarations + R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global const float* x, global float* y) {
  const uint i = get_global_id(0);
  const float a = x[i];
  y[i] = )" + expression + ";\n}\n";
  const auto program = d.build(kernel_of(text, {Access::read, Access::write}));
  x.resize(64);
  const auto in = d.buffer(BufferUsage::upload, x), out = d.buffer(BufferUsage::readback, std::vector<float>(64));
  REQUIRE(d.run(*program, {in.get(), out.get()}).ok());
  return d.read(*out);
}

}  // namespace

TEST_CASE("device: functions of float are within OpenCL's error bounds over their whole range") {
  if (!OpenedDevice::possible() || !library_present()) return;
  OpenedDevice d;
  constexpr std::size_t chunk = std::size_t{1} << 15;
  std::vector<const MathFunction*> functions;
  for (const MathFunction& function : math_functions()) functions.push_back(&function);
  const auto program = d.build(kernel_of(math_kernel(functions), {Access::read, Access::read, Access::write}));
  std::vector<double> worst(functions.size());
  std::vector<float> worst_a(functions.size()), worst_b(functions.size());
  for (std::uint32_t round = 0; round < (test::is_long() ? 32U : 1U); ++round) {
    const std::vector<float> a = math_arguments(chunk, 2 * round + 1);
    std::vector<float> b = math_arguments(chunk, 2 * round + 2);
    std::mt19937 random(round);
    std::shuffle(b.begin(), b.end(), random);
    const auto x = d.buffer(BufferUsage::upload, a), z = d.buffer(BufferUsage::upload, b);
    const auto y = d.buffer(BufferUsage::readback, std::vector<float>(functions.size() * chunk));
    REQUIRE(d.run(*program, {x.get(), z.get(), y.get()}, chunk / 64).ok());
    const std::vector<float> got = d.read(*y);
    for (std::size_t f = 0; f < functions.size(); ++f) {
      for (std::size_t i = 0; i < chunk; ++i) {
        const long double want = math_reference(*functions[f], a[i], b[i]);
        const double error = ulp_error(*functions[f], got[f * chunk + i], want);
        if (error > worst[f]) worst[f] = error, worst_a[f] = a[i], worst_b[f] = b[i];
      }
    }
  }
  for (std::size_t f = 0; f < functions.size(); ++f) {
    INFO(functions[f]->name << "(" << worst_a[f] << ", " << worst_b[f] << ") is " << worst[f] << " ulp off");
    CHECK(worst[f] <= functions[f]->bound);
  }
}

namespace {

// Without 0x1.6ac5b262ca1ffp+849, the double nearest to a multiple of pi/2: the library reduces angles with 159 bits of
// 2/pi, of which too few are left there.
// Special values, neighbours of multiples of pi/2, and random ones: a third of any bits, a third between -100 and 100,
// a third of any size above that.
std::vector<double> angles(std::size_t count, std::uint32_t seed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values{0.0,
                             -0.0,
                             1.0,
                             0x1p-1074,
                             0x1p-1022,
                             0x1p-30,
                             1e5,
                             0x1p+54,
                             0x1p+944,
                             0x1p+945,
                             -0x1p+945,
                             std::nextafter(0x1p+945, 0.0),
                             1e22,
                             1e308,
                             infinity,
                             -infinity,
                             std::numeric_limits<double>::max(),
                             0x1p+53,
                             0x1p+1023,
                             0x1p+1022,
                             0x1.921fb54442d18p+0};
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  std::mt19937_64 random(seed);
  for (int k = 1; k < 500; ++k) {
    const double near = k * 1.57079632679489661923;
    for (const double value : {near, std::nextafter(near, infinity), std::nextafter(near, 0.0)})
      values.push_back(value);
    values.push_back(std::ldexp(near, static_cast<int>(random() % 1000)));
  }
  std::uniform_real_distribution<double> small(-100, 100), fraction(-2, 2);
  while (values.size() < count) {
    values.push_back(std::bit_cast<double>(random()));
    values.push_back(small(random));
    values.push_back(std::ldexp(fraction(random), 6 + static_cast<int>(random() % 1017)));
  }
  values.resize(count);
  return values;
}

double ulps_of_double(double got, long double want) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : wrong;
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : wrong;
  const int exponent = std::max(std::ilogb(want), -1022);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / std::ldexp(1.0L, exponent - 52));
}

}  // namespace

TEST_CASE("device: sine, cosine and tangent of double are within OpenCL's error bounds, also of large angles") {
  if (!OpenedDevice::possible() || !library_present()) return;
  OpenedDevice d;
  const std::size_t count = std::size_t{1} << (test::is_long() ? 19U : 16U);
  struct Function {
    const char* name;
    long double (*reference)(long double);
    double bound;
  };
  const Function functions[] = {{"sin", [](long double x) { return std::sin(x); }, 4},
                                {"cos", [](long double x) { return std::cos(x); }, 4},
                                {"tan", [](long double x) { return std::tan(x); }, 5},
                                {"sincos", [](long double x) { return std::sin(x); }, 4},
                                {"sincos, cosine", [](long double x) { return std::cos(x); }, 4}};
  const auto program = d.build(kernel_of(R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global const double* x, global double* y) {
  const uint i = get_global_id(0), count = get_global_size(0);
  const double a = x[i];
  y[i] = sin(a);
  y[count + i] = cos(a);
  y[2 * count + i] = tan(a);
  double c;
  y[3 * count + i] = sincos(a, &c);
  y[4 * count + i] = c;
})",
                                         {Access::read, Access::write}));
  const std::vector<double> x = angles(count, 1);
  std::vector<float> halves(2 * count);  // buffers of these tests are made of floats
  std::memcpy(halves.data(), x.data(), count * sizeof(double));
  const auto in = d.buffer(BufferUsage::upload, halves);
  const auto out = d.buffer(BufferUsage::readback, std::vector<float>(2 * count * std::size(functions)));
  REQUIRE(d.run(*program, {in.get(), out.get()}, static_cast<std::uint32_t>(count / 64)).ok());
  const std::vector<float> words = d.read(*out);
  for (std::size_t f = 0; f < std::size(functions); ++f) {
    double worst = 0, worst_x = 0;
    for (std::size_t i = 0; i < count; ++i) {
      double got = 0;
      std::memcpy(&got, words.data() + 2 * (f * count + i), sizeof got);
      const double error = ulps_of_double(got, functions[f].reference(static_cast<long double>(x[i])));
      if (error > worst) worst = error, worst_x = x[i];
    }
    INFO(functions[f].name << "(" << worst_x << ") is " << worst << " ulp off");
    CHECK(worst <= functions[f].bound);
  }
}

TEST_CASE("device: functions with several results, of vectors, of integers and of double") {
  if (!OpenedDevice::possible() || !library_present()) return;
  OpenedDevice d;
  const std::vector<float> x = {8.5F, -3.25F, 2000.0F, 1e30F, 0.0F};
  const auto check = [&](const std::string& expression, float (*reference)(float)) {
    INFO(expression);
    const std::vector<float> got = values_of(d, "", expression, x);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(reference(x[i])).epsilon(1e-6));
  };
  check("({ float c; sincos(a, &c) + 2 * c; })", [](float a) { return std::sin(a) + 2 * std::cos(a); });
  check("({ int e; frexp(a, &e) + e; })", [](float a) {
    int e = 0;
    const float fraction = std::frexp(a, &e);
    return fraction + static_cast<float>(e);
  });
  check("({ float whole; modf(a, &whole) * 4; })", [](float a) {
    float whole = 0;
    return std::modf(a, &whole) * 4;
  });
  check("pow((float16)(fabs(a)), (float16)(0.5f)).sf", [](float a) { return std::sqrt(std::fabs(a)); });
  check("smoothstep(0.0f, 10.0f, (float4)(a)).w", [](float a) {
    const float t = std::fmin(std::fmax(a / 10, 0.0F), 1.0F);
    return t * t * (3 - 2 * t);
  });
  check("convert_float(convert_uchar4_sat_rte((float4)(a)).y)",
        [](float a) { return std::fmin(std::fmax(std::rint(a), 0.0F), 255.0F); });
  check("length((float3)(a * 1e-3f, 2.0f, 3.0f))", [](float a) { return std::hypot(a * 1e-3F, 2.0F, 3.0F); });
  check("shuffle((float4)(1, 2, 3, a), (uint4)(3, 2, 1, 0)).x", [](float a) { return a; });
  check("bitselect(a, -a, 0.0f)", [](float a) { return a; });
  check("(float)mul_hi((short4)(1000), (short4)(convert_short_sat(a))).z", [](float a) {
    const float saturated = std::trunc(std::fmin(std::fmax(a, -32768.0F), 32767.0F));
    return std::floor(saturated * 1000 / 65536);
  });
  check("(float)(clz((uchar)1) + popcount((ulong2)(255)).y + rotate((int3)(1), (int3)(4)).z + hadd(7, 8))",
        [](float) { return 7.0F + 8.0F + 16.0F + 7.0F; });
  check("(float)(upsample((short)1, (ushort)2) - 65538 + abs_diff((char)-100, (char)100))",
        [](float) { return 200.0F; });
  check("(float)(atan((double)a) + erf((double4)(a)).w)", [](float a) {
    return static_cast<float>(std::atan(static_cast<double>(a)) + std::erf(static_cast<double>(a)));
  });
}

TEST_CASE("device: a quotient by a literal of double is rounded in double") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  // 429496729 in double, 429496736 in float.
  CHECK(values_of(d, "", "(float)((uint)floor((uint)a * 4294967295u / 10.0) % 1000)", {1.0F})[0] == 729);
}

TEST_CASE("device: abs() of the least integers is one more than the greatest") {
  if (!OpenedDevice::possible()) return;
  OpenedDevice d;
  CHECK(values_of(d, "", "(float)(abs((int)a << 31) >= 2147483648u)", {1.0F})[0] == 1);
  CHECK(values_of(d, "", "(float)(abs((long)(int)a << 63) >= 9223372036854775808UL)", {1.0F})[0] == 1);
  CHECK(values_of(d, "", "(float)abs((char4)((char)((int)a << 7))).y", {1.0F})[0] == 128);
  CHECK(values_of(d, "", "(float)abs((int)a - 8)", {1.0F})[0] == 7);
}

namespace {

struct MediaFunction {
  const char* expression;
  std::uint32_t (*reference)(std::uint32_t a, std::uint32_t b, std::uint32_t c);
};

std::uint32_t byte_of(std::uint32_t word, unsigned i) { return word >> (8 * i) & 0xFF; }

// The sum of |a - b| over the parts of `bits` bits; masked: without the bytes where b is 0.
std::uint32_t distance_of(std::uint32_t a, std::uint32_t b, unsigned bits, bool masked = false) {
  std::uint32_t sum = 0;
  for (unsigned at = 0; at < 32; at += bits) {
    const std::uint32_t mask = bits == 32 ? ~0U : (1U << bits) - 1, x = a >> at & mask, y = b >> at & mask;
    if (!masked || y != 0) sum += x > y ? x - y : y - x;
  }
  return sum;
}

std::uint32_t of_float(float value) { return std::bit_cast<std::uint32_t>(value); }

template <class T>
T median(T a, T b, T c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

std::int32_t of_sign(std::uint32_t value) { return static_cast<std::int32_t>(value); }
float of_small(std::uint32_t value) { return static_cast<float>(value & 0xFFFF) - 1000.0F; }

constexpr const char* small_floats =
    "const float fa = (float)(a & 0xFFFF) - 1000.0f, fb = (float)(b & 0xFFFF) - 1000.0f, "
    "fc = (float)(c & 0xFFFF) - 1000.0f;\n";

std::vector<MediaFunction> media_functions() {
  using U = std::uint32_t;
  return {
      {"amd_bitalign(a, b, c)", [](U a, U b, U c) { return U((std::uint64_t{a} << 32 | b) >> (c & 31)); }},
      {"amd_bytealign(a, b, c)", [](U a, U b, U c) { return U((std::uint64_t{a} << 32 | b) >> (c & 3) * 8); }},
      {"amd_lerp(a, b, c)",
       [](U a, U b, U c) {
         U all = 0;
         for (unsigned i = 0; i < 4; ++i) all |= (byte_of(a, i) + byte_of(b, i) + (byte_of(c, i) & 1)) / 2 << 8 * i;
         return all;
       }},
      {"amd_sad(a, b, c)", [](U a, U b, U c) { return distance_of(a, b, 8) + c; }},
      {"amd_sadhi(a, b, c)", [](U a, U b, U c) { return (distance_of(a, b, 8) << 16) + c; }},
      {"amd_sadw(a, b, c)", [](U a, U b, U c) { return distance_of(a, b, 16) + c; }},
      {"amd_sadd(a, b, c)", [](U a, U b, U c) { return distance_of(a, b, 32) + c; }},
      {"amd_msad(a, b & 0xFF00FFFF, c)", [](U a, U b, U c) { return distance_of(a, b & 0xFF00FFFF, 8, true) + c; }},
      {"amd_sad4((uint4)(a, b, c, 7), (uint4)(b, c, a, 9), c)",
       [](U a, U b, U c) { return distance_of(a, b, 8) + distance_of(b, c, 8) + distance_of(c, a, 8) + 2 + c; }},
      {"amd_bfe(a, b, c)", [](U a, U b, U c) { return U((a >> (b & 31)) & ((std::uint64_t{1} << (c & 31)) - 1)); }},
      {"(uint)amd_bfe((int)a, b & 15, c & 15)",
       [](U a, U b, U c) {
         const unsigned width = c & 15;
         return width == 0 ? 0 : U(of_sign(a << (32 - (b & 15) - width)) >> (32 - width));
       }},
      {"amd_bfm(a, b)", [](U a, U b, U) { return ((1U << (a & 31)) - 1) << (b & 31); }},
      {"amd_pack(convert_float4(as_uchar4(a)))", [](U a, U, U) { return a; }},
      {"as_uint(amd_unpack0(a))", [](U a, U, U) { return of_float(static_cast<float>(byte_of(a, 0))); }},
      {"as_uint(amd_unpack1((uint2)(b, a)).y)", [](U a, U, U) { return of_float(static_cast<float>(byte_of(a, 1))); }},
      {"as_uint(amd_unpack2((uint3)(a)).z)", [](U a, U, U) { return of_float(static_cast<float>(byte_of(a, 2))); }},
      {"as_uint(amd_unpack3((uint16)(a)).sf)", [](U a, U, U) { return of_float(static_cast<float>(byte_of(a, 3))); }},
      {"amd_min3(a, b, c)",
       [](U a, U b, U c) {
         return std::min({a, b, c});
       }},
      {"amd_max3((uint8)(a), (uint8)(b), (uint8)(c)).s7",
       [](U a, U b, U c) {
         return std::max({a, b, c});
       }},
      {"amd_median3(a, b, c)", [](U a, U b, U c) { return median(a, b, c); }},
      {"(uint)amd_min3((int)a, (int)b, (int)c)",
       [](U a, U b, U c) {
         return U(std::min({of_sign(a), of_sign(b), of_sign(c)}));
       }},
      {"(uint)amd_max3((int)a, (int)b, (int)c)",
       [](U a, U b, U c) {
         return U(std::max({of_sign(a), of_sign(b), of_sign(c)}));
       }},
      {"(uint)amd_median3((int3)(a), (int3)(b), (int3)(c)).z",
       [](U a, U b, U c) { return U(median(of_sign(a), of_sign(b), of_sign(c))); }},
      {"as_uint(amd_min3(fa, fb, fc))",
       [](U a, U b, U c) {
         return of_float(std::min({of_small(a), of_small(b), of_small(c)}));
       }},
      {"as_uint(amd_max3(fa, fb, fc))",
       [](U a, U b, U c) {
         return of_float(std::max({of_small(a), of_small(b), of_small(c)}));
       }},
      {"as_uint(amd_median3((float4)(fa), (float4)(fb), (float4)(fc)).w)",
       [](U a, U b, U c) { return of_float(median(of_small(a), of_small(b), of_small(c))); }},
  };
}

}  // namespace

TEST_CASE("device: AMD's media functions give what their formulas do") {
  if (!OpenedDevice::possible() || !library_present()) return;
  OpenedDevice d;
  constexpr std::size_t lanes = 256;
  const std::vector<MediaFunction> functions = media_functions();
  std::string text =
      "__attribute__((reqd_work_group_size(64, 1, 1)))\n"
      "kernel void work(global const uint* x, global uint* y) {\n"
      "const uint i = get_global_id(0), n = get_global_size(0), a = x[i], b = x[n + i], c = x[2 * n + i];\n" +
      std::string(small_floats);
  for (std::size_t f = 0; f < functions.size(); ++f) {
    text += "y[" + std::to_string(f) + " * n + i] = " + functions[f].expression + ";\n";
  }
  const auto program = d.build(kernel_of(text + "}\n", {Access::read, Access::write}));
  std::mt19937 random(7);
  std::vector<std::uint32_t> words(3 * lanes);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random());
  std::vector<float> as_floats(words.size());
  std::memcpy(as_floats.data(), words.data(), 4 * words.size());
  const auto in = d.buffer(BufferUsage::upload, as_floats);
  const auto out = d.buffer(BufferUsage::readback, std::vector<float>(functions.size() * lanes));
  REQUIRE(d.run(*program, {in.get(), out.get()}, lanes / 64).ok());
  const std::vector<float> got = d.read(*out);
  for (std::size_t f = 0; f < functions.size(); ++f) {
    for (std::size_t i = 0; i < lanes; ++i) {
      INFO(functions[f].expression << " of " << words[i] << ", " << words[lanes + i] << ", " << words[2 * lanes + i]);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &got[f * lanes + i], 4);
      CHECK(bits == functions[f].reference(words[i], words[lanes + i], words[2 * lanes + i]));
    }
  }
}

}  // namespace kiln::amdgpu_pm4
