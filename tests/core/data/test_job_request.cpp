#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/data/kernel_job.hpp"
#include "core/data/scratch_folder.hpp"

using namespace kiln;
using kiln::test::failure_of;
using kiln::test::kernel_job;
using kiln::test::ScratchFolder;
using kiln::test::write_contents;

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

TEST_CASE("job request: the keys that layers and kernels share arrive in the request", "[job_request]") {
  const ScratchFolder folder;
  JobConfig layer;
  layer.op = "add";
  layer.spec = AddSpec{.shape = {2, 3}};
  layer.input = layer.addend = "zeros:";
  layer.base = folder.path();
  for (const JobConfig& job : {layer, kernel_job(folder, values_of(DType::f32, {1}))}) {
    INFO(job.op);
    const auto plain = data::make_request(job);
    REQUIRE(plain);
    CHECK(plain->name.empty());
    CHECK(plain->device.empty());
    CHECK_FALSE(plain->verify);
    CHECK_FALSE(plain->tolerance.has_value());

    JobConfig named = job;
    named.name = "mine";
    named.device = "cpu:1";
    named.verify = true;
    named.tolerance = Tolerance{0.125, 0.25};
    const auto request = data::make_request(named);
    REQUIRE(request);
    CHECK(request->name == "mine");
    CHECK(request->device == "cpu:1");
    CHECK(request->verify);
    REQUIRE(request->tolerance.has_value());
    CHECK(request->tolerance->absolute == 0.125);
    CHECK(request->tolerance->relative == 0.25);
    CHECK(operation(request->spec) == job.op);
  }
  const auto request = data::make_request(layer);
  REQUIRE(request);
  REQUIRE(std::holds_alternative<AddSpec>(request->spec));
  CHECK(std::get<AddSpec>(request->spec).shape == Extents{2, 3, 0, 0});
}

