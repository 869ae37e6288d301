#include <kiln/data.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/data/random_of.hpp"
#include "core/data/scratch_folder.hpp"
#include "data/npy.hpp"
#include "data/tensor_source.hpp"
#include "support/test_length.hpp"

using namespace kiln;
using kiln::test::random_of;
using kiln::test::ScratchFolder;
using kiln::test::write_contents;

TEST_CASE("tensor source: random:SEED has the dtype and shape asked for", "[tensor_source]") {
  const auto tensor = data::load_tensor("random:5", "/nowhere", {DType::f32, {2, 3}, "input"});
  REQUIRE(tensor);
  const auto expected = random_of(DType::f32, {2, 3}, 5);
  CHECK(std::equal((*tensor)->bytes().begin(), (*tensor)->bytes().end(), expected->bytes().begin()));
  const auto bad = data::load_tensor("random:five", "/nowhere", {DType::f32, {2, 3}, "weights"});
  REQUIRE_FALSE(bad);
  CHECK_THAT(bad.error().message, Catch::StartsWith("weights: ") && Catch::Contains("random:five"));
}

TEST_CASE("tensor source: files are relative to the base, or absolute", "[tensor_source]") {
  const ScratchFolder folder;
  REQUIRE(data::store_tensor(folder / "deep" / "er" / "x.npy", *random_of(DType::f32, {2, 3}, 1)).ok());
  CHECK(data::load_tensor("er/x.npy", folder / "deep", {DType::f32, {2, 3}, "input"}));
  CHECK(data::load_tensor((folder / "deep" / "er" / "x.npy").string(), "/nowhere", {DType::f32, {2, 3}, "input"}));
  REQUIRE(data::store_tensor(folder / "p.PNG", *random_of(DType::f32, {1, 3, 4, 5}, 1)).ok());
  CHECK(data::load_tensor("p.PNG", folder.path(), {DType::f32, {1, 3, 4, 5}, "input"}));
}

TEST_CASE("tensor source: another shape or dtype is told with role, file, found and expected", "[tensor_source]") {
  const ScratchFolder folder;
  REQUIRE(data::store_tensor(folder / "x.npy", *random_of(DType::f32, {1, 2}, 1)).ok());
  const auto shape = data::load_tensor("x.npy", folder.path(), {DType::f32, {1, 3}, "input"});
  REQUIRE_FALSE(shape);
  CHECK(shape.error().code == StatusCode::invalid_argument);
  CHECK(shape.error().message == "input: file " + (folder / "x.npy").string() + ": shape [1, 2], expected [1, 3]");
  const auto dtype = data::load_tensor("x.npy", folder.path(), {DType::i32, {1, 2}, "bias"});
  REQUIRE_FALSE(dtype);
  CHECK_THAT(dtype.error().message,
             Catch::StartsWith("bias: file " + (folder / "x.npy").string() +
                               ": cannot convert float32 to int32 without loss: element [0, 0] is "));
  REQUIRE(data::store_tensor(folder / "p.png", *random_of(DType::f32, {1, 1, 4, 5}, 1)).ok());
  const auto channels = data::load_tensor("p.png", folder.path(), {DType::f32, {1, 3, 4, 5}, "input"});
  REQUIRE_FALSE(channels);
  CHECK_THAT(channels.error().message, Catch::Contains("p.png: shape [1, 1, 4, 5], expected [1, 3, 4, 5]"));
}

TEST_CASE("tensor source: damaged, missing and unknown files", "[tensor_source]") {
  const ScratchFolder folder;
  write_contents(folder / "x.npy", "not a tensor at all");
  const auto damaged = data::load_tensor("x.npy", folder.path(), {DType::f32, {1}, "input"});
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().code == StatusCode::corrupt);
  CHECK_THAT(damaged.error().message, Catch::StartsWith("input: file ") && Catch::Contains("x.npy"));
  const auto missing = data::load_tensor("none.png", folder.path(), {DType::f32, {1}, "weights"});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == StatusCode::not_found);
  for (const char* source : {"cat.gif", "", "npy", "folder/"}) {
    const auto unknown = data::load_tensor(source, folder.path(), {DType::f32, {1}, "input"});
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().code == StatusCode::invalid_argument);
    CHECK_THAT(unknown.error().message,
               Catch::StartsWith("input: found \"" + std::string(source) + "\"") && Catch::Contains("random:SEED"));
  }
}

