#include <kiln/tensor.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

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
  for (const DType dtype : {DType::f16, DType::boolean, DType::i64}) CHECK(dtype_named(numpy_name(dtype)) == dtype);
  CHECK(dtype_named("f16") == DType::invalid);
}
