#include "amdgpu_pm4/code_object/object_file.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

namespace kiln::amdgpu_pm4 {

ObjectFile ObjectFile::named(const std::string& name) {
  std::ifstream file(KILN_SOURCE_DIR "/tests/corpus/code_object/" + name, std::ios::binary);
  INFO("corpus file " << name);
  REQUIRE(file.good());
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {{begin, begin + text.size()}};
}

Elf64_Shdr ObjectFile::section(std::string_view name) const {
  const auto header = get<Elf64_Ehdr>(0);
  const auto names = get<Elf64_Shdr>(header.e_shoff + header.e_shstrndx * sizeof(Elf64_Shdr));
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto each = get<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (name == reinterpret_cast<const char*>(bytes.data() + names.sh_offset + each.sh_name)) return each;
  }
  FAIL("no section " << name);
  return {};
}

std::size_t ObjectFile::behind(std::string_view text) const {
  const auto* const begin = reinterpret_cast<const char*>(bytes.data());
  const auto found = std::search(begin, begin + bytes.size(), text.begin(), text.end());
  INFO("text " << text);
  REQUIRE(found != begin + bytes.size());
  return static_cast<std::size_t>(found - begin) + text.size();
}

ObjectFile ObjectFile::with_text(std::string_view old, std::string_view changed) const {
  REQUIRE(old.size() == changed.size());
  ObjectFile file = *this;
  std::memcpy(file.bytes.data() + behind(old) - old.size(), changed.data(), changed.size());
  return file;
}

CodeObject ObjectFile::read() const {
  auto object = read_code_object(bytes);
  INFO((object ? std::string() : object.error().text()));
  REQUIRE(object.has_value());
  return std::move(*object);
}

std::string ObjectFile::refusal() const {
  const auto object = read_code_object(bytes);
  REQUIRE_FALSE(object.has_value());
  return object.error().text();
}

}  // namespace kiln::amdgpu_pm4
