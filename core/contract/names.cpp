// The words by which the enumerations of the contract stand in reports, files and messages.
#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/measurement.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/program_interface.hpp>
#include <kiln/tensor.hpp>
#include <kiln/trace.hpp>
#include <kiln/tuning.hpp>

namespace kiln {

std::string_view to_string(Activation activation) noexcept {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::relu:
      return "relu";
    case Activation::relu6:
      return "relu6";
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

std::string_view to_string(PoolKind kind) noexcept {
  switch (kind) {
    case PoolKind::maximum:
      return "max";
    case PoolKind::average:
      return "average";
    case PoolKind::invalid:
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
    case View::pixels:
      return "pixels";
    case View::invalid:
      break;
  }
  return "invalid";
}

std::string_view to_string(TextureFilter filter) noexcept {
  constexpr std::string_view names[] = {"automatic", "nearest", "linear"};
  const auto at = static_cast<std::size_t>(filter);
  return names[at < std::size(names) ? at : 0];
}

std::string_view to_string(TextureWrap wrap) noexcept {
  constexpr std::string_view names[] = {"clamp", "repeat", "mirror", "border"};
  const auto at = static_cast<std::size_t>(wrap);
  return names[at < std::size(names) ? at : 0];
}

namespace {

using enum TexelKind;
// In the order of ImageFormat.
constexpr ImageFormatFacts formats[image_formats] = {
    {"declared"},
    {"rgba32f", 4, real, DType::f32},
    {"rgba16f", 4, real, DType::f16},
    {"rg32f", 2, real, DType::f32},
    {"rg16f", 2, real, DType::f16},
    {"r11f_g11f_b10f", 3, real, DType::f32, true},
    {"r32f", 1, real, DType::f32},
    {"r16f", 1, real, DType::f16},
    {"rgba16", 4, normalized, DType::u16},
    {"rgb10_a2", 4, normalized, DType::u16, true},
    {"rgba8", 4, normalized, DType::u8},
    {"rg16", 2, normalized, DType::u16},
    {"rg8", 2, normalized, DType::u8},
    {"r16", 1, normalized, DType::u16},
    {"r8", 1, normalized, DType::u8},
    {"rgba16_snorm", 4, normalized, DType::i16},
    {"rgba8_snorm", 4, normalized, DType::i8},
    {"rg16_snorm", 2, normalized, DType::i16},
    {"rg8_snorm", 2, normalized, DType::i8},
    {"r16_snorm", 1, normalized, DType::i16},
    {"r8_snorm", 1, normalized, DType::i8},
    {"rgba32i", 4, integer, DType::i32},
    {"rgba16i", 4, integer, DType::i16},
    {"rgba8i", 4, integer, DType::i8},
    {"rg32i", 2, integer, DType::i32},
    {"rg16i", 2, integer, DType::i16},
    {"rg8i", 2, integer, DType::i8},
    {"r32i", 1, integer, DType::i32},
    {"r16i", 1, integer, DType::i16},
    {"r8i", 1, integer, DType::i8},
    {"rgba32ui", 4, integer, DType::u32},
    {"rgba16ui", 4, integer, DType::u16},
    {"rgb10_a2ui", 4, integer, DType::u16, true},
    {"rgba8ui", 4, integer, DType::u8},
    {"rg32ui", 2, integer, DType::u32},
    {"rg16ui", 2, integer, DType::u16},
    {"rg8ui", 2, integer, DType::u8},
    {"r32ui", 1, integer, DType::u32},
    {"r16ui", 1, integer, DType::u16},
    {"r8ui", 1, integer, DType::u8},
};

}  // namespace

const ImageFormatFacts& facts_of(ImageFormat format) noexcept {
  const auto at = static_cast<std::size_t>(format);
  return formats[at < image_formats ? at : 0];
}

std::optional<ImageFormat> image_format_named(std::string_view name) noexcept {
  for (std::size_t i = 1; i < image_formats; ++i) {
    if (formats[i].name == name) return static_cast<ImageFormat>(i);
  }
  return std::nullopt;
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
    case ResourceKind::sampler_state:
      return "separate sampler";
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
    case Tier::remote:
      return "remote";
    case Tier::layer:
      return "layer";
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

std::span<const std::pair<const char*, std::uint64_t SharedCounts::*>> shared_count_names() noexcept {
  static constexpr std::pair<const char*, std::uint64_t SharedCounts::*> names[] = {
      {"layer_hits", &SharedCounts::layer_hits},
      {"hits", &SharedCounts::hits},
      {"asked", &SharedCounts::asked},
      {"absent", &SharedCounts::absent},
      {"skipped", &SharedCounts::skipped},
      {"late", &SharedCounts::late},
      {"failed", &SharedCounts::failed},
      {"closed", &SharedCounts::closed},
      {"bad_length", &SharedCounts::bad_length},
      {"unknown_key", &SharedCounts::unknown_key},
      {"revoked", &SharedCounts::revoked},
      {"expired", &SharedCounts::expired},
      {"bad_signature", &SharedCounts::bad_signature},
      {"other_program", &SharedCounts::other_program},
      {"bad_payload", &SharedCounts::bad_payload},
      {"bad_driver_file", &SharedCounts::bad_driver_file},
      {"refused", &SharedCounts::refused},
      {"written", &SharedCounts::written},
      {"write_failed", &SharedCounts::write_failed},
      {"dropped", &SharedCounts::dropped},
      {"lease_waits", &SharedCounts::lease_waits},
      {"lease_takeovers", &SharedCounts::lease_takeovers},
      {"lease_timeouts", &SharedCounts::lease_timeouts},
      {"unleased_builds", &SharedCounts::unleased_builds},
  };
  return names;
}

}  // namespace kiln
