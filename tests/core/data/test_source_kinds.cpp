// The kinds of sources, an application's tensors among them, and the files that tensors are stored in.
#include <kiln/data.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/data/random_of.hpp"
#include "core/data/scratch_folder.hpp"
#include "data/tensor_source.hpp"

using namespace kiln;
using kiln::test::contents_of;
using kiln::test::random_of;
using kiln::test::ScratchFolder;
using kiln::test::write_contents;

namespace {

// What load_tensor() and form_of() say alike.
Status refused_alike(const std::string& source, const std::filesystem::path& base, const data::TensorRequest& request) {
  const auto tensor = data::load_tensor(source, base, request);
  const auto form = data::form_of(source, base, request);
  REQUIRE_FALSE(tensor);
  REQUIRE_FALSE(form);
  CHECK(tensor.error().text() == form.error().text());
  return tensor.error();
}

std::shared_ptr<HostTensor> bytes_tensor(DType dtype, Shape shape, std::uint8_t value) {
  auto made = HostTensor::create(dtype, std::move(shape));
  REQUIRE(made);
  for (std::byte& byte : (*made)->bytes()) byte = std::byte{value};
  return *made;
}

}  // namespace

TEST_CASE("source kinds: what is a file, has a name in memory, and lacks a form", "[tensor_source]") {
  struct Case {
    std::string source;
    bool file, lacks_form, picture;
  };
  const Case cases[] = {
      {"zeros:", false, true, false},        {"random:1", false, true, false},
      {"he:2", false, true, false},          {"memory:x", false, false, false},
      {"zeros", true, false, false},         {"zeros:.bin", true, true, false},
      {"a.npy", true, false, false},         {"a.NPY", true, false, false},
      {"a.png", true, false, true},          {"a.PnG", true, false, true},
      {"a.bin", true, true, false},          {"a.RAW", true, true, false},
      {"memory:a.bin", false, false, false}, {"random.raw", true, true, false},
      {"he.png", true, false, true},         {"", true, false, false},
  };
  for (const Case& each : cases) {
    INFO(each.source);
    CHECK(data::is_file(each.source) == each.file);
    CHECK(data::lacks_form(each.source) == each.lacks_form);
    if (each.file) CHECK(data::is_picture(each.source) == each.picture);
  }
  CHECK(data::memory_name("memory:") == "");
  CHECK(data::memory_name("memory:name of it") == "name of it");
  CHECK_FALSE(data::memory_name("memory").has_value());
  CHECK_FALSE(data::memory_name("a memory:x").has_value());
}

