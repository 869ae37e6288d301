// The results of a job: what they are like, what they are compared with, and the files that they go into.
#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/data/kernel_job.hpp"
#include "core/data/random_of.hpp"
#include "core/data/scratch_folder.hpp"

using namespace kiln;
using kiln::test::contents_of;
using kiln::test::failure_of;
using kiln::test::kernel_job;
using kiln::test::random_of;
using kiln::test::ScratchFolder;

namespace {

KernelBindingConfig binding_of(Access access, DType dtype, Shape shape) {
  KernelBindingConfig binding;
  binding.label = "bindings[0]";
  binding.access = access;
  binding.dtype = dtype;
  binding.shape = std::move(shape);
  return binding;
}

KernelBindingConfig image_of(ImageFormat format, std::vector<std::int64_t> size) {
  KernelBindingConfig image = binding_of(Access::write, DType::invalid, {});
  image.kind = BindingKind::image;
  image.format = format;
  image.size = std::move(size);
  return image;
}

std::shared_ptr<HostTensor> only_tensor(const JobConfig& job, data::Memory* memory = nullptr) {
  const auto request = data::make_request(job, nullptr, memory);
  INFO((request ? std::string() : request.error().text()));
  REQUIRE(request);
  REQUIRE(request->tensors.size() == 1);
  return request->tensors[0].host;
}

template <class T>
std::vector<T> elements_of(const HostTensor& tensor) {
  const auto elements = tensor.as<T>();
  return {elements.begin(), elements.end()};
}

}  // namespace

TEST_CASE("job results: a result in memory is the application's tensor", "[job_request]") {
  const ScratchFolder folder;
  data::Memory memory;
  memory.tensors["y"] = random_of(DType::f32, {2, 3}, 1);
  const auto told = [&](const KernelBindingConfig& binding) {
    const auto request = data::make_request(kernel_job(folder, binding), nullptr, &memory);
    return request ? std::string() : request.error().text();
  };
  KernelBindingConfig result = binding_of(Access::write, DType::invalid, {});
  result.output = "memory:y";
  CHECK(only_tensor(kernel_job(folder, result), &memory) == memory.tensors["y"]);
  result.dtype = DType::i32;
  CHECK(told(result) ==
        "invalid_argument: bindings[0]: output: found \"memory:y\": float32 [2, 3], expected int32 [2, 3]");
  result.dtype = DType::f32;
  result.shape = {3, 2};
  CHECK(told(result) ==
        "invalid_argument: bindings[0]: output: found \"memory:y\": float32 [2, 3], expected float32 [3, 2]");
  result.output = "memory:z";
  CHECK(told(result) ==
        "not_found: bindings[0]: output: found \"memory:z\", but the application provides no tensor of "
        "this name");

  KernelBindingConfig image = image_of(ImageFormat::r32f, {3, 2});
  image.output = "memory:y";
  CHECK(only_tensor(kernel_job(folder, image), &memory) == memory.tensors["y"]);
  image.size = {2, 3};
  CHECK(told(image) ==
        "invalid_argument: bindings[0]: output: found \"memory:y\": float32 [2, 3], expected float32 [3, 2]");

  KernelBindingConfig both = binding_of(Access::read_write, DType::invalid, {});
  both.input = both.output = "memory:y";
  CHECK(only_tensor(kernel_job(folder, both), &memory) == memory.tensors["y"]);
}

TEST_CASE("job results: a name in memory that looks like a picture is no picture", "[job_request]") {
  KernelBindingConfig image = image_of(ImageFormat::rgba32f, {3, 2});
  image.output = "memory:y.png";
  CHECK_FALSE(data::declared(image).shown);
  image.output = "y.png";
  CHECK(data::declared(image).shown);
  image.kind = BindingKind::buffer;
  CHECK_FALSE(data::declared(image).shown);
  image = image_of(ImageFormat::rgba32f, {});
  image.access = Access::read;
  image.input = "memory:x.png";
  CHECK_FALSE(data::declared(image).picture);
  image.input = "x.png";
  CHECK(data::declared(image).picture);
  CHECK_FALSE(data::declared(image).shown);
  image.kind = BindingKind::sampler;
  CHECK(data::declared(image).picture);
  image.kind = BindingKind::buffer;
  CHECK_FALSE(data::declared(image).picture);
}

