#include <kiln/tensor.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
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