TEST_CASE("source kinds: a tensor of the application is given itself, where it fits", "[tensor_source]") {
  data::Memory memory;
  memory.tensors["x"] = random_of(DType::i32, {3, 2}, 1);
  memory.tensors["deep"] = random_of(DType::u8, {3, 2, 4}, 1);
  memory.tensors["flat"] = random_of(DType::u8, {3}, 1);
  memory.tensors["deeper"] = random_of(DType::u8, {3, 2, 4, 1}, 1);
  const auto request = [&](DType dtype, Shape shape, Shape sides = {}) {
    return data::TensorRequest{
        .dtype = dtype, .shape = std::move(shape), .role = "input", .sides = std::move(sides), .memory = &memory};
  };
  const std::pair<std::string, data::TensorRequest> fitting[] = {
      {"x", request(DType::invalid, {})},         {"x", request(DType::i32, {})},
      {"x", request(DType::invalid, {3, 2})},     {"x", request(DType::i32, {3, 2})},
      {"x", request(DType::invalid, {}, {3, 2})}, {"deep", request(DType::u8, {}, {3, 2})},
  };
  for (std::size_t i = 0; i < std::size(fitting); ++i) {
    INFO("case " << i);
    const auto& [name, wanted] = fitting[i];
    const auto tensor = data::load_tensor("memory:" + name, "/nowhere", wanted);
    REQUIRE(tensor);
    CHECK(*tensor == memory.tensors.find(name)->second);
    const auto form = data::form_of("memory:" + name, "/nowhere", wanted);
    REQUIRE(form);
    CHECK(form->shape == memory.tensors.find(name)->second->shape());
    CHECK(form->dtype == memory.tensors.find(name)->second->dtype());
  }
  const auto told = [&](const std::string& name, const data::TensorRequest& wanted) {
    const Status status = refused_alike("memory:" + name, "/nowhere", wanted);
    CHECK(status.code == StatusCode::invalid_argument);
    return status.message;
  };
  CHECK(told("x", request(DType::f32, {})) == "input: found \"memory:x\": int32 [3, 2], expected float32 [3, 2]");
  CHECK(told("x", request(DType::invalid, {2, 3})) == "input: found \"memory:x\": int32 [3, 2], expected int32 [2, 3]");
  CHECK(told("x", request(DType::i32, {6})) == "input: found \"memory:x\": int32 [3, 2], expected int32 [6]");
  CHECK(told("x", request(DType::f32, {2, 3})) == "input: found \"memory:x\": int32 [3, 2], expected float32 [2, 3]");
  const std::string size = ", expected [3, 2] from size";
  CHECK(told("flat", request(DType::u8, {}, {3, 2})) == "input: found \"memory:flat\": shape [3]" + size);
  CHECK(told("deeper", request(DType::u8, {}, {3, 2})) == "input: found \"memory:deeper\": shape [3, 2, 4, 1]" + size);
  CHECK(told("x", request(DType::invalid, {}, {2, 3})) ==
        "input: found \"memory:x\": shape [3, 2], expected [2, 3] from size");
  CHECK(told("deep", request(DType::invalid, {}, {3, 4})) ==
        "input: found \"memory:deep\": shape [3, 2, 4], expected [3, 4] from size");

  const Status missing = refused_alike("memory:y", "/nowhere", request(DType::invalid, {}));
  CHECK(missing.code == StatusCode::not_found);
  CHECK(missing.message == "input: found \"memory:y\", but the application provides no tensor of this name");
  const Status nobody = refused_alike("memory:x", "/nowhere", {DType::i32, {3, 2}, "addend"});
  CHECK(nobody.code == StatusCode::invalid_argument);
  CHECK(nobody.message ==
        "addend: found \"memory:x\", which only an application can use, expected random:SEED, zeros: or a file");
}

TEST_CASE("source kinds: a constant of the application's tensor is a copy, made once for each shape",
          "[tensor_source]") {
  data::Memory memory;
  memory.tensors["w"] = random_of(DType::f32, {2, 3}, 1);
  const data::TensorRequest request{.dtype = DType::f32, .shape = {2, 3}, .role = "weights", .memory = &memory};
  const auto made = data::load_constant("memory:w", "/nowhere", request, &memory);
  REQUIRE(made);
  const float before = random_of(DType::f32, {2, 3}, 1)->as<float>()[5];
  memory.tensors["w"]->as<float>()[5] = before + 1;
  CHECK((*made)->tensor().as<float>()[5] == before);
  CHECK((*made)->tensor().shape() == Shape{2, 3});
  const auto again = data::load_constant("memory:w", "/nowhere", request, &memory);
  REQUIRE(again);
  CHECK(*again == *made);

  data::TensorRequest other = request;
  other.shape = {6};
  const auto zeros = data::load_constant("zeros:", "/nowhere", other, &memory);
  const auto others = data::load_constant("zeros:", "/nowhere", request, &memory);
  REQUIRE(zeros);
  REQUIRE(others);
  CHECK((*zeros)->tensor().shape() == Shape{6});
  CHECK((*others)->tensor().shape() == Shape{2, 3});
  CHECK(memory.constants.size() == 3);

  const auto alone = data::load_constant("zeros:", "/nowhere", other, nullptr);
  REQUIRE(alone);
  CHECK(*alone != *zeros);
  CHECK((*alone)->digest() == (*zeros)->digest());
  memory.tensors["none"] = bytes_tensor(DType::f32, {0}, 0);
  other.shape = {0};
  const auto none = data::load_constant("memory:none", "/nowhere", other, &memory);
  REQUIRE(none);
  CHECK((*none)->tensor().elements() == 0);
  const auto missing = data::load_constant("none.npy", "/nowhere", request, &memory);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == StatusCode::not_found);
  CHECK_FALSE(memory.constants.contains("none.npy [2, 3]"));
}