TEST_CASE("tensor source: what cannot be stored says why and leaves nothing", "[tensor_source]") {
  const ScratchFolder folder;
  const auto tensor = random_of(DType::f32, {2}, 1);
  const Status kind = data::store_tensor(folder / "sub" / "x.txt", *tensor);
  CHECK(kind.code == StatusCode::invalid_argument);
  CHECK_THAT(kind.message, Catch::Contains("x.txt") && Catch::Contains(".npy, .png, .bin or .raw"));
  CHECK(folder.entries() == 0);
  write_contents(folder / "file", "");
  const Status below_file = data::store_tensor(folder / "file" / "x.npy", *tensor);
  CHECK(below_file.code == StatusCode::io);
  CHECK_THAT(below_file.message, Catch::Contains("x.npy") && Catch::Contains("Not a directory"));
}

TEST_CASE("tensor source: conversions keep every value, or name the first that would change", "[tensor_source]") {
  const ScratchFolder folder;
  const auto convert = [&](auto value, DType from, DType to) {
    using T = decltype(value);
    auto tensor = HostTensor::create(from, {2, 3}).value();
    for (T& element : tensor->template as<T>()) element = T{1};
    tensor->template as<T>()[4] = value;
    REQUIRE(data::store_tensor(folder / "x.npy", *tensor).ok());
    return data::load_tensor("x.npy", folder.path(), {to, {}, "input"});
  };
  CHECK(convert(std::int64_t{1} << 24, DType::i64, DType::f32));
  CHECK(convert(-0.5, DType::f64, DType::f16));
  CHECK(convert(std::nan(""), DType::f64, DType::f32));
  CHECK(convert(std::numeric_limits<double>::infinity(), DType::f64, DType::f16));
  CHECK(convert(-9223372036854775808.0, DType::f64, DType::i64));
  CHECK(convert(std::uint8_t{0}, DType::boolean, DType::i8));
  const auto refused = [&](const Result<std::shared_ptr<HostTensor>>& result) {
    REQUIRE_FALSE(result);
    CHECK_THAT(result.error().message, Catch::Contains("without loss") && Catch::Contains("[1, 1]"));
  };
  refused(convert((std::int64_t{1} << 24) + 1, DType::i64, DType::f32));
  refused(convert(std::numeric_limits<std::int64_t>::max(), DType::i64, DType::f64));
  refused(convert(9223372036854775808.0, DType::f64, DType::i64));
  refused(convert(std::nan(""), DType::f64, DType::i32));
  refused(convert(0.1f, DType::f32, DType::f16));
  refused(convert(1e39, DType::f64, DType::f32));
  refused(convert(-1, DType::i32, DType::u64));
  refused(convert(2, DType::i32, DType::boolean));
  refused(convert(std::uint64_t{1} << 63, DType::u64, DType::i64));
}

TEST_CASE("tensor source: plain bytes, zeros and samples of a picture", "[tensor_source]") {
  const ScratchFolder folder;
  write_contents(folder / "x.bin", "abcdefgh");
  const auto bytes = data::load_tensor("x.bin", folder.path(), {DType::invalid, {}, "input"});
  REQUIRE(bytes);
  CHECK((*bytes)->shape() == Shape{8});
  CHECK((*bytes)->dtype() == DType::u8);
  const auto words = data::load_tensor("x.bin", folder.path(), {DType::u16, {2, 2}, "input"});
  REQUIRE(words);
  CHECK((*words)->as<std::uint16_t>()[0] == 0x6261);
  CHECK_FALSE(data::load_tensor("x.bin", folder.path(), {DType::u16, {2, 3}, "input"}));
  write_contents(folder / "odd.raw", "abc");
  CHECK_FALSE(data::load_tensor("odd.raw", folder.path(), {DType::u16, {}, "input"}));
  CHECK_FALSE(data::load_tensor("zeros:", folder.path(), {DType::u16, {}, "input"}));
  CHECK(data::load_tensor("zeros:", folder.path(), {DType::invalid, {2}, "input"}).value()->dtype() == DType::f32);
  auto picture = HostTensor::create(DType::u16, {2, 3, 4}).value();
  for (std::size_t i = 0; i < 24; ++i) picture->as<std::uint16_t>()[i] = static_cast<std::uint16_t>(2000 * i);
  REQUIRE(data::store_tensor(folder / "p.png", *picture).ok());
  const auto back = data::load_tensor("p.png", folder.path(), {DType::u16, {}, "input"});
  REQUIRE(back);
  CHECK((*back)->shape() == Shape{2, 3, 4});
  CHECK(std::ranges::equal((*back)->bytes(), picture->bytes()));
  const auto dropped = data::load_tensor("p.png", folder.path(), {DType::u16, {}, "input", Alpha::drop});
  REQUIRE(dropped);
  CHECK((*dropped)->shape() == Shape{2, 3, 3});
  CHECK_FALSE(data::load_tensor("p.png", folder.path(), {DType::u8, {}, "input"}));
}

