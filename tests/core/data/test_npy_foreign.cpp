// .npy files that Kiln did not write: every version, byte order and index order; and every kind of damage.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "core/data/scratch_folder.hpp"
#include "data/npy.hpp"

using namespace kiln;
using kiln::test::bytes_of;
using kiln::test::ScratchFolder;
using kiln::test::write_contents;

namespace {

std::string npy(int major, const std::string& text, const std::string& data) {
  std::string file("\x93NUMPY", 6);
  file += {static_cast<char>(major), '\0', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  if (major > 1) file += {'\0', '\0'};
  return file + text + data;
}

std::string header_text(const std::string& descr, const std::string& fortran, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }  \n";
}

template <class T>
std::string raw(std::initializer_list<T> values, bool swapped = false) {
  std::string bytes;
  for (const T value : values) {
    std::string one(sizeof value, '\0');
    std::memcpy(one.data(), &value, sizeof value);
    bytes += swapped ? std::string(one.rbegin(), one.rend()) : one;
  }
  return bytes;
}

template <class T>
std::vector<T> values_of(const std::string& file) {
  const auto tensor = data::parse_npy(bytes_of(file), "x.npy");
  if (!tensor) FAIL(tensor.error().text());
  return {(*tensor)->template as<T>().begin(), (*tensor)->template as<T>().end()};
}

Status npy_failure(const std::string& file) {
  const auto tensor = data::parse_npy(bytes_of(file), "x.npy");
  if (tensor) return {};
  CHECK_THAT(tensor.error().message, Catch::StartsWith("file x.npy: "));
  return tensor.error();
}

}  // namespace

TEST_CASE("npy: versions 1 to 3, both byte orders", "[npy]") {
  const int version = GENERATE(1, 2, 3);
  const bool big = GENERATE(false, true);
  const std::string order = big ? ">" : "<";
  CHECK(values_of<float>(npy(version, header_text(order + "f4", "False", "(3,)"), raw({1.5f, -2.0f, 3.25f}, big))) ==
        std::vector<float>{1.5f, -2.0f, 3.25f});
  CHECK(values_of<double>(npy(version, header_text(order + "f8", "False", "(2,)"), raw({1e300, -0.5}, big))) ==
        std::vector<double>{1e300, -0.5});
  CHECK(values_of<std::int32_t>(npy(version, header_text(order + "i4", "False", "(2,)"), raw({-7, 1 << 20}, big))) ==
        std::vector<std::int32_t>{-7, 1 << 20});
  CHECK(values_of<std::uint32_t>(npy(version, header_text(order + "u4", "False", "(1,)"), raw({0xDEADBEEFu}, big))) ==
        std::vector<std::uint32_t>{0xDEADBEEFu});
  CHECK(values_of<std::uint8_t>(npy(version, header_text("|u1", "False", "(2,)"), "\x01\xFF")) ==
        std::vector<std::uint8_t>{1, 255});
}

