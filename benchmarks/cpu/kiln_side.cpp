#include "cpu/kiln_side.hpp"

#include "places.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace kiln::bench {
namespace {

template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

}  // namespace

KilnCpu::KilnCpu() {
  const Log log{&notes_, LogLevel::info};
  const std::string path = plugins_folder() / "cpu.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto* entry = static_cast<const PluginEntry*>(dlsym(library, plugin_entry_symbol));
  if (entry == nullptr) throw std::runtime_error(path + ": no entry");
  if (const Status status = entry->register_fn(registry_, {entry->note.name, log}); !status.ok()) {
    throw std::runtime_error(status.text());
  }
  driver_ = need(registry_.drivers().at("cpu").make({log, nullptr, {}, nullptr, {}}));
  device_ = need(driver_->open("cpu"));
}

std::string KilnCpu::chosen() const {
  const auto begin = notes_.last.find("chosen ");
  const auto end = notes_.last.find(" of ", begin == std::string::npos ? 0 : begin);
  return begin == std::string::npos ? "the only one" : notes_.last.substr(begin + 7, end - begin - 7);
}

KilnCall::KilnCall(Device& device, Problem& problem) : device_(device) {
  KernelSource source;
  source.dialect = Dialect::library;
  source.spec = problem.spec;
  source.text = canonical_text(problem.spec);
  program_ = need(device.build(source));
  wrap(problem.input, BufferUsage::upload);
  wrap(problem.weights, BufferUsage::constant);
  wrap(problem.kiln_output, BufferUsage::readback);
}

void KilnCall::run() {
  const PassLaunch pass{program_.get(), bindings_, {1, 1, 1}};
  need(device_.wait(need(device_.submit({{&pass, 1}})), Deadline::never()));
}

void KilnCall::wrap(Tensor& tensor, BufferUsage usage) {
  BufferDesc desc;
  desc.host = tensor.held->bytes();
  desc.bytes = desc.host.size();
  desc.usage = usage;
  buffers_.push_back(need(device_.create_buffer(desc)));
  bindings_.push_back(buffers_.back().get());
}

}  // namespace kiln::bench