TEST_CASE("tensor source: the type and shape before reading a file equal the tensor's", "[tensor_source]") {
  const ScratchFolder folder;
  REQUIRE(data::store_tensor(folder / "x.npy", *random_of(DType::i16, {2, 3}, 1)).ok());
  REQUIRE(data::store_tensor(folder / "p.png", *random_of(DType::f32, {1, 4, 5, 6}, 1)).ok());
  write_contents(folder / "x.bin", "abcdefgh");
  data::Memory memory;
  memory.tensors["given"] = random_of(DType::i32, {7}, 1);
  struct Case {
    std::string source;
    data::TensorRequest request;
    data::TensorForm form;
  };
  const Case cases[] = {
      {"x.npy", {DType::invalid, {}, "input"}, {DType::i16, {2, 3}}},
      {"x.npy", {DType::f32, {2, 3}, "input"}, {DType::f32, {2, 3}}},
      {"p.png", {DType::invalid, {}, "input"}, {DType::f32, {1, 4, 5, 6}}},
      {"p.png", {DType::f32, {1, 3, 5, 6}, "input"}, {DType::f32, {1, 3, 5, 6}}},
      {"p.png", {DType::f32, {}, "input", Alpha::drop}, {DType::f32, {1, 3, 5, 6}}},
      {"p.png", {DType::u8, {}, "input"}, {DType::u8, {5, 6, 4}}},
      {"p.png", {DType::u8, {}, "input", Alpha::drop}, {DType::u8, {5, 6, 3}}},
      {"x.bin", {DType::invalid, {}, "input"}, {DType::u8, {8}}},
      {"x.bin", {DType::u16, {2, 2}, "input"}, {DType::u16, {2, 2}}},
      {"zeros:", {DType::invalid, {4}, "input"}, {DType::f32, {4}}},
      {"random:1", {DType::i64, {4}, "input"}, {DType::i64, {4}}},
      {"memory:given", {DType::invalid, {}, "input"}, {DType::i32, {7}}},
  };
  for (const Case& each : cases) {
    INFO(each.source << " as " << numpy_name(each.form.dtype) << " " << to_string(each.form.shape));
    data::TensorRequest request = each.request;
    request.memory = &memory;
    const auto form = data::form_of(each.source, folder.path(), request);
    REQUIRE(form);
    CHECK(form->dtype == each.form.dtype);
    CHECK(form->shape == each.form.shape);
    const auto tensor = data::load_tensor(each.source, folder.path(), request);
    REQUIRE(tensor);
    CHECK((*tensor)->dtype() == each.form.dtype);
    CHECK((*tensor)->shape() == each.form.shape);
  }
  for (const char* const name : {"none.npy", "none.png", "none.bin"}) {
    INFO(name);
    const auto form = data::form_of(name, folder.path(), {DType::invalid, {}, "input"});
    REQUIRE_FALSE(form);
    CHECK(form.error().code == StatusCode::not_found);
    CHECK(form.error().message ==
          "input: file " + (folder / name).string() + ": cannot open: No such file or directory");
    const auto tensor = data::load_tensor(name, folder.path(), {DType::invalid, {}, "input"});
    REQUIRE_FALSE(tensor);
    CHECK(tensor.error().text() == form.error().text());
  }
}