TEST_CASE("job results: without a form of its own, a result is like its reference", "[job_request]") {
  const ScratchFolder folder;
  REQUIRE(data::store_tensor(folder / "ref.npy", *random_of(DType::i16, {2, 3}, 1)).ok());
  REQUIRE(data::store_tensor(folder / "in.npy", *random_of(DType::i16, {3, 2}, 1)).ok());
  KernelBindingConfig result = binding_of(Access::write, DType::invalid, {});
  result.output = "y.npy";
  result.expect = "ref.npy";
  const auto like = only_tensor(kernel_job(folder, result));
  CHECK(like->dtype() == DType::i16);
  CHECK(like->shape() == Shape{2, 3});
  CHECK(elements_of<std::int16_t>(*like) == std::vector<std::int16_t>(6, 0));
  result.shape = {2, 3};
  CHECK(only_tensor(kernel_job(folder, result))->dtype() == DType::i16);
  result.shape = {};
  result.dtype = DType::f32;
  CHECK(only_tensor(kernel_job(folder, result))->shape() == Shape{2, 3});
  CHECK(only_tensor(kernel_job(folder, result))->dtype() == DType::f32);
  result.shape = {3, 2};
  CHECK(failure_of(kernel_job(folder, result)).text() ==
        "invalid_argument: bindings[0]: expect ref.npy: found float32 [2, 3], expected float32 [3, 2] as in y.npy");
  KernelBindingConfig both = binding_of(Access::read_write, DType::invalid, {});
  both.input = "in.npy";
  both.output = "y.npy";
  both.expect = "ref.npy";
  CHECK(failure_of(kernel_job(folder, both)).text() ==
        "invalid_argument: bindings[0]: expect ref.npy: found int16 [2, 3], expected int16 [3, 2] as in in.npy");

  result.expect.clear();
  result.dtype = DType::invalid;
  CHECK(
      failure_of(kernel_job(folder, result)).text() ==
      "invalid_argument: bindings[0]: output y.npy: type is not set. Add a format, for example format = \"rgba8\", or "
      "a dtype, for example dtype = \"float32\"");
  result.dtype = DType::f32;
  const auto alone = data::make_request(kernel_job(folder, result));
  REQUIRE(alone);
  CHECK(alone->expected.empty());
  result.shape = {0};
  CHECK(failure_of(kernel_job(folder, result)).text() ==
        "invalid_argument: bindings[0]: has no elements, expected at least one");
}

TEST_CASE("job results: the form of a result without an input", "[job_request]") {
  struct Case {
    ImageFormat format;
    std::vector<std::int64_t> size;
    std::string output;
    DType dtype;
    Shape shape;
  };
  const Case cases[] = {
      {ImageFormat::declared, {}, "y.npy", DType::invalid, {}},
      {ImageFormat::declared, {}, "y.png", DType::u8, {}},
      {ImageFormat::declared, {4, 3}, "y.png", DType::u8, {3, 4, 4}},
      {ImageFormat::r8, {4, 3}, "y.npy", DType::u8, {3, 4}},
      {ImageFormat::r8, {5}, "y.npy", DType::u8, {5}},
      {ImageFormat::rg16f, {2, 3, 4}, "y.npy", DType::f16, {4, 3, 2, 2}},
      {ImageFormat::rgba16, {4, 3}, "y.png", DType::u16, {3, 4, 4}},
      {ImageFormat::rgba32f, {4, 3}, "y.png", DType::u8, {3, 4, 4}},
      {ImageFormat::rgba32f, {4, 3}, "y.npy", DType::f32, {3, 4, 4}},
      {ImageFormat::rgba32f, {}, "y.npy", DType::f32, {}},
  };
  for (const Case& each : cases) {
    KernelBindingConfig image = image_of(each.format, each.size);
    image.output = each.output;
    INFO(facts_of(each.format).name << " to " << each.output);
    CHECK(data::form_of_output(image) == data::TensorForm{each.dtype, each.shape});
    image.kind = BindingKind::sampler;
    CHECK(data::form_of_output(image) == data::TensorForm{each.dtype, each.shape});
    image.dtype = DType::i32;
    CHECK(data::form_of_output(image) == data::TensorForm{DType::i32, each.shape});
  }
  KernelBindingConfig buffer = binding_of(Access::write, DType::i8, {3});
  buffer.size = {4, 3};
  CHECK(data::form_of_output(buffer) == data::TensorForm{DType::i8, {3}});
}

