#include "kiln/clock.hpp"
#include "places.hpp"
#include "pm4/submitter.hpp"
#include "support/plugin_under_test.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <stdexcept>
#include <vector>

namespace {

thread_local std::uint64_t total_ns = 0, calls = 0;

}  // namespace

namespace kiln::bench {

std::uint64_t in_kernel_ns() noexcept { return total_ns; }
std::uint64_t kernel_calls() noexcept { return calls; }

}  // namespace kiln::bench

// In front of the simulator's, which is preloaded: an executable's own comes first.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  using Ioctl = int (*)(int, unsigned long, ...);
  static const Ioctl next = reinterpret_cast<Ioctl>(dlsym(RTLD_NEXT, "ioctl"));
  std::va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const std::uint64_t begin = kiln::now_ns();
  const int result = next(fd, request, argument);
  total_ns += kiln::now_ns() - begin;
  ++calls;
  return result;
}

namespace kiln::bench {
namespace {

template <class T>
T expect(Result<T> result, const char* doing) {
  if (!result) throw std::runtime_error(std::string(doing) + ": " + result.error().text());
  return std::move(result).value();
}

class KilnSubmitter final : public Submitter {
 public:
  explicit KilnSubmitter(KilnPlugin plugin)
      : vulkan_(plugin == KilnPlugin::vulkan), plugin_(vulkan_ ? "vulkan" : "amdgpu_pm4", {}, plugins_folder()) {
    std::string there;
    for (const DeviceInfo& info : plugin_.driver().enumerate()) {
      const bool fits = info.usable && (vulkan_ || info.kind == DeviceKind::simulated);
      if (device_ == nullptr && fits) device_ = plugin_.open(info.id);
      there += "; " + info.id + " " + info.why_not;
    }
    if (device_ == nullptr) throw std::runtime_error("no such device: start it by `kiln simulate --`" + there);
    KernelSource source;
    if (vulkan_) {
      source.dialect = Dialect::glsl;
      source.text =
          "#version 430\n"
          "layout(local_size_x = 64) in;\n"
          "layout(std430, binding = 0) buffer Y { uint y[]; };\n"
          "void main() { y[gl_GlobalInvocationID.x] += 1u; }\n";
    } else {
      source.dialect = Dialect::opencl_c;
      source.entry = "add";
      source.text =
          "__attribute__((reqd_work_group_size(64, 1, 1)))\n"
          "kernel void add(global uint* y) { y[get_global_id(0)] += 1; }\n";
    }
    source.bindings = {Access::read_write};
    source.workgroup = {lanes, 1, 1};
    program_ = expect(device_->build(source), "building");
    for (std::size_t i = 0; i < most_buffers; ++i) sums_.push_back(zeros());
  }

  std::string name() override { return "kiln: " + device_->info().name; }

  std::uint64_t submit(std::size_t dispatches, std::size_t buffers) override {
    std::vector<std::array<Buffer*, 1>> bindings;
    for (std::size_t i = 0; i < buffers; ++i) bindings.push_back({sums_[i].get()});
    std::vector<PassLaunch> passes;
    for (std::size_t i = 0; i < dispatches; ++i) {
      passes.push_back({program_.get(), bindings[i % buffers], {1, 1, 1}});
      passes.back().waits = i % buffers == 0;
    }
    const std::uint64_t kernel_before = in_kernel_ns();
    const std::uint64_t begin = now_ns();
    const auto value = device_->submit({passes});
    const std::uint64_t wall = now_ns() - begin;
    const std::uint64_t kernel = in_kernel_ns() - kernel_before;
    const bool simulated = device_->info().kind == DeviceKind::simulated;
    if (simulated && kernel == 0)
      throw std::runtime_error("the kernel's part was not seen: another ioctl() came first");
    expect(device_->wait(expect(value, "submitting"), Deadline::never()), "waiting");
    for (std::size_t i = 0; i < dispatches; ++i) ++expected_[i % buffers];
    return wall - kernel;
  }

  void check() override {
    std::vector<std::uint32_t> values(lanes);
    for (std::size_t i = 0; i < most_buffers; ++i) {
      const Status status = sums_[i]->read(0, std::as_writable_bytes(std::span(values)));
      if (!status.ok()) throw std::runtime_error(status.text());
      if (values != std::vector<std::uint32_t>(lanes, expected_[i])) throw std::runtime_error("kiln: a sum is wrong");
    }
  }

 private:
  std::unique_ptr<Buffer> zeros() {
    BufferDesc desc;
    desc.bytes = lanes * sizeof(std::uint32_t);
    desc.usage = BufferUsage::readback;
    auto made = expect(device_->create_buffer(desc), "a buffer");
    const std::vector<std::uint32_t> values(lanes, 0);
    const Status status = made->write(0, std::as_bytes(std::span(values)));
    if (!status.ok()) throw std::runtime_error(status.text());
    return made;
  }

  bool vulkan_;
  support::PluginUnderTest plugin_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<Buffer>> sums_;
  std::array<std::uint32_t, most_buffers> expected_{};
};

}  // namespace

std::unique_ptr<Submitter> make_kiln_submitter(KilnPlugin plugin) { return std::make_unique<KilnSubmitter>(plugin); }

}  // namespace kiln::bench