TEST_CASE("job request: the keys of a kernel arrive in its specification", "[job_request]") {
  const ScratchFolder folder;
  using Type = UserKernelSpec::Uniform::Type;
  JobConfig job = kernel_job(folder, values_of(DType::f32, {1, 2.5}));
  job.entry = "other";
  job.constants = {{"N", "3"}, {"KIND", "vec4"}};
  job.grid = {2, 3, 4};
  job.grid_expressions = {"N", "", "2 * N"};
  job.tune = {{"TILE", {"8", "16"}}, {"UNROLL", {"1", "2", "4"}}};
  job.workgroup = {8, 4, 2};
  UniformConfig gain, rounds;
  gain.uniform = {"gain", Type::number, {2}};
  gain.numbers = {0.5, -1};
  rounds.uniform = {"rounds", Type::integer, {}};
  rounds.integers = {7};
  job.uniforms = {gain, rounds};
  job.bindings[0].number = 5;
  job.bindings.reserve(8);
  const auto add = [&job](BindingKind kind, Access access, const std::string& name) -> KernelBindingConfig& {
    KernelBindingConfig& added = job.bindings.emplace_back();
    added.label = "bindings[" + std::to_string(job.bindings.size() - 1) + "]";
    added.kind = kind;
    added.access = access;
    added.name = name;
    return added;
  };
  KernelBindingConfig& result = add(BindingKind::buffer, Access::write, "Result");
  result.dtype = DType::f32;
  result.shape = {2};
  result.output = "y.npy";
  result.expect = "zeros:";
  result.tolerance = Tolerance{0.5, 0.75};
  KernelBindingConfig& both = add(BindingKind::buffer, Access::read_write, "");
  both.dtype = DType::i32;
  both.shape = {3};
  both.input = "zeros:";
  both.output = "z.npy";
  KernelBindingConfig& number = add(BindingKind::value, Access::read, "");
  number.dtype = DType::i16;
  number.integers = {-5};
  add(BindingKind::local, Access::read_write, "").local_bytes = 96;
  KernelBindingConfig& image = add(BindingKind::image, Access::read, "photo");
  image.input = "zeros:";
  image.size = {4, 3};
  image.format = ImageFormat::r8;
  image.filter = TextureFilter::linear;
  image.wrap = TextureWrap::mirror;
  KernelBindingConfig& sampler = add(BindingKind::sampler_state, Access::read, "near");
  sampler.filter = TextureFilter::nearest;
  sampler.wrap = TextureWrap::border;
  KernelBindingConfig& groups = add(BindingKind::grid, Access::read, "");
  groups.dtype = DType::u32;
  groups.integers = {9, 1, 2, 3};
  groups.first = 1;

  const auto request = data::make_request(job);
  INFO((request ? std::string() : request.error().text()));
  REQUIRE(request);
  REQUIRE(std::holds_alternative<UserKernelSpec>(request->spec));
  const auto& spec = std::get<UserKernelSpec>(request->spec);
  CHECK(spec.path == "k.comp");
  CHECK(spec.includes.empty());
  CHECK(spec.text == "void main() {}");
  CHECK(spec.dialect == Dialect::glsl);
  CHECK(spec.entry == "other");
  CHECK(spec.constants == std::vector<Define>{{"N", "3"}, {"KIND", "vec4"}});
  CHECK(spec.grid == std::array<std::uint32_t, 3>{2, 3, 4});
  CHECK(spec.grid_expressions == std::array<std::string, 3>{"N", "", "2 * N"});
  CHECK(spec.parameters == std::vector<UserKernelSpec::Parameter>{{"TILE", {"8", "16"}}, {"UNROLL", {"1", "2", "4"}}});
  CHECK(spec.workgroup == std::array<std::uint32_t, 3>{8, 4, 2});
  CHECK(spec.uniforms ==
        std::vector<UserKernelSpec::Uniform>{{"gain", Type::number, {2}}, {"rounds", Type::integer, {}}});

  std::vector<UserKernelSpec::Binding> expected(8);
  expected[0] = {Access::read, 8, BindingKind::buffer, DType::f32, {2}, "", 5};
  expected[1] = {Access::write, 8, BindingKind::buffer, DType::f32, {2}, "Result"};
  expected[2] = {Access::read_write, 12, BindingKind::buffer, DType::i32, {3}};
  expected[3] = {Access::read, 2, BindingKind::value, DType::i16, {1}};
  expected[4] = {Access::read_write, 96, BindingKind::local};
  expected[5] = {Access::read, 12, BindingKind::image, DType::u8, {3, 4}, "photo"};
  expected[5].format = ImageFormat::r8;
  expected[5].filter = TextureFilter::linear;
  expected[5].wrap = TextureWrap::mirror;
  expected[6] = {Access::read, 0, BindingKind::sampler_state, DType::invalid, {}, "near"};
  expected[6].filter = TextureFilter::nearest;
  expected[6].wrap = TextureWrap::border;
  expected[7] = {Access::read, 16, BindingKind::grid, DType::u32, {4}};
  expected[7].first = 1;
  REQUIRE(spec.bindings.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("binding " << i);
    CHECK(spec.bindings[i].access == expected[i].access);
    CHECK(spec.bindings[i].bytes == expected[i].bytes);
    CHECK(spec.bindings[i].kind == expected[i].kind);
    CHECK(spec.bindings[i].dtype == expected[i].dtype);
    CHECK(spec.bindings[i].shape == expected[i].shape);
    CHECK(spec.bindings[i].name == expected[i].name);
    CHECK(spec.bindings[i].number == expected[i].number);
    CHECK(spec.bindings[i].format == expected[i].format);
    CHECK(spec.bindings[i].filter == expected[i].filter);
    CHECK(spec.bindings[i].wrap == expected[i].wrap);
    CHECK(spec.bindings[i].first == expected[i].first);
    CHECK(spec.bindings[i].picture == expected[i].picture);
  }

  REQUIRE(request->expected.size() == 2);
  REQUIRE(request->expected[0].tensor != nullptr);
  CHECK(request->expected[0].tensor->shape() == Shape{2});
  CHECK(request->expected[0].name == "y.npy");
  REQUIRE(request->expected[0].tolerance.has_value());
  CHECK(request->expected[0].tolerance->absolute == 0.5);
  CHECK(request->expected[0].tolerance->relative == 0.75);
  CHECK(request->expected[1].tensor == nullptr);
  CHECK(request->expected[1].name == "z.npy");
  CHECK_FALSE(request->expected[1].tolerance.has_value());

  REQUIRE(request->tensors.size() == 7);  // of the bindings but the local memory and the sampler; then the uniforms
  for (const TensorArgument& tensor : request->tensors) REQUIRE(tensor.host != nullptr);
  CHECK(request->tensors[0].host->as<float>()[0] == 1);
  CHECK(request->tensors[0].host->as<float>()[1] == 2.5F);
  CHECK(request->tensors[3].host->as<std::int16_t>()[0] == -5);
  const auto axes = request->tensors[5].host->as<std::uint32_t>();
  CHECK(std::vector<std::uint32_t>(axes.begin(), axes.end()) == std::vector<std::uint32_t>{9, 1, 2, 3});
  const auto values = request->tensors[6].host->bytes();
  REQUIRE(values.size() == 24);
  double gains[2] = {};
  std::int64_t count = 0;
  std::memcpy(gains, values.data(), sizeof gains);
  std::memcpy(&count, values.data() + sizeof gains, sizeof count);
  CHECK(gains[0] == 0.5);
  CHECK(gains[1] == -1);
  CHECK(count == 7);
}