TEST_CASE("source kinds: he:SEED has the weights of its shape", "[tensor_source]") {
  for (const auto& [shape, products] :
       {std::pair<Shape, double>{{4, 2, 3, 5}, 30}, std::pair<Shape, double>{{8, 3}, 8}}) {
    const auto weights = data::load_tensor("he:7", "/nowhere", {DType::f32, shape, "weights"});
    REQUIRE(weights);
    const auto plain = random_of(DType::f32, shape, 7);
    const float most = static_cast<float>(std::sqrt(6.0 / products));
    for (std::size_t i = 0; i < 24; ++i) CHECK((*weights)->as<float>()[i] == plain->as<float>()[i] * most);
  }
  for (const data::TensorRequest& wrong :
       {data::TensorRequest{DType::f64, {4, 4}, "weights"}, data::TensorRequest{DType::f32, {2, 2, 2}, "weights"}}) {
    const auto weights = data::load_tensor("he:7", "/nowhere", wrong);
    REQUIRE_FALSE(weights);
    CHECK(weights.error().text() == "invalid_argument: weights: found \"he:7\" for " +
                                        std::string(numpy_name(wrong.dtype)) + " " + to_string(wrong.shape) +
                                        ", expected weights: float32 with two or four dimensions");
  }
  CHECK(refused_alike("he:x", "/nowhere", {DType::f32, {2, 2}, "weights"}).text() ==
        "invalid_argument: weights: found \"he:x\", expected he:SEED with SEED from 0 to 18446744073709551615");
  CHECK(refused_alike("random:18446744073709551616", "/nowhere", {DType::f32, {2}, "input"}).text() ==
        "invalid_argument: input: found \"random:18446744073709551616\", expected random:SEED with SEED from 0 to "
        "18446744073709551615");
  CHECK(refused_alike("he:1", "/nowhere", {DType::f32, {}, "weights"}).text() ==
        "invalid_argument: weights: found \"he:1\" without a shape, expected shape = [N, …]");
}

TEST_CASE("source kinds: plain bytes are the elements of the wanted type", "[tensor_source]") {
  const ScratchFolder folder;
  write_contents(folder / "x.RAW", std::string("\x01\x00\x00\x00\x02\x00\x00\x00", 8));
  const std::string who = "invalid_argument: input: file " + (folder / "x.RAW").string() + ": 8 bytes, expected ";
  const auto words = data::load_tensor("x.RAW", folder.path(), {DType::i32, {}, "input"});
  REQUIRE(words);
  CHECK((*words)->shape() == Shape{2});
  CHECK((*words)->as<std::int32_t>()[0] == 1);
  CHECK((*words)->as<std::int32_t>()[1] == 2);
  CHECK(refused_alike("x.RAW", folder.path(), {DType::i32, {3}, "input"}).text() == who + "12 for int32 [3]");
  CHECK(refused_alike("x.RAW", folder.path(), {DType::u16, {2, 3}, "input"}).text() == who + "12 for uint16 [2, 3]");
  CHECK(refused_alike("x.RAW", folder.path(), {DType::invalid, {7}, "input"}).text() == who + "7 for uint8 [7]");
  write_contents(folder / "x.bin", "abcde");
  CHECK(refused_alike("x.bin", folder.path(), {DType::u16, {}, "input"}).text() ==
        "invalid_argument: input: file " + (folder / "x.bin").string() +
            ": 5 bytes, expected a multiple of 2 for uint16");
}

