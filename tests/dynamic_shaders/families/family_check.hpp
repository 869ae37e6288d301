// What the families' tests share: the OpenGL device, seeded shapes, and the check of one plan on it.
//
// Thread-safety: on a test's own thread: the checks assert with Catch2. Ownership: the device is the binary's.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::dynamic_shaders {

// Null: there is none on this machine; the test warns why and shall return.
Device* device_under_test();

std::size_t shapes_wanted();  // of a family: 24, with a sanitizer 3, in the long form 300

// A seeded source of choices, the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next();
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[next() % values.size()];
  }

 private:
  std::uint64_t state_;
};

// A small product of matrices of any extents.
GemmSpec draw_any_product(Dice& dice);

// Runs the plan twice, on fractions, and with its groups shuffled on integers, and checks: the whole output against the
// double-precision reference, fractions within the derived bound, integers bit for bit (but where the spec allows
// Winograd's error), canaries behind every buffer, inputs unchanged.
void check_plan(const KernelSpec& spec, const KernelPlan& plan, std::uint64_t seed);

}  // namespace kiln::dynamic_shaders
