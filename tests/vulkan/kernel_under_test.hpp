// A kernel of a test: its text from an expression, what the job provides, and what it computes.
//
// Thread-safety: from a test's own thread. Ownership: values.
#pragma once

#include <catch2/catch.hpp>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <kiln/program_interface.hpp>

#include "vulkan/vulkan_under_test.hpp"

namespace kiln::vulkan {

using support::bytes_of_values;
using support::lanes;
using support::ramp;
using support::values_of_bytes;
using support::Vulkan;
using Uniform = UserKernelSpec::Uniform;

// A program of 64 lanes that writes y[i], a uint of binding 1, from `expression` of x[i], a uint of binding 0.
inline KernelSource from_words(const std::string& expression) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer X { uint x[]; };\n"
      "layout(std430, binding = 1) writeonly buffer Y { uint y[]; };\n"
      "void main() { uint i = gl_GlobalInvocationID.x; y[i] = " +
      expression + "; }\n";
  source.bindings = {Access::read, Access::write};
  return source;
}

// A program of 64 lanes that adds 1 to each y[i], a uint of binding 0.
inline KernelSource adding_one() {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) buffer Y { uint y[]; };\n"
      "void main() { y[gl_GlobalInvocationID.x] += 1u; }\n";
  source.bindings = {Access::read_write};
  return source;
}

// A kernel of one workgroup that writes `y`, one float for each lane, from `expression`.
class Kernel {
 public:
  // declarations: behind #version and the local size, or with both.
  Kernel(std::string declarations, std::string expression) {
    spec_.dialect = Dialect::glsl;
    spec_.path = "mine.comp";
    if (!declarations.starts_with("#version")) {
      declarations.insert(0, "#version 450\nlayout(local_size_x = 64) in;\n");
    }
    spec_.text = std::move(declarations) +
                 "layout(std430, binding = 9) writeonly buffer Out { float y[]; };\n"
                 "void main() { uint i = gl_LocalInvocationID.x; y[i] = float(" +
                 std::move(expression) + "); }\n";
    UserKernelSpec::Binding out;
    out.access = Access::write;
    out.bytes = lanes * sizeof(float);
    out.name = "Out";
    spec_.bindings = {out};
    tensors_.emplace_back(out.bytes);
  }

  template <class T>
  Kernel& input(const std::vector<T>& values, std::string name, std::optional<std::uint32_t> number = {},
                Access access = Access::read) {
    UserKernelSpec::Binding binding;
    binding.access = access;
    binding.bytes = values.size() * sizeof(T);
    binding.name = std::move(name);
    binding.number = number;
    spec_.bindings.push_back(binding);
    tensors_.push_back(bytes_of_values(values));
    return *this;
  }

  template <class T>
  Kernel& uniform(std::string name, Uniform::Type type, std::vector<std::uint32_t> shape,
                  const std::vector<T>& values) {
    static_assert(sizeof(T) == 8);
    spec_.uniforms.push_back({std::move(name), type, std::move(shape)});
    for (const std::byte byte : bytes_of_values(values)) uniforms_.push_back(byte);
    return *this;
  }
  Kernel& number(std::string name, double value) {
    return uniform(std::move(name), Uniform::Type::number, {}, std::vector<double>{value});
  }
  Kernel& integer(std::string name, std::int64_t value) {
    return uniform(std::move(name), Uniform::Type::integer, {}, std::vector<std::int64_t>{value});
  }

  // shape: as a job has it, [H, W, channels].
  template <class T>
  Kernel& texture(BindingKind kind, Access access, std::string name, const std::vector<T>& values, DType dtype,
                  Shape shape, TextureFilter filter = TextureFilter::automatic) {
    UserKernelSpec::Binding binding;
    binding.kind = kind;
    binding.access = access;
    binding.bytes = values.size() * sizeof(T);
    binding.dtype = dtype;
    binding.shape = std::move(shape);
    binding.name = std::move(name);
    binding.filter = filter;
    spec_.bindings.push_back(binding);
    tensors_.push_back(bytes_of_values(values));
    return *this;
  }
  // The image that was added last becomes a PNG.
  Kernel& shown() {
    spec_.bindings.back().shown = true;
    return *this;
  }
  // A sampler of its own.
  Kernel& sampler(std::string name, TextureFilter filter = TextureFilter::automatic,
                  TextureWrap wrap = TextureWrap::clamp) {
    UserKernelSpec::Binding binding;
    binding.kind = BindingKind::sampler_state;
    binding.access = Access::read;
    binding.name = std::move(name);
    binding.filter = filter;
    binding.wrap = wrap;
    spec_.bindings.push_back(binding);
    return *this;
  }
  Kernel& constant(std::string name, std::string text) {
    spec_.constants.push_back({std::move(name), std::move(text)});
    return *this;
  }
  Kernel& workgroup(std::array<std::uint32_t, 3> size) {
    spec_.workgroup = size;
    return *this;
  }
  // Runs on this device, not on Vulkan::instance()'s.
  Kernel& on(Device& device) {
    device_ = &device;
    return *this;
  }
  const std::vector<std::byte>& tensor(std::size_t i) const { return tensors_[i]; }

  Status run() {
    if (!spec_.uniforms.empty()) tensors_.push_back(uniforms_);
    return support::run_kernel(spec_, tensors_, device_ == nullptr ? *Vulkan::instance().device() : *device_);
  }
  std::vector<float> result() const { return values_of_bytes<float>(tensors_[0]); }

 private:
  UserKernelSpec spec_;
  std::vector<std::vector<std::byte>> tensors_;
  std::vector<std::byte> uniforms_;
  Device* device_ = nullptr;
};

inline void check(Kernel kernel, const std::vector<float>& first) {
  const Status status = kernel.run();
  INFO(status.text());
  REQUIRE(status.ok());
  const std::vector<float> all = kernel.result();
  for (std::size_t i = 0; i < first.size(); ++i) {
    INFO("lane " << i);
    CHECK(all[i] == first[i]);
  }
}

inline void refuse(Kernel kernel, const std::string& words) {
  const Status status = kernel.run();
  INFO(status.text());
  REQUIRE_FALSE(status.ok());
  CHECK((status.code == StatusCode::invalid_argument || status.code == StatusCode::unsupported));
  CHECK_THAT(status.message, Catch::Contains(words));
}

}  // namespace kiln::vulkan
