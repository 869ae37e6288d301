#include "core/runtime/runtime_fixture.hpp"

#include <stdlib.h>

#include <stdexcept>

namespace kiln::test {
namespace {

// Hands every spec through as one pass of the dialect `library`, which the fixture device runs; users' kernels too,
// where they are written in OpenCL C and the device says that it reads that.
class Forwarder final : public KernelGenerator {
 public:
  explicit Forwarder(std::atomic<int>& learned) : learned_(learned) {}

  std::span<const Dialect> dialects() const noexcept override { return dialects_; }
  Result<KernelPlan> generate(const KernelSpec& spec, const DeviceInfo&, Dialect) noexcept override {
    return forwarded(spec, "forwarded", canonical_text(spec));
  }
  Result<KernelPlan> generate_variant(const KernelSpec& spec, const DeviceInfo&, Dialect,
                                      std::string_view variant) noexcept override {
    return forwarded(spec, std::string(variant), canonical_text(spec) + " " + std::string(variant));
  }
  // One program for a convolution with and without its activation, which it leaves out.
  std::vector<KernelPlan> generic_plans(const KernelSpec& spec, const DeviceInfo&, Dialect) noexcept override {
    KernelSpec plain = spec;
    if (auto* conv = std::get_if<Conv2dSpec>(&plain)) conv->activation = Activation::none;
    return {forwarded(plain, "stands in", "any " + canonical_text(plain))};
  }
  void record(const KernelSpec&, const DeviceInfo&, std::string_view, const Measurement&) noexcept override {
    ++learned_;
  }

 private:
  static KernelPlan forwarded(const KernelSpec& spec, const std::string& variant, const std::string& text) {
    KernelPlan plan;
    plan.variant = variant;
    plan.tensors = tensors_of(spec);
    Pass pass;
    pass.source.dialect = Dialect::library;
    pass.source.text = text;
    pass.source.spec = spec;
    for (std::uint32_t i = 0; i < plan.tensors.size(); ++i) {
      const TensorRole role = plan.tensors[i].role;
      pass.source.bindings.push_back(role == TensorRole::output  ? Access::write
                                     : role == TensorRole::inout ? Access::read_write
                                                                 : Access::read);
      pass.bindings.push_back({BindingSource::tensor, i});
    }
    plan.passes.push_back(std::move(pass));
    return plan;
  }

  std::atomic<int>& learned_;
  Dialect dialects_[2] = {Dialect::library, Dialect::opencl_c};
};

class OneDeviceDriver final : public Driver {
 public:
  explicit OneDeviceDriver(const support::FixtureOptions& options) : options_(options) {}
  std::vector<DeviceInfo> enumerate() noexcept override { return {options_.info}; }
  Result<std::unique_ptr<Device>> open(std::string_view) noexcept override {
    return std::unique_ptr<Device>(std::make_unique<support::FixtureDevice>(options_));
  }

 private:
  support::FixtureOptions options_;
};

std::shared_ptr<HostTensor> filled(Shape shape) {
  auto tensor = HostTensor::create(DType::f32, std::move(shape)).value();
  std::uint32_t state = 12345;
  for (float& value : tensor->as<float>()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
  }
  return tensor;
}

}  // namespace

RuntimeFixture::RuntimeFixture() {
  std::string pattern = (std::filesystem::temp_directory_path() / "kiln-runtime-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
  config.cache.directory = folder_ / "cache";
  config.cache.key_file = folder_ / "key";
  config.generator.name = "forwarder";
  if (!register_core(registry).ok()) throw std::runtime_error("register_core");
  (void)registry.add_generator("test", "forwarder", {Dialect::library, Dialect::opencl_c},
                               [this](const GeneratorContext&) {
                                 return Result<std::unique_ptr<KernelGenerator>>(std::make_unique<Forwarder>(learned));
                               });
  for (const std::string name : {"alpha", "beta"}) {
    support::FixtureOptions options;
    options.info = support::fixture_info(name);
    options.info.dialects = {Dialect::library};
    options_.emplace(name, options);
    (void)registry.add_driver("test", name, [this, name](const DriverContext& context) {
      support::FixtureOptions now = options_.at(name);
      now.counters = context.counters;
      return Result<std::unique_ptr<Driver>>(std::make_unique<OneDeviceDriver>(now));
    });
  }
}

RuntimeFixture::~RuntimeFixture() {
  runtime_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Runtime& RuntimeFixture::runtime() {
  if (runtime_ == nullptr) {
    auto made = Runtime::create(config, registry, log, trace);
    if (!made) throw std::runtime_error(made.error().text());
    runtime_ = std::move(made).value();
  }
  return *runtime_;
}

RunRequest small_conv2d() {
  Conv2dSpec spec;
  spec.c = 4, spec.h = 6, spec.w = 6, spec.k = 3, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
  RunRequest request;
  request.name = "small";
  request.spec = spec;
  request.verify = true;
  request.tensors = {{filled({1, 4, 6, 6}), nullptr},
                     {nullptr, Constant::create(filled({3, 4, 3, 3}))},
                     {filled({1, 3, 6, 6}), nullptr}};
  return request;
}

RunRequest small_gemm() {
  RunRequest request;
  request.name = "product";
  request.spec = GemmSpec{5, 4, 7};
  request.verify = true;
  request.tensors = {{filled({5, 7}), nullptr}, {nullptr, Constant::create(filled({7, 4}))}, {filled({5, 4}), nullptr}};
  return request;
}

}  // namespace kiln::test