TEST_CASE("source kinds: a conversion is noted, and only where there is one", "[tensor_source]") {
  const ScratchFolder folder;
  REQUIRE(data::store_tensor(folder / "x.npy", *random_of(DType::i16, {2}, 1)).ok());
  REQUIRE(data::store_tensor(folder / "p.png", *bytes_tensor(DType::u8, {1, 1, 1}, 255)).ok());
  std::vector<std::string> notes;
  CHECK(data::load_tensor("x.npy", folder.path(), {DType::i16, {}, "input"}, &notes));
  CHECK(data::load_tensor("x.npy", folder.path(), {DType::invalid, {}, "input"}, &notes));
  CHECK(notes.empty());
  CHECK(data::load_tensor("x.npy", folder.path(), {DType::f32, {}, "addend"}, &notes));
  CHECK(data::load_tensor("x.npy", folder.path(), {DType::f32, {}, "addend"}));
  const auto picture = data::load_tensor("p.png", folder.path(), {DType::f64, {}, "input"}, &notes);
  REQUIRE(picture);
  CHECK((*picture)->as<double>()[0] == 1);
  CHECK(notes ==
        std::vector<std::string>{
            "addend: file " + (folder / "x.npy").string() + ": converted from int16 to float32 without loss",
            "input: file " + (folder / "p.png").string() + ": converted from float32 to float64 without loss"});
}

TEST_CASE("source kinds: an error about a picture has its samples, its size and its alpha", "[tensor_source]") {
  const ScratchFolder folder;
  REQUIRE(data::store_tensor(folder / "wide.png", *bytes_tensor(DType::u16, {2, 3, 4}, 1)).ok());
  REQUIRE(data::store_tensor(folder / "rgb.png", *bytes_tensor(DType::u8, {2, 3, 3}, 1)).ok());
  const std::string wide = "input: file " + (folder / "wide.png").string() + ": ";
  const std::string rgb = "input: file " + (folder / "rgb.png").string() + ": ";
  const auto told = [&](const std::string& name, const data::TensorRequest& wanted) {
    const Status status = refused_alike(name, folder.path(), wanted);
    CHECK(status.code == StatusCode::invalid_argument);
    return status.message;
  };
  CHECK(told("wide.png", {DType::u8, {}, "input"}) == wide + "uint16 samples, expected uint8");
  CHECK(told("rgb.png", {DType::u16, {}, "input"}) == rgb + "uint8 samples, expected uint16");
  CHECK(told("wide.png", {DType::u16, {2, 3, 3}, "input"}) == wide + "shape [2, 3, 4], expected [2, 3, 3]");
  CHECK(told("wide.png", {DType::f32, {1, 4, 2, 3}, "input", Alpha::drop}) ==
        "alpha = \"drop\": " + wide + "shape [1, 3, 2, 3], expected [1, 4, 2, 3]");
  CHECK(told("wide.png", {DType::f32, {1, 4, 3, 2}, "input"}) == wide + "shape [1, 4, 2, 3], expected [1, 4, 3, 2]");
  CHECK(told("wide.png", {DType::f32, {4, 2, 3}, "input"}) == wide + "shape [1, 4, 2, 3], expected [4, 2, 3]");
  CHECK(told("rgb.png", {DType::f32, {1, 4, 2, 3}, "input"}) == rgb + "shape [1, 3, 2, 3], expected [1, 4, 2, 3]");
  data::TensorRequest texels{DType::invalid, {}, "input"};
  texels.texels = true;
  texels.channels = 4;
  texels.sides = {3, 2};
  CHECK(told("rgb.png", texels) == rgb + "shape [2, 3, 4], expected [3, 2] from size, with or without channels");
  texels.sides = {2, 3};
  const auto filled = data::load_tensor("rgb.png", folder.path(), texels);
  REQUIRE(filled);
  CHECK((*filled)->shape() == Shape{2, 3, 4});
  CHECK((*filled)->as<std::uint8_t>()[3] == 255);
}

