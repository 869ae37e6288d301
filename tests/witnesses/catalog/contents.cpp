#include "witnesses/catalog/contents.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace kiln::witness {
namespace {

class Random {
 public:
  explicit Random(std::string_view seed) {
    for (const char c : seed) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

std::uint64_t float_bits(Scalar scalar, double value) {
  if (scalar == Scalar::float16) return half_of(value);
  if (scalar == Scalar::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(value);
}

struct Limits {
  double smallest_denormal, smallest, largest, epsilon;
};

Limits limits_of(Scalar scalar) {
  if (scalar == Scalar::float16) return {0x1p-24, 0x1p-14, 65504.0, 0x1p-10};
  if (scalar == Scalar::float32) return {0x1p-149, 0x1p-126, std::numeric_limits<float>::max(), 0x1p-23};
  return {0x1p-1074, 0x1p-1022, std::numeric_limits<double>::max(), 0x1p-52};
}

std::vector<std::uint64_t> whole_edges(std::size_t bytes) {
  const std::uint64_t high = 1ull << (8 * bytes - 1);
  return {0,
          1,
          ~0ull,
          2,
          ~1ull,
          3,
          7,
          ~6ull,
          10,
          31,
          32,
          33,
          100,
          255,
          256,
          ~255ull,
          high,
          high + 1,
          high - 1,
          high - 2,
          high >> 1,
          ~high - (high >> 1),
          0x5555555555555555u,
          0xaaaaaaaaaaaaaaaau,
          0xff00ff00ff00ff00u,
          1ull << (4 * bytes),
          (1ull << (4 * bytes)) - 1};
}

std::vector<double> float_edges(Scalar scalar) {
  const Limits limit = limits_of(scalar);
  const std::vector<double> sizes{0.0,
                                  1.0,
                                  0.5,
                                  1.5,
                                  2.0,
                                  2.5,
                                  3.0,
                                  1.0 / 3.0,
                                  0.1,
                                  7.0,
                                  1.0 + limit.epsilon,
                                  1.0 - limit.epsilon / 2,
                                  2.0 / limit.epsilon,
                                  1.0 / limit.epsilon + 1.0,
                                  1000.0,
                                  limit.smallest,
                                  limit.largest};
  std::vector<double> edges;
  for (const double each : sizes) edges.insert(edges.end(), {each, -each});
  return edges;
}

std::vector<std::uint64_t> edges_of(Scalar scalar, const std::string& kind) {
  if (!is_float(scalar)) {
    if (kind != "edges") throw std::runtime_error("pattern " + kind + " is for floats");
    return whole_edges(size_of(scalar));
  }
  std::vector<double> values;
  if (kind == "denormals") {
    const Limits limit = limits_of(scalar);
    for (const double each : {0.0, limit.smallest_denormal, limit.smallest_denormal * 5, limit.smallest / 2,
                              limit.smallest - limit.smallest_denormal, limit.smallest, limit.smallest * 1.5, 1.0, 0.5,
                              0x1p20, 0x1p-20, 3.0}) {
      values.insert(values.end(), {each, -each});
    }
  } else {
    values = float_edges(scalar);
    const double infinity = std::numeric_limits<double>::infinity();
    if (kind != "finite") values.insert(values.end(), {infinity, -infinity});
    if (kind == "edges_nan") values.push_back(std::numeric_limits<double>::quiet_NaN());
  }
  std::vector<std::uint64_t> bits;
  for (const double each : values) bits.push_back(float_bits(scalar, each));
  return bits;
}

std::uint64_t any_value(Scalar scalar, Random& random) {
  const std::uint64_t bits = random.next();
  if (!is_float(scalar)) return bits;
  const int reach = scalar == Scalar::float16 ? 6 : 20;
  const int exponent = static_cast<int>(bits % static_cast<unsigned>(2 * reach + 1)) - reach;
  const double size = std::ldexp(1.0 + random.unit(), exponent);
  return float_bits(scalar, (bits >> 60 & 1) != 0 ? -size : size);
}

std::uint64_t ranged_value(Scalar scalar, const std::string& pattern, Random& random) {
  const std::size_t colon = pattern.find(':', 6);
  if (colon == std::string::npos) throw std::runtime_error("pattern " + pattern + ": range:LOW:HIGH");
  const double low = std::stod(pattern.substr(6));
  const double high = std::stod(pattern.substr(colon + 1));
  if (is_float(scalar)) return float_bits(scalar, low + (high - low) * random.unit());
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(low)) +
         random.next() % (static_cast<std::uint64_t>(high - low) + 1);
}

std::uint64_t plain_value(Scalar scalar, const std::string& pattern, std::size_t at, Random& random) {
  if (pattern == "zero") return 0;
  if (pattern == "any") return any_value(scalar, random);
  if (pattern.rfind("range:", 0) == 0) return ranged_value(scalar, pattern, random);
  const auto convert = [scalar](std::int64_t value) {
    return is_float(scalar) ? float_bits(scalar, static_cast<double>(value)) : static_cast<std::uint64_t>(value);
  };
  if (pattern == "index") return convert(static_cast<std::int64_t>(at));
  if (pattern == "whole") return convert(static_cast<std::int64_t>(random.next() % 17) - 8);
  if (pattern == "powers" && is_float(scalar)) {
    return float_bits(scalar, std::ldexp(1.0, static_cast<int>(random.next() % 11) - 4));
  }
  throw std::runtime_error("unknown pattern " + pattern);
}

}  // namespace

Bytes initial_contents(const ShaderCase& shader, const BufferSpec& buffer) {
  std::string kind = buffer.pattern;
  const bool slow = kind.size() > 5 && kind.ends_with("_slow");
  if (slow) kind.resize(kind.size() - 5);
  const bool has_edges = kind == "edges" || kind == "finite" || kind == "edges_nan" || kind == "denormals";
  const std::vector<std::uint64_t> edges = has_edges ? edges_of(buffer.scalar, kind) : std::vector<std::uint64_t>{};

  Random random(shader.name + "." + buffer.name);
  const std::size_t size = size_of(buffer.scalar);
  const std::size_t count = buffer.count * buffer.lanes;
  const std::size_t listed = std::min(edges.size() * edges.size(), count - count / 4);
  Bytes contents(count * size);
  for (std::size_t at = 0; at < count; ++at) {
    std::uint64_t bits = 0;
    if (has_edges && at < listed) {
      bits = edges[(slow ? at / edges.size() : at) % edges.size()];
    } else if (kind == "denormals") {
      bits = float_bits(buffer.scalar, (random.unit() - 0.5) * 4 * limits_of(buffer.scalar).smallest);
    } else {
      bits = plain_value(buffer.scalar, has_edges ? "any" : kind, at, random);
    }
    std::memcpy(contents.data() + at * size, &bits, size);
  }
  return contents;
}

}  // namespace kiln::witness
