// The images of a job: their size, their channels, and what of them is a PNG.
#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <variant>

#include "core/data/kernel_job.hpp"
#include "core/data/scratch_folder.hpp"

using namespace kiln;
using kiln::test::failure_of;
using kiln::test::kernel_job;
using kiln::test::ScratchFolder;

static KernelBindingConfig photo(Access access) {
  KernelBindingConfig image;
  image.kind = BindingKind::image;
  image.label = "images.photo";
  image.name = "photo";
  image.access = access;
  return image;
}

TEST_CASE("job request: an image has an element for each channel of its format, and four of a declared one",
          "[job_request]") {
  const ScratchFolder folder;
  KernelBindingConfig image = photo(Access::write);
  image.output = "result.npy";
  image.size = {4, 3};
  const std::pair<ImageFormat, Shape> forms[] = {
      {ImageFormat::r8, {3, 4}}, {ImageFormat::rg8, {3, 4, 2}}, {ImageFormat::rgba8, {3, 4, 4}}};
  for (const auto& [format, shape] : forms) {
    image.format = format;
    const auto request = data::make_request(kernel_job(folder, image));
    INFO((request ? std::string() : request.error().text()));
    REQUIRE(request);
    CHECK(request->tensors[0].host->shape() == shape);
  }
  auto picture = HostTensor::create(DType::u8, {3, 4, 3});
  REQUIRE(picture);
  REQUIRE(data::store_tensor(folder / "rgb.png", **picture).ok());
  image.access = Access::read;
  image.output.clear();
  image.input = "rgb.png";
  image.format = ImageFormat::declared;
  const auto request = data::make_request(kernel_job(folder, image));
  INFO((request ? std::string() : request.error().text()));
  REQUIRE(request);
  CHECK(request->tensors[0].host->shape() == Shape{3, 4, 4});
}

TEST_CASE("job request: the size of an image is that of its file, and gives plain bytes theirs", "[job_request]") {
  const ScratchFolder folder;
  KernelBindingConfig image = photo(Access::read);
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

TEST_CASE("job request: only an image that becomes a PNG may lose something", "[job_request]") {
  const ScratchFolder folder;
  auto samples = HostTensor::create(DType::u8, {3, 4, 4});
  REQUIRE(samples);
  for (const char* const name : {"in.png", "in.npy"}) REQUIRE(data::store_tensor(folder / name, **samples).ok());
  struct Given {
    Access access;
    const char* input;
    const char* output;
    bool shown;
  };
  for (const Given& given :
       {Given{Access::write, "", "out.png", true}, Given{Access::write, "", "out.npy", false},
        Given{Access::read_write, "in.png", "", true}, Given{Access::read_write, "in.npy", "", false},
        Given{Access::read_write, "in.png", "out.npy", false}, Given{Access::read_write, "in.npy", "out.png", true},
        Given{Access::read, "in.png", "", false}}) {
    INFO(given.input << " to " << given.output);
    KernelBindingConfig image = photo(given.access);
    image.input = given.input;
    image.output = given.output;
    image.size = {4, 3};
    image.format = ImageFormat::rgba8;
    const auto request = data::make_request(kernel_job(folder, image));
    INFO((request ? std::string() : request.error().text()));
    REQUIRE(request);
    CHECK(std::get<UserKernelSpec>(request->spec).bindings[0].shown == given.shown);
  }
}
