// The words of the enumerations, and the facts of image formats, as documents, files and other programs know them.
#include <kiln/config.hpp>
#include <kiln/device.hpp>
#include <kiln/kernel.hpp>
#include <kiln/log.hpp>
#include <kiln/measurement.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/program_interface.hpp>
#include <kiln/tensor.hpp>
#include <kiln/trace.hpp>
#include <kiln/tuning.hpp>

#include <catch2/catch.hpp>

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace kiln;

namespace {

// The words of the values 0, 1 and so on; of all beyond them that of 0.
template <class Enumeration>
void check_words(const std::vector<std::string_view>& words) {
  for (std::size_t value = 0; value < words.size(); ++value) {
    CHECK(to_string(static_cast<Enumeration>(value)) == words[value]);
  }
  CHECK(to_string(static_cast<Enumeration>(words.size())) == words[0]);
  CHECK(to_string(static_cast<Enumeration>(255)) == words[0]);
  CHECK(std::set<std::string_view>(words.begin(), words.end()).size() == words.size());
}

}  // namespace

TEST_CASE("names: every value of an enumeration has a word of its own", "[contract]") {
  check_words<Activation>({"invalid", "none", "relu", "relu6"});
  check_words<Accuracy>({"invalid", "direct", "winograd"});
  check_words<PoolKind>({"invalid", "max", "average"});
  check_words<View>({"invalid", "storage", "texels", "image", "uniforms", "pixels"});
  check_words<TextureFilter>({"automatic", "nearest", "linear"});
  check_words<TextureWrap>({"clamp", "repeat", "mirror", "border"});
  check_words<Alpha>({"invalid", "keep", "drop", "premultiply"});
  check_words<ResourceKind>({"invalid", "storage block", "uniform", "uniform block", "image", "sampler",
                             "atomic counter", "buffer argument", "value argument", "local memory argument",
                             "separate sampler"});
  check_words<Dialect>({"invalid", "glsl", "opencl_c", "library", "code_object"});
  check_words<DeviceKind>({"invalid", "cpu", "gpu", "software", "simulated"});
  check_words<Tier>({"invalid", "built", "remote", "layer", "disk", "library", "memory"});
  check_words<Stage>({"invalid", "job", "queue", "build", "upload", "submit", "device", "readback"});
  check_words<TraceArea>({"invalid", "runtime", "cache", "build", "selector", "tuner"});
  check_words<TuneDecision>({"invalid", "faster", "kept", "busy"});
  check_words<LogLevel>({"invalid", "debug", "info", "warning", "error", "off"});
  check_words<DType>({"invalid", "f32", "f64", "i32", "u32", "u8", "i8", "i16", "u16", "i64", "u64", "f16", "bool"});
}

TEST_CASE("names: element types have numpy's names and sizes", "[contract]") {
  struct Type {
    DType dtype;
    std::string_view numpy;
    std::uint32_t bytes;
  };
  const Type types[] = {{DType::f32, "float32", 4}, {DType::f64, "float64", 8}, {DType::i32, "int32", 4},
                        {DType::u32, "uint32", 4},  {DType::u8, "uint8", 1},    {DType::i8, "int8", 1},
                        {DType::i16, "int16", 2},   {DType::u16, "uint16", 2},  {DType::i64, "int64", 8},
                        {DType::u64, "uint64", 8},  {DType::f16, "float16", 2}, {DType::boolean, "bool", 1}};
  for (const Type& type : types) {
    CHECK(numpy_name(type.dtype) == type.numpy);
    CHECK(dtype_named(type.numpy) == type.dtype);
    CHECK(size_of(type.dtype) == type.bytes);
  }
  CHECK(numpy_name(DType::invalid).empty());
  CHECK(dtype_named("") == DType::invalid);
  CHECK(dtype_named("float") == DType::invalid);
  CHECK(size_of(static_cast<DType>(13)) == 0);
}

// GLSL's names say it all: "rg16_snorm" has two channels of 16 bits, each from -1 to 1.
TEST_CASE("names: an image format is what its name in GLSL says", "[contract]") {
  std::set<std::string_view> names;
  for (std::size_t i = 1; i < image_formats; ++i) {
    const auto format = static_cast<ImageFormat>(i);
    const ImageFormatFacts& facts = facts_of(format);
    const std::string name(facts.name);
    CAPTURE(name);
    names.insert(facts.name);
    CHECK(image_format_named(name) == format);
    if (name == "r11f_g11f_b10f" || name == "rgb10_a2" || name == "rgb10_a2ui") {
      const bool is_float = name == "r11f_g11f_b10f", is_integer = name == "rgb10_a2ui";
      CHECK(facts.packed);
      CHECK(facts.channels == (is_float ? 3u : 4u));
      CHECK(facts.kind == (is_float ? TexelKind::real : is_integer ? TexelKind::integer : TexelKind::normalized));
      CHECK(facts.dtype == (is_float ? DType::f32 : DType::u16));
      continue;
    }
    const std::size_t digits = name.find_first_of("0123456789");
    const int bits = std::stoi(name.substr(digits));
    const std::string kind = name.substr(digits + std::to_string(bits).size());
    CHECK_FALSE(facts.packed);
    CHECK(facts.channels == digits);
    CHECK(size_of(facts.dtype) * 8 == static_cast<std::uint32_t>(bits));
    CHECK(facts.kind == (kind == "f"                      ? TexelKind::real
                         : kind == "i" || kind == "ui"    ? TexelKind::integer
                         : kind == "" || kind == "_snorm" ? TexelKind::normalized
                                                          : TexelKind::invalid));
    const char letter = kind == "f" ? 'f' : kind == "i" || kind == "_snorm" ? 'i' : 'u';
    CHECK(to_string(facts.dtype)[0] == letter);
  }
  CHECK(names.size() == 39);
  CHECK(facts_of(ImageFormat::declared).name == "declared");
  CHECK(facts_of(ImageFormat::declared).channels == 0);
  CHECK(facts_of(static_cast<ImageFormat>(image_formats)).name == "declared");
  CHECK_FALSE(image_format_named("declared"));
  CHECK_FALSE(image_format_named("rgb8"));
  CHECK(facts_of(ImageFormat::rgba8).name == "rgba8");
  CHECK(facts_of(ImageFormat::r8ui).name == "r8ui");
}

TEST_CASE("names: each count of a shared cache has one name, in the order of reports", "[contract]") {
  SharedCounts counts;
  counts.layer_hits = 1, counts.hits = 2, counts.asked = 3, counts.absent = 4, counts.skipped = 5, counts.late = 6;
  counts.failed = 7, counts.closed = 8, counts.bad_length = 9, counts.unknown_key = 10, counts.revoked = 11;
  counts.expired = 12, counts.bad_signature = 13, counts.other_program = 14, counts.bad_payload = 15;
  counts.bad_driver_file = 16, counts.refused = 17, counts.written = 18, counts.write_failed = 19, counts.dropped = 20;
  counts.lease_waits = 21, counts.lease_takeovers = 22, counts.lease_timeouts = 23, counts.unleased_builds = 24;
  std::string text;
  for (const auto& [name, count] : shared_count_names())
    text += std::string(name) + std::to_string(counts.*count) + " ";
  CHECK(text ==
        "layer_hits1 hits2 asked3 absent4 skipped5 late6 failed7 closed8 bad_length9 unknown_key10 revoked11 expired12 "
        "bad_signature13 other_program14 bad_payload15 bad_driver_file16 refused17 written18 write_failed19 dropped20 "
        "lease_waits21 lease_takeovers22 lease_timeouts23 unleased_builds24 ");
}
