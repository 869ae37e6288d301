#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <utility>
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
