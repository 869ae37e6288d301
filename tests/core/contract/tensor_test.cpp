#include <kiln/tensor.hpp>

#include <catch2/catch.hpp>

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

using namespace kiln;

namespace {

std::shared_ptr<HostTensor> make(DType dtype, Shape shape) {
  return HostTensor::create(dtype, std::move(shape)).value();
}

}  // namespace

TEST_CASE("tensor: zeroed, aligned, of the size its shape says", "[contract]") {
  const auto tensor = make(DType::f32, {2, 3, 5});
  CHECK(tensor->elements() == 30);
  CHECK(tensor->bytes().size() == 120);
  CHECK(tensor->as<float>().size() == 30);
  CHECK(reinterpret_cast<std::uintptr_t>(tensor->bytes().data()) % 64 == 0);
  CHECK(std::all_of(tensor->bytes().begin(), tensor->bytes().end(), [](std::byte b) { return b == std::byte{0}; }));
  CHECK(to_string(tensor->shape()) == "[2, 3, 5]");
}

TEST_CASE("tensor: scalars and empty tensors", "[contract]") {
  CHECK(make(DType::f64, {})->elements() == 1);
  CHECK(make(DType::f64, {})->bytes().size() == 8);
  CHECK(to_string(Shape{}) == "[]");
  CHECK(make(DType::u8, {4, 0, 2})->elements() == 0);
  CHECK(make(DType::u8, {4, 0, 2})->bytes().empty());
}

TEST_CASE("tensor: from 16 MiB on it begins with a huge page", "[contract]") {
  const auto begins_with_page = [](std::int64_t bytes) {
    const auto tensor = make(DType::u8, {bytes});
    CHECK(std::ranges::all_of(tensor->bytes().subspan(tensor->bytes().size() - 64),
                              [](std::byte byte) { return byte == std::byte{0}; }));
    return reinterpret_cast<std::uintptr_t>(tensor->bytes().data()) % (2 << 20) == 0;
  };
  CHECK(begins_with_page(16 << 20));
  CHECK(begins_with_page((16 << 20) + 1));
  CHECK(begins_with_page((16 << 20) - 63));  // padded to 64 bytes
}

TEST_CASE("tensor: impossible shapes are refused with the shape", "[contract]") {
  for (const Shape& shape : {Shape{-1}, Shape{2, -3}, Shape{1ll << 40, 2}, Shape{1ll << 62, 1ll << 62}}) {
    const auto made = HostTensor::create(DType::f32, shape);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == StatusCode::invalid_argument);
    CHECK_THAT(made.error().message, Catch::Contains(to_string(shape)));
  }
  CHECK(HostTensor::create(DType::invalid, {1}).error().code == StatusCode::invalid_argument);
}

TEST_CASE("tensor: the largest sizes, and the words for what is larger or of no type", "[contract]") {
  alignas(64) std::byte memory[64] = {};
  const auto told = [&](DType dtype, const Shape& shape) {
    const auto made = HostTensor::borrow(dtype, shape, memory, {});  // whose memory nobody touches
    return made ? "ok" : made.error().text();
  };
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (const auto& [dtype, elements] : {std::pair{DType::u8, most}, std::pair{DType::f32, most / 4},
                                        std::pair{DType::f64, most / 8}, std::pair{DType::f16, most / 2}}) {
    CAPTURE(numpy_name(dtype));
    CHECK(told(dtype, {elements}) == "ok");
    CHECK(told(dtype, {2, elements / 2}) == "ok");
    CHECK(told(dtype, {elements + 1}) ==
          "invalid_argument: tensor [" + std::to_string(elements + 1) + "]: larger than 2^40 bytes");
  }
  CHECK(HostTensor::borrow(DType::f32, {most / 4}, memory, {}).value()->bytes().size() == std::size_t{1} << 40);
  CHECK(told(DType::f32, {2, -1}) == "invalid_argument: tensor [2, -1]: a dimension is negative");
  CHECK(told(DType::f32, {most, most}) ==
        "invalid_argument: tensor [1099511627776, 1099511627776]: larger than 2^40 bytes");
  CHECK(told(DType::invalid, {2, 3}) == "invalid_argument: tensor [2, 3]: element type is not set");
  const std::string expected = ", expected an address that is a multiple of 64";
  const auto at = [](std::byte* data) { return HostTensor::borrow(DType::u8, {1}, data, {}).error().text(); };
  CHECK(at(nullptr) == "invalid_argument: tensor [1]: memory is null" + expected);
  CHECK(at(memory + 32) == "invalid_argument: tensor [1]: memory is not aligned" + expected);
}

