#include "conformance/checks.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

namespace kiln::conformance {

bool present() {
  if (subject().device != nullptr) return true;
  REQUIRE_FALSE(subject().absent.empty());  // a skip carries its reason
  WARN("skipped: " << subject().absent);
  return false;
}

KernelPlan plan_for(const KernelSpec& spec) {
  INFO(canonical_text(spec));
  const Status valid = validate(spec);
  INFO(valid.text());
  REQUIRE(valid.ok());
  auto plan = subject().generator->generate(spec, subject().device->info(), subject().dialect);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  const Status sound = validate(*plan);
  INFO(sound.text());
  REQUIRE(sound.ok());
  REQUIRE(plan->tensors == tensors_of(spec));
  return std::move(plan).value();
}

Conv2dSpec small_conv() {
  Conv2dSpec spec;
  spec.n = 2, spec.c = 3, spec.h = 9, spec.w = 7, spec.k = 5, spec.r = 3, spec.s = 3;
  spec.pad_y = 1, spec.pad_x = 1;
  return spec;
}

std::vector<float> random_values(std::uint64_t seed, std::uint64_t count) {
  std::vector<float> values(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (float& value : values) {  // splitmix64
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t bits = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    const auto steps = static_cast<std::int32_t>((bits >> 40) & 0xffffff) - (1 << 23);
    value = static_cast<float>(steps) / static_cast<float>(1 << 23);
  }
  return values;
}

std::vector<std::vector<float>> random_tensors(const std::vector<TensorDecl>& decls, std::uint64_t seed,
                                               Values values) {
  std::vector<std::vector<float>> tensors;
  for (const TensorDecl& decl : decls) {
    const std::uint64_t count = decl.bytes / sizeof(float);
    std::vector<float>& tensor = tensors.emplace_back(count);
    if (decl.role == TensorRole::output) continue;
    tensor = random_values(seed * 8 + tensors.size(), count);
    if (values == Values::integers) {
      for (float& value : tensor) value = std::floor(value * 4.5F + 0.5F);
    }
  }
  return tensors;
}

bool is_one_of(const Status& status, std::initializer_list<StatusCode> codes) {
  return std::find(codes.begin(), codes.end(), status.code) != codes.end() && !status.message.empty();
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }
std::span<std::byte> bytes_of(std::vector<float>& values) { return std::as_writable_bytes(std::span(values)); }

}  // namespace kiln::conformance