TEST_CASE("tensor source: a note reports dropped alpha channels, and only those", "[tensor_source]") {
  const ScratchFolder folder;
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    REQUIRE(
        data::store_tensor(folder / (std::to_string(channels) + ".png"), *random_of(DType::f32, {1, channels, 2, 2}, 1))
            .ok());
  }
  const auto note_of = [&](const std::string& role, std::int64_t own) {
    return role + ": file " + (folder / (std::to_string(own) + ".png")).string() +
           ": the alpha channel is left out. Set " + std::to_string(own) +
           " channels to keep this channel; alpha = \"drop\" suppresses this note, \"premultiply\" multiplies the "
           "colours "
           "by alpha";
  };
  struct Case {
    std::int64_t own;     // channels of the file
    std::int64_t wanted;  // of the tensor
    Alpha alpha;
    bool noted;
  };
  const Case cases[] = {
      {1, 1, Alpha::keep, false},        {3, 3, Alpha::keep, false}, {2, 2, Alpha::keep, false},
      {4, 4, Alpha::keep, false},        {2, 1, Alpha::keep, true},  {4, 3, Alpha::keep, true},
      {2, 1, Alpha::drop, false},        {4, 3, Alpha::drop, false}, {2, 1, Alpha::premultiply, false},
      {4, 3, Alpha::premultiply, false},
  };
  for (const Case& each : cases) {
    INFO(each.own << " channels as " << each.wanted << ", " << to_string(each.alpha));
    std::vector<std::string> expected;
    if (each.noted) expected.push_back(note_of("input", each.own));
    const std::string name = std::to_string(each.own) + ".png";
    std::vector<std::string> notes;
    const auto planes =
        data::load_tensor(name, folder.path(), {DType::f32, {1, each.wanted, 2, 2}, "input", each.alpha}, &notes);
    REQUIRE(planes);
    CHECK(notes == expected);

    notes.clear();
    data::TensorRequest texels{DType::u8, {}, "input", each.alpha};
    texels.texels = true;
    texels.channels = each.wanted;
    const auto samples = data::load_tensor(name, folder.path(), texels, &notes);
    REQUIRE(samples);
    CHECK((*samples)->shape() == Shape{2, 2, each.wanted});
    CHECK(notes == expected);
    CHECK(data::load_tensor(name, folder.path(), texels));  // nobody reads its notes
  }
}

TEST_CASE("tensor source: the error for a tensor that does not fit in memory names it",
          "[tensor_source][unsanitized]") {
  if (kiln::test::is_sanitized) {
    WARN("skipped: a sanitizer's own memory is beyond the limit");
    return;
  }
  const ScratchFolder folder;
  constexpr std::int64_t vast = std::int64_t{1} << 30;
  // Files with holes: nothing of their elements is ever read.
  const std::string header = data::format_npy_header(DType::u8, {vast});
  write_contents(folder / "vast.npy", header);
  std::filesystem::resize_file(folder / "vast.npy", header.size() + static_cast<std::uintmax_t>(vast));
  write_contents(folder / "vast.bin", "");
  std::filesystem::resize_file(folder / "vast.bin", static_cast<std::uintmax_t>(vast));
  const std::pair<std::string, std::string> sources[] = {
      {"vast.npy", "input: file " + (folder / "vast.npy").string()}, {"vast.bin", "input"}, {"zeros:", "input"}};
  for (const auto& [source, place] : sources) {
    INFO(source);
    // In a child, since the limit holds for the whole process.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const rlimit limit{rlim_t{256} << 20, rlim_t{256} << 20};
      if (::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(2);
      const auto tensor = data::load_tensor(source, folder.path(), {DType::u8, {vast}, "input"});
      if (tensor) ::_exit(3);
      const std::string expected = "unavailable: " + place + ": tensor [1073741824]: no memory for 1073741824 bytes";
      ::_exit(tensor.error().text() == expected ? 0 : 4);
    }
    int state = 0;
    REQUIRE(::waitpid(child, &state, 0) == child);
    REQUIRE(WIFEXITED(state));
    CHECK(WEXITSTATUS(state) == 0);
  }
}