TEST_CASE("npy: Fortran order is brought to C order", "[npy]") {
  CHECK(values_of<float>(npy(1, header_text("<f4", "True", "(2, 3)"), raw({1.f, 4.f, 2.f, 5.f, 3.f, 6.f}))) ==
        std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(values_of<std::uint8_t>(
            npy(1, header_text("|u1", "True", "(2, 2, 3)"), std::string("\x0\x6\x3\x9\x1\x7\x4\xA\x2\x8\x5\xB", 12))) ==
        std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(values_of<float>(npy(1, header_text(">f4", "True", "(2,)"), raw({1.f, 4.f}, true))) ==
        std::vector<float>{1, 4});
  CHECK(values_of<float>(npy(1, header_text("<f4", "True", "(3, 0)"), "")).empty());
}

TEST_CASE("npy: other spellings of the same dictionary", "[npy]") {
  const std::string data = raw({1.f, 2.f});
  for (const char* text : {"{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}",
                           "{'descr':'=f4','fortran_order':True,'shape':(2L,)}\n",
                           "  {'shape': ( 1 , 2 ), 'descr': '<f4', 'fortran_order': False}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1,),}"}) {
    INFO(text);
    CHECK(values_of<float>(npy(1, text, data)) == std::vector<float>{1, 2});
  }
  CHECK(values_of<float>(npy(1, header_text("<f4", "False", "()"), raw({9.f}))) == std::vector<float>{9});
}

TEST_CASE("npy: an element type that Kiln does not read is named, with those it does", "[npy]") {
  for (const char* descr :
       {"<f16", "<f3", "|b2", "<c16", "<c8", "|S4", "<U3", "|O", "|f4", "f4", ">", "", "<f44", "<u1 "}) {
    INFO(descr);
    const Status status = npy_failure(npy(1, header_text(descr, "False", "(2,)"), raw({1.f, 2.f})));
    CHECK(status.code == StatusCode::unsupported);
    CHECK_THAT(status.message, Catch::Contains("found descr '" + std::string(descr) + "'") &&
                                   Catch::Contains("expected bool, int8 to int64, uint8 to uint64, float16"));
  }
  const Status record =
      npy_failure(npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", raw({1.f})));
  CHECK(record.code == StatusCode::unsupported);
  CHECK_THAT(record.message, Catch::Contains("[('a', '<f4')]"));
}

TEST_CASE("npy: too little or too much data is told with both numbers", "[npy]") {
  const std::string text = header_text("<f4", "False", "(3, 4)");
  CHECK(npy_failure(npy(1, text, std::string(12, 'x'))).message ==
        "file x.npy: 12 bytes of data, expected 48 for shape [3, 4] of f32");
  CHECK(npy_failure(npy(1, text, std::string(49, 'x'))).message ==
        "file x.npy: 49 bytes of data, expected 48 for shape [3, 4] of f32");
  CHECK(npy_failure(npy(1, text, "")).code == StatusCode::corrupt);
}

TEST_CASE("npy: hostile shapes and lengths are refused before anything is allocated", "[npy]") {
  for (const char* shape : {"(9223372036854775807, 9223372036854775807)", "(4294967296, 4294967296, 2)", "(-1,)",
                            "(1099511627776,)", "(2, -3)", "(99999999999999999999,)"}) {
    INFO(shape);
    CHECK(npy_failure(npy(1, header_text("<f8", "False", shape), "")).code == StatusCode::corrupt);
  }
  // Within 2^40 bytes, but not in the file.
  CHECK_THAT(npy_failure(npy(1, header_text("<f4", "False", "(100000, 100000)"), "abcd")).message,
             Catch::Contains("4 bytes of data, expected 40000000000"));
  std::string endless(1, '(');
  for (int i = 0; i < 40; ++i) endless += "1,";
  CHECK(npy_failure(npy(1, header_text("<f4", "False", endless + ")"), raw({1.f}))).code == StatusCode::corrupt);
  std::string huge = npy(2, header_text("<f4", "False", "(1,)"), raw({1.f}));
  huge.replace(8, 4, "\xFF\xFF\xFF\xFF");
  CHECK_THAT(npy_failure(huge).message, Catch::Contains("4294967295") && Catch::Contains("65536"));
}

TEST_CASE("npy: damaged headers", "[npy]") {
  const std::string good = "'descr': '<f4', 'fortran_order': False, 'shape': (1,)";
  for (const std::string& text :
       {std::string(), std::string("{"), "{" + good, "{" + good + "} x", "{" + good + " 'descr': '<f4'}",
        "{" + good + ", 'descr': '<f4'}", "{" + good + ", 'more': 1}",
        std::string("{'descr': '<f4', 'fortran_order': False}"), std::string("{'descr': '<f4', 'shape': (1,)}"),
        std::string("{'fortran_order': False, 'shape': (1,)}"),
        std::string("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': [1]}"),
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': (,)}"), std::string("{'descr: '<f4'}"),
        std::string("{'descr' '<f4'}")}) {
    INFO(text);
    CHECK(npy_failure(npy(1, text, raw({1.f}))).code == StatusCode::corrupt);
  }
  CHECK_THAT(npy_failure("GIF89a, not a tensor").message, Catch::Contains("NUMPY"));
  const Status version = npy_failure(npy(4, header_text("<f4", "False", "(1,)"), raw({1.f})));
  CHECK(version.code == StatusCode::unsupported);
  CHECK_THAT(version.message, Catch::Contains("4.0") && Catch::Contains("3.0"));
}

TEST_CASE("npy: cut at every byte, a file is refused; each byte changed, it is refused or sane", "[npy]") {
  const ScratchFolder folder;
  const int version = GENERATE(1, 2);
  CAPTURE(version);
  const std::string whole = npy(version, header_text(">i4", "True", "(2, 3)"), raw({1, 2, 3, 4, 5, 6}, true));
  REQUIRE(values_of<std::int32_t>(whole).size() == 6);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    INFO("cut at " << bytes);
    const std::string cut = whole.substr(0, bytes);
    CHECK_FALSE(npy_failure(cut).ok());
    write_contents(folder / "cut.npy", cut);
    const auto tensor = data::read_npy(folder / "cut.npy");
    REQUIRE_FALSE(tensor);
    CHECK_THAT(tensor.error().message, Catch::Contains("cut.npy"));
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const auto tensor = data::parse_npy(bytes_of(changed), "x.npy");
      if (tensor) CHECK((*tensor)->bytes().size() <= changed.size());
    }
  }
}

TEST_CASE("npy: from a file as from memory, also past the largest header", "[npy]") {
  const ScratchFolder folder;
  std::string data;
  for (int i = 0; i < 50000; ++i) data += raw({static_cast<float>(i)});
  write_contents(folder / "big.npy", npy(3, header_text("<f4", "False", "(50000,)"), data));
  const auto tensor = data::read_npy(folder / "big.npy");
  REQUIRE(tensor);
  CHECK((*tensor)->as<float>()[49999] == 49999.0f);
  CHECK((*tensor)->as<float>()[0] == 0.0f);
}

TEST_CASE("npy: the fuzzer's seeds are what they are called", "[npy]") {
  int tensors = 0;
  for (const auto& file : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/corpus/npy")) {
    INFO(file.path());
    const std::string name = file.path().stem().string();
    CHECK(data::read_npy(file.path()).has_value() == (name != "record" && name != "huge" && name != "short"));
    ++tensors;
  }
  CHECK(tensors >= 10);
}

TEST_CASE("npy: what is not a regular file is refused at once", "[npy]") {
  const ScratchFolder folder;
  const auto none = data::read_npy(folder / "none.npy");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == StatusCode::not_found);
  CHECK_THAT(none.error().message, Catch::Contains("none.npy") && Catch::Contains("No such file"));
  const auto directory = data::read_npy(folder.path());
  REQUIRE_FALSE(directory);
  CHECK_THAT(directory.error().message, Catch::Contains("a folder"));
  REQUIRE(::mkfifo((folder / "fifo.npy").c_str(), 0600) == 0);
  const auto fifo = data::read_npy(folder / "fifo.npy");  // would wait for ever if it were opened as a plain file
  REQUIRE_FALSE(fifo);
  CHECK(fifo.error().code == StatusCode::invalid_argument);
}
