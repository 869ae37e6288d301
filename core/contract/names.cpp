// The words by which the enumerations of the contract stand in reports, files and messages.
#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/measurement.hpp>
#include <kiln/program_interface.hpp>
#include <kiln/tensor.hpp>
#include <kiln/trace.hpp>
#include <kiln/tuning.hpp>

namespace kiln {

std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::u32:
      return "u32";
    case DType::u8:
      return "u8";
    case DType::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(Activation activation) noexcept {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::relu:
      return "relu";
    case Activation::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(Accuracy accuracy) noexcept {
  switch (accuracy) {
    case Accuracy::direct:
      return "direct";
    case Accuracy::winograd:
      return "winograd";
    case Accuracy::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(View view) noexcept {
  switch (view) {
    case View::storage:
      return "storage";
    case View::texels:
      return "texels";
    case View::image:
      return "image";
    case View::uniforms:
      return "uniforms";
    case View::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(Alpha alpha) noexcept {
  switch (alpha) {
    case Alpha::keep:
      return "keep";
    case Alpha::drop:
      return "drop";
    case Alpha::premultiply:
      return "premultiply";
    case Alpha::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(ResourceKind kind) noexcept {
  switch (kind) {
    case ResourceKind::storage_block:
      return "storage block";
    case ResourceKind::uniform:
      return "uniform";
    case ResourceKind::uniform_block:
      return "uniform block";
    case ResourceKind::image:
      return "image";
    case ResourceKind::sampler:
      return "sampler";
    case ResourceKind::atomic_counter:
      return "atomic counter";
    case ResourceKind::buffer_argument:
      return "buffer argument";
    case ResourceKind::value_argument:
      return "value argument";
    case ResourceKind::local_argument:
      return "local memory argument";
    case ResourceKind::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(Dialect dialect) noexcept {
  switch (dialect) {
    case Dialect::glsl:
      return "glsl";
    case Dialect::opencl_c:
      return "opencl_c";
    case Dialect::library:
      return "library";
    case Dialect::code_object:
      return "code_object";
    case Dialect::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::gpu:
      return "gpu";
    case DeviceKind::software:
      return "software";
    case DeviceKind::simulated:
      return "simulated";
    case DeviceKind::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(Tier tier) noexcept {
  switch (tier) {
    case Tier::built:
      return "built";
    case Tier::disk:
      return "disk";
    case Tier::library:
      return "library";
    case Tier::memory:
      return "memory";
    case Tier::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(Stage stage) noexcept {
  switch (stage) {
    case Stage::job:
      return "job";
    case Stage::queue:
      return "queue";
    case Stage::build:
      return "build";
    case Stage::upload:
      return "upload";
    case Stage::submit:
      return "submit";
    case Stage::device:
      return "device";
    case Stage::readback:
      return "readback";
    case Stage::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(TraceArea area) noexcept {
  switch (area) {
    case TraceArea::runtime:
      return "runtime";
    case TraceArea::cache:
      return "cache";
    case TraceArea::build:
      return "build";
    case TraceArea::selector:
      return "selector";
    case TraceArea::tuner:
      return "tuner";
    case TraceArea::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(TuneDecision decision) noexcept {
  switch (decision) {
    case TuneDecision::faster:
      return "faster";
    case TuneDecision::kept:
      return "kept";
    case TuneDecision::busy:
      return "busy";
    case TuneDecision::invalid:
      break;
  }
  return "invalid";
}

}  // namespace kiln
