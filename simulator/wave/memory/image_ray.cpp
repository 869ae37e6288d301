// Rays against one node of a bounding volume hierarchy: the four boxes of a box node, or a triangle.
//
// A node pointer has the node's type in its lowest three bits: 0 to 3 a triangle of a triangle node, 4 boxes of halves,
// 5 boxes of floats; the rest is the address in units of eight bytes. AMD documents operands and results; the order of
// the sums is that of the published algorithm for watertight triangles. Boxes are limited by the ray's extent,
// triangles are not: programs compare t themselves.
#define KILN_VECTOR_BUILD rays
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "simulator/memory/address_space.hpp"
#include "simulator/wave/memory/space.hpp"
#include "simulator/wave/program.hpp"
#include "simulator/wave/semantics_table.hpp"
#include "simulator/wave/vector/number_formats.hpp"

namespace kiln::simulator::memory_unit {
namespace {

using rays::as_bits;
using rays::as_float;
using rays::half_to_float;
using Vector = std::array<float, 3>;
using Answer = std::array<Word, 4>;

constexpr Word no_node = ~0U;

struct Ray {
  float extent = 0;
  Vector origin{}, direction{}, inverse{};
};

// The four words of the resource.
struct Hierarchy {
  explicit Hierarchy(const Word* words)
      : base((words[0] | static_cast<Wide>(words[1] & 0xFFU) << 32U) << 8U),
        growth(words[1] >> 23U & 0xFFU),
        sorted((words[1] >> 31U & 1U) != 0),
        last(words[2] | static_cast<Wide>(words[3] & 0x3FFU) << 32U),
        barycentric((words[3] >> 24U & 1U) != 0),
        type(words[3] >> 28U) {}

  Wide base;
  unsigned growth;   // units in the last place by which boxes grow
  bool sorted;       // boxes: the nearest first
  Wide last;         // of the nodes' units of 64 bytes
  bool barycentric;  // triangles: two coordinates; else the triangle's number and whether it is hit
  unsigned type;
};

float grown(float bound, unsigned units, bool up) {
  for (unsigned i = 0; i < units; ++i) {
    bound =
        std::nextafter(bound, up ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity());
  }
  return bound;
}

struct Node {
  std::array<Word, 32> words{};

  // `bound`: the six numbers of a box, its lowest corner first.
  float box(unsigned child, unsigned bound, bool halves) const {
    const unsigned at = 6 * child + bound;
    if (!halves) return as_float(words[4 + at]);
    return half_to_float(words[4 + at / 2] >> 16 * (at % 2) & 0xFFFFU);
  }
  Vector vertex(unsigned number) const {
    return {as_float(words[3 * number]), as_float(words[3 * number + 1]), as_float(words[3 * number + 2])};
  }
};

Answer boxes(const Node& node, const Ray& ray, const Hierarchy& hierarchy, bool halves) {
  std::array<std::pair<float, Word>, 4> found;
  for (unsigned child = 0; child < 4; ++child) {
    float near = 0, far = ray.extent;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const float low = grown(node.box(child, axis, halves), hierarchy.growth, false);
      const float high = grown(node.box(child, 3 + axis, halves), hierarchy.growth, true);
      const float first = (low - ray.origin[axis]) * ray.inverse[axis];
      const float second = (high - ray.origin[axis]) * ray.inverse[axis];
      near = std::fmax(near, std::fmin(first, second));
      far = std::fmin(far, std::fmax(first, second));
    }
    const bool exists = node.words[child] != no_node && !std::isnan(node.box(child, 0, halves));
    const bool hit = exists && near <= far;
    found[child] = {hit ? near : std::numeric_limits<float>::infinity(), hit ? node.words[child] : no_node};
  }
  if (hierarchy.sorted) {
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.first < b.first || (a.first == b.first && a.second != no_node && b.second == no_node);
    });
  }
  return {found[0].second, found[1].second, found[2].second, found[3].second};
}

