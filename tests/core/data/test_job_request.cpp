#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/data/scratch_folder.hpp"

using namespace kiln;
using kiln::test::ScratchFolder;

namespace {

// A file whose elements are all `value`.
std::string file_of(const ScratchFolder& folder, const std::string& name, Shape shape, float value) {
  auto tensor = HostTensor::create(DType::f32, std::move(shape));
  REQUIRE(tensor);
  for (float& element : (*tensor)->as<float>()) element = value;
  REQUIRE(data::store_tensor(folder / name, **tensor).ok());
  return name;
}

struct Loaded {
  Shape shape;
  bool constant = false;
  float first = 0;
  bool operator==(const Loaded&) const = default;
};

std::vector<Loaded> loaded_of(const JobConfig& job) {
  const auto request = data::make_request(job);
  if (!request) FAIL(request.error().text());
  CHECK(request->name == job.name);
  CHECK(request->device == job.device);
  std::vector<Loaded> loaded;
  for (const TensorArgument& tensor : request->tensors) {
    REQUIRE((tensor.host == nullptr) == (tensor.constant != nullptr));
    const HostTensor& host = tensor.constant == nullptr ? *tensor.host : tensor.constant->tensor();
    loaded.push_back({host.shape(), tensor.constant != nullptr, host.as<float>()[0]});
  }
  return loaded;
}

}  // namespace

TEST_CASE("job request: each key of a layer is the tensor of its operand", "[job_request]") {
  const ScratchFolder folder;
  JobConfig job;
  job.name = "one";
  job.device = "cpu";
  job.base = folder.path();

  job.op = "gemm";
  job.spec = GemmSpec{.m = 2, .n = 3, .k = 4, .bias = Bias::per_channel};
  job.input = file_of(folder, "a.npy", {2, 4}, 1);
  job.weights = file_of(folder, "b.npy", {4, 3}, 2);
  job.bias = file_of(folder, "c.npy", {3}, 3);
  job.output = "out.npy";
  CHECK(loaded_of(job) ==
        std::vector<Loaded>{{{2, 4}, false, 1}, {{4, 3}, true, 2}, {{3}, true, 3}, {{2, 3}, false, 0}});

  job.op = "add";
  job.spec = AddSpec{.shape = {1, 2, 3, 4}};
  job.input = file_of(folder, "x.npy", {1, 2, 3, 4}, 4);
  job.addend = file_of(folder, "y.npy", {1, 2, 3, 4}, 5);
  job.weights.clear();
  job.bias.clear();
  CHECK(loaded_of(job) ==
        std::vector<Loaded>{{{1, 2, 3, 4}, false, 4}, {{1, 2, 3, 4}, false, 5}, {{1, 2, 3, 4}, false, 0}});
}

TEST_CASE("job request: the error names the key whose file is missing", "[job_request]") {
  const ScratchFolder folder;
  JobConfig job;
  job.op = "gemm";
  job.spec = GemmSpec{.m = 2, .n = 3, .k = 4, .bias = Bias::per_channel};
  job.base = folder.path();
  job.input = file_of(folder, "a.npy", {2, 4}, 1);
  job.weights = file_of(folder, "b.npy", {4, 3}, 2);
  job.bias = file_of(folder, "c.npy", {3}, 3);
  for (std::string JobConfig::*key : {&JobConfig::input, &JobConfig::weights, &JobConfig::bias}) {
    JobConfig wrong = job;
    wrong.*key = "none.npy";
    const auto request = data::make_request(wrong);
    REQUIRE_FALSE(request);
    CHECK(request.error().code == StatusCode::not_found);
    const std::string name = key == &JobConfig::input ? "input" : key == &JobConfig::weights ? "weights" : "bias";
    CHECK_THAT(request.error().message, Catch::StartsWith(name + ": ") && Catch::Contains("none.npy"));
  }
}

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

KernelBindingConfig values_of(DType dtype, std::vector<double> numbers, Shape shape = {}) {
  KernelBindingConfig binding;
  binding.label = "bindings[0]";
  binding.access = Access::read;
  binding.dtype = dtype;
  binding.numbers = std::move(numbers);
  binding.shape = std::move(shape);
  return binding;
}

JobConfig kernel_job(const ScratchFolder& folder, KernelBindingConfig binding) {
  JobConfig job;
  job.op = "kernel";
  job.source = "k.comp";
  job.text = "void main() {}";
  job.base = folder.path();
  job.bindings = {std::move(binding)};
  return job;
}

Status failure_of(const JobConfig& job) {
  const auto request = data::make_request(job);
  return request ? Status() : request.error();
}

}  // namespace

TEST_CASE("job request: values of a binding, rounded to its type", "[job_request]") {
  const ScratchFolder folder;
  const auto single = data::make_request(kernel_job(folder, values_of(DType::f32, {0.5, -2, inf, 3.4e38}, {2, 2})));
  REQUIRE(single);
  REQUIRE(single->tensors.size() == 1);
  const HostTensor& floats = *single->tensors[0].host;
  CHECK(floats.shape() == Shape{2, 2});
  const auto given = floats.as<float>();
  CHECK(std::vector<float>(given.begin(), given.end()) ==
        std::vector<float>{0.5F, -2, std::numeric_limits<float>::infinity(), 3.4e38F});
  const auto half = data::make_request(kernel_job(folder, values_of(DType::f16, {1, -2, 65519, -inf})));
  REQUIRE(half);
  const auto bits = half->tensors[0].host->as<std::uint16_t>();
  CHECK(std::vector<std::uint16_t>(bits.begin(), bits.end()) ==
        std::vector<std::uint16_t>{0x3C00, 0xC000, 0x7BFF, 0xFC00});
  const auto& spec = std::get<UserKernelSpec>(half->spec);
  CHECK(spec.text == "void main() {}");
  REQUIRE(spec.bindings.size() == 1);
  CHECK(spec.bindings[0].bytes == 8);
  CHECK(spec.bindings[0].shape == Shape{4});
}