TEST_CASE("job request: a kernel's source is read with its folders, and its entry is main", "[job_request]") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "lib");
  write_contents(folder / "lib/part.glsl", "part\n");
  write_contents(folder / "k.comp", "#version 430\n#include <part.glsl>\nmain\n");
  JobConfig job = kernel_job(folder, values_of(DType::f32, {1}));
  job.text.clear();
  const Status missing = failure_of(job);
  CHECK(missing.code == StatusCode::invalid_argument);
  CHECK_THAT(missing.message, Catch::Contains("part.glsl"));
  job.include = {"lib"};
  const auto request = data::make_request(job);
  INFO((request ? std::string() : request.error().text()));
  REQUIRE(request);
  const auto& spec = std::get<UserKernelSpec>(request->spec);
  CHECK(spec.text == "#version 430\n#line 1 1\npart\n#line 3 0\nmain\n");
  CHECK(spec.includes == std::vector<std::string>{"lib/part.glsl"});
  CHECK(spec.entry == "main");
}

TEST_CASE("job request: the alpha key holds for each picture of the job", "[job_request]") {
  const ScratchFolder folder;
  auto samples = HostTensor::create(DType::u8, {1, 1, 2});  // grey 0.2, alpha 0.4
  REQUIRE(samples);
  (*samples)->as<std::uint8_t>()[0] = 51;
  (*samples)->as<std::uint8_t>()[1] = 102;
  REQUIRE(data::store_tensor(folder / "p.png", **samples).ok());

  JobConfig layer;  // its input and its constant
  layer.op = "conv2d";
  layer.spec = Conv2dSpec{.n = 1, .c = 2, .h = 1, .w = 1, .k = 1, .r = 1, .s = 1};
  layer.input = layer.weights = "p.png";
  layer.base = folder.path();
  KernelBindingConfig input;
  input.label = "bindings[0]";
  input.access = Access::read;
  input.input = "p.png";
  KernelBindingConfig result;
  result.label = "bindings[1]";
  result.access = Access::write;
  result.dtype = DType::f32;
  result.shape = {1, 2, 1, 1};
  result.output = "y.npy";
  result.expect = "p.png";
  JobConfig kernel = kernel_job(folder, input);
  kernel.bindings.push_back(result);
  for (const Alpha alpha : {Alpha::keep, Alpha::premultiply}) {
    INFO(to_string(alpha));
    const double grey = alpha == Alpha::keep ? 0.2 : 0.08;
    layer.alpha = kernel.alpha = alpha;
    const std::vector<Loaded> operands = loaded_of(layer);
    REQUIRE(operands.size() == 3);
    CHECK(operands[0].shape == Shape{1, 2, 1, 1});
    CHECK(operands[0].first == Approx(grey));
    CHECK(operands[1].shape == Shape{1, 2, 1, 1});
    CHECK(operands[1].constant);
    CHECK(operands[1].first == Approx(grey));
    const auto request = data::make_request(kernel);
    INFO((request ? std::string() : request.error().text()));
    REQUIRE(request);
    REQUIRE(request->tensors.size() == 2);
    REQUIRE(request->tensors[0].host != nullptr);
    CHECK(request->tensors[0].host->shape() == Shape{1, 2, 1, 1});
    CHECK(request->tensors[0].host->as<float>()[0] == Approx(grey));
    REQUIRE(request->expected.size() == 1);
    REQUIRE(request->expected[0].tensor != nullptr);
    CHECK(request->expected[0].tensor->as<float>()[0] == Approx(grey));
  }
  kernel.alpha = Alpha::drop;
  kernel.bindings.pop_back();
  const auto dropped = data::make_request(kernel);
  REQUIRE(dropped);
  REQUIRE(dropped->tensors.size() == 1);
  REQUIRE(dropped->tensors[0].host != nullptr);
  CHECK(dropped->tensors[0].host->shape() == Shape{1, 1, 1, 1});
}