Answer triangle(const Node& node, const Ray& ray, const Hierarchy& hierarchy, unsigned number) {
  constexpr std::uint8_t corners[4][3] = {{0, 1, 2}, {1, 3, 2}, {2, 3, 4}, {2, 4, 0}};
  const auto size = [&](unsigned axis) { return std::fabs(ray.direction[axis]); };
  const unsigned z = size(0) >= size(1) && size(0) >= size(2) ? 0 : size(1) >= size(2) ? 1 : 2;
  unsigned x = (z + 1) % 3, y = (z + 2) % 3;
  if (ray.direction[z] < 0) std::swap(x, y);
  const float scale = 1 / ray.direction[z], slope_x = ray.direction[x] * scale, slope_y = ray.direction[y] * scale;
  Vector px{}, py{}, pz{};
  for (unsigned i = 0; i < 3; ++i) {
    const Vector vertex = node.vertex(corners[number][i]);
    const float depth = vertex[z] - ray.origin[z];
    px[i] = vertex[x] - ray.origin[x] - slope_x * depth;
    py[i] = vertex[y] - ray.origin[y] - slope_y * depth;
    pz[i] = scale * depth;
  }
  const Vector weight = {px[2] * py[1] - py[2] * px[1], px[0] * py[2] - py[0] * px[2], px[1] * py[0] - py[1] * px[0]};
  const float whole = weight[0] + (weight[1] + weight[2]);
  const float t = weight[0] * pz[0] + (weight[1] * pz[1] + weight[2] * pz[2]);
  const bool front = weight[0] >= 0 && weight[1] >= 0 && weight[2] >= 0;
  const bool back = weight[0] <= 0 && weight[1] <= 0 && weight[2] <= 0;
  const bool hit = (front || back) && whole != 0 && (whole < 0 ? t <= 0 : t >= 0);
  const Word id = node.words[15];
  const Word infinite = as_bits(std::numeric_limits<float>::infinity()), one = as_bits(1.0F);
  if (!hierarchy.barycentric) return {hit ? as_bits(t) : infinite, hit ? as_bits(whole) : one, id, hit ? 1U : 0U};
  if (!hit) return {infinite, one, 0, 0};
  // Which of the three corners the two coordinates belong to.
  const unsigned first = id >> 8 * number & 3U, second = id >> (8 * number + 2) & 3U;
  return {as_bits(t), as_bits(whole), as_bits(weight[std::min(first, 2U)]), as_bits(weight[std::min(second, 2U)])};
}

template <bool Wide64>
Next intersect_ray(Wave& wave, const Op& op) {
  const Instruction& in = wave.block->decoded[op.index].instruction;
  const Hierarchy hierarchy(wave.scalar + op.sdst);
  constexpr unsigned resource_type = 8;
  if (hierarchy.type != resource_type) {
    refuse(wave, op, FaultKind::bad_state,
           "resource of type " + std::to_string(hierarchy.type) + " in place of a hierarchy");
    return Next::fault;
  }
  const Global global(wave, op);
  for (unsigned half = 0; half < wave.halves; ++half) {
    for (Word left = wave.exec(half); left != 0; left &= left - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(left));
      unsigned next = 0;
      const auto word = [&] { return wave.row(in.image.address[next++] + scratch_rows, half)[i]; };
      Wide pointer = word();
      if (Wide64) pointer |= static_cast<Wide>(word()) << 32U;
      Ray ray;
      ray.extent = as_float(word());
      for (float& each : ray.origin) each = as_float(word());
      if (!in.image.a16) {
        for (float& each : ray.direction) each = as_float(word());
        for (float& each : ray.inverse) each = as_float(word());
      } else {
        float six[6];
        for (unsigned at = 0; at < 6; at += 2) {
          const Word two = word();
          six[at] = half_to_float(two & 0xFFFFU);
          six[at + 1] = half_to_float(two >> 16U);
        }
        // gfx11 has a component of both in a word, the inverse first.
        const bool mixed = wave.generation == Generation::gfx11;
        for (unsigned axis = 0; axis < 3; ++axis) {
          ray.direction[axis] = mixed ? six[2 * axis + 1] : six[axis];
          ray.inverse[axis] = mixed ? six[2 * axis] : six[3 + axis];
        }
      }
      constexpr unsigned half_boxes = 4, float_boxes = 5, unit = 64;
      const unsigned type = pointer & 7U;
      const Wide offset = (pointer & ~Wide{7}) << 3U;
      Answer answer{no_node, no_node, no_node, no_node};
      if (type <= float_boxes && offset / unit <= hierarchy.last) {
        Node node;
        const Wide address = sign_extended((hierarchy.base + offset) & 0xFFFF'FFFF'FFFFU);
        const unsigned bytes = type == float_boxes ? 2 * unit : unit;
        if (!global.load(half * group + i, address, node.words.data(), bytes)) return Next::fault;
        answer =
            type >= half_boxes ? boxes(node, ray, hierarchy, type == half_boxes) : triangle(node, ray, hierarchy, type);
      }
      for (unsigned c = 0; c < 4; ++c) wave.row(op.vdst + c, half)[i] = answer[c];
    }
  }
  return Next::go;
}

constexpr Semantics ray_entries[] = {{"bvh_intersect_ray", &intersect_ray<false>},
                                     {"bvh64_intersect_ray", &intersect_ray<true>}};

}  // namespace

SemanticsList image_ray() noexcept { return {ray_entries, std::size(ray_entries)}; }

}  // namespace kiln::simulator::memory_unit
