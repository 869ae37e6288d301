// The conformance library's subject: the first Vulkan device, with the generator of dynamic_shaders where it is built.
#include "vulkan/vulkan_under_test.hpp"

#include <catch2/catch.hpp>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <kiln/program_interface.hpp>
#include <kiln/program_record.hpp>

#include "codec/glslang_module.hpp"

#ifdef KILN_HAS_GENERATOR
#include "conformance/subject.hpp"
#endif

namespace kiln::support {
namespace {

class NoMessages final : public LogSink {
 public:
  static Log log() {
    static NoMessages messages;
    return {&messages, LogLevel::warning};
  }
  void write(LogLevel, std::string_view, std::string_view message) noexcept override {
    if (!message.starts_with("validation: ")) return;
    std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
    std::abort();
  }
};

}  // namespace

Vulkan::Vulkan() {
  for (const bool validation : {true, false}) {
    plugin_ = std::make_unique<PluginUnderTest>("vulkan", PluginSettings{{"validation", validation}});
    plugin_->listen(NoMessages::log());
    auto opened = plugin_->driver().open("vulkan:0");
    if (opened) {
      device_ = std::move(*opened);
      validates_ = validation;
      if (std::getenv("KILN_SIM_TARGET") != nullptr && device_->info().kind != DeviceKind::simulated) {
        throw std::runtime_error("vulkan:0 is " + device_->info().name + ", expected the simulated card");
      }
      return;
    }
    absent_ = opened.error().message;
  }
}

Vulkan& Vulkan::instance() {
  static auto* const only = new Vulkan;  // never destroyed: the driver's exit handlers run before
  return *only;
}

bool Vulkan::usable() const {
  if (device_ != nullptr) return true;
  WARN("skipped: " << absent_);
  return false;
}

FaultyVulkan::FaultyVulkan(Variables variables, PluginSettings settings) : variables_(variables) {
  for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  settings.emplace("validation", Vulkan::instance().validates());
  settings.emplace("vulkan_library", std::string(KILN_FAULTY_LOADER));
  plugin_ = std::make_unique<PluginUnderTest>("vulkan", std::move(settings));
  plugin_->listen(NoMessages::log());
}

FaultyVulkan::~FaultyVulkan() {
  plugin_.reset();
  for (const auto& [name, value] : variables_) unsetenv(name.c_str());
}

namespace {

Status run_program(Device& device, const Program& program, const KernelSource& source, const UserKernelSpec& kernel,
                   std::vector<std::vector<std::byte>>& tensors) {
  auto sources = provide(*program.interface(source), kernel);
  if (!sources) return sources.error();
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> bindings;
  for (const std::vector<std::byte>& tensor : tensors) {
    BufferDesc desc;
    desc.bytes = tensor.size();
    desc.usage = BufferUsage::readback;
    auto buffer = device.create_buffer(desc);
    if (!buffer) return buffer.error();
    if (Status status = (*buffer)->write(0, tensor); !status.ok()) return status;
    bindings.push_back(buffer->get());
    buffers.push_back(std::move(*buffer));
  }
  const PassLaunch launch{&program, bindings, kernel.grid, *sources};
  auto value = device.submit({std::span(&launch, 1)});
  if (!value) return value.error();
  if (const auto fence = device.wait(*value, Deadline::never()); !fence) {
    [[maybe_unused]] const auto ended = device.wait(*value, Deadline::never());  // before its buffers go
    return fence.error();
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (Status status = buffers[i]->read(0, tensors[i]); !status.ok()) return status;
  }
  return {};
}

std::vector<std::byte> record_of(const ProgramInterface& declared) {
  std::vector<std::byte> bytes;
  RecordWriter{bytes}(declared);
  return bytes;
}

}  // namespace

Status run_kernel(const UserKernelSpec& kernel, std::vector<std::vector<std::byte>>& tensors, Device& device) {
  KernelSource source;
  source.dialect = kernel.dialect;
  source.text = kernel.text;
  source.entry = kernel.entry;
  source.constants = kernel.constants;
  source.workgroup = kernel.workgroup;
  source.bindings.resize(tensors.size(), Access::read_write);
  source.files = {kernel.path};
  const auto built = device.build(source);
  if (!built) return built.error();
  auto again = tensors;
  if (Status status = run_program(device, **built, source, kernel, tensors); !status.ok()) return status;
  const auto binary = device.serialize(**built);
  if (!binary) return binary.error();
  const auto loaded = device.load(source, *binary);
  if (!loaded) return loaded.error();
  CHECK(record_of(*(*loaded)->interface(source)) == record_of(*(*built)->interface(source)));
  if (Status status = run_program(device, **loaded, source, kernel, again); !status.ok()) return status;
  CHECK(again == tensors);
  return {};
}

std::string module_of(const KernelSource& source) {
  static void* const library = dlopen(KILN_PLUGIN_DIR "/../libkiln_glslang.so", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto* glslang = static_cast<const vulkan::GlslangModule*>(dlsym(library, vulkan::glslang_module_symbol));
  REQUIRE(glslang != nullptr);
  const auto compiled = glslang->compile(source, {}, vulkan::LineNumbers::none);
  REQUIRE(compiled);
  const auto* begin = reinterpret_cast<const char*>(compiled->words.data());
  return {begin, compiled->words.size() * sizeof(std::uint32_t)};
}

}  // namespace kiln::support

#ifdef KILN_HAS_GENERATOR
namespace kiln::conformance {

Subject& subject() {
  static Subject* const only = [] {
    auto* made = new Subject;
    support::Vulkan& vulkan = support::Vulkan::instance();
    made->device = vulkan.device();
    made->absent = vulkan.absent();
    made->driver = &vulkan.plugin().driver();
    made->counters = &vulkan.plugin().counters();
    made->dialect = Dialect::glsl;
    static auto* const shaders = new support::PluginUnderTest("dynamic_shaders");
    auto generators = shaders->registry().generators("dynamic_shaders");
    if (!generators) throw std::runtime_error(generators.error().text());
    auto generator = generators->front()->make({});
    if (!generator) throw std::runtime_error(generator.error().text());
    made->generator = std::move(*generator);
    return made;
  }();
  return *only;
}

}  // namespace kiln::conformance
#endif