TEST_CASE("tensor: memory is of whole lines of 64 bytes, zero also where it was used before", "[contract]") {
  for (const std::int64_t bytes : {0, 1, 63, 64, 65, 1000, 4096}) {
    CAPTURE(bytes);
    const std::size_t padded = bytes == 0 ? 64 : (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
    for (int round = 0; round < 4; ++round) {
      const auto tensor = make(DType::u8, {bytes});
      CHECK(malloc_usable_size(tensor->bytes().data()) >= padded);
      CHECK(std::ranges::all_of(tensor->bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
      std::ranges::fill(tensor->bytes(), std::byte{0xff});
    }
  }
}

TEST_CASE("tensor: element types have sizes and words", "[contract]") {
  CHECK(size_of(DType::f32) == 4);
  CHECK(size_of(DType::f64) == 8);
  CHECK(size_of(DType::i32) == 4);
  CHECK(size_of(DType::u32) == 4);
  CHECK(size_of(DType::u8) == 1);
  CHECK(size_of(DType::invalid) == 0);
  CHECK(to_string(DType::f32) == "f32");
  CHECK(to_string(DType::invalid) == "invalid");
}

TEST_CASE("tensor: borrowed memory is used as it is, and given back once when the last holder lets go", "[contract]") {
  alignas(64) float memory[8] = {1, 2, 3};
  auto* data = reinterpret_cast<std::byte*>(memory);
  int released = 0;
  auto tensor = HostTensor::borrow(DType::f32, {2, 4}, data, [&] { ++released; }).value();
  CHECK(tensor->bytes().data() == data);
  CHECK(tensor->bytes().size() == 32);
  CHECK(tensor->as<float>()[2] == 3);
  tensor->as<float>()[3] = 9;
  auto second = tensor;
  tensor.reset();
  CHECK(released == 0);
  second.reset();
  CHECK(released == 1);
  CHECK(memory[3] == 9);
  CHECK(HostTensor::borrow(DType::f32, {0}, data, {}).value()->bytes().empty());
}

TEST_CASE("tensor: memory that cannot be borrowed is an error, and is not given back", "[contract]") {
  alignas(64) float memory[8] = {};
  auto* data = reinterpret_cast<std::byte*>(memory);
  bool released = false;
  const auto refused = [&](DType dtype, Shape shape, std::byte* at) {
    const auto tensor = HostTensor::borrow(dtype, std::move(shape), at, [&] { released = true; });
    return tensor ? StatusCode::ok : tensor.error().code;
  };
  CHECK(refused(DType::f32, {1}, data + 4) == StatusCode::invalid_argument);
  CHECK(refused(DType::f32, {1}, nullptr) == StatusCode::invalid_argument);
  CHECK(refused(DType::f32, {-1}, data) == StatusCode::invalid_argument);
  CHECK(refused(DType::invalid, {1}, data) == StatusCode::invalid_argument);
  CHECK_FALSE(released);
}

TEST_CASE("constant: the digest stands for type, shape and bytes", "[contract]") {
  const auto digest_of = [](DType dtype, Shape shape, std::byte first) {
    const auto tensor = make(dtype, std::move(shape));
    tensor->bytes()[0] = first;
    return Constant::create(tensor)->digest();
  };
  const Digest digest = digest_of(DType::f32, {2, 3}, std::byte{1});
  CHECK(digest == digest_of(DType::f32, {2, 3}, std::byte{1}));
  CHECK(digest != digest_of(DType::f32, {2, 3}, std::byte{2}));
  CHECK(digest != digest_of(DType::f32, {3, 2}, std::byte{1}));
  CHECK(digest != digest_of(DType::i32, {2, 3}, std::byte{1}));
}

TEST_CASE("constant: holds its tensor", "[contract]") {
  auto tensor = make(DType::f32, {2});
  const std::weak_ptr<HostTensor> watched = tensor;
  auto constant = Constant::create(tensor);
  tensor.reset();
  CHECK_FALSE(watched.expired());
  CHECK(constant->tensor().elements() == 2);
  constant.reset();
  CHECK(watched.expired());
}

TEST_CASE("tensor: every float16 is its double and back, and doubles round to the nearest, ties to even",
          "[contract]") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double value = from_half(half);
    if (std::isnan(value)) {
      CHECK((to_half(value) & 0x7FFF) > 0x7C00);
    } else if (to_half(value) != half) {
      FAIL("float16 " << bits << " comes back as " << to_half(value));
    }
  }
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const double below = from_half(static_cast<std::uint16_t>(bits));
    const double above = from_half(static_cast<std::uint16_t>(bits + 1));
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    if (to_half((below + above) / 2) != even) FAIL("the middle above float16 " << bits);
    if (to_half(below + (above - below) * 0.49) != bits) FAIL("below the middle above float16 " << bits);
  }
  CHECK(to_half(65519.9) == 0x7BFF);
  CHECK(to_half(65520) == 0x7C00);
  CHECK(to_half(-1e300) == 0xFC00);
  CHECK(to_half(1e-30) == 0);
  CHECK(to_half(-0.0) == 0x8000);
  CHECK(to_half(std::nan("")) == 0x7E00);
  CHECK(to_half(-std::nan("")) == 0xFE00);
  CHECK(from_half(0x7C00) == HUGE_VAL);
  CHECK(from_half(0xFC00) == -HUGE_VAL);
  CHECK(from_half(0x3C00) == 1);
  CHECK(from_half(0x0001) == 0x1p-24);
  CHECK(from_half(0x0400) == 0x1p-14);
  CHECK(from_half(0x7BFF) == 65504);
  for (const DType dtype : {DType::f16, DType::boolean, DType::i64}) CHECK(dtype_named(numpy_name(dtype)) == dtype);
  CHECK(dtype_named("f16") == DType::invalid);
}