TEST_CASE("source kinds: a tensor is stored in the format of the extension", "[tensor_source]") {
  const ScratchFolder folder;
  const auto tensor = bytes_tensor(DType::u8, {2, 3}, 65);
  for (const char* const name : {"a.bin", "sub/b.RAW", "sub/deeper/c.raw"}) {
    INFO(name);
    REQUIRE(data::store_tensor(folder / name, *tensor).ok());
    CHECK(contents_of(folder / name) == "AAAAAA");
  }
  REQUIRE(data::store_tensor(folder / "n.NPY", *tensor).ok());
  CHECK(contents_of(folder / "n.NPY").starts_with("\x93NUMPY"));
  REQUIRE(data::store_tensor(folder / "p.Png", *tensor).ok());
  CHECK(contents_of(folder / "p.Png").starts_with("\x89PNG"));
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const Status beside = data::store_tensor("here.bin", *tensor);
  std::filesystem::current_path(here);
  CHECK(beside.ok());
  CHECK(contents_of(folder / "here.bin") == "AAAAAA");

  CHECK(data::check_storable("x.npy", DType::f64, {7}).ok());
  CHECK(data::check_storable("x.bin", DType::f64, {7}).ok());
  CHECK(data::check_storable("x.raw", DType::f64, {7}).ok());
  CHECK(data::check_storable("x.png", DType::u8, {7, 7}).ok());
  CHECK_THAT(data::check_storable("d/x.png", DType::f64, {7}).text(),
             Catch::StartsWith("invalid_argument: file d/x.png: found f64 [7], expected "));
  CHECK(data::check_storable("d/x.gif", DType::u8, {7, 7}).text() ==
        "invalid_argument: file d/x.gif: found extension \".gif\", expected .npy, .png, .bin or .raw");
}

TEST_CASE("source kinds: a picture has one to four channels, and sides from 1 to 16384", "[tensor_source]") {
  const auto fits = [](DType dtype, Shape shape) { return data::check_storable("x.png", dtype, shape).ok(); };
  for (const DType dtype : {DType::u8, DType::u16}) {
    for (const Shape& shape : {Shape{1, 1}, Shape{16384, 16384}, Shape{1, 1, 1}, Shape{16384, 1, 4}}) {
      INFO(to_string(shape));
      CHECK(fits(dtype, shape));
    }
    for (const Shape& shape :
         {Shape{0, 1}, Shape{1, 0}, Shape{16385, 1}, Shape{1, 16385}, Shape{1, 1, 0}, Shape{1, 1, 5}, Shape{0, 1, 3},
          Shape{1, 0, 3}, Shape{16385, 1, 3}, Shape{4}, Shape{1, 1, 1, 1}}) {
      INFO(to_string(shape));
      CHECK_FALSE(fits(dtype, shape));
    }
  }
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{1, 4, 16384, 16384}}) CHECK(fits(DType::f32, shape));
  for (const Shape& shape : {Shape{1, 0, 1, 1}, Shape{1, 5, 1, 1}, Shape{2, 1, 1, 1}, Shape{0, 1, 1, 1},
                             Shape{1, 1, 0, 1}, Shape{1, 1, 1, 0}, Shape{1, 1, 16385, 1}, Shape{1, 1, 1, 16385},
                             Shape{1, 1}, Shape{1, 1, 1}, Shape{1, 1, 1, 1, 1}}) {
    INFO(to_string(shape));
    CHECK_FALSE(fits(DType::f32, shape));
  }
  CHECK_FALSE(fits(DType::i8, {1, 1}));
  CHECK_FALSE(fits(DType::f64, {1, 1, 1, 1}));
}
