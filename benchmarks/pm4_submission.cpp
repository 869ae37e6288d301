// What a dispatch costs the thread that submits it, through the plugin amdgpu_pm4 on the simulated device: the wall of
// Device::submit() less what it spends in the kernel's interface, divided by the dispatches. Everything else is in it:
// arguments, packets, buffer list, the check before the submission. The kernel is y[i] += x[i] for 64 lanes.
//
// usage: kiln simulate -- pm4_submission [ROUNDS]
// in order: all dispatches add to one buffer, and each has a barrier before it. apart: to 16 buffers in turns.
//
// The simulation shares the cores, and its time says nothing: only the submitting thread's is told. Every sum is
// checked.
#include "support/plugin_under_test.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace {

using namespace kiln;

thread_local std::uint64_t in_kernel_ns = 0;

}  // namespace

// In front of the simulator's, which is preloaded: an executable's own comes first.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  using Ioctl = int (*)(int, unsigned long, ...);
  static const Ioctl next = reinterpret_cast<Ioctl>(dlsym(RTLD_NEXT, "ioctl"));
  std::va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const std::uint64_t begin = now_ns();
  const int result = next(fd, request, argument);
  in_kernel_ns += now_ns() - begin;
  return result;
}

namespace {

constexpr std::uint32_t lanes = 64;
constexpr std::size_t most_buffers = 16;

template <class T>
T expect(Result<T> result, const char* doing) {
  if (!result) throw std::runtime_error(std::string(doing) + ": " + result.error().text());
  return std::move(result).value();
}

struct Bench {
  support::PluginUnderTest plugin{"amdgpu_pm4"};
  std::shared_ptr<Device> device;
  std::unique_ptr<Program> program;
  std::unique_ptr<Buffer> ones;
  std::vector<std::unique_ptr<Buffer>> sums;
  std::vector<std::uint32_t> expected = std::vector<std::uint32_t>(most_buffers);

  Bench() {
    std::string there;
    for (const DeviceInfo& info : plugin.driver().enumerate()) {
      if (device == nullptr && info.usable && info.kind == DeviceKind::simulated) device = plugin.open(info.id);
      there += "; " + info.id + " " + info.why_not;
    }
    if (device == nullptr) throw std::runtime_error("no simulated device: start it by `kiln simulate --`" + there);
    KernelSource source;
    source.dialect = Dialect::opencl_c;
    source.entry = "add";
    source.text =
        "__attribute__((reqd_work_group_size(64, 1, 1)))\n"
        "kernel void add(global const uint* x, global uint* y) { y[get_global_id(0)] += x[get_global_id(0)]; }\n";
    source.bindings = {Access::read, Access::read_write};
    source.workgroup = {lanes, 1, 1};
    program = expect(device->build(source), "building");
    ones = buffer(BufferUsage::upload, 1);
    for (std::size_t i = 0; i < most_buffers; ++i) sums.push_back(buffer(BufferUsage::readback, 0));
  }

  std::unique_ptr<Buffer> buffer(BufferUsage usage, std::uint32_t value) {
    BufferDesc desc;
    desc.bytes = lanes * sizeof value;
    desc.usage = usage;
    auto made = expect(device->create_buffer(desc), "a buffer");
    const std::vector<std::uint32_t> values(lanes, value);
    const Status status = made->write(0, std::as_bytes(std::span(values)));
    if (!status.ok()) throw std::runtime_error(status.text());
    return made;
  }

  void check() {
    std::vector<std::uint32_t> values(lanes);
    for (std::size_t i = 0; i < most_buffers; ++i) {
      const Status status = sums[i]->read(0, std::as_writable_bytes(std::span(values)));
      if (!status.ok()) throw std::runtime_error(status.text());
      if (values != std::vector<std::uint32_t>(lanes, expected[i])) throw std::runtime_error("a sum is wrong");
    }
  }

  // Per dispatch, of each round; sorted.
  std::vector<double> run(std::size_t dispatches, std::size_t buffers, std::size_t rounds) {
    std::vector<std::array<Buffer*, 2>> bindings;
    for (std::size_t i = 0; i < buffers; ++i) bindings.push_back({ones.get(), sums[i].get()});
    std::vector<PassLaunch> passes;
    for (std::size_t i = 0; i < dispatches; ++i) passes.push_back({program.get(), bindings[i % buffers], {1, 1, 1}});
    std::vector<double> us;
    for (std::size_t round = 0; round < rounds + rounds / 10 + 1; ++round) {
      in_kernel_ns = 0;
      const std::uint64_t begin = now_ns();
      const auto value = device->submit({passes});
      const std::uint64_t ns = now_ns() - begin - in_kernel_ns;
      if (in_kernel_ns == 0) throw std::runtime_error("the kernel's part was not seen: another ioctl() came first");
      expect(device->wait(expect(value, "submitting"), Deadline::never()), "waiting");
      for (std::size_t i = 0; i < dispatches; ++i) ++expected[i % buffers];
      if (round > rounds / 10) us.push_back(static_cast<double>(ns) / 1e3 / static_cast<double>(dispatches));
    }
    check();
    std::sort(us.begin(), us.end());
    return us;
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t rounds = argc > 1 ? std::max(1ul, std::strtoul(argv[1], nullptr, 10)) : 200;
  Bench bench;
  std::printf("%s, %zu rounds\nus a dispatch on the submitting thread, less the kernel's part\n",
              bench.device->info().name.c_str(), rounds);
  std::printf("%-10s%12s%10s%10s%10s\n", "", "dispatches", "least", "median", "95 %");
  for (const std::size_t buffers : {std::size_t{1}, most_buffers}) {
    for (const std::size_t dispatches : {1u, 16u, 256u, 1024u}) {
      const std::vector<double> us = bench.run(dispatches, buffers, rounds);
      std::printf("%-10s%12zu%10.3f%10.3f%10.3f\n", buffers == 1 ? "in order" : "apart", dispatches, us.front(),
                  us[us.size() / 2], us[us.size() * 95 / 100]);
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "pm4_submission: %s\n", error.what());
  return 1;
}