TEST_CASE("job results: the request for an input has the form of the format where the source has none",
          "[job_request]") {
  const data::Memory memory;
  JobConfig job;
  job.alpha = Alpha::premultiply;
  struct Case {
    std::string source;
    std::vector<std::int64_t> size;
    DType dtype;
    Shape shape;
  };
  const Case cases[] = {
      {"in.png", {4, 3}, DType::invalid, {}},   {"in.npy", {}, DType::invalid, {}},
      {"zeros:", {4, 3}, DType::u8, {3, 4, 2}}, {"zeros:", {}, DType::u8, {}},
      {"in.bin", {4, 3}, DType::u8, {3, 4, 2}}, {"in.bin", {}, DType::invalid, {}},
      {"memory:x", {4, 3}, DType::invalid, {}},
  };
  for (const Case& each : cases) {
    INFO(each.source);
    KernelBindingConfig image = image_of(ImageFormat::rg8, each.size);
    image.access = Access::read;
    image.input = each.source;
    const data::TensorRequest request = data::request_of(job, image, "images.photo: input", &memory);
    CHECK(request.dtype == each.dtype);
    CHECK(request.shape == each.shape);
    CHECK(request.role == "images.photo: input");
    CHECK(request.alpha == Alpha::premultiply);
    CHECK(request.texels);
    CHECK(request.channels == 2);
    CHECK(request.sides == Shape(each.size.rbegin(), each.size.rend()));
    CHECK(request.memory == &memory);
    image.format = ImageFormat::declared;
    CHECK(data::request_of(job, image, "").channels == 4);
    CHECK(data::request_of(job, image, "").memory == nullptr);
  }
  KernelBindingConfig buffer = binding_of(Access::read, DType::i8, {3});
  buffer.input = "zeros:";
  buffer.size = {4, 3};
  const data::TensorRequest request = data::request_of(job, buffer, "input", &memory);
  CHECK(request.dtype == DType::i8);
  CHECK(request.shape == Shape{3});
  CHECK_FALSE(request.texels);
  CHECK(request.channels == 0);
  CHECK(request.sides.empty());
  CHECK(request.memory == &memory);
}

TEST_CASE("job results: the request for a reference has the form of the result where the source has none",
          "[job_request]") {
  const data::Memory memory;
  JobConfig job;
  job.alpha = Alpha::drop;
  struct Case {
    Access access;
    std::string source;
    Shape shape;
  };
  for (const Case& each :
       {Case{Access::write, "zeros:", {3}}, Case{Access::write, "ref.bin", {3}}, Case{Access::write, "ref.npy", {}},
        Case{Access::read_write, "zeros:", {}}, Case{Access::write, "memory:x", {}}}) {
    INFO(each.source);
    KernelBindingConfig result = binding_of(each.access, DType::i8, {3});
    result.expect = each.source;
    const data::TensorRequest request = data::request_of_expected(job, result, "expect", &memory);
    CHECK(request.dtype == DType::i8);
    CHECK(request.shape == each.shape);
    CHECK(request.role == "expect");
    CHECK(request.alpha == Alpha::drop);
    CHECK_FALSE(request.texels);
    CHECK(request.channels == 0);
    CHECK(request.memory == &memory);
  }
  for (const auto& [format, channels] : {std::pair{ImageFormat::declared, 4}, std::pair{ImageFormat::rg8, 2}}) {
    KernelBindingConfig image = image_of(format, {4, 3});
    image.expect = "ref.png";
    const data::TensorRequest request = data::request_of_expected(job, image, "expect", &memory);
    CHECK(request.texels);
    CHECK(request.channels == channels);
    CHECK(request.shape.empty());
    image.expect = "zeros:";
    CHECK(data::request_of_expected(job, image, "expect", &memory).shape == Shape{3, 4, channels});
  }
}

