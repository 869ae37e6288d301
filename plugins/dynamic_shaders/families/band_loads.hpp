// BandLoads: the values of a band of a plane, loaded when first asked for and once each.
//
// A band is what lies between two places of a plane, the border above and below included; bands of one plane begin a
// fixed step apart, so that a value's place is a number counted from its band's beginning, and only the first and the
// last bands can ask for what lies outside. Values are floats or texels of four; a plane is a whole number of them.
// Thread-safety: none. Ownership: borrows the writer.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "dynamic_shaders/dialect/kernel_writer.hpp"

namespace kiln::dynamic_shaders {

class BandLoads {
 public:
  // The binding `x` is loaded. The kernel's text sets `int band`, where the band begins in its plane, and
  // `int first_x`, where it begins in the binding.
  BandLoads(KernelWriter& writer, Element element, std::int64_t bands, std::int64_t step, std::int64_t plane)
      : writer_(writer), element_(element), bands_(bands), step_(step), plane_(plane) {}

  // The variable that holds the value so far from the band's beginning, zero where that lies outside the plane; empty:
  // it does in every band.
  std::string at(std::int64_t place);

 private:
  KernelWriter& writer_;
  Element element_;
  std::int64_t bands_, step_, plane_;  // step from band to band and a plane, in values
  std::set<std::int64_t> loaded_;
};

}  // namespace kiln::dynamic_shaders
