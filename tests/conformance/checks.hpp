// What the conformance checks share: the device's presence, plans for it, values to compute with.
//
// Thread-safety: present() and plan_for() assert with Catch2, so they are called from a test's own thread; the rest
// from any. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "conformance/subject.hpp"

namespace kiln::conformance {

// Whether there is a device to check. Where not, the running check warns with the subject's reason and shall return.
bool present();

// The plan of the subject's generator for its device; fails the running check where there is none.
KernelPlan plan_for(const KernelSpec& spec);

// A convolution small enough for any device: odd sizes, padding on, several channels.
Conv2dSpec small_conv();

// Values of [-1, 1), the same for the same seed.
std::vector<float> random_values(std::uint64_t seed, std::uint64_t count);

// What a check computes with. fractions: values of [-1, 1), whose sums round, so results are judged by the derived
// bound; in a long sum that bound is wider than a term. integers: of [-4, 4], whose sums are exact in fp32 below 2^20
// terms, so that one term too few or too many is seen in a sum of any length.
enum class Values : std::uint8_t { fractions, integers };

// The tensors of a plan: inputs and constants from the seed, outputs empty of meaning (zeros).
std::vector<std::vector<float>> random_tensors(const std::vector<TensorDecl>& decls, std::uint64_t seed,
                                               Values values = Values::fractions);

// "invalid_argument" is among "invalid_argument unsupported".
bool is_one_of(const Status& status, std::initializer_list<StatusCode> codes);

std::span<const std::byte> bytes_of(const std::vector<float>& values);
std::span<std::byte> bytes_of(std::vector<float>& values);

}  // namespace kiln::conformance
