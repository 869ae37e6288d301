// The programs of a cache folder, read with its key, and a way to put back what a test changed in one, signed.
#pragma once

#include "base/secret_key.hpp"
#include "cache/entry_format.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

inline std::string bytes_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// The files of the folder's entries, sorted.
inline std::vector<std::filesystem::path> entry_files(const std::filesystem::path& cache) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache)) {
    if (entry.path().extension() == ".bin") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline EntryKey entry_key(const std::filesystem::path& key_file) {
  const auto secret = read_secret_key(key_file, IfMissing::fail);
  REQUIRE(secret);
  return EntryKey(*secret);
}

inline ProgramBinary stored_program(const std::filesystem::path& file, const EntryKey& key) {
  const std::string bytes = bytes_in(file);
  const auto decoded = decode_entry(std::as_bytes(std::span(bytes)), key);
  REQUIRE(decoded.rejection == Rejection::none);
  const auto payload = inflate_payload(decoded.entry);
  REQUIRE(payload);
  auto program = decode_payload(std::string(decoded.entry.format), *payload);
  REQUIRE(program);
  return std::move(*program);
}

inline void store_program(const std::filesystem::path& file, const EntryKey& key, const ProgramBinary& program) {
  const std::string bytes = bytes_in(file);
  const auto decoded = decode_entry(std::as_bytes(std::span(bytes)), key);
  REQUIRE(decoded.rejection == Rejection::none);
  const std::vector<std::byte> payload = encode_payload(program);
  EntryView entry;
  entry.format = decoded.entry.format;
  entry.material = decoded.entry.material;
  entry.stored = payload;
  entry.compression = Compression::none;
  entry.build_ns = decoded.entry.build_ns;
  const auto encoded = encode_entry(entry, key);
  REQUIRE(encoded);
  put(file, {reinterpret_cast<const char*>(encoded->data()), encoded->size()});
}

}  // namespace kiln::test
