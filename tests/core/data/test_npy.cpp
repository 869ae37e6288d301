#include "data/npy.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "core/data/random_of.hpp"
#include "core/data/scratch_folder.hpp"

using namespace kiln;
using kiln::test::contents_of;
using kiln::test::random_of;
using kiln::test::ScratchFolder;

namespace {

bool same(const HostTensor& a, const HostTensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

}  // namespace

TEST_CASE("npy: what is written is read back, every element type and rank", "[npy]") {
  const ScratchFolder folder;
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::i32, DType::u32, DType::u8, DType::i8, DType::i16,
                               DType::u16, DType::i64, DType::u64, DType::f16, DType::boolean);
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{1}, Shape{0}, Shape{3, 4}, Shape{2, 0, 3}, Shape{2, 3, 5, 7},
                             Shape(data::most_npy_dimensions, 1)}) {
    INFO(to_string(shape));
    const auto tensor = random_of(dtype, shape, 7);
    REQUIRE(data::write_npy(folder / "t.npy", *tensor).ok());
    const auto back = data::read_npy(folder / "t.npy");
    REQUIRE(back);
    CHECK(same(*tensor, **back));
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("npy: the written header is the one NumPy writes", "[npy]") {
  const ScratchFolder folder;
  REQUIRE(data::write_npy(folder / "t.npy", *random_of(DType::f32, {3, 4}, 1)).ok());
  const std::string file = contents_of(folder / "t.npy");
  REQUIRE(file.size() == 128 + 48);
  CHECK(file.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  CHECK(file.substr(8, 2) == std::string("\x76\x00", 2));
  CHECK(file.substr(10, 60) == "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ");
  CHECK(file[127] == '\n');
  CHECK_THAT(data::format_npy_header(DType::u8, {9}), Catch::Contains("'|u1'") && Catch::Contains("(9,)"));
  CHECK_THAT(data::format_npy_header(DType::boolean, {9}), Catch::Contains("'|b1'"));
  CHECK_THAT(data::format_npy_header(DType::f16, {9}), Catch::Contains("'<f2'"));
  CHECK_THAT(data::format_npy_header(DType::u64, {9}), Catch::Contains("'<u8'"));
  CHECK_THAT(data::format_npy_header(DType::f64, {}), Catch::Contains("'<f8'") && Catch::Contains("()"));
}

TEST_CASE("npy: a tensor of more dimensions than the reader takes is not written", "[npy]") {
  const ScratchFolder folder;
  const auto tensor = random_of(DType::u8, Shape(data::most_npy_dimensions + 1, 1), 1);
  const Status status = data::write_npy(folder / "t.npy", *tensor);
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK_THAT(status.message, Catch::Contains("33") && Catch::Contains("32"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("npy: writing to a missing folder names the file and the reason", "[npy]") {
  const ScratchFolder folder;
  const Status status = data::write_npy(folder / "none" / "t.npy", *random_of(DType::f32, {2}, 1));
  CHECK(status.code == StatusCode::not_found);
  CHECK_THAT(status.message, Catch::Contains("t.npy") && Catch::Contains("No such file"));
}