TEST_CASE("job results: values are exact integers, or rounded numbers", "[job_request]") {
  const ScratchFolder folder;
  const auto tensor_of = [&](DType dtype, std::vector<std::int64_t> integers, std::vector<double> numbers) {
    KernelBindingConfig binding = binding_of(Access::read, dtype, {});
    binding.integers = std::move(integers);
    binding.numbers = std::move(numbers);
    CHECK(data::has_values(binding));
    return data::make_request(kernel_job(folder, binding));
  };
  const auto host = [](const Result<RunRequest>& request) {
    INFO((request ? std::string() : request.error().text()));
    REQUIRE(request);
    REQUIRE(request->tensors.size() == 1);
    return request->tensors[0].host;
  };
  CHECK_FALSE(data::has_values({}));
  using Integers = std::vector<std::int64_t>;
  CHECK(elements_of<std::int64_t>(*host(tensor_of(DType::i64, {-5, 7}, {}))) == Integers{-5, 7});
  CHECK(elements_of<std::int8_t>(*host(tensor_of(DType::i8, {-128, 127}, {}))) == std::vector<std::int8_t>{-128, 127});
  CHECK(elements_of<float>(*host(tensor_of(DType::f32, {16777216}, {}))) == std::vector<float>{16777216});
  CHECK(elements_of<double>(*host(tensor_of(DType::f64, {}, {0.1, -2}))) == std::vector<double>{0.1, -2});
  CHECK(elements_of<float>(*host(tensor_of(DType::f32, {}, {0.1, std::numeric_limits<float>::max()}))) ==
        std::vector<float>{0.1f, std::numeric_limits<float>::max()});
  CHECK(elements_of<std::uint16_t>(*host(tensor_of(DType::f16, {}, {0.1, -65519.5}))) ==
        std::vector<std::uint16_t>{0x2E66, 0xFBFF});
  CHECK(std::isnan(elements_of<float>(*host(tensor_of(DType::f32, {}, {std::nan("")})))[0]));
  CHECK(elements_of<std::int32_t>(*host(tensor_of(DType::i32, {}, {2.0, -3.0}))) == std::vector<std::int32_t>{2, -3});
  const auto told = [&](const Result<RunRequest>& request) {
    REQUIRE_FALSE(request);
    return request.error().text();
  };
  CHECK(
      told(tensor_of(DType::i8, {1, 128}, {})) ==
      "invalid_argument: bindings[0]: cannot convert int64 to int8 without loss: element [1] is 128, which int8 cannot "
      "represent");
  CHECK(told(tensor_of(DType::i32, {}, {2.5})) ==
        "invalid_argument: bindings[0]: cannot convert float64 to int32 without loss: element [0] is 2.5, which int32 "
        "cannot represent");
  CHECK(told(tensor_of(DType::f32, {}, {0.5, 1e39})) ==
        "invalid_argument: bindings[0]: value " + std::to_string(1e39) + ": out of range for float32");
}

TEST_CASE("job results: the extension of a source is its dialect", "[job_request]") {
  const std::pair<std::string, Dialect> known[] = {
      {"k.comp", Dialect::glsl},    {"k.glsl", Dialect::glsl},       {"k.cs", Dialect::glsl},
      {"k.compute", Dialect::glsl}, {"k.csh", Dialect::glsl},        {"k.shader", Dialect::glsl},
      {"k.cl", Dialect::opencl_c},  {"k.spv", Dialect::code_object},
  };
  for (const auto& [source, dialect] : known) {
    INFO(source);
    const auto found = data::dialect_of("deep/" + source);
    REQUIRE(found);
    CHECK(*found == dialect);
  }
  for (const auto& [source, extension] :
       {std::pair{"a/k.CL", ".CL"}, std::pair{"k", ""}, std::pair{"k.cl.txt", ".txt"}}) {
    const auto unknown = data::dialect_of(source);
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().text() ==
          "invalid_argument: kernel source " + std::string(source) + ": extension '" + extension +
              "', expected .comp, .glsl, .cs, .compute, .csh or .shader (GLSL), .cl (OpenCL C) or .spv (SPIR-V)");
  }
}

TEST_CASE("job results: a source is checked without its bindings", "[job_request]") {
  const ScratchFolder folder;
  JobConfig job = kernel_job(folder, binding_of(Access::read, DType::f32, {}));
  job.bindings[0].input = "none.npy";
  CHECK(data::check_source(job).ok());
  job.source = "k.spv";
  CHECK(data::check_source(job).text() ==
        "invalid_argument: text: found with source k.spv, expected a source in GLSL or OpenCL C");
  job.source = "k.txt";
  const Status kind = data::check_source(job);
  CHECK(kind.code == StatusCode::invalid_argument);
  CHECK_THAT(kind.message, Catch::Contains("extension '.txt'"));
  CHECK(failure_of(job).text() == kind.text());
  job.source = "none.comp";
  job.text.clear();
  const Status missing = data::check_source(job);
  CHECK(missing.code == StatusCode::io);
  CHECK_THAT(missing.message, Catch::Contains("none.comp"));
  kiln::test::write_contents(folder / "none.comp", "void main() {}");
  CHECK(data::check_source(job).ok());
}