TEST_CASE("job request: values that their type cannot hold are refused", "[job_request]") {
  const ScratchFolder folder;
  CHECK_THAT(failure_of(kernel_job(folder, values_of(DType::f32, {1, -3.5e38}))).text(),
             Catch::StartsWith("invalid_argument: bindings[0]: value -35000") &&
                 Catch::EndsWith(": out of range for float32"));
  for (const double value : {65520.0, -65520.0, 70000.5}) {
    CHECK_THAT(
        failure_of(kernel_job(folder, values_of(DType::f16, {value}))).text(),
        Catch::StartsWith("invalid_argument: bindings[0]: value ") && Catch::EndsWith(": out of range for float16"));
  }
  CHECK_THAT(failure_of(kernel_job(folder, values_of(DType::f32, {1, 2, 3}, {2}))).text(),
             Catch::Contains("values: found 3, expected 2 for shape [2]"));
}

TEST_CASE("job request: a binding's file is its tensor, and an output is made", "[job_request]") {
  const ScratchFolder folder;
  KernelBindingConfig binding;
  binding.label = "bindings[0]";
  binding.access = Access::read;
  binding.input = file_of(folder, "x.npy", {3}, 7);
  JobConfig job = kernel_job(folder, binding);
  binding.label = "bindings[1]";
  binding.access = Access::write;
  binding.input.clear();
  binding.output = "y.npy";
  binding.dtype = DType::f32;
  binding.shape = {5};
  job.bindings.push_back(binding);
  CHECK(loaded_of(job) == std::vector<Loaded>{{{3}, false, 7}, {{5}, false, 0}});
  job.bindings[0].input = "none.npy";
  const Status missing = failure_of(job);
  CHECK(missing.code == StatusCode::not_found);
  CHECK_THAT(missing.message, Catch::StartsWith("bindings[0]: input: ") && Catch::Contains("none.npy"));
}

TEST_CASE("job request: an expected result without a form of its own has the result's", "[job_request]") {
  const ScratchFolder folder;
  KernelBindingConfig result;
  result.label = "bindings[0]";
  result.access = Access::write;
  result.output = "y.npy";
  result.dtype = DType::f32;
  result.shape = {2, 3};
  const auto expected_of = [&](const std::string& source) {
    result.expect = source;
    const auto request = data::make_request(kernel_job(folder, result));
    INFO((request ? std::string() : request.error().text()));
    REQUIRE(request);
    REQUIRE(request->expected.size() == 1);
    return request->expected[0].tensor;
  };
  CHECK(expected_of("zeros:")->shape() == Shape{2, 3});
  auto six = HostTensor::create(DType::f32, {2, 3});
  REQUIRE(six);
  for (std::size_t i = 0; i < 6; ++i) (*six)->as<float>()[i] = static_cast<float>(i);
  REQUIRE(data::store_tensor(folder / "ref.bin", **six).ok());
  const auto bytes = expected_of("ref.bin");
  CHECK(bytes->shape() == Shape{2, 3});
  CHECK(bytes->as<float>()[5] == 5);
  result.shape = {2, 4};
  result.expect = "ref.bin";
  CHECK_THAT(failure_of(kernel_job(folder, result)).text(), Catch::Contains("24 bytes, expected 32 for float32 [2, 4]"));

  result.input = "random:7";  // inout
  result.access = Access::read_write;
  result.shape = {5};
  result.expect = "random:7";
  const auto in_place = data::make_request(kernel_job(folder, result));
  INFO((in_place ? std::string() : in_place.error().text()));
  REQUIRE(in_place);
  CHECK(in_place->expected[0].tensor->shape() == Shape{5});
}

TEST_CASE("job request: the size of an image is that of its file, and gives plain bytes theirs", "[job_request]") {
  const ScratchFolder folder;
  KernelBindingConfig image;
  image.kind = BindingKind::image;
  image.label = "images.photo";
  image.name = "photo";
  image.access = Access::read;
  image.size = {4, 3};
  image.format = ImageFormat::r8;
  auto picture = HostTensor::create(DType::u8, {3, 4, 1});
  REQUIRE(picture);
  for (const char* const name : {"m.png", "m.npy", "m.raw"}) {
    REQUIRE(data::store_tensor(folder / name, **picture).ok());
    image.input = name;
    image.size = {4, 3};
    const auto request = data::make_request(kernel_job(folder, image));
    INFO(name << (request ? std::string() : request.error().text()));
    REQUIRE(request);
    CHECK(request->tensors[0].host->shape()[0] == 3);
    CHECK(request->tensors[0].host->shape()[1] == 4);
    CHECK(std::get<UserKernelSpec>(request->spec).bindings[0].picture == (std::string(name) == "m.png"));
    image.size = {3, 4};
    const Status other = failure_of(kernel_job(folder, image));
    const bool plain = std::string(name) == "m.raw";  // as many bytes in any order
    CHECK(other.ok() == plain);
    if (!plain) CHECK_THAT(other.text(), Catch::Contains("shape [3, 4, 1], expected [4, 3] from size"));
  }
  image.size = {5, 3};
  CHECK_THAT(failure_of(kernel_job(folder, image)).text(), Catch::Contains("12 bytes, expected 15 for uint8 [3, 5]"));
}
