#include <kiln/digest.hpp>

#include <catch2/catch.hpp>

using namespace kiln;

TEST_CASE("digest: SHA-256 as FIPS 180-4 gives it", "[contract]") {
  CHECK(sha256(std::string_view()).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex() ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("digest: hexadecimal there and back", "[contract]") {
  const Digest digest = sha256("kiln");
  CHECK(Digest::from_hex(digest.hex()) == digest);
  const std::string hex = digest.hex();
  CHECK_FALSE(Digest::from_hex(""));
  CHECK_FALSE(Digest::from_hex(hex.substr(1)));
  CHECK_FALSE(Digest::from_hex(hex + "00"));
  CHECK_FALSE(Digest::from_hex("G" + hex.substr(1)));
  CHECK_FALSE(Digest::from_hex(std::string(64, 'A')));  // lower case only: one spelling each
}

TEST_CASE("key encoder: the documented bytes", "[contract]") {
  KeyEncoder encoder;
  encoder.field("ab", "c");
  using namespace std::string_view_literals;
  CHECK(encoder.material() == "\2\0\0\0ab\1\0\0\0\0\0\0\0c"sv);
  KeyEncoder number;
  number.field("n", 258);
  CHECK(number.material() == "\1\0\0\0n\10\0\0\0\0\0\0\0\2\1\0\0\0\0\0\0"sv);
  CHECK(encoder.digest() == sha256(encoder.material()));
}

TEST_CASE("key encoder: no two lists of fields share an encoding", "[contract]") {
  KeyEncoder one, other, two, empty;
  one.field("ab", "c");
  other.field("a", "bc");
  two.field("ab", "");
  two.field("c", "");
  CHECK(one.digest() != other.digest());
  CHECK(one.digest() != two.digest());
  CHECK(one.digest() != empty.digest());
}