TEST_CASE("job results: every result of a kernel goes into its file, and all of them together", "[job_request]") {
  const ScratchFolder folder;
  KernelBindingConfig input = binding_of(Access::read, DType::u8, {1});
  input.input = "zeros:";
  KernelBindingConfig local = binding_of(Access::read_write, DType::invalid, {});
  local.kind = BindingKind::local;
  local.local_bytes = 16;
  KernelBindingConfig first = binding_of(Access::write, DType::u8, {2}), second = first, unseen = first;
  first.output = "first.bin";
  second.input = "zeros:";
  second.access = Access::read_write;
  second.output = "sub/second.bin";
  JobConfig job = kernel_job(folder, input);
  for (const KernelBindingConfig& each : {local, first, unseen, second}) job.bindings.push_back(each);
  CHECK(data::outputs_of(job) == std::vector<std::filesystem::path>{folder / "first.bin", folder / "sub/second.bin"});
  const auto request = data::make_request(job);
  INFO((request ? std::string() : request.error().text()));
  REQUIRE(request);
  REQUIRE(request->tensors.size() == 4);
  const std::string contents[] = {"i", "ab", "--", "cd"};
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(request->tensors[i].host->bytes().size() == contents[i].size());
    std::ranges::copy(kiln::test::bytes_of(contents[i]), request->tensors[i].host->bytes().begin());
  }
  {
    const auto files = data::prepare_outputs(job, *request);
    REQUIRE(files);
    CHECK(files->size() == 2);
    CHECK_FALSE(std::filesystem::exists(folder / "first.bin"));
  }
  auto files = data::prepare_outputs(job, *request);
  REQUIRE(files);
  std::vector<std::vector<AtomicFile>> units;
  units.push_back(std::move(*files));
  for (const Status& status : commit_files({}, units)) CHECK(status.text() == Status().text());
  CHECK(contents_of(folder / "first.bin") == "ab");
  CHECK(contents_of(folder / "sub/second.bin") == "cd");

  job.bindings[2].output = "first.txt";
  const auto refused = data::prepare_outputs(job, *request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::invalid_argument);
  CHECK_THAT(refused.error().message, Catch::Contains("first.txt"));
}

TEST_CASE("job results: the result of a layer goes into its file, where it has one", "[job_request]") {
  const ScratchFolder folder;
  JobConfig job;
  job.op = "add";
  job.spec = AddSpec{.shape = {2}};
  job.input = "random:1";
  job.addend = "zeros:";
  job.base = "/nowhere";
  const auto request = data::make_request(job);
  REQUIRE(request);
  REQUIRE(request->tensors.size() == 3);
  request->tensors[2].host->as<float>()[1] = 7;
  const auto none = data::prepare_outputs(job, *request);
  REQUIRE(none);
  CHECK(none->empty());
  CHECK(data::outputs_of(job).empty());
  job.output = folder / "y.npy";
  CHECK(data::outputs_of(job) == std::vector<std::filesystem::path>{folder / "y.npy"});
  auto files = data::prepare_outputs(job, *request);
  REQUIRE(files);
  REQUIRE(files->size() == 1);
  CHECK(files->front().commit().ok());
  const auto back = data::load_tensor("y.npy", folder.path(), {DType::f32, {2}, "input"});
  REQUIRE(back);
  CHECK(elements_of<float>(**back) == std::vector<float>{0, 7});
  job.output = folder / "y.txt";
  CHECK_FALSE(data::prepare_outputs(job, *request));
}

TEST_CASE("job results: a layer's tensors may be the application's", "[job_request]") {
  data::Memory memory;
  memory.tensors["a"] = random_of(DType::f32, {2}, 1);
  memory.tensors["y"] = random_of(DType::f32, {2}, 2);
  JobConfig job;
  job.op = "add";
  job.spec = AddSpec{.shape = {2}};
  job.input = "memory:a";
  job.addend = "zeros:";
  job.output = "memory:y";
  const auto request = data::make_request(job, nullptr, &memory);
  INFO((request ? std::string() : request.error().text()));
  REQUIRE(request);
  REQUIRE(request->tensors.size() == 3);
  CHECK(request->tensors[0].host == memory.tensors["a"]);
  CHECK(request->tensors[2].host == memory.tensors["y"]);
  memory.tensors["y"] = random_of(DType::f32, {3}, 2);
  const auto other = data::make_request(job, nullptr, &memory);
  REQUIRE_FALSE(other);
  CHECK(other.error().text() == "invalid_argument: output: found \"memory:y\": float32 [3], expected float32 [2]");
}
